//! Hosts: which sessions ran on the same one, and what separates their clocks.
//!
//! Sessions with one boot id ran on one host and share CLOCK_MONOTONIC; where there is none the host's name has to do. A trace
//! that says nothing of its host is taken for a host of its own, unless it was said that all are of one.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use rpd_schema::session_fact;

use super::input::Input;
use crate::trace::clock::{NODE, median, pairs};
use crate::{moment, text};

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Identity {
    Boot(String),
    Host(String),
    /// Of a trace (by number) that does not say, and of a node of it.
    Unknown(usize, i64),
}

/// Where times come from: those of one are comparable as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClockDomain {
    /// The clock of a node.
    Clock(i64),
    /// A merged trace, by number.
    Merged(usize),
}

/// The nodes of the result, and those of each trace's sessions.
#[derive(Debug)]
pub(super) struct Nodes {
    known: Vec<(Identity, String)>,
    /// Per trace: for each session that says something its node before and now, and the same for the rest.
    sessions: Vec<(BTreeMap<i64, Moved>, Moved)>,
}

/// The node of a session in its own trace and in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    /// In its own trace: 0 unless that was merged.
    pub(super) from: i64,
    /// In the result.
    pub(super) to: i64,
}

impl Nodes {
    /// Finds the nodes of all traces, numbered in the order in which they are met.
    pub(super) fn of(inputs: &[Input], is_same_host: bool) -> Nodes {
        let mut nodes = Nodes { known: Vec::new(), sessions: Vec::new() };
        for (number, input) in inputs.iter().enumerate() {
            let unknown =
                |from| if is_same_host { Identity::Unknown(0, 0) } else { Identity::Unknown(number, from) };
            let mut sessions = BTreeMap::new();
            for session in &input.sessions {
                let from =
                    if input.is_merged { session.number(NODE).map_or(0, |node| node as i64) } else { 0 };
                let fact =
                    |key| session.get(key).map(str::trim).filter(|fact| !fact.is_empty()).map(str::to_string);
                let identity = match (fact(session_fact::BOOT_ID), fact(session_fact::HOST)) {
                    _ if is_same_host => unknown(from),
                    (Some(boot), _) => Identity::Boot(boot),
                    (None, Some(host)) => Identity::Host(host),
                    (None, None) if input.is_merged => unknown(from),
                    (None, None) => continue,
                };
                let name = session.host().unwrap_or_default().to_string();
                let to = nodes.number(identity, name);
                sessions.insert(i64::from(session.session), Moved { from, to });
            }
            let rest = sessions.values().next().copied();
            let rest = rest.unwrap_or_else(|| Moved { from: 0, to: nodes.number(unknown(0), String::new()) });
            nodes.sessions.push((sessions, rest));
        }
        nodes
    }

    fn number(&mut self, identity: Identity, name: String) -> i64 {
        let at = self.known.iter().position(|(known, _)| *known == identity).unwrap_or_else(|| {
            self.known.push((identity, String::new()));
            self.known.len() - 1
        });
        if self.known[at].1.is_empty() {
            self.known[at].1 = name;
        }
        at as i64
    }

    /// Names of the hosts by node; empty where nothing says it.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|(_, name)| name.as_str())
    }

    /// The node of a session of trace `input`.
    pub(super) fn moved(&self, input: usize, session: i64) -> Moved {
        let (sessions, rest) = &self.sessions[input];
        sessions.get(&session).copied().unwrap_or(*rest)
    }

    /// The node in the result of node `from` of trace `input`.
    pub(super) fn moved_node(&self, input: usize, from: i64) -> Moved {
        let (sessions, rest) = &self.sessions[input];
        sessions.values().find(|moved| moved.from == from).copied().unwrap_or(*rest)
    }

    /// The number that `of` yields for the session of a row of trace `input`, as an SQL expression; `id` is one for the
    /// row's id.
    pub(super) fn by_session(&self, input: usize, id: &str, of: impl Fn(Moved) -> i64) -> String {
        let (sessions, rest) = &self.sessions[input];
        let otherwise = of(*rest);
        let cases = sessions.iter().map(|(session, moved)| (session, of(*moved)));
        let cases: String = cases
            .filter(|(_, value)| *value != otherwise)
            .map(|(session, value)| format!(" WHEN {session} THEN {value}"))
            .collect();
        if cases.is_empty() {
            otherwise.to_string()
        } else {
            format!("(CASE {id} >> 32{cases} ELSE {otherwise} END)")
        }
    }

    /// The timeline of a session of trace `input`.
    pub(super) fn timeline(&self, inputs: &[Input], input: usize, session: i64) -> ClockDomain {
        timeline(inputs, input, self.moved(input, session).to)
    }

    /// Every timeline that trace `input` has times of.
    pub(super) fn timelines(&self, inputs: &[Input], input: usize) -> Vec<ClockDomain> {
        let (sessions, rest) = &self.sessions[input];
        let nodes = sessions.values().chain([rest]).map(|moved| moved.to);
        let mut timelines: Vec<ClockDomain> = nodes.map(|node| timeline(inputs, input, node)).collect();
        timelines.sort_unstable();
        timelines.dedup();
        timelines
    }
}

