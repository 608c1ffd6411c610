//! A writer's session: which ids this process may write, and what it has written with them.

use crate::facts::Facts;
use crate::id::{LOCAL_IDS, Offset};
use crate::intern::Interner;
use crate::transaction::Presence;
use rusqlite::{Connection, OptionalExtension};

/// One more than the largest session number: the ids of a larger one do not fit into 63 bits.
const SESSIONS: i64 = 1 << 31;

/// Tables whose own ids tell which sessions have been written.
const WRITTEN: [&str; 4] = ["rocpd_string", "rocpd_api", "rocpd_op", "rocpd_kernelcodeobject"];

/// What one writer has in the file as its session.
#[derive(Clone, Debug)]
pub(crate) struct OwnSession {
    pub(crate) number: u32,
    /// Whether the file knows of it.
    pub(crate) presence: Presence,
    pub(crate) interner: Interner,
    pub(crate) facts: Facts,
    pub(crate) next: OwnIds,
}

/// The next local ids of the tables whose rows have no id of the caller's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnIds {
    pub(crate) api_op: u64,
    pub(crate) input_signal: u64,
    pub(crate) monitor: u64,
    pub(crate) stack_frame: u64,
    pub(crate) validation: u64,
    pub(crate) instrumentation: u64,
    pub(crate) finding: u64,
}

impl OwnSession {
    /// Of that number, with nothing in it yet; texts may take `budget` bytes of memory.
    pub(crate) fn new(number: u32, presence: Presence, budget: usize) -> OwnSession {
        OwnSession {
            number,
            presence,
            interner: Interner::new(number, budget),
            facts: Facts::new(number),
            next: OwnIds {
                api_op: 1,
                input_signal: 1,
                monitor: 1,
                stack_frame: 1,
                validation: 1,
                instrumentation: 1,
                finding: 1,
            },
        }
    }

    pub(crate) fn offset(&self) -> Offset {
        Offset::of_session(self.number)
    }

    /// Whether `rows` more rows of one kind might be more than there are ids for.
    pub(crate) fn is_short_of_ids(&self, rows: u64) -> bool {
        let OwnIds { api_op, input_signal, monitor, stack_frame, validation, instrumentation, finding } =
            self.next;
        let text = self.interner.next();
        [api_op, input_signal, monitor, stack_frame, validation, instrumentation, finding, text]
            .into_iter()
            .any(|next| next + rows > LOCAL_IDS)
    }

    /// The open transaction is in the file.
    pub(crate) fn commit(&mut self) {
        self.interner.commit();
        self.facts.commit();
        self.presence.commit();
    }

    /// The open transaction is not in the file.
    pub(crate) fn roll_back(&mut self) {
        self.interner.rollback();
        self.facts.rollback();
        self.presence.roll_back();
    }
}

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
