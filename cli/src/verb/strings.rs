//! `rpd strings`: the texts of a trace, each once.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::pass::change;
use rpd_postprocess::passes::dedupe::{Deduped, Undeclared, dedupe};
use rpd_postprocess::text::{self, counted};

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

#[derive(Args)]
#[command(about = rpd_postprocess::passes::dedupe::DEFINITION.about, after_help = "\
Every reference follows: those of the format, declared foreign keys, and columns declared in
rocpd_metadata as references::rocpd_string.id. Texts whose ids are in other columns that are named as
if they referred to texts (..._id, ...string...) stay, and a line says so.

The file keeps its size, and new records use the free room. To make the file smaller:
sqlite3 FILE vacuum

Example:
  rpd strings --dedupe trace.rpd")]
pub(crate) struct Strings {
    /// The trace
    file: PathBuf,
    /// Leave each text once
    #[arg(long, required = true)]
    dedupe: bool,
    /// Write one JSON object about it
    #[arg(long)]
    json: bool,
}

impl Strings {
    /// Leaves each text once, and says what went.
    ///
    /// # Errors
    /// When the file is no trace or cannot be written; it is as it was then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        // The one thing that it does has to be said, as with the original's tool.
        debug_assert!(self.dedupe);
        let deduped = change(&self.file, "no text was removed", &notes(), dedupe)?;
        if self.json {
            output::write_json(&deduped)?;
            return Ok(ExitCode::SUCCESS);
        }
        let Deduped { before, after, equal, undeclared } = deduped;
        let gone = before - after;
        let file = text::escape_path(&self.file);
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
        Ok(ExitCode::SUCCESS)
    }
}
