//! `rpd api`: the calls of a program in order, as strace shows those of the kernel.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use regex::Regex;
use rpd_postprocess::moment::Stretch;
use rpd_postprocess::report::calls::{self, Call};
use rpd_postprocess::trim::window::{Window, span};
use rpd_postprocess::{text, trace};
use rpd_schema::Version;
use serde::Serialize;

use crate::output;
use crate::output::csv_field::csv_field;
use crate::output::json::json;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The trace.
    pub(crate) file: PathBuf,
    /// Calls of that process only.
    pub(crate) pid: Option<i64>,
    /// Calls of that thread only.
    pub(crate) thread: Option<i64>,
    /// Calls that begin in there only.
    pub(crate) within: Option<Stretch>,
    /// Calls only whose function or arguments match.
    pub(crate) grep: Option<Regex>,
    /// At most so many; all if None.
    pub(crate) rows: Option<usize>,
    /// How to write them.
    pub(crate) form: Form,
}

/// How calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people, as strace has it.
    Lines,
    /// A JSON array of objects, one per line.
    Json,
    /// A header line; a line per call and operation, or per call that caused none.
    Csv,
}

/// Writes the calls to standard output.
///
/// # Errors
/// When the trace cannot be read, has no such stretch, or standard output cannot be written.
pub(crate) fn run(request: &Request) -> Result<()> {
    let name = request.file.display();
    let (trace, version) = trace::open(&request.file, &*notes())?;
    if version == Version::V1 {
        bail!("{name} is of schema 1, which has launches and copies elsewhere; rpd top can read it");
    }
    let span = span(&trace).with_context(|| name.to_string())?;
    let mut conditions = vec!["1".to_string()];
    if let Some(stretch) = &request.within {
        let window = Window::resolve(&trace, version, span, stretch)?;
        conditions.push(window.condition("A.start"));
    }
    conditions.extend(request.pid.map(|pid| format!("A.pid = {pid}")));
    conditions.extend(request.thread.map(|thread| format!("A.tid = {thread}")));
    let (mut shown, mut failed) = (0, None);
    let most = request.rows.unwrap_or(usize::MAX);
    output::write(|out| {
        let mut writer = Writer { out, form: request.form, zero: span.start_ns, is_first: true };
        writer.begin()?;
        let read = calls::each(&trace, version, &conditions.join(" AND "), |call| {
            let line = format!("{}({})", call.name, call.arguments);
            if request.grep.as_ref().is_none_or(|pattern| pattern.is_match(&line)) {
                shown += 1;
                writer.call(&call, &line)?;
            }
            Ok(if shown < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        // What cannot be written is the pipe's matter, what cannot be read the trace's.
        match read.map_err(|error| error.downcast::<io::Error>()) {
            Err(Ok(error)) => Err(error),
            Err(Err(error)) => {
                failed = Some(error);
                Ok(())
            }
            Ok(()) => writer.end(),
        }
    })?;
    if let Some(error) = failed {
        return Err(error.context(format!("cannot read the calls of {name}")));
    }
    if shown == 0 {
        note(format_args!("{name} has no such call; rpd info shows what it holds"));
    }
    Ok(())
}

/// Where calls are written, and how.
struct Writer<'a, W> {
    out: &'a mut W,
    form: Form,
    /// What times for people are counted from, ns.
    zero: i64,
    is_first: bool,
}

impl<W: Write> Writer<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        match self.form {
            Form::Lines => Ok(()),
            Form::Json => write!(self.out, "["),
            Form::Csv => writeln!(
                self.out,
                "pid,tid,start_ns,duration_ns,function,arguments,gpu,queue,operation,operation_start_ns,operation_duration_ns"
            ),
        }
    }

    fn call(&mut self, call: &Call, line: &str) -> io::Result<()> {
        match self.form {
            Form::Lines => write_call(self.out, call, line, self.zero),
            Form::Json => {
                let separator = if self.is_first { "\n" } else { ",\n" };
                self.is_first = false;
                write!(self.out, "{separator}{}", json(serde_json::to_string(&Object::of(call))?))
            }
            Form::Csv => write_records(self.out, call),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if self.form == Form::Json { writeln!(self.out, "\n]") } else { Ok(()) }
    }
}

/// A call as `--json` has it; times in ns on the trace's clock.
#[derive(Serialize)]
struct Object<'a> {
    pid: i64,
    tid: i64,
    start_ns: i64,
    duration_ns: i64,
    function: &'a str,
    arguments: &'a str,
    operations: Vec<OperationObject<'a>>,
}

#[derive(Serialize)]
struct OperationObject<'a> {
    gpu: i64,
    queue: i64,
    start_ns: i64,
    duration_ns: i64,
    name: &'a str,
}

fn took((start, end): (i64, i64)) -> i64 {
    end.saturating_sub(start).max(0)
}

impl Object<'_> {
    fn of(call: &Call) -> Object<'_> {
        let operations = call.operations.iter().map(|operation| OperationObject {
            gpu: operation.place.0,
            queue: operation.place.1,
            start_ns: operation.times.0,
            duration_ns: took(operation.times),
            name: &operation.name,
        });
        Object {
            pid: call.pid,
            tid: call.tid,
            start_ns: call.times.0,
            duration_ns: took(call.times),
            function: &call.name,
            arguments: &call.arguments,
            operations: operations.collect(),
        }
    }
}

fn write_records(out: &mut impl Write, call: &Call) -> io::Result<()> {
    let start = [call.pid, call.tid, call.times.0, took(call.times)].map(|number| number.to_string());
    let texts = [&call.name, &call.arguments].map(|text| csv_field(text).into_owned());
    let start: Vec<String> = start.into_iter().chain(texts).collect();
    let mut ends: Vec<[String; 5]> = call
        .operations
        .iter()
        .map(|operation| {
            let number = |number: i64| number.to_string();
            [
                number(operation.place.0),
                number(operation.place.1),
                csv_field(&operation.name).into_owned(),
                number(operation.times.0),
                number(took(operation.times)),
            ]
        })
        .collect();
    if ends.is_empty() {
        ends.push(Default::default());
    }
    for end in ends {
        output::write_csv_record(out, start.iter().chain(&end))?;
    }
    Ok(())
}

fn write_call(out: &mut impl Write, call: &Call, line: &str, zero: i64) -> io::Result<()> {
    let after = |time: i64| (time.saturating_sub(zero)) as f64 / 1e9;
    let took = |times| duration(took(times) as f64);
    let (start, _) = call.times;
    writeln!(out, "{} {:.9} {} <{}>", call.tid, after(start), text::escape(line), took(call.times))?;
    for operation in &call.operations {
        let (gpu, queue) = operation.place;
        let delay = operation.times.0.saturating_sub(start).max(0) as f64;
        writeln!(
            out,
            "    gpu {gpu} queue {queue} +{} {} <{}>",
            duration(delay),
            text::escape(&operation.name),
            took(operation.times)
        )?;
    }
    Ok(())
}
