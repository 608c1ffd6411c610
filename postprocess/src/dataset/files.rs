//! The Parquet files of a part while they are written: one for each table and time slice, without a name until all are complete.

use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use sha2::{Digest, Sha256};
use tempfile::{NamedTempFile, TempPath};

use super::cells::Integers;
use super::hexadecimal;
use super::manifest::PartFile;
use super::place::{DatasetPlace, temporary};
use super::table::Table;
use crate::text::escape_path;

/// Files of one table that are open at a time. Rows are nearly in order of time, so that those of a few slices come together.
const OPEN: usize = 3;

/// Characters of a file's digest in its name.
const DIGEST: usize = 8;

/// Makes arrays of these rows; none where their texts take too much room.
pub(super) type Arrays<'a> = dyn FnMut(&[u32]) -> Result<Option<Vec<ArrayRef>>> + 'a;

/// The files of one part.
pub(super) struct Files<'a> {
    place: &'a DatasetPlace,
    /// `job=.../node=.../rank=...`.
    partition: PathBuf,
    /// The part's number, in hexadecimal digits.
    part: String,
    open: Vec<Open>,
    complete: Vec<Complete>,
    made: u32,
}

struct Open {
    table: &'static str,
    slice: i64,
    number: u32,
    folder: PathBuf,
    schema: Arc<Schema>,
    writer: ArrowWriter<Counted>,
    span: Span,
    rows: u64,
}

/// A file that waits for its name.
struct Complete {
    file: TempPath,
    table: &'static str,
    number: u32,
    folder: PathBuf,
    part: PartFile,
}

/// First start and last end.
#[derive(Debug, Clone, Copy, Default)]
struct Span(Option<i64>, Option<i64>);

impl Span {
    fn add(&mut self, start: Option<i64>, end: Option<i64>) {
        self.0 = [self.0, start].into_iter().flatten().min();
        self.1 = [self.1, end].into_iter().flatten().max();
    }
}

