//! Times at which the processes of a trace were not recorded, or at which records of them were lost: spans beside their events, as far as
//! the trace says it.

use rpd_schema::{Processes, SessionInfo, SessionTime, session_fact, session_times};
use serde::Serialize;

use crate::reading::prefixed;
use crate::timeline::Source;

/// Spans of a trace that are shown, the latest ones.
const MOST_SPANS: usize = 4096;

/// What is known of a time of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// Recording was stopped, or had not begun.
    Stopped,
    /// Records were lost.
    Lost,
}

/// A time in which a process was not recorded, or not whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedSpan {
    /// The key of the process's group.
    pub group: String,
    /// What is known of it.
    pub what: SpanKind,
    /// Its begin, ns.
    pub start_ns: u64,
    /// How long it is, ns.
    pub duration_ns: u64,
    /// In words.
    pub text: String,
    /// Number of the session.
    pub session: u32,
    /// Records that were lost in it, by cause.
    pub lost: Vec<(String, u64)>,
    /// Whether the trace says only that it was in this session, not when.
    pub is_vague: bool,
}

/// The first session of the process that each session is of.
pub(crate) fn with_processes(sessions: &[SessionInfo], processes: &Processes) -> Vec<i64> {
    sessions.iter().map(|session| processes.of_row(i64::from(session.session) << 32)).collect()
}

/// The spans of a trace's sessions; `first_of` are the first sessions of the processes that they are of.
pub(crate) fn spans(
    number: usize,
    source: &Source,
    span_ns: u64,
    sessions: &[SessionInfo],
    first_of: &[i64],
) -> Vec<RecordedSpan> {
    let at = |ns: u64| source.time(i64::try_from(ns).unwrap_or(i64::MAX)).unwrap_or(0).min(span_ns);
    let mut found = Vec::new();
    for (session, first) in sessions.iter().zip(first_of) {
        let Some(pid) = session.pid() else { continue };
        let end = session.number(session_fact::END_MONOTONIC_NS);
        let group = prefixed(number, format!("p{pid}.{first}"));
        let mut add = |what, time: SessionTime, is_vague| {
            let (start, end) = (at(time.from), time.to.or(end).map_or(span_ns, at));
            // What is stopped before the first event or behind the last one is not on the timeline.
            if end > start || what == SpanKind::Lost {
                let text = match what {
                    SpanKind::Stopped => "not recorded".to_string(),
                    SpanKind::Lost => lost_text(&time.lost),
                };
                found.push(RecordedSpan {
                    group: group.clone(),
                    what,
                    start_ns: start,
                    duration_ns: end.saturating_sub(start),
                    text,
                    session: session.session,
                    lost: time.lost,
                    is_vague,
                });
            }
        };
        let times = |key| session.get(key).map(session_times).unwrap_or_default();
        times(session_fact::STOPPED).into_iter().for_each(|time| add(SpanKind::Stopped, time, false));
        let known = times(session_fact::LOST_TIMES);
        // What was lost at times that nobody knows was lost in the session.
        let left = session.lost().into_iter().map(|(cause, count)| {
            let timed = known.iter().flat_map(|time| &time.lost).filter(|(of, _)| *of == cause);
            let timed = timed.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
            (cause, count.saturating_sub(timed))
        });
        let left: Vec<(String, u64)> = left.filter(|(_, count)| *count > 0).collect();
        known.into_iter().for_each(|time| add(SpanKind::Lost, time, false));
        if !left.is_empty() {
            let from = session.number(session_fact::START_MONOTONIC_NS).unwrap_or(0);
            add(SpanKind::Lost, SessionTime { from, to: end, lost: left }, true);
        }
    }
    found.sort_by_key(|span| (span.start_ns, span.session, span.what));
    found.split_off(found.len().saturating_sub(MOST_SPANS))
}

fn lost_text(lost: &[(String, u64)]) -> String {
    let all = lost.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let causes: Vec<String> = lost.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
    let records = rpd_postprocess::text::counted(all, "record", "records");
    format!("{records} lost ({})", causes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::Packed;
    use crate::timeline::Facts;

    fn session(facts: &[(&str, &str)]) -> SessionInfo {
        let facts = facts.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string()));
        SessionInfo { session: 3, facts: facts.collect() }
    }

    fn spans_of(facts: &[(&str, &str)]) -> Vec<(SpanKind, u64, u64, String, bool)> {
        let source = Source {
            facts: Facts::default(),
            first_ns: 1000,
            shift_ns: 0,
            calls_by_id: Packed::default(),
            ops_by_id: Packed::default(),
        };
        let spans = spans(0, &source, 500, &[session(facts)], &[2]);
        assert!(spans.iter().all(|span| span.group == "p7.2" && span.session == 3));
        let parts =
            |span: RecordedSpan| (span.what, span.start_ns, span.duration_ns, span.text, span.is_vague);
        spans.into_iter().map(parts).collect()
    }

    #[test]
    fn stops_lie_where_the_trace_says_and_those_beyond_its_events_are_left_out() {
        let stopped = |start, length| (SpanKind::Stopped, start, length, "not recorded".to_string(), false);
        let facts = [("pid", "7"), ("stopped", "10-900 950-1100 1200-1250 1400-")];
        assert_eq!(spans_of(&facts), [stopped(0, 100), stopped(200, 50), stopped(400, 100)]);
        let facts = [("pid", "7"), ("stopped", "1400-"), ("end_monotonic_ns", "1450")];
        assert_eq!(spans_of(&facts), [stopped(400, 50)]);
        assert_eq!(spans_of(&[("pid", "7"), ("stopped", "1600-")]), []);
    }

    #[test]
    fn losses_lie_where_they_were_and_those_of_unknown_times_in_their_session() {
        let facts = [
            ("pid", "7"),
            ("start_monotonic_ns", "1100"),
            ("lost::write", "5"),
            ("lost::buffer_full", "12"),
            ("lost_times", "1200-1210:buffer_full=12,write=1 1900-1900:write=1"),
        ];
        let lost =
            |start, length, text: &str, is_vague| (SpanKind::Lost, start, length, text.to_string(), is_vague);
        assert_eq!(
            spans_of(&facts),
            [
                lost(100, 400, "3 records lost (3 write)", true),
                lost(200, 10, "13 records lost (12 buffer_full, 1 write)", false),
                lost(500, 0, "1 record lost (1 write)", false),
            ]
        );
        assert_eq!(spans_of(&[("pid", "7"), ("lost::write", "0")]), []);
        assert_eq!(spans_of(&[("lost::write", "4")]), []);
    }
}
