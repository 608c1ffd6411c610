//! What a function that works long says to its caller, a line at a time, and its questions to the caller. This crate prints nothing and ends
//! nothing itself. The notes of docs/glossary.md are something else: files beside a trace (`rpd_schema`).

use std::any::Any;
use std::fmt::{self, Arguments, Display, Formatter};
use std::io;
use std::sync::Arc;

use rusqlite::Connection;

/// A program that uses this crate, as functions that work long see it. Each method but the first may be left as it is.
pub trait Notes: Send + Sync {
    /// Something that whoever reads the result has to know, as a line without an end.
    fn note(&self, line: Arguments<'_>);

    /// What is being worked on from now on.
    fn show(&self, _what: &str) {}

    /// It is still being worked on: called many times a second during a long statement.
    fn tick(&self) {}

    /// Begins to note the signals that would end the process, in place of ending it; until what this returns is dropped.
    /// A file is being changed then, and [`Notes::signal`] is asked often.
    ///
    /// # Errors
    /// Where that cannot be done; nothing is changed then.
    fn hold_signals(&self) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(()))
    }

    /// The signal that came since then. The work is undone because of it, and fails with [`Interrupted`].
    fn signal(&self) -> Option<i32> {
        None
    }
}

/// [`Notes`] that SQLite calls too, while it works.
pub type SharedNotes = Arc<dyn Notes>;

/// A signal came while a file was being changed. In an error of this crate it is found by `downcast_ref`.
#[derive(Debug)]
pub struct Interrupted {
    /// The signal, by which the process would have ended.
    pub signal: i32,
    /// How the file is now.
    outcome: String,
}

impl Display for Interrupted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.outcome)
    }
}

impl std::error::Error for Interrupted {}

/// `error` with `outcome`, which says how the file is now, in front; as an interruption if one came.
pub(crate) fn undone(error: anyhow::Error, notes: &dyn Notes, outcome: String) -> anyhow::Error {
    match notes.signal() {
        Some(signal) => error.context(Interrupted { signal, outcome }),
        None => error.context(outcome),
    }
}

/// Fails if a signal came, in a function that only reads and writes out.
pub(crate) fn look(notes: &dyn Notes) -> anyhow::Result<()> {
    match notes.signal() {
        Some(_) => Err(undone(anyhow::anyhow!("a signal came"), notes, "nothing was written".to_string())),
        None => Ok(()),
    }
}

/// Rows between two looks for a signal.
const ROWS_PER_LOOK: u64 = 1 << 12;

/// Rows between two lines of progress.
const ROWS_PER_LINE: u64 = 1 << 17;

/// Counts the rows that a function goes through, and says meanwhile how many there were.
pub(crate) struct RowCount<'a> {
    notes: &'a dyn Notes,
    /// What is said behind the number.
    done: &'static str,
    count: u64,
}

impl<'a> RowCount<'a> {
    /// None so far; `done` is what is said behind their number, such as "calls read".
    pub(crate) fn new(notes: &'a dyn Notes, done: &'static str) -> RowCount<'a> {
        RowCount { notes, done, count: 0 }
    }

    /// Counts one more.
    ///
    /// # Errors
    /// When a signal came.
    pub(crate) fn step(&mut self) -> anyhow::Result<()> {
        if self.count.is_multiple_of(ROWS_PER_LINE) {
            self.notes.show(&format!("{} {}", self.count, self.done));
        }
        if self.count.is_multiple_of(ROWS_PER_LOOK) {
            self.notes.tick();
            look(self.notes)?;
        }
        self.count += 1;
        Ok(())
    }
}

/// Instructions of SQLite's virtual machine between two looks for a signal: a fraction of a millisecond.
const LOOK: i32 = 4000;

/// Lets SQLite stop what it does on this connection when a signal comes, and tell that it is at work.
///
/// # Errors
/// Those of SQLite, none of which has to do with the file.
pub(crate) fn watch(connection: &mut Connection, notes: &SharedNotes) -> rusqlite::Result<()> {
    let notes = Arc::clone(notes);
    let look = move || {
        notes.tick();
        notes.signal().is_some()
    };
    connection.progress_handler(LOOK, Some(look))
}
