//! What a pass is, and what it can do.

use anyhow::Result;

use super::change::Change;
use super::report::PassReport;

/// What a pass is called, reads and owns.
#[derive(Debug)]
pub struct Definition {
    /// The verb of the command line.
    pub name: &'static str,
    /// What it adds, in a line of `--help`.
    pub about: &'static str,
    /// What its tags in `rocpd_metadata` begin with: `Callstack` for `Callstack::Generated`.
    pub tag: &'static str,
    /// The tables whose rows it reads: without them it cannot be made, and rows added to them later are not in it.
    pub reads: &'static [&'static str],
    /// The tables that are its own; without the first one it is not there. None where it changes rows in their places.
    pub tables: &'static [&'static str],
    /// The views that are its own.
    pub views: &'static [&'static str],
    /// What it changes in tables that are not its own, in words, where that makes a trace differ from one in which it was not made.
    pub changes: Option<&'static str>,
    /// How the command line makes it, `rpd NAME FILE`; none where a verb of its own does.
    pub making: Option<Making>,
}

/// How a pass is made by the command line.
#[derive(Debug)]
pub struct Making {
    /// What its help says below the options, with an example.
    pub help: &'static str,
    /// The names of its own options, which take no value, and what they do.
    pub options: &'static [(&'static str, &'static str)],
    /// The pass with the options that are given.
    pub pass: fn(options: &[&str]) -> Box<dyn Pass>,
}

/// Something that can be worked out of the rows of a trace.
pub trait Pass: Sync {
    /// What it is called, reads and owns.
    fn definition(&self) -> &'static Definition;

    /// Makes its tables and views, of which nothing is there, and fills them.
    ///
    /// # Errors
    /// Whatever stops it; the whole change is undone then.
    fn run(&self, change: &Change<'_>) -> Result<PassReport>;

    /// Puts back what it once changed outside of its own tables, before those go.
    ///
    /// # Errors
    /// As [`Pass::run`].
    fn put_back(&self, _change: &Change<'_>) -> Result<()> {
        Ok(())
    }
}
