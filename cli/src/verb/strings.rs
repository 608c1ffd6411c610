//! `rpd strings`: the texts of a trace, each once.

use std::path::Path;

use anyhow::Result;
use rpd_postprocess::pass::change;
use rpd_postprocess::passes::dedupe::{Deduped, Undeclared, dedupe};
use rpd_postprocess::text;
use rpd_postprocess::text::counted;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// Leaves each text once, and says what went.
///
/// # Errors
/// When the file is no trace or cannot be written; it is as it was then.
pub(crate) fn run(file: &Path, json: bool) -> Result<()> {
    let deduped = change(file, "no text was removed", &notes(), dedupe)?;
    if json {
        return output::write_json(&deduped);
    }
    let Deduped { before, after, equal, undeclared } = deduped;
    let gone = before - after;
    let file = text::escape(&file.to_string_lossy()).into_owned();
    for Undeclared { table, column, texts } in undeclared {
        let column = format!("(\"{}\", \"{}\")", text::escape(&table), text::escape(&column));
        note(format_args!(
            "{file}: {} whose ids stand in {column} {}; a column that refers to texts says so by: \
             INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', '{column}')",
            counted(texts, "text", "texts"),
            if texts == 1 { "stays" } else { "stay" },
        ));
    }
    note(format_args!(
        "{file}: {} of {} removed: {equal} were there more than once, {} nothing used",
        gone,
        counted(before, "text", "texts"),
        gone.saturating_sub(equal)
    ));
    Ok(())
}
