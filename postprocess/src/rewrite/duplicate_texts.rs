//! Texts that are there more than once: the one with the smallest id replaces the others.
//!
//! Compared by a hash of 128 bits under a key that nobody knows, so that sorting costs the same however long the texts
//! are, and no file can be made to confuse two of them.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

use crate::trace::ids::Ids;

/// Begins to look for equal texts: [`gather`] may be used on this connection then.
///
/// # Errors
/// Those of SQLite, none of which has to do with the file.
pub(crate) fn begin(connection: &Connection) -> Result<()> {
    let keys = [RandomState::new(), RandomState::new()];
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("text_key", 1, flags, move |call| {
        let value = call.get_raw(0);
        let mut hash = Vec::with_capacity(16);
        for key in &keys {
            let half = match value {
                ValueRef::Text(text) => key.hash_one(text),
                ValueRef::Blob(bytes) => key.hash_one(("blob", bytes)),
                ValueRef::Integer(number) => key.hash_one(("integer", number)),
                ValueRef::Real(number) => key.hash_one(("real", number.to_bits())),
                ValueRef::Null => key.hash_one(()),
            };
            hash.extend_from_slice(&half.to_ne_bytes());
        }
        Ok(hash)
    })?;
    connection.execute_batch("CREATE TEMP TABLE text_key (hash BLOB NOT NULL, id INTEGER NOT NULL)")
}

/// Adds the texts that `select` yields, as `string` and `id`.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn gather(connection: &Connection, select: &str) -> Result<()> {
    connection
        .execute(&format!("INSERT INTO temp.text_key SELECT text_key(string), id FROM ({select})"), [])
        .map(|_| ())
}

/// Finds, among the texts gathered, those of which there is one with a smaller id: SQL then has `is_duplicate(id)` for them, and a
/// table `temp.duplicate (id, first)` with the smallest id of the same text. Says how many there are.
///
/// # Errors
/// When temporary files cannot be written.
pub(crate) fn find(connection: &Connection) -> Result<u64> {
    connection.execute_batch(
        "CREATE TEMP TABLE duplicate (id INTEGER PRIMARY KEY, first INTEGER NOT NULL);
         INSERT OR IGNORE INTO temp.duplicate
             SELECT id, first FROM (SELECT id, min(id) OVER (PARTITION BY hash) AS first FROM temp.text_key)
             WHERE id <> first ORDER BY id;
         DROP TABLE temp.text_key",
    )?;
    let duplicates = Ids::of(connection, "SELECT id FROM temp.duplicate", [])?;
    let count = duplicates.len();
    Arc::new(duplicates).name(connection, "is_duplicate")?;
    Ok(count)
}

/// The SQL expression for the id that stands for the text with the id `id`, where there is one, else `otherwise`; all of them
/// are expressions.
pub(crate) fn first_of(id: &str, otherwise: &str) -> String {
    format!(
        "CASE WHEN is_duplicate({id}) THEN (SELECT first FROM temp.duplicate WHERE duplicate.id = {id}) ELSE {otherwise} END"
    )
}
