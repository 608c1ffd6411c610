//! Making a pass in a trace.

use std::path::Path;

use anyhow::Result;

use super::change::{Change, change, explain};
use super::definition::Pass;
use super::mark::{Freshness, PassState};
use super::report::PassReport;
use super::{mark, object};
use crate::notes::SharedNotes;
use crate::trace;

/// What became of asking for a pass.
pub enum ApplyOutcome {
    /// It had been made before, and was left as it is.
    AlreadyThere(Freshness),
    /// It was made.
    Made(PassReport),
}

/// Makes a pass in `file`; one that is there is made anew if `redo` says so, else left.
///
/// # Errors
/// What failed and what to do about it. The file is as it was then.
pub fn apply(file: &Path, pass: &dyn Pass, redo: bool, notes: &SharedNotes) -> Result<ApplyOutcome> {
    let name = pass.definition().name;
    // A file that has it already need not be writable.
    let (trace, _) = trace::open(file, &**notes)?;
    let state = PassState::of(&trace, pass.definition()).map_err(|error| explain(error.into(), file))?;
    drop(trace);
    match state {
        PassState::Applied(freshness) if !redo => Ok(ApplyOutcome::AlreadyThere(freshness)),
        _ => change(file, &format!("{name} was not made"), notes, |change| make(change, pass))
            .map(ApplyOutcome::Made),
    }
}

/// Makes a pass inside a change that is under way, in place of what there is of it.
///
/// # Errors
/// Whatever stops it.
pub(crate) fn make(change: &Change<'_>, pass: &dyn Pass) -> Result<PassReport> {
    let definition = pass.definition();
    object::require(change.trace, definition.reads)?;
    pass.put_back(change)?;
    object::remove(change.trace, definition)?;
    mark::remove(change.trace, definition)?;
    let report = pass.run(change)?;
    mark::set(change.trace, definition)?;
    Ok(report)
}
