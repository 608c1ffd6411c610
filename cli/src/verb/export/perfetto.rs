//! `rpd export perfetto`: Perfetto's own format.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::export::perfetto;

use super::timeline::TimelineArgs;
use crate::args::region::REGION_HELP;

/// Write a timeline for Perfetto (ui.perfetto.dev) in its own format
///
/// The same as rpd export chrome in a file of a third of the size: processes with their threads, calls and
/// markers; GPUs with their queues, operations, frames of markers and launches of graphs; arrows from calls to what they caused; queue depth,
/// idle GPUs and sensors over time.
#[derive(Args)]
#[command(after_help = format!("\
What is in it:
  times        ns on the trace's clock, which Perfetto takes for the time since boot; with the time of day where
               the recorder noted it
  categories   hip_api, hsa_api, cuda_api, marker_api: calls and markers; kernel_dispatch, memory_copy, memory_fill:
               operations; marker_frame: what a queue did for a marker; graph: for the launch of a graph
  arguments    corr_id: call, the same of call and operation; desc: arguments, type; agent, queue, pid, tid, stream,
               stream_ID: where it ran, and who launched it; grid, workgroup: workgroups and work-items by dimension;
               grid_size, workgroup_size: work-items; LDS_Block_Size, Scratch_Size, copy_bytes: bytes; VGPR_Count,
               SGPR_Count: registers
  QueueDepth   operations of the GPU between the begin of their launch and their end; Idle is 1 where there is none

{REGION_HELP}

A file appears when it is complete. Operations of a queue that overlap are on tracks of one name, which Perfetto shows as one.

Example:
  rpd export perfetto trace.rpd -o trace.pftrace
  rpd export perfetto trace.rpd -o step.pftrace.gz --in 'step 3' --gpu 0"))]
pub(crate) struct Perfetto {
    #[command(flatten)]
    timeline: TimelineArgs,
}

impl Perfetto {
    /// Writes the packets to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        self.timeline.check_binary()?;
        self.timeline.run(|source, out| {
            perfetto::export(source.file, source.trace, source.region, source.notes, out)
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
