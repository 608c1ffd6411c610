//! What is odd about the ranks and jobs of the traces. None of it stops a merge.

use std::collections::{BTreeMap, BTreeSet};

use rpd_schema::{SessionInfo, session_fact};

use super::input::Input;
use super::node::ClockDomain;
use super::plan::MergePlan;
use crate::text;

/// Ranks that are named.
const SHOWN: usize = 5;

/// A line each: ranks that several traces have, traces of several jobs, and hosts whose times do not fit together.
pub(super) fn doubts(plan: &MergePlan<'_>) -> Vec<String> {
    let found = [ranks_of_several(plan.inputs), several_jobs(plan.inputs), apart_in_time(plan)];
    found.into_iter().flatten().collect()
}

fn ranks_of_several(inputs: &[Input]) -> Option<String> {
    let mut of_rank: BTreeMap<(usize, &str), Vec<(usize, &SessionInfo)>> = BTreeMap::new();
    for (number, session) in sessions(inputs) {
        if let Some(rank) = session.rank() {
            // By its length first: 2 comes before 10.
            of_rank.entry((rank.len(), rank)).or_default().push((number, session));
        }
    }
    let mut doubled = Vec::new();
    for ((_, rank), sessions) in of_rank {
        let mut files = BTreeSet::new();
        for (at, (number, session)) in sessions.iter().enumerate() {
            let others = sessions[..at].iter().filter(|(other, _)| other != number);
            let strangers = others.filter(|(_, other)| !belong_together(session, other));
            files.extend(strangers.flat_map(|(other, _)| [*other, *number]));
        }
        if files.len() > 1 {
            let names: Vec<String> = files.iter().map(|number| shown(&inputs[*number])).collect();
            doubled.push(format!("rank {} is in {}", text::escape(rank), names.join(" and ")));
        }
    }
    let more = doubled.len().saturating_sub(SHOWN);
    doubled.truncate(SHOWN);
    let more = if more > 0 { format!(", and so are {more} more ranks") } else { String::new() };
    (!doubled.is_empty()).then(|| format!("{}{more}: they count as one rank in reports", doubled.join(", ")))
}

/// Whether two traces may well have a session each of one rank: they are parts of one trace, or of processes of one run.
fn belong_together(one: &SessionInfo, other: &SessionInfo) -> bool {
    let is_same = |key| one.get(key).is_some() && one.get(key) == other.get(key);
    let is_parent = |parent: &SessionInfo, child: &SessionInfo| {
        parent.pid().is_some() && child.number(session_fact::PPID) == parent.pid().map(u64::from)
    };
    is_same(session_fact::RUN)
        || is_same(session_fact::START_MONOTONIC_NS) && is_same(session_fact::PID)
        || is_same(session_fact::BOOT_ID) && (is_parent(one, other) || is_parent(other, one))
}

fn several_jobs(inputs: &[Input]) -> Option<String> {
    let jobs: BTreeSet<&str> = sessions(inputs).filter_map(|(_, session)| session.job()).collect();
    let shown: Vec<String> = jobs.iter().take(SHOWN).map(|job| text::escape(job).into_owned()).collect();
    let more = if jobs.len() > SHOWN { ", ..." } else { "" };
    (jobs.len() > 1).then(|| format!("the files are of jobs {}{more}", shown.join(", ")))
}

/// Hosts of one job work at the same time. Where their times do not overlap at all, a clock was wrong.
fn apart_in_time(plan: &MergePlan<'_>) -> Option<String> {
    if plan.is_aligned {
        return None;
    }
    // By job and host: the host's name, and from when to when its ranks were there.
    let mut spans: BTreeMap<(Option<&str>, ClockDomain), (&str, i128, i128)> = BTreeMap::new();
    for (number, session) in sessions(plan.inputs).filter(|(_, session)| session.rank().is_some()) {
        let id = i64::from(session.session);
        let timeline = plan.nodes.timeline(plan.inputs, number, id);
        let ends = [session_fact::START_MONOTONIC_NS, session_fact::END_MONOTONIC_NS];
        let (ClockDomain::Clock(_), [Some(start), Some(end)]) =
            (timeline, ends.map(|key| session.number(key)))
        else {
            continue;
        };
        let shift = i128::from(plan.shift(number, plan.nodes.moved(number, id)));
        let (start, end) = (i128::from(start) + shift, i128::from(end) + shift);
        let host = session.host().unwrap_or("a host without a name");
        let span = spans.entry((session.job(), timeline)).or_insert((host, start, end));
        (span.1, span.2) = (span.1.min(start), span.2.max(end));
    }
    let spans: Vec<_> = spans.into_iter().collect();
    spans.iter().enumerate().find_map(|(at, ((job, _), (host, start, end)))| {
        let others = spans[..at].iter().filter(|((other, _), _)| other == job);
        let (_, (other, ..)) = others.into_iter().find(|(_, (_, from, to))| to < start || end < from)?;
        Some(format!(
            "the ranks on {} and on {} were never there at the same time: if they are of one job, a wall clock was wrong; \
             --align marker:NAME aligns them by a marker that all set at one moment",
            text::escape(other),
            text::escape(host)
        ))
    })
}

fn sessions(inputs: &[Input]) -> impl Iterator<Item = (usize, &SessionInfo)> {
    inputs
        .iter()
        .enumerate()
        .flat_map(|(number, input)| input.sessions.iter().map(move |session| (number, session)))
}

fn shown(input: &Input) -> String {
    text::escape_path(&input.path)
}
