//! The `rpd` command: `rpd record -- COMMAND`, and verbs on .rpd files.
//!
//! | file | owns |
//! |---|---|
//! | `cli.rs` | the command line and the list of verbs |
//! | `verb/` | one verb each, readable from top to bottom |
//! | `destination.rs`, `job.rs` | the file that `record` writes, what may happen to an existing one, and whose it is |
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
mod job;
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

/// Columns of a terminal for the name of a column, which may be an expression.
const COLUMN_WIDTH: usize = 40;

fn main() -> ExitCode {
    match cli::run() {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note::note(format_args!("{}", in_words(&error)));
            ExitCode::FAILURE
        }
    }
}

/// The failure and its causes in one line. Of SQLite's failures only the words, not the statement that they are about.
fn in_words(error: &anyhow::Error) -> String {
    let word = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<rusqlite::Error>() {
        Some(rusqlite::Error::SqlInputError { msg, .. }) => {
            format!("its tables are not as the format has them ({}); see: rpd check FILE", text::escape(msg))
        }
        Some(rusqlite::Error::InvalidColumnType(_, column, found)) => format!(
            "a row has a value of another type than the format has it ({}: {found}); see: rpd check FILE",
            text::shorten(&text::escape(column), COLUMN_WIDTH)
        ),
        _ => cause.to_string(),
    };
    let mut words = Vec::new();
    for cause in error.chain() {
        words.push(word(cause));
        // What is behind it is its number.
        if cause.is::<rusqlite::Error>() {
            break;
        }
    }
    words.join(": ")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
