//! Times in which a process was not recorded, as far as the sessions of a trace say it: recording was stopped, records were lost, or no session
//! was running.
//!
//! Time that was not recorded is taken out of a process's clock, so that what is left can be explained as if it followed without a break.

use std::collections::HashMap;

use anyhow::Result;
use rpd_schema::{Processes, SessionInfo, session_fact, session_times};
use rusqlite::Connection;

use crate::trace::has_table;

/// The times of each process.
pub(super) struct Unrecorded {
    by_process: HashMap<i64, UnrecordedTimes>,
    none: UnrecordedTimes,
}

/// Times that do not lie over each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UnrecordedTimes(Vec<Time>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Time {
    from: i64,
    to: i64,
    /// How long the times before it are together, ns.
    before: i64,
}

impl Unrecorded {
    /// Those that the sessions of a trace say.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of(trace: &Connection, processes: &Processes) -> Result<Unrecorded> {
        let sessions = rpd_schema::sessions(trace)?;
        let between = between(trace, &sessions)?;
        let mut by_process: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
        for session in &sessions {
            let process = processes.of_row(i64::from(session.session) << 32);
            let times = by_process.entry(process).or_insert_with(|| between.clone());
            let end = session.number(session_fact::END_MONOTONIC_NS);
            for fact in [session_fact::STOPPED, session_fact::LOST_TIMES] {
                let of_fact = session.get(fact).map(session_times).unwrap_or_default();
                times.extend(
                    of_fact
                        .into_iter()
                        .map(|time| (moment(time.from), time.to.or(end).map_or(i64::MAX, moment))),
                );
            }
        }
        let by_process = by_process.into_iter().map(|(process, times)| (process, UnrecordedTimes::of(times)));
        Ok(Unrecorded { by_process: by_process.collect(), none: UnrecordedTimes::default() })
    }

    /// Those of a process, which is known by its first session.
    pub(super) fn of_process(&self, process: i64) -> &UnrecordedTimes {
        self.by_process.get(&process).unwrap_or(&self.none)
    }
}

impl UnrecordedTimes {
    fn of(mut times: Vec<(i64, i64)>) -> UnrecordedTimes {
        times.retain(|(from, to)| from < to);
        times.sort_unstable();
        let mut apart: Vec<Time> = Vec::new();
        for (from, to) in times {
            match apart.last_mut() {
                Some(last) if from <= last.to => last.to = last.to.max(to),
                last => {
                    let before = last.map_or(0, |last| last.before.saturating_add(last.to - last.from));
                    apart.push(Time { from, to, before });
                }
            }
        }
        UnrecordedTimes(apart)
    }

    /// A moment on a clock that stands still in these times.
    pub(super) fn recorded(&self, moment: i64) -> i64 {
        let begun = self.0.partition_point(|time| time.from < moment);
        let Some(time) = begun.checked_sub(1).map(|last| self.0[last]) else { return moment };
        moment.saturating_sub(time.before.saturating_add(moment.min(time.to) - time.from))
    }
}

fn moment(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// When no session was running, between the first begin of one and the last end.
fn between(trace: &Connection, sessions: &[SessionInfo]) -> Result<Vec<(i64, i64)>> {
    let mut running = Vec::new();
    for session in sessions {
        // Of a session of which nothing is known it may have been any time.
        let Some((from, to)) = running_time(trace, session)? else { return Ok(Vec::new()) };
        let part = |of: &SessionInfo| of.number(session_fact::PART);
        let is_next = |other: &&SessionInfo| part(session).is_some_and(|at| part(other) == Some(at + 1));
        // Of two parts of one recording the second takes over.
        let next = sessions.iter().filter(is_next).filter_map(part_began).min();
        running.push((from, next.map_or(to, |next| next.max(to))));
    }
    let running = UnrecordedTimes::of(running);
    Ok(running.0.windows(2).map(|times| (times[0].to, times[1].from)).collect())
}

/// From when to when a session was running; none where it does not say it.
fn running_time(trace: &Connection, session: &SessionInfo) -> Result<Option<(i64, i64)>> {
    let number = |fact| session.number(fact).map(moment);
    let Some(start) = number(session_fact::START_MONOTONIC_NS) else { return Ok(None) };
    let start = part_began(session).map_or(start, |began| began.max(start));
    let end = number(session_fact::END_MONOTONIC_NS).or(number(session_fact::ABORT_MONOTONIC_NS));
    let end = match end {
        Some(end) => end,
        // It was killed, some time after what it recorded last.
        None => last_record(trace, session.session)?.unwrap_or(start),
    };
    Ok(Some((start, end)))
}

/// When the part that a session is in was begun, on the trace's clock; none of the first part, and of what is in no parts.
fn part_began(session: &SessionInfo) -> Option<i64> {
    let number = |fact| session.number(fact).and_then(|ns| i64::try_from(ns).ok());
    number(session_fact::PART).filter(|part| *part > 1)?;
    let since = number(session_fact::PART_BEGAN_REALTIME_NS)?
        .checked_sub(number(session_fact::START_REALTIME_NS)?)?;
    number(session_fact::START_MONOTONIC_NS)?.checked_add(since)
}

/// The end of what ended last of a session's calls and operations.
fn last_record(trace: &Connection, session: u32) -> Result<Option<i64>> {
    let first = i64::from(session) << 32;
    let mut last = None;
    for table in ["rocpd_api", "rocpd_op"] {
        if has_table(trace, table)? {
            let query = format!(
                "SELECT max({table}.\"end\") FROM {table} WHERE id BETWEEN ?1 AND ?2 AND typeof({table}.\"end\") = 'integer'"
            );
            let end: Option<i64> =
                trace.query_row(&query, [first, first | i64::from(u32::MAX)], |row| row.get(0))?;
            last = last.max(end);
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stands_still_while_nothing_is_recorded() {
        let times =
            UnrecordedTimes::of(vec![(30, 40), (10, 15), (14, 20), (20, 20), (50, i64::MAX), (90, 7)]);
        let moments = [0, 10, 12, 20, 25, 30, 35, 40, 50, 60, i64::MAX];
        assert_eq!(moments.map(|moment| times.recorded(moment)), [0, 10, 10, 10, 15, 20, 20, 20, 30, 30, 30]);
        assert_eq!(UnrecordedTimes::default().recorded(7), 7);
    }
}
