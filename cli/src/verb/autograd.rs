//! `rpd autograd`: PyTorch's operators.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::pass::Pass;
use rpd_postprocess::passes::autograd as pass;

use crate::verb::apply::Making;

#[derive(Args)]
#[command(about = pass::Autograd::PLAIN.definition().about, after_help = "\
The fields of a marker NAME[, seq = S][, op_id = I][, sizes = [..]][, input_op_ids = [..]] become columns
of table ext_autogradapi, and the marker's arguments become the bare NAME, so that call stacks group by
operator and the file shrinks; --redo puts them back first. Markers that only look like that are counted
and left alone.
The call stacks are made too where they are missing.

Example:
  rpd autograd trace.rpd
  sqlite3 trace.rpd 'select * from autogradKernel order by total_gpu desc limit 10'
  rpd autograd --redo --keep-args trace.rpd")]
pub(crate) struct Autograd {
    #[command(flatten)]
    making: Making,
    /// Leave the arguments of the markers as they are
    #[arg(long)]
    keep_args: bool,
    /// Do not make the call stacks
    #[arg(long)]
    skip_callstacks: bool,
}

impl Autograd {
    /// Makes the pass, and says what it made or that it was there.
    ///
    /// # Errors
    /// When it cannot be made; the file is as it was then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let pass = pass::Autograd { keep_args: self.keep_args, skip_callstacks: self.skip_callstacks };
        self.making.run(&pass)
    }
}
