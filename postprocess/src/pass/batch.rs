//! Rows to insert, many per statement: a statement into a table with AUTOINCREMENT costs more than a row.

use rpd_sql::insert::Insert;
use rusqlite::Connection;
use rusqlite::types::ToSql;

/// Rows per statement; more gain nothing.
const ROWS: usize = 100;

/// Rows of one table that wait for their statement, `N` columns each.
pub(crate) struct Batch<'a, T, const N: usize> {
    trace: &'a Connection,
    table: &'static Insert,
    full: String,
    rows: Vec<[T; N]>,
    count: u64,
}

impl<'a, T: ToSql, const N: usize> Batch<'a, T, N> {
    /// No rows yet.
    pub(crate) fn new(trace: &'a Connection, table: &'static Insert) -> Batch<'a, T, N> {
        debug_assert_eq!(table.columns.len(), N, "one value per column");
        Batch { trace, table, full: table.statement(ROWS), rows: Vec::with_capacity(ROWS), count: 0 }
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
        let mut statement = self.trace.prepare_cached(&self.full)?;
        for (at, value) in self.rows.iter().flatten().enumerate() {
            statement.raw_bind_parameter(at + 1, value)?;
        }
        statement.raw_execute()?;
        self.rows.clear();
        Ok(())
    }

    /// Writes what is left and says how many rows there were in all.
    ///
    /// # Errors
    /// When rows cannot be written.
    pub(crate) fn finish(self) -> rusqlite::Result<u64> {
        if !self.rows.is_empty() {
            let mut statement = self.trace.prepare(&self.table.statement(self.rows.len()))?;
            for (at, value) in self.rows.iter().flatten().enumerate() {
                statement.raw_bind_parameter(at + 1, value)?;
            }
            statement.raw_execute()?;
        }
        Ok(self.count)
    }
}
