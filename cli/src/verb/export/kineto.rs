//! `rpd export kineto`: what tools of PyTorch read.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::export::kineto;

use super::timeline::TimelineArgs;
use crate::args::region::REGION_HELP;
use crate::output::note::note;

/// Write the JSON of PyTorch's profiler, for HolisticTraceAnalysis and other tools of PyTorch
///
/// Calls, operations, markers, and arrows between them, with the names and categories that these tools look for. HolisticTraceAnalysis
/// takes a file for each rank: name a session or a process of a trace that has several, and a GPU where it uses several.
#[derive(Args)]
#[command(after_help = format!("\
Keys of the events:
  pid, tid     process and thread as the trace has them; GPU n has the pid n if no process has it
  ts, dur      us with three decimals, ts from the trace's first event on, which is baseTimeNanoseconds; exact
  cat          cuda_runtime: calls of HIP and CUDA; cuda_driver: of CUDA's driver and HSA; user_annotation: markers; cpu_op: those that
               PyTorch pushed for its operators, and other calls; kernel, gpu_memcpy, gpu_memset: operations;
               cuda_sync: barriers; gpu_user_annotation: what a queue did for a marker; ac2g: arrows
  args         correlation, External id: the same of a call and what it caused; stream: queue, counted from 1, of
               NVIDIA's GPUs the stream; device: GPU; grid, block: workgroups and work-items by dimension; shared
               memory, bytes: bytes; memory bandwidth: GB/s; registers per thread: vector registers; desc: arguments,
               type; hip_stream: stream; Sequence number, Record function id, Input Dims: of operators
  rank         of the first process that has one; otherwise 0

{REGION_HELP}

HolisticTraceAnalysis rounds times to microseconds unless HTA_DISABLE_NS_ROUNDING=1 is set.

Example:
  rpd export kineto trace.rpd -o rank0.json.gz
  rpd export kineto all.rpd -o rank3.json.gz --session 3 --gpu 3"))]
pub(crate) struct Kineto {
    #[command(flatten)]
    timeline: TimelineArgs,
}

impl Kineto {
    /// Writes the events to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let exported = self
            .timeline
            .run(|source, out| kineto::export(source.file, source.trace, source.region, source.notes, out))?;
        if exported.processes > 1 {
            note(format_args!(
                "the export has {} processes, and tools take one for a rank: name one with --session or --pid",
                exported.processes
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
