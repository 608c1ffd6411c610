//! `rpd export chrome`: Trace Event JSON for Perfetto and chrome://tracing.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use rpd_postprocess::export::chrome::{self, Exported, Options};
use rpd_postprocess::text::{self, counted};
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output::file::OutputFile;
use crate::output::note::note;
use crate::output::progress::notes;

/// Write a timeline for Perfetto (ui.perfetto.dev) and chrome://tracing
///
/// Trace Event JSON: processes with their threads, calls and markers; GPUs with their queues, operations, frames of markers and launches
/// of graphs; arrows from calls to what they caused; queue depth, idle GPUs and sensors over time. TraceLens reads it as well.
#[derive(Args)]
#[command(after_help = format!("\
Keys of the events (ph X, M, C, s, f, i as in Google's Trace Event Format):
  pid, tid    process and thread as the trace has them; GPU n is 1000000000 + n, and its tracks are counted from 1
  ts, dur     us with three decimals, ts from the trace's first event on; exact
  cat         hip_api, hsa_api, cuda_api, marker_api: calls and markers; kernel_dispatch, memory_copy, memory_fill:
              operations; marker_frame: what a queue did for a marker; graph: for the launch of a graph
  args        begin_ns, end_ns, delta_ns: exact times on the trace's clock; corr_id: call, the same of call and
              operation; desc: arguments, type; agent, queue, pid, tid, stream, stream_ID: where it ran, and who
              launched it; grid, workgroup: workgroups and work-items by dimension; grid_size, workgroup_size: work-items;
              LDS_Block_Size, Scratch_Size, copy_bytes: bytes; VGPR_Count, SGPR_Count: registers
  QueueDepth  operations of the GPU between the begin of their launch and their end; Idle is 1 where there is none

{REGION_HELP}

A file appears when it is complete. Where operations of a queue overlap, further tracks have them: queue 0 (2).

Example:
  rpd export chrome trace.rpd -o trace.json.gz
  rpd export chrome trace.rpd -o step.json --in 'step 3' --gpu 0
  rpd export chrome trace.rpd --start 25% --end 75% | jq '.traceEvents | length'"))]
pub(crate) struct Chrome {
    /// The trace
    file: PathBuf,
    /// Write to this file, compressed if its name ends in .gz [default: standard output, also for -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// An object with the events and facts about them, or the array of the events alone
    #[arg(long, value_enum, default_value = "object")]
    format: Format,
    /// Times on the trace's clock; viewers lose its nanoseconds after 51 days of uptime
    #[arg(long)]
    absolute: bool,
    /// Replace OUT if it exists; never a trace
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// [`chrome::Format`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Object,
    Array,
}

impl From<Format> for chrome::Format {
    fn from(format: Format) -> chrome::Format {
        match format {
            Format::Object => chrome::Format::Object,
            Format::Array => chrome::Format::Array,
        }
    }
}

impl Chrome {
    /// Writes the events to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let notes = notes();
        let name = text::escape(&self.file.to_string_lossy()).into_owned();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let options =
            Options { format: self.format.into(), absolute: self.absolute, region: self.region.into() };
        let export = |out: &mut (dyn Write + Send)| {
            chrome::export(&self.file, (&trace, version), &options, &*notes, out)
        };
        let exported = match self.output.as_deref().filter(|path| *path != Path::new("-")) {
            None => explained(export(&mut io::stdout()), "standard output", &name)?,
            Some(path) => {
                let shown = text::escape(&path.to_string_lossy()).into_owned();
                let there = fs::metadata(path).ok();
                if rpd_schema::identify(path).is_ok() {
                    bail!("{shown} is a trace, which stays: name another file");
                }
                if there.is_some_and(|there| there.is_file()) && !self.force {
                    bail!("{shown}: the file exists already; name another, or replace it with --force");
                }
                let destination = OutputFile::at(path, &*notes);
                let mut destination = destination.with_context(|| format!("cannot write {shown}"))?;
                let exported = if path.extension().is_some_and(|extension| extension == "gz") {
                    let mut packed = GzEncoder::new(destination.file(), Compression::fast());
                    let exported = explained(export(&mut packed), &shown, &name)?;
                    packed.finish().with_context(|| format!("cannot write {shown}"))?;
                    exported
                } else {
                    explained(export(destination.file()), &shown, &name)?
                };
                destination.finish().with_context(|| format!("cannot write {shown}"))?;
                exported
            }
        };
        drop(notes);
        tell(&name, exported);
        Ok(ExitCode::SUCCESS)
    }
}

/// Says what could not be written, or else not be read.
fn explained(exported: Result<Exported>, output: &str, trace: &str) -> Result<Exported> {
    exported.map_err(|error| match error.is::<io::Error>() {
        true => error.context(format!("cannot write to {output}")),
        false => error.context(format!("cannot export {trace}")),
    })
}

/// Says what is not in the export.
fn tell(name: &str, Exported { calls, ops, impossible, no_numbers }: Exported) {
    if impossible > 0 {
        let rows = counted(impossible, "call or operation is", "calls and operations are");
        note(format_args!("{name}: {rows} left out: impossible times or places, which rpd check lists"));
    }
    if no_numbers > 0 {
        let values = counted(no_numbers, "value of a sensor is", "values of sensors are");
        note(format_args!("{name}: {values} left out: no numbers"));
    }
    if calls + ops == 0 {
        note(format_args!("{name} has no such call and no such operation; rpd info shows what it holds"));
    } else if ops == 0 {
        note(format_args!("{name} has no such operation; rpd info shows what it holds"));
    }
}
