//! The arguments of the verbs that make passes, and of the one that lists them.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::pass::Pass;
use rpd_postprocess::passes::{autograd, callstack, graph};

use crate::verb::{apply, passes};

/// What every verb that makes a pass is given.
#[derive(Args)]
struct Making {
    /// The trace; it is changed in one transaction
    file: PathBuf,
    /// Make the result again where the trace has it already
    #[arg(long)]
    redo: bool,
    /// Write what was made and found as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(about = callstack::Callstack.definition().about, after_help = "\
For each call and each call on its stack, itself included, table ext_callstack has a row. Calls that
overlap without nesting are counted; each is below the innermost call that contains all of it.

Example:
  rpd callstack trace.rpd
  sqlite3 trace.rpd 'select * from callStack_inclusive_name order by gpu_time desc limit 10'")]
pub(super) struct Callstack {
    #[command(flatten)]
    making: Making,
}

#[derive(Args)]
#[command(about = graph::Graph.definition().about, after_help = "\
Captures, instantiations and launches are matched within a process and by time. A graph of which only
launches were recorded is composed of what one of them ran: its row in ext_graph says composed.

Example:
  rpd graph trace.rpd
  sqlite3 trace.rpd 'select * from graphLaunch order by gpuTime desc limit 10'
  sqlite3 trace.rpd 'select graphExec, count(*) from graphKernel group by 1'")]
pub(super) struct Graph {
    #[command(flatten)]
    making: Making,
}

#[derive(Args)]
#[command(about = autograd::Autograd::PLAIN.definition().about, after_help = "\
The fields of a marker NAME[, seq = S][, op_id = I][, sizes = [..]][, input_op_ids = [..]] become columns
of table ext_autogradapi, and its arguments the bare NAME, so that call stacks group by operator and the
file shrinks; --redo puts them back first. Markers that only look like that are counted and left alone.
The call stacks are made too where they are missing.

Example:
  rpd autograd trace.rpd
  sqlite3 trace.rpd 'select * from autogradKernel order by total_gpu desc limit 10'
  rpd autograd --redo --keep-args trace.rpd")]
pub(super) struct Autograd {
    #[command(flatten)]
    making: Making,
    /// Leave the arguments of the markers as they are
    #[arg(long)]
    keep_args: bool,
    /// Do not make the call stacks
    #[arg(long)]
    skip_callstacks: bool,
}

/// Show which passes a trace has, and whether rows were added since
#[derive(Args)]
#[command(after_help = "\
States: absent; current; stale: rows were added or removed since, make it anew with --redo (deserialize and
strings: run it again); unknown: made by another tool; partial: begun by a tool that did not come to its end.

Example:
  rpd passes trace.rpd")]
pub(super) struct Passes {
    /// The trace
    file: PathBuf,
    /// Write a JSON array
    #[arg(long)]
    json: bool,
}

impl Callstack {
    pub(super) fn run(self) -> Result<()> {
        apply::run(&callstack::Callstack, &self.making.into())
    }
}

impl Graph {
    pub(super) fn run(self) -> Result<()> {
        apply::run(&graph::Graph, &self.making.into())
    }
}

impl Autograd {
    pub(super) fn run(self) -> Result<()> {
        let pass = autograd::Autograd { keep_args: self.keep_args, skip_callstacks: self.skip_callstacks };
        apply::run(&pass, &self.making.into())
    }
}

impl Passes {
    pub(super) fn run(self) -> Result<()> {
        passes::run(&self.file, self.json)
    }
}

impl From<Making> for apply::Request {
    fn from(args: Making) -> apply::Request {
        apply::Request { file: args.file, redo: args.redo, json: args.json }
    }
}
