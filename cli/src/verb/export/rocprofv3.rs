//! `rpd export rocprofv3`: the JSON of AMD's rocprofv3.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::export::rocprofv3;

use super::timeline::TimelineArgs;
use crate::args::region::REGION_HELP;
use crate::output::note::note;

/// Write the JSON of AMD's rocprofv3, for TraceLens
///
/// The file has kernels, copies, calls and markers as rocprofv3 --output-format json has them. Such a file is of one process: where a trace
/// has several, name a session or a process.
#[derive(Args)]
#[command(after_help = format!("\
Keys of rocprofiler-sdk-tool[0]:
  metadata         pid, hostname, command: of the first process; init_time, fini_time: first begin and last end, ns
  agents           the CPUs are 0, GPU n is n + 1
  kernel_symbols   kernels by number, with the full name as each of the four
  strings          functions by kind and number; texts of markers by correlation id
  buffer_records   kernel_dispatch: kernels, fills and other operations, grid_size in work-items, dispatch_id: id in rocpd_op;
                   memory_copy: copies, bytes; hip_api: calls, of CUDA and others too; hsa_api: calls of HSA; marker_api:
                   markers. start_timestamp, end_timestamp: ns on the trace's clock; correlation_id: the call's id in
                   rocpd_api, the same of call and operation; thread_id: of the call; stream_id: 0 where it is not known
What the format asks for and the trace does not have is 0. Barriers are left out: the format has no record for them.

{REGION_HELP}

Example:
  rpd export rocprofv3 trace.rpd -o trace_results.json
  rpd export rocprofv3 all.rpd -o rank3_results.json --rank 3"))]
pub(super) struct Rocprofv3 {
    #[command(flatten)]
    timeline: TimelineArgs,
}

impl Rocprofv3 {
    /// Writes the records to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let exported = self
            .timeline
            .run(|source, out| rocprofv3::export(source.trace, source.region, source.notes, out))?;
        if exported.processes > 1 {
            note(format_args!(
                "the export has {} processes, and the format knows one: name one with --session, --rank or --pid",
                exported.processes
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
