//! `rpd strings`: the texts of a trace, each once.

use std::path::Path;

use anyhow::Result;

use crate::dedupe::{Deduped, dedupe};
use crate::note::note;
use crate::pass::change;
use crate::quantity::counted;
use crate::{output, text};

/// Leaves each text once, and says what went.
///
/// # Errors
/// When the file is no trace or cannot be written; it is as it was then.
pub(crate) fn run(file: &Path, json: bool) -> Result<()> {
    let deduped = change(file, "no text was removed", dedupe)?;
    if json {
        return output::write_json(&deduped);
    }
    let Deduped { before, after, equal } = deduped;
    let gone = before - after;
    note(format_args!(
        "{}: {} of {} removed: {equal} were there more than once, {} nothing used",
        text::escape(&file.to_string_lossy()),
        gone,
        counted(before, "text", "texts"),
        gone.saturating_sub(equal)
    ));
    Ok(())
}