/// The timeline of a node in trace `input`.
pub(super) fn timeline(inputs: &[Input], input: usize, node: i64) -> ClockDomain {
    if inputs[input].is_merged { ClockDomain::Merged(input) } else { ClockDomain::Clock(node) }
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC as the sessions of each timeline saw it, ns: the median of what they say.
pub(super) fn clocks(inputs: &[Input], nodes: &Nodes) -> BTreeMap<ClockDomain, i64> {
    let mut said: BTreeMap<ClockDomain, Vec<i64>> = BTreeMap::new();
    for (number, input) in inputs.iter().enumerate() {
        for session in &input.sessions {
            let timeline = nodes.timeline(inputs, number, i64::from(session.session));
            said.entry(timeline).or_default().extend(pairs(session));
        }
    }
    said.into_iter().filter_map(|(timeline, said)| Some((timeline, median(said)?))).collect()
}

/// What is added to the times of each timeline so that they are those of the first trace's, by what the sessions say.
///
/// # Errors
/// When there are several timelines, and one that says nothing.
pub(super) fn by_clocks(
    inputs: &[Input],
    nodes: &Nodes,
    exempt: &[usize],
) -> Result<BTreeMap<ClockDomain, i64>> {
    let clocks = clocks(inputs, nodes);
    let reference = nodes.timelines(inputs, 0)[0];
    let mut shifts = BTreeMap::from([(reference, 0)]);
    for (number, input) in inputs.iter().enumerate().filter(|(number, _)| !exempt.contains(number)) {
        for timeline in nodes.timelines(inputs, number) {
            if shifts.contains_key(&timeline) {
                continue;
            }
            let (Some(clock), Some(first)) = (clocks.get(&timeline), clocks.get(&reference)) else {
                let silent = if clocks.contains_key(&reference) { number } else { 0 };
                bail!(
                    "the clocks of {} and {} cannot be aligned: {} says nothing of its host's; give --same-host if all were \
                     recorded on one, or --align marker:NAME, or --offset FILE=NS",
                    shown(&inputs[0]),
                    shown(input),
                    shown(&inputs[silent])
                );
            };
            let shift = clock.checked_sub(*first).context("a clock of a session is out of all bounds")?;
            shifts.insert(timeline, shift);
        }
    }
    Ok(shifts)
}

/// What is added to the times of each timeline so that the first marker or call called `name` begins at one time in all.
///
/// # Errors
/// When a timeline has none, or a trace cannot be read.
pub(super) fn by_marker(
    inputs: &[Input],
    nodes: &Nodes,
    exempt: &[usize],
    name: &str,
) -> Result<BTreeMap<ClockDomain, i64>> {
    let mut begins: BTreeMap<ClockDomain, i64> = BTreeMap::new();
    for (number, input) in inputs.iter().enumerate() {
        let (trace, version) = rpd_schema::open_read(&input.path)?;
        for (id, span) in moment::markers(&trace, version, name)? {
            let begin = begins.entry(nodes.timeline(inputs, number, id >> 32)).or_insert(span.start_ns);
            *begin = span.start_ns.min(*begin);
        }
        let missing =
            nodes.timelines(inputs, number).into_iter().any(|timeline| !begins.contains_key(&timeline));
        if missing && !exempt.contains(&number) {
            bail!("no marker has the text {} in {}", text::escape(name), shown(input));
        }
    }
    let reference = nodes.timelines(inputs, 0)[0];
    let first = *begins.get(&reference).context("the first trace has no such marker")?;
    let shifts = begins.into_iter().map(|(timeline, begin)| (timeline, first.saturating_sub(begin)));
    Ok(shifts.collect())
}

fn shown(input: &Input) -> String {
    text::escape_path(&input.path)
}
