//! `rpd trim`: a stretch of a trace as a trace of its own.

use std::path::PathBuf;

use anyhow::Result;
use rpd_postprocess::moment::Stretch;
use rpd_postprocess::text;
use rpd_postprocess::text::counted;
use rpd_postprocess::trim::{Output, Trimmed, trim};

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;

/// What is asked for.
pub(crate) struct Request {
    /// The trace.
    pub(crate) file: PathBuf,
    /// Where what stays goes.
    pub(crate) destination: Destination,
    /// What stays.
    pub(crate) stretch: Stretch,
    /// One JSON object about it on standard output.
    pub(crate) json: bool,
}

/// Where what stays goes.
pub(crate) enum Destination {
    /// Into a new file.
    New(PathBuf),
    /// Into the trace's own place.
    InPlace,
    /// Nowhere.
    DryRun,
}

/// Trims the trace and says what is left of it.
///
/// # Errors
/// What failed; nothing has changed then.
pub(crate) fn run(request: &Request) -> Result<()> {
    let destination = match &request.destination {
        Destination::New(out) => Output::New(out),
        Destination::InPlace => Output::InPlace,
        Destination::DryRun => Output::None,
    };
    let trimmed = trim(&request.file, destination, &request.stretch, &notes())?;
    for dropped in &trimmed.dropped {
        note(format_args!("left out: {}", text::escape(dropped)));
    }
    if request.json {
        return output::write_json(&trimmed);
    }
    let told = told(&trimmed);
    match &request.destination {
        Destination::New(out) => note(format_args!("{}: {told}", text::escape(&out.to_string_lossy()))),
        Destination::InPlace => note(format_args!("{}: {told}", text::escape(&trimmed.file))),
        Destination::DryRun => output::write(|out| {
            use std::io::Write;
            writeln!(out, "{}: {told}", text::escape(&trimmed.file))?;
            writeln!(out, "calls run from {} to {} ns", trimmed.span.start_ns, trimmed.span.end_ns)?;
            writeln!(out, "the window is  {} to {} ns", trimmed.window.start_ns, trimmed.window.end_ns)
        })?,
    }
    Ok(())
}

fn told(trimmed: &Trimmed) -> String {
    format!(
        "{} of {}, {} of {}; {} of {}",
        trimmed.calls.kept,
        counted(trimmed.calls.of, "call", "calls"),
        trimmed.operations.kept,
        counted(trimmed.operations.of, "operation", "operations"),
        duration(trimmed.window.duration_ns() as f64),
        duration(trimmed.span.duration_ns() as f64)
    )
}
