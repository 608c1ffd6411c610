//! The arguments of the verbs that make passes, and of the one that lists them.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::pass::{self, Pass};
use crate::verb::{apply, passes};

/// What every verb that makes a pass is given.
#[derive(Args)]
struct Making {
    /// The trace; it is changed in one transaction
    file: PathBuf,
    /// Make it anew where it is there already
    #[arg(long)]
    redo: bool,
    /// Write what was made and met as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(about = pass::Callstack.definition().about, after_help = "\
For each call and each call on its stack, itself included, table ext_callstack has a row. Calls that
overlap without nesting are counted; each is below the innermost call that contains all of it.

Example:
  rpd callstack trace.rpd
  sqlite3 trace.rpd 'select * from callStack_inclusive_name order by gpu_time desc limit 10'")]
pub(super) struct Callstack {
    #[command(flatten)]
    making: Making,
}

/// Show which passes a trace has, and whether rows were added since
#[derive(Args)]
#[command(after_help = "\
States: absent; current; stale: rows were added or removed since, make it anew with --redo; unknown:
made by another tool; partial: begun by a tool that did not come to its end.

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
        apply::run(&pass::Callstack, &self.making.into())
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