impl<'a> Files<'a> {
    pub(super) fn new(place: &'a DatasetPlace, partition: PathBuf, part: String) -> Files<'a> {
        Files { place, partition, part, open: Vec::new(), complete: Vec::new(), made: 0 }
    }

    /// Writes `rows` of a block with these times, sorted by their start, into the files of their slices.
    ///
    /// # Errors
    /// What `arrays` fails with, or that a file cannot be written.
    pub(super) fn write(
        &mut self,
        table: &Table,
        mut rows: Vec<u32>,
        times: Option<(&Integers, &Integers)>,
        arrays: &mut Arrays<'_>,
    ) -> Result<()> {
        let start = |row: u32| times.and_then(|(starts, _)| starts.get(row as usize));
        if !rows.is_sorted_by_key(|row| start(*row)) {
            let mut starts: Vec<(Option<i64>, u32)> = rows.iter().map(|row| (start(*row), *row)).collect();
            starts.sort_unstable();
            rows = starts.into_iter().map(|(_, row)| row).collect();
        }
        let length = self.place.slice_ns;
        let slice = |row: &u32| match (length, start(*row)) {
            (1.., Some(start)) => start.div_euclid(length),
            _ => 0,
        };
        for rows in rows.chunk_by(|one, other| slice(one) == slice(other)) {
            let at = self.open(table, slice(&rows[0]))?;
            for row in rows {
                let end = times.and_then(|(_, ends)| ends.get(*row as usize));
                self.open[at].span.add(start(*row), end);
            }
            self.group(at, rows, arrays)?;
        }
        Ok(())
    }

    /// Writes these rows as a row group; as several where their texts take too much room for one.
    fn group(&mut self, at: usize, rows: &[u32], arrays: &mut Arrays<'_>) -> Result<()> {
        let Some(arrays_of_rows) = arrays(rows)? else {
            let (one, other) = rows.split_at(rows.len() / 2);
            self.group(at, one, arrays)?;
            return self.group(at, other, arrays);
        };
        let open = &mut self.open[at];
        open.rows += rows.len() as u64;
        let batch = RecordBatch::try_new(Arc::clone(&open.schema), arrays_of_rows)?;
        let written = open.writer.write(&batch).and_then(|()| open.writer.flush());
        written.map_err(|error| failure(open.writer.inner_mut(), error, &open.folder))
    }

    /// The place in `open` of the file for this slice.
    fn open(&mut self, table: &Table, slice: i64) -> Result<usize> {
        let is_it = |open: &Open| open.table == table.name && open.slice == slice;
        if let Some(at) = self.open.iter().position(is_it) {
            return Ok(at);
        }
        if self.open.iter().filter(|open| open.table == table.name).count() >= OPEN
            && let Some(oldest) = self.open.iter().position(|open| open.table == table.name)
        {
            let oldest = self.open.remove(oldest);
            self.close(oldest)?;
        }
        let folder =
            self.place.directory.join(table.name).join(&self.partition).join(format!("slice={slice}"));
        let file = temporary(&folder, &self.part).with_context(|| cannot_write(&folder))?;
        let counted = Counted { file: Some(file), digest: Sha256::new(), bytes: 0, failure: None };
        let schema = table.schema();
        let writer = ArrowWriter::try_new(counted, Arc::clone(&schema), Some(table.properties()))?;
        let number = self.made;
        self.made += 1;
        let span = Span::default();
        self.open.push(Open { table: table.name, slice, number, folder, schema, writer, span, rows: 0 });
        Ok(self.open.len() - 1)
    }

    /// Completes the files of a table, all of whose rows are written.
    ///
    /// # Errors
    /// When one cannot be written.
    pub(super) fn end(&mut self, table: &Table) -> Result<()> {
        while let Some(at) = self.open.iter().position(|open| open.table == table.name) {
            let open = self.open.remove(at);
            self.close(open)?;
        }
        Ok(())
    }

    fn close(&mut self, open: Open) -> Result<()> {
        let Open { table, number, folder, mut writer, span, rows, .. } = open;
        if let Err(error) = writer.finish() {
            return Err(failure(writer.inner_mut(), error, &folder));
        }
        let written = writer.inner_mut();
        let (bytes, digest) = (written.bytes, mem::take(&mut written.digest));
        let file = written.file.take().context("a file was completed twice")?;
        file.as_file().sync_all().with_context(|| cannot_write(&folder))?;
        let file = file.into_temp_path();
        let part = PartFile {
            path: String::new(),
            rows,
            bytes,
            sha256: hexadecimal(&digest.finalize()),
            first_ns: span.0,
            last_ns: span.1,
        };
        self.complete.push(Complete { file, table, number, folder, part });
        Ok(())
    }

    /// Rows of the complete files of a table, and first start and last end in them, ns.
    pub(super) fn summary(&self, table: &Table) -> (u64, Option<i64>, Option<i64>) {
        let mut span = Span::default();
        let mut rows = 0;
        for file in self.complete.iter().filter(|file| file.table == table.name) {
            span.add(file.part.first_ns, file.part.last_ns);
            rows += file.part.rows;
        }
        (rows, span.0, span.1)
    }

    /// Gives the files their names. A name has a part of the digest of what is in the file: somebody who adds the same at the same time
    /// gives the same names to the same bytes.
    ///
    /// # Errors
    /// When a name cannot be given.
    pub(super) fn publish(self) -> Result<Vec<PartFile>> {
        let mut published = Vec::new();
        for Complete { file, number, folder, mut part, .. } in self.complete {
            let name = format!("part-{}-{number}-{}.parquet", self.part, &part.sha256[..DIGEST]);
            let path = folder.join(name);
            file.persist(&path).map_err(|error| error.error).with_context(|| cannot_write(&path))?;
            part.path = self.place.relative(&path);
            published.push(part);
        }
        Ok(published)
    }
}

/// What went wrong with a file, from where it happened: the writer of Parquet makes another error of it.
fn failure(file: &mut Counted, error: parquet::errors::ParquetError, folder: &Path) -> Error {
    match file.failure.take() {
        Some(failure) => Error::new(failure).context(cannot_write(folder)),
        None => Error::new(error).context(cannot_write(folder)),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", escape_path(path))
}

/// A file that counts and digests what is written into it, until it is taken out.
struct Counted {
    file: Option<NamedTempFile>,
    digest: Sha256,
    bytes: u64,
    failure: Option<io::Error>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        match file.write(bytes) {
            Ok(written) => {
                self.digest.update(&bytes[..written]);
                self.bytes += written as u64;
                Ok(written)
            }
            // The caller writes again what a signal kept back.
            Err(failure) if failure.kind() == io::ErrorKind::Interrupted => Err(failure),
            Err(failure) => {
                let kind = failure.kind();
                self.failure = Some(failure);
                Err(kind.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
