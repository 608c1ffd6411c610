//! The `rpd` command: `rpd record -- COMMAND`, and verbs on .rpd files.
//!
//! | folder | owns |
//! |---|---|
//! | `verb.rs`, `verb/` | the command line; the list of verbs; one verb each, readable from top to bottom |
//! | `args/` | values of options; the message for a command line that is wrong |
//! | `record/` | running a command with the recorder in it, unnoticed; the file that it writes; why it recorded nothing |
//! | `tools/` | madengine's tools in one recording |
//! | `machine/` | what this machine has, and what of it is recorded |
//! | `output/` | answers: aligned, harmless, with units; notes, progress |
//! | `system/` | signals, the terminal, what a program may do |
//!
//! What is worked out of a file is in the crate rpd-postprocess.
//!
//! Data goes to standard output, notes to standard error. Exit status: 0 done, 1 failed, 2 wrong usage;
//! `record` has the command's, `check` has 1 for a file with errors. A reader that closes the pipe early has seen enough: that is success.

#![deny(unsafe_code)]

mod args;
mod machine;
mod output;
mod record;
mod system;
mod tools;
mod verb;

use std::io;
use std::process::ExitCode;

use rpd_postprocess::notes::Interrupted;
use rpd_postprocess::text;

use crate::output::note::note;
use crate::system::signals::die_by;

/// Columns of a terminal for the name of a column, which may be an expression.
const COLUMN_WIDTH: usize = 40;

fn main() -> ExitCode {
    match verb::run() {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
                note(format_args!("interrupted: {interrupted}"));
                die_by(interrupted.signal);
            }
            note(format_args!("{}", in_words(&error)));
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
        Some(rusqlite::Error::Utf8Error(..)) => {
            "a table or a column has a name that is not UTF-8; sqlite3 can rename or drop it".to_string()
        }
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
