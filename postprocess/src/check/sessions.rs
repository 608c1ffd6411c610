//! The facts that sessions state about themselves: whether they ended, what they lost, which ids are theirs.

use rpd_schema::{SessionInfo, session_fact};
use rusqlite::{Connection, OptionalExtension};

use super::finding::{CheckFinding, EXAMPLES, Example};
use super::kind::FindingKind;
use super::liveness::{self, SessionState};
use crate::text;
use crate::trace::layout::{Layout, metadata, quote};

/// Tables whose rows have ids of their session, by their own numbering.
const NUMBERED: [&str; 8] = [
    "rocpd_string",
    "rocpd_ustring",
    "rocpd_api",
    "rocpd_op",
    "rocpd_api_ops",
    "rocpd_kernelcodeobject",
    "rocpd_monitor",
    "rocpd_stackframe",
];

/// The sessions of a file, and which of them are being recorded.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Vec<(SessionInfo, SessionState)>,
}

impl Sessions {
    /// Reads the sessions that say something of themselves.
    ///
    /// # Errors
    /// When the metadata cannot be read.
    pub(crate) fn of(trace: &Connection) -> rusqlite::Result<Sessions> {
        let all = rpd_schema::sessions(trace)?.into_iter().map(|session| {
            let state = liveness::state(&session);
            (session, state)
        });
        Ok(Sessions { all: all.collect() })
    }

    /// Numbers of those that are being recorded.
    pub(crate) fn running(&self) -> Vec<u32> {
        self.in_state(SessionState::Running).map(|session| session.session).collect()
    }

    /// The process of one that is being recorded.
    pub(crate) fn running_pid(&self) -> Option<u32> {
        self.running_pids().next()
    }

    /// The processes of all that are being recorded.
    pub(crate) fn running_pids(&self) -> impl Iterator<Item = u32> {
        self.in_state(SessionState::Running).filter_map(SessionInfo::pid)
    }

    /// The host of one that may be being recorded where nobody sees it from here.
    pub(crate) fn host_elsewhere(&self) -> Option<&str> {
        let elsewhere = self.all.iter().find(|(session, _)| liveness::may_run_elsewhere(session));
        elsewhere.and_then(|(session, _)| session.host())
    }

    fn in_state(&self, state: SessionState) -> impl Iterator<Item = &SessionInfo> {
        self.all.iter().filter(move |(_, found)| *found == state).map(|(session, _)| session)
    }

    /// Sessions without an end, records lost, and launches that were not known to have completed.
    pub(crate) fn findings(&self) -> Vec<CheckFinding> {
        let states = [
            (SessionState::Killed, FindingKind::SessionKilled),
            (SessionState::Aborted, FindingKind::SessionAborted),
            (SessionState::Elsewhere, FindingKind::SessionUnfinished),
            (SessionState::Running, FindingKind::SessionRunning),
        ];
        let mut found = Vec::new();
        for (state, kind) in states {
            let count = self.in_state(state).count() as u64;
            if count > 0 {
                let examples =
                    self.in_state(state).take(EXAMPLES).map(|session| Example::Text(described(session)));
                found.push(CheckFinding::new(kind, "sessions", count).examples(examples));
            }
        }
        let failed: Vec<String> = self.all.iter().filter_map(|(session, _)| failed_queue(session)).collect();
        if !failed.is_empty() {
            let examples = failed.iter().take(EXAMPLES).cloned().map(Example::Text);
            found.push(
                CheckFinding::new(FindingKind::QueueFailed, "sessions", failed.len() as u64)
                    .examples(examples),
            );
        }
        let mut lost = std::collections::BTreeMap::<String, u64>::new();
        for (cause, count) in self.all.iter().flat_map(|(session, _)| session.lost()) {
            let sum = lost.entry(cause).or_default();
            *sum = sum.saturating_add(count);
        }
        let lost = lost.into_iter().filter(|(_, count)| *count > 0);
        found.extend(lost.map(|(cause, count)| CheckFinding::new(FindingKind::LostRecords, cause, count)));
        let open = self.all.iter().map(|(session, _)| session.launches_without_op());
        let open = open.fold(0, u64::saturating_add);
        if open > 0 {
            found.push(CheckFinding::new(FindingKind::LaunchWithoutOp, "sessions", open));
        }
        found
    }
}

fn described(session: &SessionInfo) -> String {
    let pid = session.pid().map_or_else(String::new, |pid| format!(" process {pid}"));
    let host = session.host().map_or_else(String::new, |host| format!(" on {}", text::escape(host)));
    format!("session {}{pid}{host}", session.session)
}

fn failed_queue(session: &SessionInfo) -> Option<String> {
    let what = session.get(session_fact::QUEUE_ERROR)?;
    Some(format!("session {}: {}", session.session, text::escape(what)))
}

/// How many sessions were taken, by the metadata.
///
/// # Errors
/// When the metadata cannot be read.
pub(crate) fn claimed(trace: &Connection, layout: &Layout) -> rusqlite::Result<i64> {
    let count = metadata(trace, layout, "session_count")?;
    Ok(count.and_then(|count| count.trim().parse().ok()).unwrap_or(0).clamp(0, 1 << 31))
}

/// Rows with ids of sessions that nobody took.
///
/// # Errors
/// When a table cannot be read.
pub(crate) fn unclaimed(trace: &Connection, layout: &Layout) -> rusqlite::Result<Vec<CheckFinding>> {
    // Past the last session's ids there is none.
    let Some(first) = claimed(trace, layout)?.checked_mul(1 << 32) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for table in NUMBERED.iter().filter_map(|name| layout.table(name)).filter(|table| table.key.is_some()) {
        let (id, name) = (table.id(), quote(&table.name));
        // What is no integer is no id, and another finding.
        let is_unclaimed = format!("{id} >= ?1 AND typeof({id}) = 'integer'");
        let query = format!("SELECT count(*) FROM {name} WHERE {is_unclaimed}");
        let count: i64 = trace.query_row(&query, [first], |row| row.get(0))?;
        if count > 0 {
            let query =
                format!("SELECT {id} FROM {name} WHERE {is_unclaimed} ORDER BY {id} LIMIT {EXAMPLES}");
            let mut ids = trace.prepare(&query)?;
            let ids = ids.query_map([first], |row| row.get(0).map(Example::Id))?;
            let ids = ids.collect::<rusqlite::Result<Vec<_>>>()?;
            found.push(
                CheckFinding::new(FindingKind::UnclaimedId, table.name.clone(), count.unsigned_abs())
                    .examples(ids),
            );
        }
    }
    Ok(found)
}

/// One more than the largest session that rows of the file have; at least `claimed`.
///
/// # Errors
/// When a table cannot be read.
pub(crate) fn needed_count(trace: &Connection, layout: &Layout, claimed: i64) -> rusqlite::Result<i64> {
    let mut needed = claimed;
    for table in NUMBERED.iter().filter_map(|name| layout.table(name)).filter(|table| table.key.is_some()) {
        let id = table.id();
        let query = format!(
            "SELECT {id} FROM {} WHERE typeof({id}) = 'integer' ORDER BY {id} DESC LIMIT 1",
            quote(&table.name)
        );
        let largest: Option<i64> = trace.query_row(&query, [], |row| row.get(0)).optional()?;
        needed = needed.max(largest.map_or(0, |id| (id >> 32) + 1));
    }
    Ok(needed)
}
