//! What each process counted: counts of different things do not add up, though they are of the same kernel.

use std::collections::HashMap;

use rusqlite::Connection;
use serde::Serialize;

/// What was counted of basic blocks, as `rpd probe --auto` calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Wavefronts.
    Count,
    /// The lanes that were active in them too.
    Lanes,
    /// How long they stayed too.
    Time,
}

impl Mode {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Count => "count",
            Mode::Lanes => "lanes",
            Mode::Time => "time",
        }
    }
}

/// The modes of the sessions of a trace that have counts.
pub(super) struct SessionModes(HashMap<i64, Mode>);

impl SessionModes {
    pub(super) fn of(trace: &Connection) -> rusqlite::Result<SessionModes> {
        let mut sessions = trace.prepare(
            "SELECT instrumentation_id >> 32, max(lanes IS NOT NULL), max(ticks IS NOT NULL) FROM ext_blockcount GROUP BY 1",
        )?;
        let mode = |(lanes, ticks)| match (lanes, ticks) {
            (_, true) => Mode::Time,
            (true, false) => Mode::Lanes,
            (false, false) => Mode::Count,
        };
        let modes = sessions.query_map([], |row| Ok((row.get(0)?, mode((row.get(1)?, row.get(2)?)))))?;
        Ok(SessionModes(modes.collect::<rusqlite::Result<_>>()?))
    }

    /// That of a row of `ext_instrumentation`; none where its session has no counts.
    pub(super) fn get(&self, instrumentation: i64) -> Option<Mode> {
        self.0.get(&(instrumentation >> 32)).copied()
    }
}
