//! Rows as arrays, as many as memory should hold.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::builder::{BinaryBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, DictionaryArray, NullArray, RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;

use super::kind::ColumnKind;
use super::spool::{SpooledRows, SpooledValue};
use crate::query::value::{hexadecimal, number};

/// Rows of a batch.
const ROWS: usize = 1 << 16;

/// Bytes of the texts of a batch, from which on it takes no further row.
const BYTES: usize = 16 << 20;

/// A column that grows.
enum Builder {
    Null(usize),
    Integer(Int64Builder),
    Real(Float64Builder),
    SharedText(Int32Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Builder {
    fn of(kind: ColumnKind) -> Builder {
        match kind {
            ColumnKind::Null => Builder::Null(0),
            ColumnKind::Integer => Builder::Integer(Int64Builder::new()),
            ColumnKind::Real => Builder::Real(Float64Builder::new()),
            ColumnKind::SharedText => Builder::SharedText(Int32Builder::new()),
            ColumnKind::Text => Builder::Text(StringBuilder::new()),
            ColumnKind::Bytes => Builder::Bytes(BinaryBuilder::new()),
        }
    }

    /// Adds a value and says how many bytes of text it has. The column's kind holds every value of the column.
    fn add(&mut self, value: SpooledValue, shared: &dyn Fn(u32) -> String) -> usize {
        match self {
            Builder::Null(rows) => *rows += 1,
            Builder::Integer(numbers) => numbers.append_option(match value {
                SpooledValue::Integer(number) => Some(number),
                _ => None,
            }),
            Builder::Real(numbers) => numbers.append_option(match value {
                SpooledValue::Real(number) => Some(number),
                SpooledValue::Integer(number) => Some(number as f64),
                _ => None,
            }),
            Builder::SharedText(places) => places.append_option(match value {
                SpooledValue::SharedText(place) => Some(place.cast_signed()),
                _ => None,
            }),
            Builder::Text(texts) => {
                let text = match value {
                    SpooledValue::Null => None,
                    SpooledValue::Integer(number) => Some(number.to_string()),
                    SpooledValue::Real(real) => Some(number(real)),
                    SpooledValue::Text(text) => Some(text),
                    SpooledValue::Bytes(bytes) => Some(hexadecimal(&bytes)),
                    SpooledValue::SharedText(place) => Some(shared(place)),
                };
                texts.append_option(text.as_deref());
                return text.map_or(0, |text| text.len());
            }
            Builder::Bytes(blobs) => match value {
                SpooledValue::Bytes(bytes) => {
                    blobs.append_value(&bytes);
                    return bytes.len();
                }
                _ => blobs.append_null(),
            },
        }
        0
    }
}

impl SpooledRows {
    /// The next rows; None behind the last one.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub(super) fn batch(
        &mut self,
        schema: &Arc<Schema>,
        kinds: &[ColumnKind],
    ) -> Result<Option<RecordBatch>> {
        let mut columns: Vec<Builder> = kinds.iter().map(|kind| Builder::of(*kind)).collect();
        let (mut rows, mut bytes) = (0, 0);
        while rows < ROWS && bytes < BYTES && self.next_row() {
            for (place, column) in columns.iter_mut().enumerate() {
                let value = self.value()?;
                bytes += column.add(value, &|text| self.texts(place).value(text as usize).to_string());
            }
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let arrays = columns.into_iter().enumerate().map(|(place, column)| -> Result<ArrayRef> {
            Ok(match column {
                Builder::Null(rows) => Arc::new(NullArray::new(rows)),
                Builder::Integer(mut numbers) => Arc::new(numbers.finish()),
                Builder::Real(mut numbers) => Arc::new(numbers.finish()),
                Builder::Text(mut texts) => Arc::new(texts.finish()),
                Builder::Bytes(mut blobs) => Arc::new(blobs.finish()),
                Builder::SharedText(mut places) => {
                    // The same array in each batch: a writer writes it once.
                    let texts = Arc::clone(self.texts(place)) as ArrayRef;
                    Arc::new(DictionaryArray::try_new(places.finish(), texts)?)
                }
            })
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?))
    }
}
