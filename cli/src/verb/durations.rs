//! `rpd durations`: logduration's log, from a trace.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use rpd_duration_log::{LineName, LineTimes, LineWriter, LogFormat};
use rpd_postprocess::region::Region;
use rpd_postprocess::report::durations::{self, TimedDispatch};
use rpd_postprocess::text::{self, counted};
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::file::OutputFile;
use crate::output::note::note;
use crate::output::progress::notes;

/// Show every dispatch with its begin and end, as logduration's log has it
///
/// The dispatches come in order of time, from a trace of any recorder.
#[derive(Args)]
#[command(after_help = format!("\
Columns (JSON: keys), times in nanoseconds on the trace's clock, CLOCK_MONOTONIC:
  kernel    the demangled name of the kernel, quoted where it has commas
  dispatch  when it was launched: the begin of the call that launched it; startNs where no call is known
            (logduration has the time when it saw the packet, which is inside the call)
  startNs   when the GPU began it
  endNs     when the GPU ended it

REGEX is searched for in the name, as LOGDUR_FILTER is; ^ and $ mean its ends. Look-around and references
to groups, which ECMAScript has, are refused.

{REGION_HELP}

Example:
  rpd durations trace.rpd | head
  rpd durations trace.rpd --kernel 'gemm|conv' -o durations.csv
  rpd durations trace.rpd --format json | jq 'select(.endNs - .startNs > 1000000)'"))]
pub(crate) struct Durations {
    /// The trace
    file: PathBuf,
    /// Comma-separated values with a header line, or a JSON object a line
    #[arg(long, value_name = "FORMAT", default_value = "csv", value_parser = value::log_format())]
    format: LogFormat,
    /// Write to this file, which appears when it is complete [default: standard output, also for -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    region: RegionArgs,
}

impl Durations {
    /// Writes the dispatches to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let notes = notes();
        let name = text::escape_path(&self.file);
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region).select(&trace, version)?;
        let (mut written, mut impossible, mut failed) = (0, 0, None);
        let mut write = |out: &mut dyn Write| -> io::Result<()> {
            out.write_all(self.format.header().as_bytes())?;
            let mut log = LineWriter::new(self.format, out);
            let read = durations::each(&trace, &selected, &*notes, |dispatch| {
                let TimedDispatch { kernel, launched, start, end } = dispatch;
                written += 1;
                Ok(log.line(&LineName::new(self.format, kernel)?, LineTimes { launched, start, end })?)
            });
            match read.map_err(|error| error.downcast::<io::Error>()) {
                Ok(count) => impossible = count,
                // What cannot be written is the output's matter, what cannot be read the trace's.
                Err(Ok(error)) => return Err(error),
                Err(Err(error)) => failed = Some(error),
            }
            log.flush()
        };
        match self.output.as_deref().filter(|path| *path != Path::new("-")) {
            None => output::write(|out| write(out))?,
            Some(path) => {
                let shown = text::escape_path(path);
                if rpd_schema::identify(path).is_ok() {
                    bail!("{shown} is a trace, which stays: name another file for the durations");
                }
                let destination = OutputFile::at(path, &*notes);
                let mut destination = destination.with_context(|| format!("cannot write {shown}"))?;
                write(destination.file()).with_context(|| format!("cannot write {shown}"))?;
                if failed.is_none() {
                    destination.finish().with_context(|| format!("cannot write {shown}"))?;
                }
            }
        }
        drop(notes);
        if let Some(error) = failed {
            return Err(error.context(format!("cannot read the dispatches of {name}")));
        }
        if impossible > 0 {
            let dispatches = counted(impossible, "dispatch is", "dispatches are");
            note(format_args!("{name}: {dispatches} left out: impossible times, which rpd check lists"));
        }
        if written == 0 {
            note(format_args!("{name} has no such dispatch; rpd info shows what it holds"));
        }
        Ok(ExitCode::SUCCESS)
    }
}
