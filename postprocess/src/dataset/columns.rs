//! Columns of Parquet files of a dataset, read back: some columns of a row group, a few thousand rows at a time.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::statistics::Statistics;

use super::manifest::PartFile;
use super::place::{DatasetPlace, length};
use crate::text::escape_path;

/// Rows that are in memory at a time.
const ROWS: usize = 8192;

/// An open file.
pub(super) struct Columns {
    /// See [`damaged()`].
    damaged: Arc<str>,
    file: File,
    metadata: ArrowReaderMetadata,
}

/// Says that a file is damaged, and what to do about it.
pub(super) fn damaged(place: &DatasetPlace, path: &Path) -> String {
    format!("{} is damaged: rpd dataset check {} says what to do", escape_path(path), place.in_shell())
}

/// What the decoders of Parquet make of a file. They panic over some that are damaged inside.
fn decoded<T>(damaged: &Arc<str>, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.with_context(|| Arc::clone(damaged)),
        Err(_) => {
            bail!("{damaged}; where it finds nothing, add the file's trace again with --append --force")
        }
    }
}

impl Columns {
    /// Opens a file of a manifest.
    ///
    /// # Errors
    /// When it is not there, or not what was written.
    pub(super) fn open(place: &DatasetPlace, part: &PartFile) -> Result<Columns> {
        let path = part.at(place);
        let size = match length(&path) {
            Ok(size) => size,
            Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
                "{} is not there: somebody replaces it at this moment, or has removed it; rpd dataset check {} says what to do",
                escape_path(&path),
                place.in_shell()
            ),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", escape_path(&path))),
        };
        let damaged: Arc<str> = damaged(place, &path).into();
        if size != part.bytes {
            bail!("{damaged} (it has {size} bytes in place of {})", part.bytes);
        }
        let file = File::open(&path).with_context(|| format!("cannot read {}", escape_path(&path)))?;
        let metadata =
            decoded(&damaged, || Ok(ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?))?;
        let rows = metadata.metadata().file_metadata().num_rows();
        if u64::try_from(rows).ok() != Some(part.rows) {
            bail!("{damaged} (it has {rows} rows in place of {})", part.rows);
        }
        Ok(Columns { damaged, file, metadata })
    }

    /// How many row groups it has.
    pub(super) fn groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// The least value of a column of integers in a row group, where the file says it.
    pub(super) fn least(&self, group: usize, column: &str) -> Option<i64> {
        let group = self.metadata.metadata().row_group(group);
        let column = group.columns().iter().find(|found| found.column_path().string() == column)?;
        match column.statistics()? {
            Statistics::Int64(statistics) => statistics.min_opt().copied(),
            _ => None,
        }
    }

    /// Reads columns of a row group.
    ///
    /// # Errors
    /// When it has no such columns, or cannot be read.
    pub(super) fn group(&self, group: usize, columns: &'static [&'static str]) -> Result<Batches> {
        let file = self.file.try_clone()?;
        let reader = decoded(&self.damaged, || {
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
            let mask = ProjectionMask::columns(reader.parquet_schema(), columns.iter().copied());
            Ok(reader.with_projection(mask).with_row_groups(vec![group]).with_batch_size(ROWS).build()?)
        })?;
        Ok(Batches { damaged: Arc::clone(&self.damaged), columns, reader })
    }
}

/// The rows of a row group.
pub(super) struct Batches {
    damaged: Arc<str>,
    columns: &'static [&'static str],
    reader: ParquetRecordBatchReader,
}

impl Batches {
    /// The next rows, as their columns were asked for.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        let batch = decoded(&self.damaged, || Ok(self.reader.next().transpose()?))?;
        let Some(batch): Option<RecordBatch> = batch else { return Ok(None) };
        let columns = self.columns.iter().map(|name| batch.column_by_name(name).cloned());
        let columns: Option<Vec<ArrayRef>> = columns.collect();
        let columns = columns.with_context(|| Arc::clone(&self.damaged))?;
        Ok(Some(Batch { damaged: Arc::clone(&self.damaged), rows: batch.num_rows(), columns }))
    }
}

/// Some rows.
pub(super) struct Batch {
    damaged: Arc<str>,
    pub(super) rows: usize,
    columns: Vec<ArrayRef>,
}

impl Batch {
    /// A column of integers.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn integers(&self, column: usize) -> Result<&arrow_array::Int64Array> {
        self.columns[column].as_primitive_opt::<Int64Type>().with_context(|| Arc::clone(&self.damaged))
    }

    /// A column of texts.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn texts(&self, column: usize) -> Result<TextColumn<'_>> {
        let array = self.columns[column].as_dictionary_opt::<Int32Type>();
        let values = array.and_then(|array| array.values().as_string_opt::<i32>());
        let (keys, values) = array.zip(values).with_context(|| Arc::clone(&self.damaged))?;
        Ok(TextColumn { keys: keys.keys(), values })
    }
}

/// A column of texts, each of which is there once.
#[derive(Clone, Copy)]
pub(super) struct TextColumn<'a> {
    keys: &'a arrow_array::Int32Array,
    values: &'a arrow_array::StringArray,
}

impl<'a> TextColumn<'a> {
    /// How many texts there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The number of the text in a row, if it has one.
    pub(super) fn key(&self, row: usize) -> Option<usize> {
        let key = self.keys.is_valid(row).then(|| self.keys.value(row))?;
        usize::try_from(key).ok().filter(|key| *key < self.values.len() && self.values.is_valid(*key))
    }

    /// The text with this number.
    pub(super) fn value(&self, key: usize) -> &'a str {
        self.values.value(key)
    }

    /// The text in a row.
    pub(super) fn get(&self, row: usize) -> Option<&'a str> {
        self.key(row).map(|key| self.value(key))
    }
}

/// An integer of a column.
pub(super) fn integer(column: &arrow_array::Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}
