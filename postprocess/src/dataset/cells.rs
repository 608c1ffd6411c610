//! Columns of a block of rows in memory, and arrays made of them.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, StringArray};
use rpd_schema::text::text_of;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap;

use super::texts::TextsById;

/// Integers, any of which may be missing.
#[derive(Debug, Default)]
pub(super) struct Integers {
    values: Vec<i64>,
    /// Which are there; none as long as all are.
    valid: Option<Vec<bool>>,
}

impl Integers {
    /// The same value so many times.
    pub(super) fn repeated(value: Option<i64>, rows: usize) -> Integers {
        let valid = value.is_none().then(|| vec![false; rows]);
        Integers { values: vec![value.unwrap_or_default(); rows], valid }
    }

    #[inline]
    pub(super) fn push(&mut self, value: Option<i64>) {
        match (&mut self.valid, value) {
            (Some(valid), _) => valid.push(value.is_some()),
            (None, None) => {
                let mut valid = vec![true; self.values.len()];
                valid.push(false);
                self.valid = Some(valid);
            }
            (None, Some(_)) => {}
        }
        self.values.push(value.unwrap_or_default());
    }

    pub(super) fn set(&mut self, row: usize, value: Option<i64>) {
        self.values[row] = value.unwrap_or_default();
        match &mut self.valid {
            Some(valid) => valid[row] = value.is_some(),
            None if value.is_none() => {
                let mut valid = vec![true; self.values.len()];
                valid[row] = false;
                self.valid = Some(valid);
            }
            None => {}
        }
    }

    pub(super) fn get(&self, row: usize) -> Option<i64> {
        let is_there = self.valid.as_ref().is_none_or(|valid| valid[row]);
        is_there.then(|| self.values[row])
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Those of `rows`, in their order.
    pub(super) fn array(&self, rows: &[u32]) -> ArrayRef {
        let is_whole = || rows.len() == self.values.len() && rows.iter().zip(0..).all(|(row, at)| *row == at);
        match &self.valid {
            None if is_whole() => Arc::new(Int64Array::from(self.values.clone())),
            None => Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| self.values[*row as usize]))),
            Some(_) => Arc::new(rows.iter().map(|row| self.get(*row as usize)).collect::<Int64Array>()),
        }
    }

    /// The texts whose ids those of `rows` are; none where they have more bytes than [`super::texts::ROOM`].
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn texts(&self, rows: &[u32], texts: &mut TextsById<'_>) -> Result<Option<ArrayRef>> {
        let mut keys: FxHashMap<i64, i32> = FxHashMap::default();
        let mut ids = Vec::new();
        let mut last = (None, None);
        let mut key = |id: i64| {
            if last.0 != Some(id) {
                let key = *keys.entry(id).or_insert_with(|| {
                    ids.push(id);
                    ids.len() as i32 - 1
                });
                last = (Some(id), Some(key));
            }
            last.1
        };
        let keys: Vec<Option<i32>> =
            rows.iter().map(|row| self.get(*row as usize).and_then(&mut key)).collect();
        let Some(found) = texts.of(&ids)? else { return Ok(None) };
        // An id that leads nowhere is no text.
        let is_text = |key: &i32| found[*key as usize].is_some();
        let keys = keys.into_iter().map(|key| key.filter(is_text)).collect::<Int32Array>();
        let found = found.iter().map(|text| text.as_deref().unwrap_or_default());
        Ok(Some(dictionary(keys, StringArray::from_iter_values(found))?))
    }
}

fn dictionary(keys: Int32Array, texts: StringArray) -> Result<ArrayRef> {
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts))?))
}

/// TextsById that stand in the rows themselves, each kept once.
#[derive(Debug, Default)]
pub(super) struct Words {
    keys: Vec<Option<i32>>,
    known: FxHashMap<Arc<str>, i32>,
    texts: Vec<Arc<str>>,
    /// Of the texts.
    pub(super) bytes: usize,
}

impl Words {
    pub(super) fn push(&mut self, text: Option<&str>) {
        let Some(text) = text else {
            self.keys.push(None);
            return;
        };
        let last = self.keys.last().copied().flatten();
        let key = last.filter(|last| &*self.texts[*last as usize] == text);
        let key = key.or_else(|| self.known.get(text).copied()).unwrap_or_else(|| {
            let text: Arc<str> = text.into();
            self.bytes += text.len();
            let key = self.texts.len() as i32;
            self.texts.push(Arc::clone(&text));
            self.known.insert(text, key);
            key
        });
        self.keys.push(Some(key));
    }

    /// Those of `rows`, in their order.
    ///
    /// # Errors
    /// None that is known.
    pub(super) fn array(&self, rows: &[u32]) -> Result<ArrayRef> {
        let keys = rows.iter().map(|row| self.keys[*row as usize]).collect::<Int32Array>();
        dictionary(keys, StringArray::from_iter_values(&self.texts))
    }
}

/// How a column of the trace becomes one of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Integer,
    /// The number of a GPU or queue, or the id of a process or thread, within its node.
    Gpu,
    Process,
    /// A time, to which the clock's offset is added.
    Time,
    /// The id of a text.
    TextId,
    /// A text.
    Word,
}

/// A column of a block.
#[derive(Debug)]
pub(super) enum Cells {
    Integer(Integers),
    Time(Integers),
    TextId(Integers),
    Word(Words),
}

impl Cells {
    pub(super) fn new(from: From) -> Cells {
        match from {
            From::Integer | From::Gpu | From::Process => Cells::Integer(Integers::default()),
            From::Time => Cells::Time(Integers::default()),
            From::TextId => Cells::TextId(Integers::default()),
            From::Word => Cells::Word(Words::default()),
        }
    }

    /// Adds a value of the trace. Says whether it fits: what does not is missing from then on. An empty text in place of a number is
    /// how traces say that it is not known.
    #[inline]
    pub(super) fn push(&mut self, value: ValueRef<'_>, offset: i64) -> bool {
        let (cells, number) = match self {
            Cells::Word(words) => {
                match value {
                    ValueRef::Null => words.push(None),
                    value => words.push(Some(&text_of(value))),
                }
                return true;
            }
            Cells::Time(cells) => (cells, value.as_i64().ok().map(|time| time.checked_add(offset))),
            Cells::Integer(cells) | Cells::TextId(cells) => (cells, value.as_i64().ok().map(Some)),
        };
        let number = number.flatten();
        cells.push(number);
        number.is_some() || matches!(value, ValueRef::Null | ValueRef::Text(b""))
    }

    /// The integers of the column; it must be none of texts.
    pub(super) fn integers(&self) -> &Integers {
        match self {
            Cells::Integer(cells) | Cells::Time(cells) | Cells::TextId(cells) => cells,
            Cells::Word(_) => unreachable!("a column of texts was asked for numbers"),
        }
    }

    /// The values of `rows`, in their order; none where texts take too much room.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn array(&self, rows: &[u32], texts: &mut TextsById<'_>) -> Result<Option<ArrayRef>> {
        match self {
            Cells::Integer(cells) | Cells::Time(cells) => Ok(Some(cells.array(rows))),
            Cells::TextId(cells) => cells.texts(rows, texts),
            Cells::Word(words) => words.array(rows).map(Some),
        }
    }
}
