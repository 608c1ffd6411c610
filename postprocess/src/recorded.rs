//! What one run of `rpd record` added to its trace.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use rpd_schema::session_fact;
use rusqlite::Connection;

use crate::destination::Destination;
use crate::op_kind::OpKind;
use crate::report::Report;
use crate::trace::Strings;

/// Counts over the sessions of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Kernels of the program.
    pub(crate) kernels: u64,
    /// Copies between host and devices.
    pub(crate) copies: u64,
    /// Memory fills.
    pub(crate) fills: u64,
    /// Operations of other types.
    pub(crate) others: u64,
    /// Ranges and marks of the program, as the file says.
    pub(crate) markers: u64,
    /// Records that the file says were lost.
    pub(crate) lost: u64,
    /// CPU time that the file says the recorder used, in nanoseconds.
    pub(crate) cpu_ns: u64,
}

impl Recorded {
    /// Counts what the sessions of a run left in the file: the new ones, without those of processes that
    /// another run put into the same file at the same time.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn by_run(destination: &Destination, report: &Report) -> Result<Recorded> {
        let (trace, _) = rpd_schema::open_read(destination.path())?;
        Recorded::since(&trace, destination.first_session(), report)
            .with_context(|| format!("cannot read {}", destination.path().display()))
    }

    fn since(trace: &Connection, first_session: u32, report: &Report) -> Result<Recorded> {
        let mut recorded = Recorded::default();
        let mut foreign = HashSet::new();
        for session in rpd_schema::sessions(trace)?.iter().filter(|session| session.session >= first_session)
        {
            if session.pid().is_some_and(|pid| !report.has_process(pid)) {
                foreign.insert(i64::from(session.session));
                continue;
            }
            let counts = session.recorded();
            let markers = ["range", "mark"].into_iter().filter_map(|kind| counts.get(kind));
            recorded.markers = markers.fold(recorded.markers, |sum, count| sum.saturating_add(*count));
            let lost = session.lost().values().fold(0, |sum: u64, count| sum.saturating_add(*count));
            recorded.lost = recorded.lost.saturating_add(lost);
            let cpu = session.number(session_fact::RECORDER_CPU_NS).unwrap_or(0);
            recorded.cpu_ns = recorded.cpu_ns.saturating_add(cpu);
        }
        let mut strings = Strings::of(trace)?;
        for (op_type, count) in count_types(trace, first_session, &foreign)? {
            match OpKind::of(&strings.get(op_type)?.unwrap_or_default()) {
                OpKind::Kernel => recorded.kernels += count,
                OpKind::Copy => recorded.copies += count,
                OpKind::Fill => recorded.fills += count,
                OpKind::Other => recorded.others += count,
            }
        }
        Ok(recorded)
    }

    /// All GPU operations.
    pub(crate) fn operations(&self) -> u64 {
        self.kernels + self.copies + self.fills + self.others
    }
}

/// How many operations of each type (a string id) the sessions from `first` on have, but for `foreign`
/// ones. One scan from the first id of those sessions.
fn count_types(trace: &Connection, first: u32, foreign: &HashSet<i64>) -> Result<HashMap<i64, u64>> {
    let mut counts = HashMap::new();
    let mut ops = trace.prepare("SELECT id >> 32, opType_id FROM rocpd_op WHERE id >= ?1")?;
    let mut ops = ops.query([i64::from(first) << 32])?;
    while let Some(op) = ops.next()? {
        if foreign.is_empty() || !foreign.contains(&op.get(0)?) {
            *counts.entry(op.get(1)?).or_default() += 1;
        }
    }
    Ok(counts)
}
