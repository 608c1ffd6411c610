//! Differences between two runs beyond the kernels that are compared.

use std::collections::{BTreeSet, HashMap, HashSet};

use rpd_schema::{SessionInfo, session_fact};
use rusqlite::Connection;
use serde::Serialize;

use super::collect::{Build, KernelLaunch};
use super::interval::LEAST;

/// Something that the files say of the runs, and that is not the same.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What: the name of a fact.
    pub what: String,
    /// What the sessions of the one say, each value once.
    pub a: BTreeSet<String>,
    /// What those of the other say.
    pub b: BTreeSet<String>,
}

/// Facts of sessions that two runs should have in common.
const FACTS: [(&str, &str); 4] = [
    ("host", session_fact::HOST),
    ("command", session_fact::COMMAND),
    ("timing", session_fact::TIMING),
    ("how calls were observed", "hip_door"),
];

/// What the files say of the runs that is not the same. Where one of them says nothing, that is no difference.
pub(super) fn differences(a: &Connection, b: &Connection) -> rusqlite::Result<Vec<Difference>> {
    let sessions = [rpd_schema::sessions(a)?, rpd_schema::sessions(b)?];
    let gpus = [rpd_schema::gpus(a)?, rpd_schema::gpus(b)?];
    let gpu = |fact: &str| {
        gpus.each_ref().map(|gpus| gpus.iter().filter_map(|gpu| gpu.get(fact)).map(str::to_string).collect())
    };
    let mut said: Vec<(String, [BTreeSet<String>; 2])> = vec![
        ("GPU".to_string(), gpu(session_fact::GPU_NAME)),
        ("target".to_string(), gpu(session_fact::GPU_TARGET)),
    ];
    said.extend(
        FACTS
            .map(|(what, key)| (what.to_string(), sessions.each_ref().map(|sessions| values(sessions, key)))),
    );
    let versions: BTreeSet<&String> =
        sessions.iter().flatten().flat_map(|session| session.facts.keys()).collect();
    for key in versions {
        if let Some(of) = key.strip_prefix(session_fact::VERSION) {
            said.push((
                format!("version of {of}"),
                sessions.each_ref().map(|sessions| values(sessions, key)),
            ));
        }
    }
    let differs = |[a, b]: &[BTreeSet<String>; 2]| !a.is_empty() && !b.is_empty() && a != b;
    let said = said.into_iter().filter(|(_, values)| differs(values));
    Ok(said.map(|(what, [a, b])| Difference { what, a, b }).collect())
}

/// What the sessions say of how kernels were replaced, each value once.
#[derive(Debug, Default)]
pub(super) struct CacheFacts {
    /// How originals and candidates ran by turns.
    pub(super) alternate: BTreeSet<String>,
    /// Where the candidates are.
    pub(super) kernel_cache: BTreeSet<String>,
}

impl CacheFacts {
    /// What is said in any of the traces.
    pub(super) fn of(traces: &[&Connection]) -> rusqlite::Result<CacheFacts> {
        let mut recorded = CacheFacts::default();
        for trace in traces {
            let sessions = rpd_schema::sessions(trace)?;
            recorded.kernel_cache.extend(values(&sessions, session_fact::KERNEL_CACHE));
            for session in sessions {
                let mode = session.get(session_fact::ALTERNATE).map(|mode| {
                    match session.get(session_fact::ALTERNATE_SEED) {
                        Some(seed) => format!("{mode}, seed {seed}"),
                        None => mode.to_string(),
                    }
                });
                recorded.alternate.extend(mode);
            }
        }
        Ok(recorded)
    }
}

fn values(sessions: &[SessionInfo], key: &str) -> BTreeSet<String> {
    sessions
        .iter()
        .filter_map(|session| session.get(key))
        .filter(|value| !value.is_empty())
        .map(str::to_string)
        .collect()
}

/// Launches of kernels that were replaced in neither of two runs: what differs there is not the builds' doing.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Unreplaced {
    /// How many both runs have, with enough calls.
    pub launches: usize,
    /// Median of A over that of B: the middle one of all launches.
    pub speedup: Option<f64>,
    /// The lowest.
    pub least: Option<f64>,
    /// The highest.
    pub most: Option<f64>,
}

impl Unreplaced {
    /// Compares those that both runs have.
    pub(super) fn of(
        a: &HashMap<KernelLaunch, Vec<Build>>,
        b: &HashMap<KernelLaunch, Vec<Build>>,
        replaced: &HashSet<String>,
    ) -> Unreplaced {
        let mut ratios = Vec::new();
        for (launch, builds) in a.iter().filter(|(launch, _)| !replaced.contains(&launch.kernel)) {
            if let ([a], Some([b])) = (&builds[..], b.get(launch).map(Vec::as_slice))
                && a.calls.min(b.calls) >= LEAST as u64
                && a.median_ns > 0.0
                && b.median_ns > 0.0
            {
                ratios.push(a.median_ns / b.median_ns);
            }
        }
        ratios.sort_unstable_by(f64::total_cmp);
        Unreplaced {
            launches: ratios.len(),
            speedup: ratios.get(ratios.len() / 2).copied(),
            least: ratios.first().copied(),
            most: ratios.last().copied(),
        }
    }
}
