//! `rpd export arrow`, `rpd export parquet`: rows as typed columns.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::export::columns::{self, ColumnFormat};
use rpd_postprocess::query::{Frame, Prepared};

use super::asked::{Asked, ROWS_HELP, RowOutput};
use crate::args::region::REGION_HELP;

/// How values of SQLite become columns, for the help of both verbs.
const TYPES_HELP: &str = "\
A column whose values are integers is int64, one with other numbers too float64, one with bytes alone binary, any other one text, with
numbers as their digits and bytes as x'0a0b'. Where a float64 would change an integer, the column is text. One with NULL alone
is null; those of kernels, copies, apis and markers have their types always. Texts that many rows share are a dictionary.";

/// Write rows as Arrow IPC, for pyarrow, pandas, polars and DuckDB
///
/// To standard output as a stream, to a file as an Arrow file (Feather), which readers map into memory.
#[derive(Args)]
#[command(after_help = format!("\
{ROWS_HELP}

{TYPES_HELP}

{REGION_HELP}

Example:
  rpd export arrow trace.rpd kernels -o kernels.arrow
  rpd export arrow trace.rpd 'select * from top' | python3 read.py   # pyarrow.ipc.open_stream"))]
pub(super) struct Arrow {
    #[command(flatten)]
    asked: Asked,
}

/// Write rows as Apache Parquet
///
/// Compressed by Snappy; groups of 131,072 rows.
#[cfg(feature = "parquet")]
#[derive(Args)]
#[command(after_help = format!("\
{ROWS_HELP}

{TYPES_HELP}

{REGION_HELP}

Example:
  rpd export parquet trace.rpd kernels -o kernels.parquet
  rpd export parquet trace.rpd 'select * from op where gpuId = 1' -o op.parquet"))]
pub(super) struct Parquet {
    #[command(flatten)]
    asked: Asked,
}

impl Arrow {
    /// Writes them.
    ///
    /// # Errors
    /// Those of [`Asked::run`].
    pub(super) fn run(self) -> Result<ExitCode> {
        self.asked.run(false, |query, to| {
            let format = if to.is_file { ColumnFormat::ArrowFile } else { ColumnFormat::ArrowStream };
            write(query, to, format)
        })
    }
}

#[cfg(feature = "parquet")]
impl Parquet {
    /// Writes them.
    ///
    /// # Errors
    /// Those of [`Asked::run`].
    pub(super) fn run(self) -> Result<ExitCode> {
        self.asked.run(false, |query, to| write(query, to, ColumnFormat::Parquet))
    }
}

fn write(query: Prepared<'_>, to: RowOutput<'_>, format: ColumnFormat) -> Result<u64> {
    let declared = |column: &str| to.frame.map(|_| Frame::kind(column));
    columns::export(query, &declared, format, &**to.notes, to.out)
}
