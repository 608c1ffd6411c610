//! `rpd export csv`, `rpd export jsonl`: a line for each row.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_escape::csv_field;
use rpd_postprocess::notes::Notes;
use rpd_postprocess::query::Prepared;
use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::asked::{Asked, ROWS_HELP, RowOutput};
use crate::args::region::REGION_HELP;
use crate::output::value::{field, object};

/// Write rows as comma-separated values
///
/// The output is a header line, then a line for each row, as the trace is read. Numbers have all their digits.
#[derive(Args)]
#[command(after_help = format!("\
{ROWS_HELP}

NULL is an empty field. Control characters are escaped, texts that a spreadsheet would take for a formula have an apostrophe
in front, bytes that are no text are x'0a0b'. Where two columns have one name, the second is name:1. A name of OUT that ends
in .gz means compression.

{REGION_HELP}

Example:
  rpd export csv trace.rpd kernels -o kernels.csv
  rpd export csv trace.rpd 'select kernelName, duration from kernel where gpuId = 0'"))]
pub(super) struct Csv {
    #[command(flatten)]
    asked: Asked,
}

/// Write rows as JSON Lines: an object for each row
///
/// The output has an object on a line of its own for each row, as the trace is read. Numbers have all their digits.
#[derive(Args)]
#[command(after_help = format!("\
{ROWS_HELP}

Texts are exact, but for what is not UTF-8; bytes that are no text are x'0a0b', infinite numbers \"Inf\" and \"-Inf\". Where
two columns have one name, the second is name:1. A name of OUT that ends in .gz means compression.

{REGION_HELP}

Example:
  rpd export jsonl trace.rpd markers | jq .name
  rpd export jsonl trace.rpd kernels -o kernels.jsonl.gz"))]
pub(super) struct Jsonl {
    #[command(flatten)]
    asked: Asked,
}

impl Csv {
    /// Writes them.
    ///
    /// # Errors
    /// Those of [`Asked::run`].
    pub(super) fn run(self) -> Result<ExitCode> {
        self.asked.run(true, |query, to| {
            let titles: Vec<String> =
                query.columns().iter().map(|title| csv_field(title).into_owned()).collect();
            let mut csv = csv::Writer::from_writer(to.out);
            csv.write_record(titles).map_err(failure)?;
            let rows = each(query, &**to.notes, |_, values| {
                Ok(csv.write_record(values.iter().map(|value| field(*value))).map_err(failure)?)
            })?;
            csv.flush()?;
            Ok(rows)
        })
    }
}

impl Jsonl {
    /// Writes them.
    ///
    /// # Errors
    /// Those of [`Asked::run`].
    pub(super) fn run(self) -> Result<ExitCode> {
        self.asked.run(true, |query, RowOutput { out, notes, .. }| {
            let mut out = BufWriter::new(out);
            let rows =
                each(query, &**notes, |columns, values| Ok(writeln!(out, "{}", object(columns, values)?)?))?;
            out.flush()?;
            Ok(rows)
        })
    }
}

/// Rows between two looks for a signal.
const LOOK: u64 = 1 << 12;

/// Gives `write` the names of the columns and the values of each row; says how many rows there were.
fn each(
    query: Prepared<'_>,
    notes: &dyn Notes,
    mut write: impl FnMut(&[String], &[ValueRef<'_>]) -> Result<()>,
) -> Result<u64> {
    let columns = query.columns();
    let mut rows = 0;
    query.each(|row: &Row<'_>| {
        let values = (0..columns.len()).map(|column| row.get_ref(column));
        let values: Vec<ValueRef<'_>> = values.collect::<rusqlite::Result<_>>()?;
        write(&columns, &values)?;
        rows += 1;
        if rows % LOOK == 0 {
            notes.show(&format!("{rows} rows written"));
        }
        Ok(true)
    })?;
    Ok(rows)
}

/// Why a line could not be written.
fn failure(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(failure) => failure,
        other => io::Error::other(format!("{other:?}")),
    }
}
