//! Rows of a table beside ids that come in order: each table is read once, however many rows are asked for.
//!
//! Looking rows up one by one costs more, and where a file has no key it would read the table for each.

use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Rows, Statement};

use crate::trace::has_table;

/// A table in the order of a column with ids.
pub(crate) struct ById<'trace>(Option<Statement<'trace>>);

impl<'trace> ById<'trace> {
    /// The `columns` (SQL) of a table in the order of `id`; nothing of a table that is not there. Rows whose id is no integer are none.
    ///
    /// # Errors
    /// When a column is not there, or the trace cannot be read.
    pub(crate) fn of(
        trace: &'trace Connection,
        table: &str,
        id: &str,
        columns: &str,
    ) -> rusqlite::Result<ById<'trace>> {
        if !has_table(trace, table)? {
            return Ok(ById(None));
        }
        // By itself, a name in quotes is a text to SQLite where there is no such column.
        let select = format!(
            "SELECT {table}.{id}, {columns} FROM {table} WHERE typeof({table}.{id}) = 'integer' ORDER BY {table}.{id}"
        );
        ById::query(trace, &select)
    }

    /// The rows of a query whose first column is an integer that never becomes smaller.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn query(trace: &'trace Connection, select: &str) -> rusqlite::Result<ById<'trace>> {
        trace.prepare(select).map(|statement| ById(Some(statement)))
    }

    /// No rows.
    pub(crate) fn none() -> ById<'trace> {
        ById(None)
    }

    /// Begins to read.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn rows(&mut self) -> rusqlite::Result<OrderedRows<'_>> {
        let rows = self.0.as_mut().map(|statement| statement.query([])).transpose()?;
        let mut rows = OrderedRows { rows, ahead: None, values: Vec::new(), has_values: false };
        rows.advance()?;
        Ok(rows)
    }
}

/// The rows, as they are passed.
pub(crate) struct OrderedRows<'statement> {
    rows: Option<Rows<'statement>>,
    /// Id of the row that is next.
    ahead: Option<i64>,
    /// Its columns, once they were asked for: most rows are passed without.
    values: Vec<Value>,
    has_values: bool,
}

impl OrderedRows<'_> {
    fn advance(&mut self) -> rusqlite::Result<()> {
        (self.ahead, self.has_values) = (None, false);
        let Some(rows) = &mut self.rows else { return Ok(()) };
        self.ahead = rows.next()?.map(|row| row.get(0)).transpose()?;
        Ok(())
    }

    /// The columns of the first row with this id. Ids that are asked for never become smaller.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn at(&mut self, id: i64) -> rusqlite::Result<Option<&[Value]>> {
        while self.ahead.is_some_and(|ahead| ahead < id) {
            self.advance()?;
        }
        if self.ahead != Some(id) {
            return Ok(None);
        }
        if !self.has_values {
            self.read()?;
        }
        Ok(Some(&self.values))
    }

    fn read(&mut self) -> rusqlite::Result<()> {
        self.values.clear();
        let Some(row) = self.rows.as_ref().and_then(|rows| rows.get()) else { return Ok(()) };
        for column in 1..row.as_ref().column_count() {
            self.values.push(match row.get_ref(column)? {
                ValueRef::Integer(number) => Value::Integer(number),
                ValueRef::Null => Value::Null,
                other => Value::Text(rpd_schema::text::text_of(other).into_owned()),
            });
        }
        self.has_values = true;
        Ok(())
    }

    /// The columns of the next row with this id, which is passed. Ids that are asked for never become smaller.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn take(&mut self, id: i64) -> rusqlite::Result<Option<Vec<Value>>> {
        if self.at(id)?.is_none() {
            return Ok(None);
        }
        let taken = std::mem::take(&mut self.values);
        self.advance()?;
        Ok(Some(taken))
    }
}

/// The integer of a column, if it is one.
pub(crate) fn integer(values: &[Value], column: usize) -> Option<i64> {
    match values.get(column) {
        Some(Value::Integer(number)) => Some(*number),
        _ => None,
    }
}

/// The text of a column, whatever it is, as [`rpd_schema::text::text_of`] has it.
pub(crate) fn text(values: &[Value], column: usize) -> String {
    let value = values.get(column).map_or(ValueRef::Null, ValueRef::from);
    rpd_schema::text::text_of(value).into_owned()
}
