//! Rows waiting to be written, many per statement.
//!
//! A statement costs hundreds of nanoseconds before its first row (AUTOINCREMENT alone a third of a microsecond), so
//! rows go out a hundred at a time, and what is left at a commit by tens and then one by one: three prepared
//! statements per table, whatever the number of rows.

use crate::id::Offset;
use crate::table::{Cells, Row};
use rusqlite::Connection;

/// Rows per statement, largest first. More than 100 gain nothing: the statement's share of a row is small by then.
const SIZES: [usize; 3] = [100, 10, 1];

/// Rows of one table.
#[derive(Debug)]
pub(crate) struct Batch<R> {
    rows: Vec<R>,
    statements: [String; SIZES.len()],
}

impl<R: Row> Batch<R> {
    pub(crate) fn new() -> Batch<R> {
        Batch { rows: Vec::with_capacity(SIZES[0]), statements: SIZES.map(|rows| R::INSERT.statement(rows)) }
    }

    /// Adds a row; true when the batch wants to be flushed.
    pub(crate) fn push(&mut self, row: R) -> bool {
        self.rows.push(row);
        self.rows.len() >= SIZES[0]
    }

    /// Writes every row. After a failure those that were written are gone from the batch, the others still in it.
    pub(crate) fn flush(&mut self, connection: &Connection, offset: Offset) -> rusqlite::Result<()> {
        let mut written = 0;
        let result = write(&self.rows, &self.statements, connection, offset, &mut written);
        self.rows.drain(..written);
        result
    }

    /// Forgets every row.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }
}

fn write<R: Row>(
    rows: &[R],
    statements: &[String; SIZES.len()],
    connection: &Connection,
    offset: Offset,
    written: &mut usize,
) -> rusqlite::Result<()> {
    for (size, text) in SIZES.into_iter().zip(statements) {
        while rows.len() - *written >= size {
            let mut statement = connection.prepare_cached(text)?;
            let mut cells = Cells::new(&mut statement);
            for row in &rows[*written..*written + size] {
                row.bind(offset, &mut cells)?;
            }
            statement.raw_execute()?;
            *written += size;
        }
    }
    Ok(())
}
