//! `rpd api`: the calls of a program in order, as strace shows those of the kernel.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use regex::Regex;
use rpd_escape::{csv_field, json};
use rpd_postprocess::pattern::pattern;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::calls::{self, ReportedCall};
use rpd_postprocess::report::process_label::ProcessLabels;
use rpd_postprocess::trim::window::span;
use rpd_postprocess::{text, trace};
use rpd_schema::Version;
use serde::Serialize;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;

/// Show the calls of a program in order, each with its arguments and the operations it caused
///
/// One line per call or marker, as strace has it: thread, time since the first call, function and arguments, duration; below it a
/// line per operation. Where several processes have one id, the session and the process are in front of the thread.
#[derive(Args)]
#[command(after_help = format!("\
--csv: a call that caused several operations has a line for each, one that caused none has a line without.

{REGION_HELP}

Example:
  rpd api trace.rpd | less
  rpd api -n 20 --grep 'Memcpy|Malloc' trace.rpd
  rpd api --json trace.rpd | jq '.[] | select(.duration_ns > 1000000)'
  rpd api --tid 4711 --in 'step 3' trace.rpd"))]
pub(crate) struct Api {
    /// The trace
    file: PathBuf,
    /// Calls only whose function or arguments match this regular expression
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    grep: Option<Regex>,
    /// The first N calls only
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
    /// Write a JSON array, one call per line; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line, one line per call and operation; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// How calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// For people, as strace has it.
    Lines,
    /// A JSON array of objects, one per line.
    Json,
    /// A header line; a line per call and operation, or per call that caused none.
    Csv,
}

impl Api {
    /// Writes the calls to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read, has no such part, or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let (trace, version) = trace::open(&self.file, &*notes())?;
        if version == Version::V1 {
            bail!("{name} is of schema 1, which has launches and copies elsewhere; rpd top can read it");
        }
        let span = span(&trace).with_context(|| name.to_string())?;
        let selected = Region::from(self.region).select(&trace, version)?;
        let form = match (self.json, self.csv) {
            (true, _) => Form::Json,
            (false, true) => Form::Csv,
            (false, false) => Form::Lines,
        };
        let (mut shown, mut failed) = (0, None);
        let most = self.rows.map_or(usize::MAX, NonZeroUsize::get);
        output::write(|out| {
            let mut writer = CallWriter { out, form, zero: span.start_ns, is_first: true };
            let read = calls::each(&trace, version, &selected, |call, labels| {
                let line = format!("{}({})", call.name, call.arguments);
                if self.grep.as_ref().is_none_or(|pattern| pattern.is_match(&line)) {
                    shown += 1;
                    writer.call(&call, labels, &line)?;
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
        Ok(ExitCode::SUCCESS)
    }
}

/// Where calls are written, and how.
struct CallWriter<'a, W> {
    out: &'a mut W,
    form: Form,
    /// What times for people are counted from, ns.
    zero: i64,
    is_first: bool,
}

impl<W: Write> CallWriter<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        match self.form {
            Form::Lines => Ok(()),
            Form::Json => write!(self.out, "["),
            Form::Csv => writeln!(
                self.out,
                "pid,tid,start_ns,duration_ns,function,arguments,gpu,queue,operation,operation_start_ns,operation_duration_ns,session"
            ),
        }
    }

    fn call(&mut self, call: &ReportedCall, labels: &ProcessLabels, line: &str) -> io::Result<()> {
        // A trace that cannot be read leaves no header behind.
        let is_first = std::mem::replace(&mut self.is_first, false);
        if is_first {
            self.begin()?;
        }
        match self.form {
            Form::Lines => write_call(self.out, (call, labels), line, self.zero),
            Form::Json => {
                let separator = if is_first { "\n" } else { ",\n" };
                write!(self.out, "{separator}{}", json(serde_json::to_string(&CallObject::of(call))?))
            }
            Form::Csv => write_records(self.out, call),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if self.is_first {
            self.begin()?;
        }
        if self.form == Form::Json { writeln!(self.out, "\n]") } else { Ok(()) }
    }
}

/// A call as `--json` has it; times in ns on the trace's clock.
#[derive(Serialize)]
struct CallObject<'a> {
    session: i64,
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

impl CallObject<'_> {
    fn of(call: &ReportedCall) -> CallObject<'_> {
        let operations = call.operations.iter().map(|operation| OperationObject {
            gpu: operation.place.0,
            queue: operation.place.1,
            start_ns: operation.times.0,
            duration_ns: took(operation.times),
            name: &operation.name,
        });
        CallObject {
            session: call.session,
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

fn write_records(out: &mut impl Write, call: &ReportedCall) -> io::Result<()> {
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
    let session = call.session.to_string();
    for end in ends {
        output::write_csv_record(out, start.iter().chain(&end).chain([&session]))?;
    }
    Ok(())
}

fn write_call(
    out: &mut impl Write,
    (call, labels): (&ReportedCall, &ProcessLabels),
    line: &str,
    zero: i64,
) -> io::Result<()> {
    let after = |time: i64| (time.saturating_sub(zero)) as f64 / 1e9;
    let took = |times| duration(took(times) as f64);
    let (start, _) = call.times;
    let thread = match labels.is_ambiguous(call.pid) {
        true => labels.thread(call.session, call.pid, call.tid),
        false => call.tid.to_string(),
    };
    writeln!(out, "{thread} {:.9} {} <{}>", after(start), text::escape(line), took(call.times))?;
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
