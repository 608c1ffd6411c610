//! `rpd api`: the calls of a program in order, as strace shows those of the kernel.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use regex::Regex;
use rpd_schema::Version;

use crate::calls::{self, Call};
use crate::moment::Stretch;
use crate::note::note;
use crate::quantity::duration;
use crate::trim::window::{Window, span};
use crate::{output, text, trace};

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The trace.
    pub(crate) file: PathBuf,
    /// Calls of that thread only.
    pub(crate) thread: Option<i64>,
    /// Calls that begin in there only.
    pub(crate) within: Option<Stretch>,
    /// Calls only whose function or arguments match.
    pub(crate) grep: Option<Regex>,
}

/// Writes the calls to standard output.
///
/// # Errors
/// When the trace cannot be read, has no such stretch, or standard output cannot be written.
pub(crate) fn run(request: &Request) -> Result<()> {
    let name = request.file.display();
    let (trace, version) = trace::open(&request.file)?;
    if version == Version::V1 {
        bail!("{name} is of schema 1, which has launches and copies elsewhere; rpd top can read it");
    }
    let span = span(&trace).with_context(|| name.to_string())?;
    let mut conditions = vec!["1".to_string()];
    if let Some(stretch) = &request.within {
        let window = Window::resolve(&trace, version, span, stretch)?;
        conditions.push(window.condition("A.start"));
    }
    conditions.extend(request.thread.map(|thread| format!("A.tid = {thread}")));
    let (mut shown, mut failed) = (0_u64, None);
    output::write(|out| {
        let read = calls::each(&trace, version, &conditions.join(" AND "), |call| {
            let line = format!("{}({})", call.name, call.arguments);
            if request.grep.as_ref().is_none_or(|pattern| pattern.is_match(&line)) {
                shown += 1;
                write_call(out, &call, &line, span.start_ns)?;
            }
            Ok(())
        });
        // What cannot be written is the pipe's matter, what cannot be read the trace's.
        match read.map_err(|error| error.downcast::<io::Error>()) {
            Err(Ok(error)) => Err(error),
            Err(Err(error)) => {
                failed = Some(error);
                Ok(())
            }
            Ok(()) => Ok(()),
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

fn write_call(out: &mut impl Write, call: &Call, line: &str, zero: i64) -> io::Result<()> {
    let after = |time: i64| (time.saturating_sub(zero)) as f64 / 1e9;
    let took = |(start, end): (i64, i64)| duration(end.saturating_sub(start).max(0) as f64);
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
