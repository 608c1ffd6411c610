//! The answer to a query as typed columns: Arrow IPC and Parquet.
//!
//! SQLite gives a type to each value, these formats to each column. So the answer is put into a temporary file first, while the types of
//! its columns are found out, and the query runs once. A column that has integers alone is int64, one with numbers float64, one with
//! bytes alone binary, and any other one text. Numbers that a float64 would change make a column text as well: no value becomes another.
//!
//! | file | owns |
//! |---|---|
//! | `kind.rs` | the type of a column, from its values |
//! | `spool.rs` | the values on their way, and the texts that many rows share |
//! | `batch.rs` | rows as arrays |

mod batch;
mod kind;
mod spool;

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Error, Result};
use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{Field, Schema};
#[cfg(feature = "parquet")]
use parquet::arrow::ArrowWriter;
#[cfg(feature = "parquet")]
use parquet::basic::Compression;
#[cfg(feature = "parquet")]
use parquet::file::properties::WriterProperties;

pub use kind::ColumnKind;
use spool::Spool;

use crate::notes::{Notes, look};
use crate::query::Prepared;

/// How columns are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnFormat {
    /// Arrow IPC, to be read from its beginning: for pipes.
    ArrowStream,
    /// Arrow IPC, to be read at any place: for files that are mapped.
    ArrowFile,
    /// Apache Parquet, compressed by Snappy.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Rows of a group in Parquet: what is kept in memory before it is written.
#[cfg(feature = "parquet")]
const GROUP_ROWS: usize = 1 << 17;

/// Rows between two looks for a signal.
const LOOK: u64 = 1 << 12;

/// Writes the answer to `query` to `out` and says how many rows it has. `declared` gives the types of columns that have no value.
///
/// # Errors
/// When the query fails, a temporary file or `out` cannot be written (then an [`io::Error`] is in the chain), or a signal came.
pub fn export(
    query: Prepared<'_>,
    declared: &dyn Fn(&str) -> Option<ColumnKind>,
    format: ColumnFormat,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<u64> {
    let names = query.columns();
    let mut spool = Spool::new(names.len());
    let mut rows = 0;
    query.each(|row| {
        spool.add(row)?;
        rows += 1;
        if rows % LOOK == 0 {
            notes.show(&format!("{rows} rows read"));
            look(notes)?;
        }
        Ok(true)
    })?;
    let mut kept = spool.finish()?;
    let kinds = kept.kinds(|column| declared(&names[column]));
    let fields = names.iter().zip(&kinds).map(|(name, kind)| Field::new(name, kind.arrow(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut out = Watched { out, failure: None };
    let written = write(&mut out, format, &schema, || {
        look(notes)?;
        kept.batch(&schema, &kinds)
    });
    match (written, out.failure) {
        (Err(_), Some(failure)) => Err(failure.into()),
        (written, _) => written.map(|()| rows),
    }
}

/// Writes batches until `next` has none.
fn write(
    out: &mut Watched<'_>,
    format: ColumnFormat,
    schema: &Arc<Schema>,
    mut next: impl FnMut() -> Result<Option<RecordBatch>>,
) -> Result<()> {
    match format {
        ColumnFormat::ArrowStream => {
            let mut writer = StreamWriter::try_new(out, schema)?;
            while let Some(batch) = next()? {
                writer.write(&batch)?;
            }
            writer.finish()?;
            writer.get_mut().flush()?;
        }
        ColumnFormat::ArrowFile => {
            let mut writer = FileWriter::try_new(out, schema)?;
            while let Some(batch) = next()? {
                writer.write(&batch)?;
            }
            writer.finish()?;
            writer.get_mut().flush()?;
        }
        #[cfg(feature = "parquet")]
        ColumnFormat::Parquet => {
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_max_row_group_size(GROUP_ROWS)
                .set_created_by(concat!("rpd ", env!("CARGO_PKG_VERSION")).to_string())
                .build();
            let mut writer = ArrowWriter::try_new(&mut *out, Arc::clone(schema), Some(properties))?;
            while let Some(batch) = next()? {
                writer.write(&batch)?;
            }
            writer.close()?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Where bytes go. It keeps why they could not: the writers of these formats make other errors of that.
struct Watched<'a> {
    out: &'a mut (dyn Write + Send),
    failure: Option<io::Error>,
}

impl Watched<'_> {
    fn watched<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|failure| {
            let kind = failure.kind();
            self.failure = Some(failure);
            kind.into()
        })
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        // The caller writes again what a signal kept back.
        match written {
            Err(failure) if failure.kind() == io::ErrorKind::Interrupted => Err(failure),
            written => self.watched(written),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.watched(flushed)
    }
}

/// What is wrong with a temporary file.
pub(super) fn temporary(error: io::Error) -> Error {
    // Not an io::Error in the chain: those are of the output.
    anyhow::anyhow!("cannot keep the answer in a temporary file (TMPDIR names the directory): {error}")
}
