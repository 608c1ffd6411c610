//! Rows of one table that wait to be written, as records.

use crate::id::Offset;
use crate::image::{self, TableImage};
use crate::record::values;
use crate::table::{Cells, Row};
use rpd_sql::insert::Insert;
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::iter;

/// Bytes of memory that stay for the next rows after a giant text.
const SPARE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Batch {
    insert: &'static Insert,
    /// The records, one behind the other.
    bytes: Vec<u8>,
    places: Vec<RecordPlace>,
    /// Bytes of the longest record.
    longest: usize,
}

/// Where a row's record lies, and its primary key.
#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    key: i64,
    begin: usize,
    end: usize,
}

impl Batch {
    pub(crate) const fn new(insert: &'static Insert) -> Batch {
        Batch { insert, bytes: vec![], places: vec![], longest: 0 }
    }

    /// Adds a row; how many bytes it takes.
    pub(crate) fn push<R: Row>(&mut self, row: &R, offset: Offset) -> usize {
        let begin = self.bytes.len();
        let mut cells = Cells::new(&mut self.bytes, R::INSERT.columns.len());
        cells.key();
        row.fill(offset, &mut cells);
        let end = self.bytes.len();
        self.places.push(RecordPlace { key: row.key(offset), begin, end });
        self.longest = self.longest.max(end - begin);
        end - begin + size_of::<RecordPlace>()
    }

    pub(crate) fn rows(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn table(&self) -> &'static str {
        self.insert.table
    }

    /// Bytes of the longest record.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Puts the rows in the order of their keys. False: two rows have the same.
    pub(crate) fn sort(&mut self) -> bool {
        // Rows come thread after thread, while ids were given out to all of them in turn. At the end of a table a row costs least.
        self.places.sort_by_key(|place| place.key);
        self.places.windows(2).all(|two| two[0].key < two[1].key)
    }

    /// The smallest key of sorted rows.
    pub(crate) fn first_key(&self) -> Option<i64> {
        self.places.first().map(|place| place.key)
    }

    /// The largest key of sorted rows.
    pub(crate) fn last_key(&self) -> Option<i64> {
        self.places.last().map(|place| place.key)
    }

    /// How many of the sorted rows have this key or a smaller one.
    pub(crate) fn rows_until(&self, key: i64) -> usize {
        self.places.partition_point(|place| place.key <= key)
    }

    /// Each row's key and record.
    pub(crate) fn records(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.places.iter().map(|place| (place.key, &self.bytes[place.begin..place.end]))
    }

    /// Whether every row fits into an image.
    pub(crate) fn fits(&self) -> bool {
        self.longest <= image::MOST
    }

    /// Writes the rows one by one: for a few that is the shortest way.
    pub(crate) fn write_each(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.write_first(connection, self.places.len())?;
        self.clear();
        Ok(())
    }

    /// Writes the first `count` rows one by one, and keeps the others.
    pub(crate) fn write_first(&mut self, connection: &Connection, count: usize) -> rusqlite::Result<()> {
        if count == 0 {
            return Ok(());
        }
        let mut statement = connection.prepare_cached(&self.insert.statement(1))?;
        for &RecordPlace { key, begin, end } in &self.places[..count] {
            let others = values(&self.bytes[begin..end]).skip(1);
            for (column, value) in iter::once(ValueRef::Integer(key)).chain(others).enumerate() {
                statement.raw_bind_parameter(column + 1, ToSqlOutput::Borrowed(value))?;
            }
            statement.raw_execute()?;
        }
        self.places.drain(..count);
        Ok(())
    }

    /// Puts the rows into an image.
    pub(crate) fn fill(&mut self, image: &mut TableImage<'_>) {
        if self.places.is_empty() {
            return;
        }
        self.sort();
        image.fill(self.insert.table, self.records());
    }

    /// Writes the rows from the image that is attached as `schema`.
    pub(crate) fn copy(&mut self, connection: &Connection, schema: &str) -> rusqlite::Result<()> {
        if self.places.is_empty() {
            return Ok(());
        }
        let table = self.insert.table;
        let there = format!("SELECT count(*) FROM \"{schema}\".\"{table}\"");
        if connection.query_row(&there, [], |row| row.get::<_, i64>(0))? != self.places.len() as i64 {
            return self.write_each(connection);
        }
        let columns = "SELECT group_concat(\"name\") FROM pragma_table_info(?, 'main')";
        let columns: Option<String> = connection.query_row(columns, [table], |row| row.get(0))?;
        // Only whole rows are copied as they are, so the tables must look alike.
        let alike = columns.is_some_and(|columns| columns.split(',').eq(self.insert.columns.iter().copied()));
        connection.execute(&self.insert.copy(schema, alike), [])?;
        self.clear();
        Ok(())
    }

    /// Forgets every row.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(SPARE_BYTES);
        self.places.clear();
        self.longest = 0;
    }
}
