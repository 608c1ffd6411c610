//! The `rpd` command: `rpd record -- COMMAND`, and verbs on .rpd files.
//!
//! | file | owns |
//! |---|---|
//! | `cli.rs` | the command line and the list of verbs |
//! | `verb/` | one verb each, readable from top to bottom |
//! | `destination.rs` | the file that `record` writes, and what may happen to an existing one |
//! | `preload.rs`, `launch.rs`, `system.rs` | running a command with the recorder in it, unnoticed |
//! | `report.rs`, `executable.rs`, `empty_trace.rs` | why a run recorded nothing |
//! | `layout.rs`, `layout/` | the tables that a trace has, and what their ids refer to |
//! | `arguments.rs`, `subclass.rs`, `deserialize.rs` | arguments in a text; as columns of a table; rows that were written as markers |
//! | `derive.rs`, `trim.rs`, `merge.rs` | making a trace out of others: a stretch of one, several in one |
//! | `moment.rs`, `ids.rs`, `twins.rs`, `dedupe.rs` | times that people name, sets of ids, equal texts |
//! | `trace.rs`, `op_kind.rs`, `ranking.rs`, `contents.rs` | questions to a trace |
//! | `check.rs`, `check/` | what is wrong with a trace, and mending it |
//! | `pass.rs`, `pass/`, `interruption.rs` | tables that are worked out of a trace and kept in it |
//! | `table.rs`, `text.rs`, `quantity.rs`, `output.rs`, `note.rs`, `progress.rs` | answers: aligned, harmless, with units |
//!
//! Data goes to standard output, notes to standard error. Exit status: 0 done, 1 failed, 2 wrong usage;
//! `record` has the command's, `check` has 1 for a file with errors. A reader that closes the pipe early has seen enough: that is success.

#![deny(unsafe_code)]

mod arguments;
mod calls;
mod check;
mod cli;
mod contents;
mod dedupe;
mod derive;
mod deserialize;
mod destination;
mod empty_trace;
mod executable;
mod hip_library;
mod ids;
mod interruption;
mod launch;
mod layout;
mod loader;
mod merge;
mod moment;
mod note;
mod op_kind;
mod output;
mod pass;
mod preload;
mod progress;
mod quantity;
mod ranking;
mod recorded;
mod report;
mod roctx;
mod subclass;
mod system;
mod table;
mod text;
mod trace;
mod trim;
mod twins;
mod verb;

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note::note(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
