//! What sessions say of their host's clocks.

use rpd_schema::{SessionInfo, session_fact};

/// Key of the fact that tells the node of a session in a merged trace.
pub(crate) const NODE: &str = "node";

/// CLOCK_REALTIME less CLOCK_MONOTONIC as a session saw it at its start and its end, ns.
pub(crate) fn pairs(session: &SessionInfo) -> impl Iterator<Item = i64> {
    let pair = |realtime, monotonic| -> Option<i64> {
        let ns = |key| i64::try_from(session.number(key)?).ok();
        ns(realtime)?.checked_sub(ns(monotonic)?)
    };
    let start = pair(session_fact::START_REALTIME_NS, session_fact::START_MONOTONIC_NS);
    start.into_iter().chain(pair(session_fact::END_REALTIME_NS, session_fact::END_MONOTONIC_NS))
}

/// The median of what is said; none where nothing is.
pub(crate) fn median(mut said: Vec<i64>) -> Option<i64> {
    said.sort_unstable();
    said.get(said.len() / 2).copied()
}
