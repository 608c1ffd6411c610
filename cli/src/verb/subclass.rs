//! `rpd subclass`: arguments of certain calls or ops as columns of a table of their own.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rpd_postprocess::pass::change;
use rpd_postprocess::passes::subclass::{self, Base, ColumnType, Made, is_name, unknown_members};
use rpd_postprocess::text::counted;
use rpd_postprocess::{passes, text};

use crate::output::note::note;
use crate::output::progress::notes;

#[derive(Args)]
#[command(about = rpd_postprocess::passes::subclass::DEFINITION.about, after_help = "\
The table has one column per argument key found; a view NAMEapi or NAMEop shows them behind the
columns of api or op. Arguments are `key = value` pairs joined by `|`: of a call in its args, of an op in its description.
Columns are text: to compare and add numbers up, name those that are integer (0x.. too) or real. A call without such an
argument, or with one that is no number, has NULL there.

Example:
  rpd subclass --base api --name malloc --apis hipMalloc,hipFree --types size=integer trace.rpd
  sqlite3 trace.rpd 'select start, apiName, ptr, size from mallocapi where size > 4096'")]
pub(crate) struct Subclass {
    /// The trace
    file: PathBuf,
    /// What the subclass is of
    #[arg(long)]
    base: BaseName,
    /// Its name: letters, digits and underscores
    #[arg(long, value_parser = subclass_name)]
    name: String,
    /// Names of the calls, or types of the ops, that belong to it
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required = true)]
    apis: Vec<String>,
    /// Types of columns: integer, real or text, by argument [default: text]
    #[arg(long, value_name = "KEY=TYPE,...", value_delimiter = ',', value_parser = column_type)]
    types: Vec<(String, ColumnType)>,
    /// Make one of that name anew
    #[arg(long)]
    redo: bool,
}

/// [`Base`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum BaseName {
    /// Calls, by name
    Api,
    /// Ops, by type
    Op,
}

impl From<BaseName> for Base {
    fn from(name: BaseName) -> Base {
        match name {
            BaseName::Api => Base::Api,
            BaseName::Op => Base::Op,
        }
    }
}

fn subclass_name(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_string())
    } else {
        Err("not 1 to 64 letters, digits and underscores".to_string())
    }
}

fn column_type(text: &str) -> Result<(String, ColumnType), String> {
    let (key, declaration) = text.split_once('=').ok_or("not of the form KEY=TYPE, as in size=integer")?;
    let found =
        ColumnType::of_declaration(declaration.trim()).ok_or("the type is not integer, real or text")?;
    Ok((key.trim().to_string(), found))
}

impl Subclass {
    /// Makes the subclass in one transaction, and says what it has.
    ///
    /// # Errors
    /// When the file is no trace or cannot be written, or something else has the names; it is as it was then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let members: Vec<&str> = self.apis.iter().map(String::as_str).collect();
        let subclass = subclass::Subclass {
            base: self.base.into(),
            name: &self.name,
            members: &members,
            columns: &[],
            types: &self.types,
            among: None,
        };
        let file = text::escape_path(&self.file);
        let (made, unknown) = change(&self.file, "no subclass was made", &notes(), |change| {
            Ok((passes::subclass(change, &subclass, self.redo)?, unknown_members(change.trace, &subclass)?))
        })?;
        for line in unknown {
            note(format_args!("{file}: {line}"));
        }
        match made {
            Some(Made { rows: 0, .. }) => {
                note(format_args!("{file}: {} has no rows: nothing is called that", subclass.table()));
            }
            Some(Made { rows, columns, no_numbers }) => {
                note(format_args!(
                    "{file}: {} has {} and {}: {}",
                    subclass.table(),
                    counted(rows, "row", "rows"),
                    counted(columns.len() as u64, "argument", "arguments"),
                    text::escape(&columns.join(", "))
                ));
                let is_found = |key: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(key));
                for (key, _) in self.types.iter().filter(|(key, _)| !is_found(key)) {
                    note(format_args!("{file}: nothing has an argument {}", text::escape(key)));
                }
                if no_numbers > 0 {
                    note(format_args!(
                        "{file}: {} in columns of numbers and NULL there",
                        counted(no_numbers, "argument is no number", "arguments are no numbers")
                    ));
                }
            }
            None => note(format_args!("{file}: {} is there already; --redo makes it anew", subclass.table())),
        }
        Ok(ExitCode::SUCCESS)
    }
}
