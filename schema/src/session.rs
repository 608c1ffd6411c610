//! Taking a session number: which ids this process may write.

use crate::id::Offset;
use rusqlite::{Connection, OptionalExtension};

/// One more than the largest session number: the ids of a larger one do not fit into 63 bits.
const SESSIONS: i64 = 1 << 31;

/// Tables whose own ids tell which sessions have been written.
const WRITTEN: [&str; 4] = ["rocpd_string", "rocpd_api", "rocpd_op", "rocpd_kernelcodeobject"];

/// How many session numbers have been taken, as the file counts them.
pub(crate) fn count(connection: &Connection) -> rusqlite::Result<u32> {
    let counted = connection
        .query_row(
            "SELECT CAST(value AS integer) FROM rocpd_metadata WHERE tag = 'session_count' ORDER BY 1 DESC LIMIT 1",
            [],
            |row| row.get::<_, i64>(0),
        )
        .optional()?
        .unwrap_or(0);
    Ok(counted.clamp(0, SESSIONS) as u32)
}

/// Takes the next session number and writes its empty string. Must run inside an immediate transaction; None when
/// all numbers are taken.
///
/// The number is `session_count` of the metadata, but never one whose ids are in the file already: merged and
/// imported files may have rows and no count.
pub(crate) fn claim(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let mut next = i64::from(count(connection)?);
    for table in WRITTEN {
        let largest = connection
            .query_row(&format!("SELECT max(id) FROM {table}"), [], |row| row.get::<_, Option<i64>>(0))?;
        if let Some(id) = largest.filter(|&id| id > 0) {
            next = next.max((id >> 32) + 1);
        }
    }
    let Some(session) = u32::try_from(next).ok().filter(|_| next < SESSIONS) else {
        return Ok(None);
    };
    let count = (next + 1).to_string();
    if connection.execute("UPDATE rocpd_metadata SET value = ?1 WHERE tag = 'session_count'", [&count])? == 0
    {
        connection
            .execute("INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', ?1)", [&count])?;
    }
    let empty = Offset::of_session(session).local(crate::intern::EMPTY);
    connection.execute("INSERT INTO rocpd_string (id, string) VALUES (?1, '')", [empty])?;
    Ok(Some(session))
}
