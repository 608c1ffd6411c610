//! `rpd graph`: captured graphs and their launches.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::pass::Pass;
use rpd_postprocess::passes::graph as pass;

use crate::verb::apply::Making;

#[derive(Args)]
#[command(about = pass::Graph.definition().about, after_help = "\
Captures, instantiations and launches are matched within a process and by time. If only launches of
a graph were recorded, the graph is composed of what one of them ran: its row in ext_graph says so
(composed).

Example:
  rpd graph trace.rpd
  sqlite3 trace.rpd 'select * from graphLaunch order by gpuTime desc limit 10'
  sqlite3 trace.rpd 'select graphExec, count(*) from graphKernel group by 1'")]
pub(crate) struct Graph {
    #[command(flatten)]
    making: Making,
}

impl Graph {
    /// Makes the pass, and says what it made or that it was there.
    ///
    /// # Errors
    /// When it cannot be made; the file is as it was then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.making.run(&pass::Graph)
    }
}
