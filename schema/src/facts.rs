//! Facts about sessions and GPUs: rows of `rocpd_metadata` that are replaced as they change.

use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;

/// Which rows this session's facts are in: finding one by its tag would read the whole table each time.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    session: u32,
    rows: FxHashMap<String, FactRow>,
}

#[derive(Clone, Copy, Debug)]
struct FactRow {
    row: i64,
    committed: bool,
}

impl Facts {
    pub(crate) fn new(session: u32) -> Facts {
        Facts { session, rows: FxHashMap::default() }
    }

    /// `session::N::key`: nobody else writes these, so the first time there is no row. The file's owner may delete them.
    pub(crate) fn session(
        &mut self,
        connection: &Connection,
        in_transaction: bool,
        key: &str,
        value: &str,
    ) -> rusqlite::Result<()> {
        if let Some(place) = self.rows.get(key)
            && replace(connection, place.row, value)?
        {
            return Ok(());
        }
        let row = insert(connection, &format!("session::{}::{key}", self.session), value)?;
        self.rows.insert(key.to_owned(), FactRow { row, committed: !in_transaction });
        Ok(())
    }

    /// Whether `session::N::key` is where it was put, with this value.
    pub(crate) fn still_says(
        &self,
        connection: &Connection,
        key: &str,
        value: &str,
    ) -> rusqlite::Result<bool> {
        let Some(place) = self.rows.get(key) else { return Ok(false) };
        let tag = format!("session::{}::{key}", self.session);
        connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM rocpd_metadata WHERE id = ?1 AND tag = ?2 AND value = ?3)",
            )?
            .query_row(rusqlite::params![place.row, tag, value], |row| row.get(0))
    }

    pub(crate) fn commit(&mut self) {
        for place in self.rows.values_mut() {
            place.committed = true;
        }
    }

    pub(crate) fn rollback(&mut self) {
        self.rows.retain(|_, place| place.committed);
    }
}

/// A fact that another session may have written: `gpu::N::key`, or that session's own.
pub(crate) fn state(connection: &Connection, tag: &str, value: &str) -> rusqlite::Result<()> {
    let row = connection
        .prepare_cached("SELECT id FROM rocpd_metadata WHERE tag = ?1 ORDER BY id DESC LIMIT 1")?
        .query_row([tag], |row| row.get::<_, i64>(0))
        .optional()?;
    match row {
        Some(row) => replace(connection, row, value).map(|_| ()),
        None => insert(connection, tag, value).map(|_| ()),
    }
}

/// False: the row is not there any more.
fn replace(connection: &Connection, row: i64, value: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("UPDATE rocpd_metadata SET value = ?2 WHERE id = ?1")?
        .execute(rusqlite::params![row, value])
        .map(|rows| rows > 0)
}

fn insert(connection: &Connection, tag: &str, value: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(&rpd_sql::insert::METADATA.statement(1))?.insert([tag, value])
}
