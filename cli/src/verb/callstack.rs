//! `rpd callstack`: who called whom.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::pass::Pass;
use rpd_postprocess::passes::callstack as pass;

use crate::verb::apply::Making;

#[derive(Args)]
#[command(about = pass::Callstack.definition().about, after_help = "\
For each call and each call on its stack, itself included, table ext_callstack has a row. Calls that
overlap without nesting are counted; each is below the innermost call that contains all of it.

Example:
  rpd callstack trace.rpd
  sqlite3 trace.rpd 'select * from callStack_inclusive_name order by gpu_time desc limit 10'")]
pub(crate) struct Callstack {
    #[command(flatten)]
    making: Making,
}

impl Callstack {
    /// Makes the pass, and says what it made or that it was there.
    ///
    /// # Errors
    /// When it cannot be made; the file is as it was then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.making.run(&pass::Callstack)
    }
}
