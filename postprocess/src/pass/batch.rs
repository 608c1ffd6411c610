//! Rows to insert, many per statement: a statement into a table with AUTOINCREMENT costs more than a row.

use rpd_sql::insert::Insert;
use rusqlite::types::ToSql;
use rusqlite::{Connection, Statement};

/// Rows per statement; more gain nothing.
const ROWS: usize = 100;

/// Rows of one table that wait for their statement, `N` columns each.
pub(crate) struct InsertBatch<'a, T, const N: usize> {
    trace: &'a Connection,
    table: &'static Insert,
    full: Statement<'a>,
    rows: Vec<[T; N]>,
    count: u64,
}

impl<'a, T: ToSql, const N: usize> InsertBatch<'a, T, N> {
    /// No rows yet.
    ///
    /// # Errors
    /// When there is no such table.
    pub(crate) fn new(
        trace: &'a Connection,
        table: &'static Insert,
    ) -> rusqlite::Result<InsertBatch<'a, T, N>> {
        debug_assert_eq!(table.columns.len(), N, "one value per column");
        let full = trace.prepare(&table.statement(ROWS))?;
        Ok(InsertBatch { trace, table, full, rows: Vec::with_capacity(ROWS), count: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When rows cannot be written.
    pub(crate) fn push(&mut self, row: [T; N]) -> rusqlite::Result<()> {
        self.rows.push(row);
        self.count += 1;
        if self.rows.len() < ROWS {
            return Ok(());
        }
        write(&mut self.full, &self.rows)?;
        self.rows.clear();
        Ok(())
    }

    /// Writes what is left and says how many rows there were in all.
    ///
    /// # Errors
    /// When rows cannot be written.
    pub(crate) fn finish(self) -> rusqlite::Result<u64> {
        if !self.rows.is_empty() {
            write(&mut self.trace.prepare(&self.table.statement(self.rows.len()))?, &self.rows)?;
        }
        Ok(self.count)
    }
}

fn write<T: ToSql, const N: usize>(statement: &mut Statement<'_>, rows: &[[T; N]]) -> rusqlite::Result<()> {
    let mut parameter = 0;
    for row in rows {
        for value in row {
            parameter += 1;
            statement.raw_bind_parameter(parameter, value)?;
        }
    }
    statement.raw_execute().map(drop)
}
