//! Passes: what is worked out of the rows of a trace and kept in tables and views of its own beside them.
//!
//! [`PASSES`] is the one list of them: help texts, `rpd passes` and the tests read it. A pass with tables of its own is a
//! [`Pass`]: it is made in one transaction by [`apply`], is marked in `rocpd_metadata` and is not made a second time unless that
//! was asked for. Those that change rows in their places (`deserialize.rs`, `dedupe.rs`) can be run again at any time; of
//! subclasses (`subclass.rs`) there are any number.
//!
//! | file | owns |
//! |---|---|
//! | `change.rs` | changing a trace: one transaction, who else writes, Ctrl-C, what a failure means |
//! | `mark.rs` | whether a pass is in a file, and whether the file has grown since |
//! | `report.rs` | what a pass made, and what it met on the way |
//! | `object.rs` | tables and views: making and removing those of a pass |
//! | `sorted.rs` | sorting more records than fit into memory |
//! | `batch.rs` | rows to insert, many per statement |
//! | `texts.rs` | texts: finding, adding, removing what is not in use |
//! | `callstack.rs`, `callstack/` | who called whom |
//! | `graph.rs`, `graph/` | captured graphs and their launches |
//! | `autograd.rs`, `autograd/` | PyTorch's operators |

mod autograd;
mod batch;
mod callstack;
mod change;
mod graph;
mod mark;
mod object;
mod report;
pub(crate) mod sorted;
mod texts;

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;

pub(crate) use autograd::Autograd;
pub(crate) use callstack::Callstack;
pub(crate) use change::{Change, change, explain};
pub(crate) use graph::Graph;
pub(crate) use mark::{Freshness, State};
pub(crate) use object::require;
pub(crate) use report::Report;
pub(crate) use texts::{Texts, remove_unused};

use crate::{dedupe, deserialize, subclass, trace};

/// What a pass is called, reads and owns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    /// The verb of the command line.
    pub(crate) name: &'static str,
    /// What it adds, in a line of `--help`.
    pub(crate) about: &'static str,
    /// What its tags in `rocpd_metadata` begin with: `Callstack` for `Callstack::Generated`.
    pub(crate) tag: &'static str,
    /// The tables whose rows it reads: without them it cannot be made, and rows added to them later are not in it.
    pub(crate) reads: &'static [&'static str],
    /// The tables that are its own; without the first one it is not there. None where it changes rows in their places.
    pub(crate) tables: &'static [&'static str],
    /// The views that are its own.
    pub(crate) views: &'static [&'static str],
}

/// Something that can be worked out of the rows of a trace.
pub(crate) trait Pass: Sync {
    /// What it is called, reads and owns.
    fn definition(&self) -> &'static Definition;

