//! `rpd deserialize`: calls and ops that were written as markers become what they stand for.

use std::path::Path;

use anyhow::Result;
use rpd_postprocess::pass::change;
use rpd_postprocess::passes::deserialize::Deserialized;
use rpd_postprocess::text::counted;
use rpd_postprocess::{passes, text};

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// Makes rows of the markers, which are the calls with these names, and says how many.
///
/// # Errors
/// When the file is no trace or cannot be written; it is as it was then.
pub(crate) fn run(file: &Path, names: &[String], json: bool) -> Result<()> {
    let made =
        change(file, "no marker was made a row", &notes(), |change| passes::deserialize(change, names))?;
    if json {
        return output::write_json(&made);
    }
    let shown = text::escape(&file.to_string_lossy()).into_owned();
    let Deserialized { calls, ops, wrong } = made;
    note(format_args!(
        "{shown}: {} and {} made of markers",
        counted(calls, "call", "calls"),
        counted(ops, "operation", "operations")
    ));
    if wrong > 0 {
        note(format_args!(
            "{shown}: {} as it is: a number in it is none, or it ends before it starts",
            counted(wrong, "marker stays", "markers stay")
        ));
    }
    Ok(())
}
