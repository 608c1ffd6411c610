//! `rpd trim`: a part of a trace as a trace of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::moment::{Moment, TimeRange};
use rpd_postprocess::text::{self, counted};
use rpd_postprocess::trim::{TrimOutput, Trimmed, trim};

use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;

/// To whoever names a part of the trace.
pub(crate) const WHY_NO_PART: &str =
    "a trace is cut by --start and --end alone; reports and exports take the other options";

/// Make a part of a trace a trace of its own
///
/// The new trace has the calls and markers that start in the window, the operations they caused, and the rows that refer
/// to those; sensors are cut to that time.
#[derive(Args)]
#[command(after_help = "\
Times of --start and --end:
  1500, 20us, 1.5ms, 2s     on the trace's clock, in ns without a unit
  +2s, -500ms               from the first call's start, before the last call's end
  25%                       of the time between the two
  marker:NAME, marker:NAME:2
                            where the markers with this text begin (--start) or end (--end); the second of them
  kernel:REGEX              where the first operation of such a name was launched, or the last one ended

FILE is never half changed: the result appears when it is complete.

Example:
  rpd trim trace.rpd -o middle.rpd --start 25% --end 75%
  rpd trim trace.rpd -o step.rpd --start 'marker:step 3' --end 'marker:step 5'
  rpd trim trace.rpd --dry-run --start +2s --end kernel:^gemm")]
pub(crate) struct Trim {
    /// The trace
    file: PathBuf,
    /// The new trace
    #[arg(short, long, value_name = "OUT", value_parser = value::output(),
          required_unless_present_any = ["in_place", "dry_run"])]
    output: Option<PathBuf>,
    /// Replace FILE by the result; the other rows are gone
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
    /// Where the window begins [default: at the first call]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// Where it ends [default: after the last call]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
    /// Write nothing, say what would remain
    #[arg(long, conflicts_with_all = ["output", "in_place"])]
    dry_run: bool,
    /// Write one JSON object about it; times in nanoseconds
    #[arg(long)]
    json: bool,
}

impl Trim {
    /// Trims the trace and says what is left of it.
    ///
    /// # Errors
    /// What failed; nothing has changed then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let destination = match &self.output {
            Some(out) => TrimOutput::New(out),
            None if self.in_place => TrimOutput::InPlace,
            None => TrimOutput::None,
        };
        let range = TimeRange { start: self.start, end: self.end };
        let trimmed = trim(&self.file, destination, &range, &notes())?;
        for dropped in &trimmed.dropped {
            note(format_args!("left out: {}", text::escape(dropped)));
        }
        if self.json {
            output::write_json(&trimmed)?;
            return Ok(ExitCode::SUCCESS);
        }
        let summary = summary(&trimmed);
        match destination {
            TrimOutput::New(out) => note(format_args!("{}: {summary}", text::escape_path(out))),
            TrimOutput::InPlace => note(format_args!("{}: {summary}", text::escape(&trimmed.file))),
            TrimOutput::None => output::write(|out| {
                use std::io::Write;
                writeln!(out, "{}: {summary}", text::escape(&trimmed.file))?;
                writeln!(out, "calls run from {} to {} ns", trimmed.span.start_ns, trimmed.span.end_ns)?;
                writeln!(out, "the window is  {} to {} ns", trimmed.window.start_ns, trimmed.window.end_ns)
            })?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn summary(trimmed: &Trimmed) -> String {
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