    /// Makes its tables and views, of which nothing is there, and fills them.
    ///
    /// # Errors
    /// Whatever stops it; the whole change is undone then.
    fn run(&self, change: &Change<'_>) -> Result<Report>;

    /// Puts back what it once changed outside of its own tables, before those go.
    ///
    /// # Errors
    /// As [`Pass::run`].
    fn put_back(&self, _change: &Change<'_>) -> Result<()> {
        Ok(())
    }
}

/// Every pass, in the order in which people need them.
pub(crate) static PASSES: [&Definition; 6] = [
    &callstack::DEFINITION,
    &graph::DEFINITION,
    &autograd::DEFINITION,
    &deserialize::DEFINITION,
    &dedupe::DEFINITION,
    &subclass::DEFINITION,
];

/// What became of asking for a pass.
pub(crate) enum Outcome {
    /// It had been made before, and was left as it is.
    AlreadyThere(Freshness),
    /// It was made.
    Made(Report),
}

/// Makes a pass in `file`; one that is there is made anew if `redo` says so, else left.
///
/// # Errors
/// What failed and what to do about it. The file is as it was then.
pub(crate) fn apply(file: &Path, pass: &dyn Pass, redo: bool) -> Result<Outcome> {
    let name = pass.definition().name;
    // A file that has it already need not be writable.
    let (trace, _) = trace::open(file)?;
    let state = State::of(&trace, pass.definition()).map_err(|error| change::explain(error.into(), file))?;
    drop(trace);
    match state {
        State::Applied(freshness) if !redo => Ok(Outcome::AlreadyThere(freshness)),
        _ => change(file, &format!("{name} was not made"), |change| make(change, pass)).map(Outcome::Made),
    }
}

/// A pass in a file.
pub(crate) struct Applied {
    /// The pass.
    pub(crate) definition: &'static Definition,
    /// How far it has been made.
    pub(crate) state: State,
    /// Its tables.
    pub(crate) tables: Vec<String>,
    /// Its views.
    pub(crate) views: Vec<String>,
}

/// How far each pass has been made in `file`, in the order of [`PASSES`]; each subclass is one.
///
/// # Errors
/// When the file is no trace or cannot be read.
pub(crate) fn states(file: &Path) -> Result<Vec<Applied>> {
    let (trace, version) = trace::open(file)?;
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let all = || -> Result<Vec<Applied>> {
        let (mut all, subclasses) = (Vec::new(), subclass::all(&trace, version)?);
        let is_one = |pass: &&&Definition| subclasses.is_empty() || **pass != &subclass::DEFINITION;
        for definition in PASSES.iter().filter(is_one) {
            let (tables, views) = (owned(definition.tables), owned(definition.views));
            all.push(Applied { definition, state: State::of(&trace, definition)?, tables, views });
        }
        all.extend(subclasses.into_iter().map(|(table, view, freshness)| Applied {
            definition: &subclass::DEFINITION,
            state: State::Applied(freshness),
            tables: vec![table],
            views: vec![view],
        }));
        Ok(all)
    };
    all().map_err(|error| change::explain(error, file))
}

/// Writes down that none of the passes covers the rows of the trace as they are now.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn spoil_marks(trace: &Connection) -> rusqlite::Result<()> {
    PASSES.iter().try_for_each(|pass| mark::spoil(trace, pass))
}

/// Writes down that the pass over graphs does not cover the rows of the trace as they are now.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn spoil_graph(trace: &Connection) -> rusqlite::Result<()> {
    mark::spoil(trace, &graph::DEFINITION)
}

/// Writes down anew, in `made`, what the passes cover that were up to date in `original`, of which it is a part or the
/// whole with all that the passes made of it.
///
/// # Errors
/// When the files cannot be read or written.
pub(crate) fn renew_marks(original: &Connection, made: &Connection) -> rusqlite::Result<()> {
    for definition in PASSES {
        if State::of(original, definition)? == State::Applied(Freshness::Current) {
            mark::renew(made, definition)?;
        }
    }
    Ok(())
}

/// Writes down that a pass which changes rows in their places has changed those that are there now.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn renew_mark(trace: &Connection, definition: &Definition) -> rusqlite::Result<()> {
    mark::remove(trace, definition)?;
    mark::set(trace, definition)
}

/// Marks a pass as made in a file whose rows it covers, or does not, as `freshness` says.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn mark(made: &Connection, definition: &Definition, freshness: Freshness) -> rusqlite::Result<()> {
    mark::set(made, definition)?;
    match freshness {
        Freshness::Current => Ok(()),
        Freshness::Stale => mark::spoil(made, definition),
        Freshness::Unknown => mark::forget(made, definition),
    }
}

/// Makes a pass inside a change that is under way, in place of what there is of it.
///
/// # Errors
/// Whatever stops it.
fn make(change: &Change<'_>, pass: &dyn Pass) -> Result<Report> {
    let definition = pass.definition();
    object::require(change.trace, definition.reads)?;
    pass.put_back(change)?;
    object::remove(change.trace, definition)?;
    mark::remove(change.trace, definition)?;
    let report = pass.run(change)?;
    mark::set(change.trace, definition)?;
    Ok(report)
}
