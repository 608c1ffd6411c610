//! The passes, one file or folder each, and the one list of them.
//!
//! Help texts, `rpd passes` and the tests read [`PASSES`]. A pass with tables of its own is a [`Pass`](crate::pass::Pass): it is made in one
//! transaction by [`apply`](crate::pass::apply()), is marked in `rocpd_metadata` and is not made a second time unless that was asked for.
//! Those that change rows in their places (`deserialize.rs`, `dedupe.rs`) can be run again at any time; of subclasses
//! (`subclass.rs`) there are any number.
//!
//! | file | owns |
//! |---|---|
//! | `callstack.rs`, `callstack/` | who called whom |
//! | `graph.rs`, `graph/` | captured graphs and their launches |
//! | `autograd.rs`, `autograd/` | PyTorch's operators |
//! | `kernel_views.rs` | the views that need both call stacks and operators |
//! | `deserialize.rs` | calls and operations that a program wrote as markers |
//! | `dedupe.rs` | each text once |
//! | `subclass.rs` | arguments as columns |

pub mod autograd;
pub mod callstack;
pub mod dedupe;
pub mod deserialize;
pub mod graph;
mod kernel_views;
pub mod subclass;

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;

use crate::notes::Notes;
use crate::pass::change::explain;
use crate::pass::{Change, Definition, Freshness, PassState, mark};
use crate::trace;
use deserialize::Deserialized;
use subclass::{Made, Subclass};

/// Every pass, in the order in which people need them.
pub static PASSES: &[&Definition] = &[
    &callstack::DEFINITION,
    &graph::DEFINITION,
    &autograd::DEFINITION,
    &deserialize::DEFINITION,
    &dedupe::DEFINITION,
    &subclass::DEFINITION,
];

/// A pass in a file.
pub struct Applied {
    /// The pass.
    pub definition: &'static Definition,
    /// How far it has been made.
    pub state: PassState,
    /// Its tables.
    pub tables: Vec<String>,
    /// Its views.
    pub views: Vec<String>,
}

/// How far each pass has been made in `file`, in the order of [`PASSES`]; each subclass is one.
///
/// # Errors
/// When the file is no trace or cannot be read.
pub fn states(file: &Path, notes: &dyn Notes) -> Result<Vec<Applied>> {
    let (trace, version) = trace::open(file, notes)?;
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let all = || -> Result<Vec<Applied>> {
        let (mut all, subclasses) = (Vec::new(), subclass::all(&trace, version)?);
        let is_one = |pass: &&&Definition| subclasses.is_empty() || pass.name != subclass::DEFINITION.name;
        for definition in PASSES.iter().filter(is_one) {
            let (tables, views) = (owned(definition.tables), owned(definition.views));
            all.push(Applied { definition, state: PassState::of(&trace, definition)?, tables, views });
        }
        all.extend(subclasses.into_iter().map(|(table, view, freshness)| Applied {
            definition: &subclass::DEFINITION,
            state: PassState::Applied(freshness),
            tables: vec![table],
            views: vec![view],
        }));
        Ok(all)
    };
    all().map_err(|error| explain(error, file))
}

/// Makes rows of all serialised markers, which are the calls with these names.
///
/// # Errors
/// When the file cannot be read or written, or a session has no ids left.
pub fn deserialize(change: &Change<'_>, names: &[String]) -> Result<Deserialized> {
    let made = deserialize::make_rows(change, names)?;
    if made.calls + made.ops > 0 {
        // None of the passes covers the rows as they are now: a call may have become a launch of a graph without any row more.
        PASSES.iter().try_for_each(|pass| mark::spoil(change.trace, pass))?;
    }
    mark::renew_mark(change.trace, &deserialize::DEFINITION)?;
    Ok(made)
}

/// Makes a subclass; none if it is there, unless `redo` says to make it anew.
///
/// # Errors
/// When something else has its names, the texts are no arguments, or the file cannot be read or written.
pub fn subclass(change: &Change<'_>, subclass: &Subclass<'_>, redo: bool) -> Result<Option<Made>> {
    subclass::make(change, subclass, redo, PASSES)
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
        if PassState::of(original, definition)? == PassState::Applied(Freshness::Current) {
            mark::renew(made, definition)?;
        }
    }
    Ok(())
}
