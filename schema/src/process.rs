//! The sessions of a file that belong to one process.
//!
//! A thread is known by its process, its process id and its thread id: containers on one host, and hosts in a merged trace,
//! have equal process and thread ids. A row is of the session that its id tells (`id >> 32`), and a session is of one process.
//! A process can take several sessions. They say the same boot, process id and start then. A session that does not say these
//! is a process of its own; so are all rows of a file whose recorder knows no sessions, because their ids are those of session 0.

use crate::session_fact as fact;
use crate::sessions::{SessionInfo, sessions};
use rusqlite::Connection;
use std::collections::{BTreeMap, HashMap};

/// The processes of a file.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Of the sessions that are not the first of their process: that first one.
    first: BTreeMap<i64, i64>,
}

impl Processes {
    /// Reads what the sessions say of their processes.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn of(connection: &Connection) -> rusqlite::Result<Processes> {
        let mut known: HashMap<Vec<String>, i64> = HashMap::new();
        let mut first = BTreeMap::new();
        for session in sessions(connection)? {
            let number = i64::from(session.session);
            if let Some(identity) = identity(&session) {
                let process = *known.entry(identity).or_insert(number);
                if process != number {
                    first.insert(number, process);
                }
            }
        }
        Ok(Processes { first })
    }

    /// The process of the row with this id: the number of its first session.
    #[must_use]
    pub fn of_row(&self, id: i64) -> i64 {
        let session = id >> 32;
        self.first.get(&session).copied().unwrap_or(session)
    }
}

/// What the sessions of one process have in common, and those of two have not. None where a session does not say it.
fn identity(session: &SessionInfo) -> Option<Vec<String>> {
    let facts = |keys: &[&str]| {
        let fact =
            |key: &&str| session.get(key).map(str::trim).filter(|fact| !fact.is_empty()).map(str::to_owned);
        keys.iter().map(fact).collect::<Option<Vec<String>>>()
    };
    facts(&[fact::PROCESS]).or_else(|| facts(&[fact::BOOT_ID, fact::PID, fact::START_MONOTONIC_NS]))
}
