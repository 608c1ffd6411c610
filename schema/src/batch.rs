//! Rows waiting to be written, many per statement.
//!
//! A statement costs hundreds of nanoseconds before its first row (AUTOINCREMENT alone a third of a microsecond), so
//! rows go out a hundred at a time, and what is left at a commit by tens and then one by one: three prepared
//! statements per table, whatever the number of rows.
//!
//! A row with an id makes SQLite search the table for that id first, which is a sixth of what the row costs; a row without
//! one goes to the end at once, with the next id. Where a hundred ids are just those that SQLite would give out, they
//! are left to SQLite: ids count up, so in a file with one session, and in the newest of several, that is nearly always so.

use crate::id::Offset;
use crate::table::{Cells, Row};
use rusqlite::{Connection, ffi};
use std::ops::Range;

/// Rows per statement, largest first. More than 100 gain nothing: the statement's share of a row is small by then.
const SIZES: [usize; 3] = [100, 10, 1];

/// Rows of one table.
#[derive(Debug)]
pub(crate) struct Batch<R> {
    rows: Vec<R>,
    statements: [String; SIZES.len()],
    /// As the first of them, with ids of SQLite's.
    at_the_end: String,
    end: End,
}

/// Which id SQLite gives to a row that comes without: the one after this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Nobody has looked in this transaction.
    Unknown,
    At(i64),
    /// This file's table gives out ids in another way.
    Elsewhere,
}

impl<R: Row> Batch<R> {
    pub(crate) fn new() -> Batch<R> {
        Batch {
            rows: Vec::with_capacity(SIZES[0]),
            statements: SIZES.map(|rows| R::INSERT.statement(rows)),
            at_the_end: R::INSERT.at_the_end(SIZES[0]),
            end: End::Unknown,
        }
    }

    /// Adds a row; true when the batch wants to be flushed.
    pub(crate) fn push(&mut self, row: R) -> bool {
        self.rows.push(row);
        self.rows.len() >= SIZES[0]
    }

    /// A transaction begins: others may have written since the last one.
    pub(crate) fn begin(&mut self) {
        if self.end != End::Elsewhere {
            self.end = End::Unknown;
        }
    }

    /// Writes every row. After a failure those that were written are gone from the batch, the others still in it.
    pub(crate) fn flush(&mut self, connection: &Connection, offset: Offset) -> rusqlite::Result<()> {
        let mut written = 0;
        let result = self.write(connection, offset, &mut written);
        self.rows.drain(..written);
        result
    }

    /// Forgets every row.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    fn write(
        &mut self,
        connection: &Connection,
        offset: Offset,
        written: &mut usize,
    ) -> rusqlite::Result<()> {
        for (place, size) in SIZES.into_iter().enumerate() {
            while self.rows.len() - *written >= size {
                let rows = *written..*written + size;
                if place == 0 && self.is_next(connection, offset, rows.clone()) {
                    self.append(connection, offset, rows)?;
                } else {
                    self.insert(connection, offset, place, rows)?;
                }
                *written += size;
            }
        }
        Ok(())
    }

    /// Whether SQLite would give these rows the ids that they have.
    fn is_next(&mut self, connection: &Connection, offset: Offset, rows: Range<usize>) -> bool {
        if self.end == End::Unknown {
            // Whatever there is to complain about, the rows can still come with their ids, or will have the same complaint.
            let last = connection
                .prepare_cached(&R::INSERT.last_key())
                .and_then(|mut query| query.query_row([], |row| row.get(0)));
            self.end = last.map_or(End::Elsewhere, End::At);
        }
        let End::At(last) = self.end else { return false };
        let next = (1..).map(|step| last.saturating_add(step));
        self.rows[rows].iter().zip(next).all(|(row, id)| row.key(offset) == id)
    }

    /// Rows without their ids, which SQLite is about to give out.
    fn append(
        &mut self,
        connection: &Connection,
        offset: Offset,
        rows: Range<usize>,
    ) -> rusqlite::Result<()> {
        let last = self.rows[rows.end - 1].key(offset);
        let mut statement = connection.prepare_cached(&self.at_the_end)?;
        let mut cells = Cells::new(&mut statement);
        for row in &self.rows[rows] {
            row.bind(offset, &mut cells)?;
        }
        statement.raw_execute()?;
        if connection.last_insert_rowid() != last {
            // A trigger of the file's owner, say. The transaction must not be committed; the next one brings its own ids.
            self.end = End::Elsewhere;
            let abort = ffi::Error::new(ffi::SQLITE_ABORT);
            let table = R::INSERT.table;
            let message = format!("rows of {table} got other ids than the next ones");
            return Err(rusqlite::Error::SqliteFailure(abort, Some(message)));
        }
        self.end = End::At(last);
        Ok(())
    }

    /// Rows with their ids.
    fn insert(
        &mut self,
        connection: &Connection,
        offset: Offset,
        place: usize,
        rows: Range<usize>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(&self.statements[place])?;
        let mut cells = Cells::new(&mut statement);
        for row in &self.rows[rows] {
            let key = row.key(offset);
            cells.integer(key)?;
            row.bind(offset, &mut cells)?;
            if let End::At(last) = &mut self.end {
                *last = key.max(*last);
            }
        }
        statement.raw_execute().map(|_| ())
    }
}
