//! The values of an answer in a temporary file, until the types of its columns are known.

use std::collections::hash_map::Entry;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::sync::Arc;

use anyhow::Result;
use arrow_array::StringArray;
use rpd_schema::text::text_of;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap;
use tempfile::SpooledTempFile;

use super::kind::{ColumnKind, SeenTypes};
use super::temporary;

/// Memory of values; what is more goes to a file, bytes.
const MEMORY: usize = 8 << 20;

/// Texts of all columns that are kept once for all rows, bytes with what it takes to find them.
const SHARED: usize = 24 << 20;

/// What a text takes beside its bytes, twice: in the table by which it is found, and in the order of the texts.
const BESIDE: usize = 96;

/// A value that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Tag {
    Null,
    Integer,
    Real,
    Text,
    Bytes,
    SharedText,
}

const TAGS: [Tag; 6] = [Tag::Null, Tag::Integer, Tag::Real, Tag::Text, Tag::Bytes, Tag::SharedText];

/// A value that is read back.
#[derive(Debug, PartialEq)]
pub(super) enum SpooledValue {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// The place of a text among those of its column.
    SharedText(u32),
}

/// Values on their way in.
pub(super) struct Spool {
    values: BufWriter<SpooledTempFile>,
    columns: Vec<Column>,
    /// Bytes of texts that may still be kept.
    room: usize,
    rows: u64,
}

#[derive(Default)]
struct Column {
    seen: SeenTypes,
    places: FxHashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Spool {
    /// No rows yet.
    pub(super) fn new(columns: usize) -> Spool {
        let values = BufWriter::new(SpooledTempFile::new(MEMORY));
        Spool { values, columns: (0..columns).map(|_| Column::default()).collect(), room: SHARED, rows: 0 }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn add(&mut self, row: &Row<'_>) -> Result<()> {
        for place in 0..self.columns.len() {
            let value = row.get_ref(place)?;
            self.put(place, value).map_err(temporary)?;
        }
        self.rows += 1;
        Ok(())
    }

    fn put(&mut self, place: usize, value: ValueRef<'_>) -> io::Result<()> {
        let Column { seen, places, texts } = &mut self.columns[place];
        let out = &mut self.values;
        match value {
            ValueRef::Null => out.write_all(&[Tag::Null as u8]),
            ValueRef::Integer(number) => {
                seen.integer(number);
                out.write_all(&[Tag::Integer as u8])?;
                out.write_all(&number.to_le_bytes())
            }
            ValueRef::Real(number) => {
                seen.reals = true;
                out.write_all(&[Tag::Real as u8])?;
                out.write_all(&number.to_le_bytes())
            }
            ValueRef::Blob(bytes) => {
                seen.bytes = true;
                long(out, Tag::Bytes, bytes)
            }
            ValueRef::Text(_) => {
                let text = text_of(value);
                let known = match places.entry(Arc::from(&*text)) {
                    Entry::Occupied(known) => Some(*known.get()),
                    Entry::Vacant(_) if self.room < text.len() + BESIDE => None,
                    Entry::Vacant(new) => {
                        self.room -= text.len() + BESIDE;
                        texts.push(Arc::clone(new.key()));
                        Some(*new.insert(texts.len() as u32 - 1))
                    }
                };
                match known {
                    Some(place) => {
                        seen.shared_texts = true;
                        out.write_all(&[Tag::SharedText as u8])?;
                        out.write_all(&place.to_le_bytes())
                    }
                    None => {
                        seen.texts = true;
                        long(out, Tag::Text, text.as_bytes())
                    }
                }
            }
        }
    }

    /// All rows, to be read from the first one on.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn finish(self) -> Result<SpooledRows> {
        let mut values = self.values.into_inner().map_err(|error| temporary(error.into_error()))?;
        values.rewind().map_err(temporary)?;
        let seen = self.columns.iter().map(|column| column.seen).collect();
        let texts = self.columns.into_iter().map(|column| column.texts);
        let texts = texts.map(|texts| Arc::new(StringArray::from_iter_values(texts))).collect();
        Ok(SpooledRows { values: BufReader::with_capacity(1 << 16, values), seen, texts, left: self.rows })
    }
}

/// Writes bytes with their length, which SQLite limits to less than 2^31.
fn long(out: &mut impl Write, tag: Tag, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[tag as u8])?;
    out.write_all(&(bytes.len() as u32).to_le_bytes())?;
    out.write_all(bytes)
}

/// Values on their way out.
pub(super) struct SpooledRows {
    values: BufReader<SpooledTempFile>,
    seen: Vec<SeenTypes>,
    /// Of each column.
    texts: Vec<Arc<StringArray>>,
    /// Rows to be read.
    left: u64,
}

impl SpooledRows {
    /// The types of the columns; `declared` has those of columns without a value.
    pub(super) fn kinds(&self, declared: impl Fn(usize) -> Option<ColumnKind>) -> Vec<ColumnKind> {
        let kinds = self.seen.iter().enumerate();
        kinds
            .map(|(column, seen)| seen.kind().or_else(|| declared(column)).unwrap_or(ColumnKind::Null))
            .collect()
    }

    /// Texts of a column that rows have by their places.
    pub(super) fn texts(&self, column: usize) -> &Arc<StringArray> {
        &self.texts[column]
    }

    /// Whether there is another row; its values are read next, then.
    pub(super) fn next_row(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }

    /// The next value of the row.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn value(&mut self) -> Result<SpooledValue> {
        self.read().map_err(temporary)
    }

    fn read(&mut self) -> io::Result<SpooledValue> {
        let [tag] = self.bytes()?;
        let tag = TAGS.get(usize::from(tag)).ok_or(io::ErrorKind::InvalidData)?;
        Ok(match tag {
            Tag::Null => SpooledValue::Null,
            Tag::Integer => SpooledValue::Integer(i64::from_le_bytes(self.bytes()?)),
            Tag::Real => SpooledValue::Real(f64::from_le_bytes(self.bytes()?)),
            Tag::SharedText => SpooledValue::SharedText(u32::from_le_bytes(self.bytes()?)),
            Tag::Text => SpooledValue::Text(String::from_utf8_lossy(&self.long()?).into_owned()),
            Tag::Bytes => SpooledValue::Bytes(self.long()?),
        })
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.values.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn long(&mut self) -> io::Result<Vec<u8>> {
        let length = u32::from_le_bytes(self.bytes()?);
        let mut bytes = vec![0; length as usize];
        self.values.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
