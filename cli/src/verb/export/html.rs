//! `rpd export html`: what the reports say, as a page.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::export::html;

use super::timeline::TimelineArgs;
use crate::args::region::REGION_HELP;

/// Write a page with what the reports say, for any browser: one file, without network
///
/// What each GPU did; kernels, PyTorch's operators, calls, markers, copies, streams and ranks as tables that can be sorted and searched.
/// The page loads nothing and sends nothing: it can be mailed and kept. The timeline is another page: rpd export timeline.
#[derive(Args)]
#[command(after_help = format!("\
Sections:
  Overview   busy and idle time of each GPU, as rpd overlap has it
  Kernels, Calls, Copies, Streams and ranks
             as rpd top --by has them, with percentiles; copies by size as rpd copies
  Operators  what PyTorch's operators launched, by operator, kernel and shapes; rpd autograd need not have run
  Markers    as rpd markers has them
Columns are explained where the pointer rests on their titles. A click on a row shows all of it. If a table has more than
200,000 rows, the page has those with the most time. The same trace gives the same bytes.

{REGION_HELP}

Example:
  rpd export html trace.rpd -o trace.html
  rpd export html trace.rpd --rank 3 --in 'step 7' -o step7.html"))]
pub(super) struct Html {
    #[command(flatten)]
    timeline: TimelineArgs,
}

impl Html {
    /// Writes the page to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        self.timeline
            .run(|source, out| html::export(source.file, source.trace, source.region, source.notes, out))?;
        Ok(ExitCode::SUCCESS)
    }
}
