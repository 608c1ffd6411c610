//! `rpd export chrome`: Trace Event JSON for Perfetto and chrome://tracing.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rpd_postprocess::export::chrome::{self, ChromeOptions};

use super::timeline::TimelineArgs;
use crate::args::region::REGION_HELP;

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
    #[command(flatten)]
    timeline: TimelineArgs,
    /// An object with the events and facts about them, or the array of the events alone
    #[arg(long, value_enum, default_value = "object")]
    format: Format,
    /// Times on the trace's clock; viewers lose its nanoseconds after 51 days of uptime
    #[arg(long)]
    absolute: bool,
}

/// [`chrome::ChromeLayout`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Object,
    Array,
}

impl From<Format> for chrome::ChromeLayout {
    fn from(format: Format) -> chrome::ChromeLayout {
        match format {
            Format::Object => chrome::ChromeLayout::Object,
            Format::Array => chrome::ChromeLayout::Array,
        }
    }
}

impl Chrome {
    /// Writes the events to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let Chrome { timeline, format, absolute } = self;
        timeline.run(|source, out| {
            let options = ChromeOptions { format: format.into(), absolute, region: source.region.clone() };
            chrome::export(source.file, source.trace, &options, source.notes, out)
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
