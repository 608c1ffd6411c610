//! What processes and threads are called: by their ids, and by the session where several processes of a trace have one id.

use std::collections::{BTreeMap, BTreeSet};

/// The process ids that several processes have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessLabels {
    ambiguous: BTreeSet<i64>,
}

impl ProcessLabels {
    /// Those of these processes: each with the number of its first session, and its id.
    pub fn of(processes: impl IntoIterator<Item = (i64, i64)>) -> ProcessLabels {
        let mut sessions: BTreeMap<i64, i64> = BTreeMap::new();
        let mut ambiguous = BTreeSet::new();
        for (session, pid) in processes {
            if *sessions.entry(pid).or_insert(session) != session {
                ambiguous.insert(pid);
            }
        }
        ProcessLabels { ambiguous }
    }

    /// Whether several processes have this id.
    pub fn is_ambiguous(&self, pid: i64) -> bool {
        self.ambiguous.contains(&pid)
    }

    /// `process 7`, or `session 2 process 7`.
    pub fn process(&self, session: i64, pid: i64) -> String {
        match self.is_ambiguous(pid) {
            true => format!("session {session} process {pid}"),
            false => format!("process {pid}"),
        }
    }

    /// The same with the thread.
    pub fn thread(&self, session: i64, pid: i64, tid: i64) -> String {
        format!("{} thread {tid}", self.process(session, pid))
    }
}
