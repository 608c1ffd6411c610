//! The metadata of a merged trace: that of its parts, with sessions and GPUs as they are numbered now, and what they were
//! merged of.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use rpd_schema::{Processes, SessionInfo, moved_session_times, session_fact};
use rusqlite::Connection;

use super::MergePlan;
use super::gpu::GPU_STRIDE;
use super::input::{Input, metadata};
use super::tables::Tables;
use crate::pass::{Freshness, Pass, mark};
use crate::passes::callstack::Callstack;
use crate::passes::{PASSES, subclass};
use crate::rewrite::derive::{NewTrace, SOURCE};
use crate::trace::clock::NODE;
use crate::trace::span::Span;

/// Tags of which there is one in a file, and which are written for the whole of it.
const OWN: [&str; 5] = ["schema_version", "session_count", "node::", "trim::", "resourceLock::"];

/// Adds the metadata of trace `input`, which is attached.
///
/// # Errors
/// When it cannot be read or the new trace not be written.
pub(super) fn copy(making: &NewTrace<'_>, plan: &MergePlan<'_>, input: usize) -> Result<()> {
    let made = making.made;
    let passes: Vec<String> = PASSES.iter().map(|pass| format!("{}::", pass.tag)).collect();
    let is_own = |tag: &str| {
        OWN.iter().any(|own| tag.starts_with(own)) || passes.iter().any(|pass| tag.starts_with(pass))
    };
    let noted = plan.inputs[input].noted.iter().flat_map(|session| {
        let number = session.session;
        session.facts.iter().map(move |(key, value)| (format!("session::{number}::{key}"), value.clone()))
    });
    // The last of several rows with one tag counts.
    for (tag, value) in metadata(made, SOURCE)?.into_iter().chain(noted) {
        if is_own(&tag) {
            continue;
        }
        let Some((tag, value)) = moved(plan, input, &tag, &value) else { continue };
        made.execute(
            "INSERT INTO main.rocpd_metadata (tag, value) SELECT ?1, ?2
             WHERE NOT EXISTS (SELECT 1 FROM main.rocpd_metadata WHERE tag = ?1 AND value = ?2)",
            [&tag, &value],
        )?;
    }
    Ok(())
}

/// A row of the metadata of trace `input` as it is in the result, if it does.
fn moved(plan: &MergePlan<'_>, input: usize, tag: &str, value: &str) -> Option<(String, String)> {
    if let Some((session, key)) = numbered(tag, "session::") {
        if key == NODE {
            return None;
        }
        let value = &match is_count(key) {
            true => counted_once(plan, input, session, key, value)?,
            false => value.to_string(),
        };
        let is_time = [session_fact::START_MONOTONIC_NS, session_fact::END_MONOTONIC_NS].contains(&key);
        let has_times = [session_fact::STOPPED, session_fact::LOST_TIMES].contains(&key);
        let time = value.trim().parse::<i64>().ok().filter(|_| is_time);
        let node = plan.nodes.moved(input, session);
        let key = &of_gpu(key, |gpu| plan.gpus.number(input, gpu, node)).unwrap_or_else(|| key.to_string());
        let shift = plan.shift(input, node);
        let value = match time {
            Some(time) => time.saturating_add(shift).to_string(),
            None if has_times => moved_session_times(value, shift),
            None => value.to_string(),
        };
        return Some((
            format!("session::{}::{key}", session.saturating_add(plan.offsets[input] >> 32)),
            value,
        ));
    }
    if let Some((gpu, key)) = numbered(tag, "gpu::") {
        let from = if plan.inputs[input].is_merged { gpu / GPU_STRIDE } else { 0 };
        let gpu = plan.gpus.number(input, gpu, plan.nodes.moved_node(input, from));
        return Some((format!("gpu::{gpu}::{key}"), value.to_string()));
    }
    Some((tag.to_string(), value.to_string()))
}

/// `PREFIX N::key`.
fn numbered<'a>(tag: &'a str, prefix: &str) -> Option<(i64, &'a str)> {
    let (number, key) = tag.strip_prefix(prefix)?.split_once("::")?;
    Some((number.parse::<u32>().ok()?.into(), key))
}

/// The key of a session's fact about a GPU, with the number that the GPU has now.
fn of_gpu(key: &str, number: impl Fn(i64) -> i64) -> Option<String> {
    let prefixes = [session_fact::MONITOR_VRAM_TOTAL, session_fact::MONITOR_FILE];
    let (prefix, of) = prefixes.into_iter().find_map(|prefix| Some((prefix, key.strip_prefix(prefix)?)))?;
    let (gpu, sensor) = of.find("::").map_or((of, ""), |end| of.split_at(end));
    Some(format!("{prefix}{}{sensor}", number(gpu.parse::<u32>().ok()?.into())))
}

/// The counts of a session, which tools add up.
fn is_count(key: &str) -> bool {
    key.starts_with(session_fact::LOST)
        || key.starts_with(session_fact::RECORDED)
        || [session_fact::LAUNCHES_WITHOUT_OP, session_fact::RECORDER_CPU_NS].contains(&key)
}

/// What to write of a count of a session. Traces may be parts of one recording, each with the counts of the whole as they were when it
/// was cut out: the first that has the count gets the largest, the others none.
fn counted_once(plan: &MergePlan<'_>, input: usize, session: i64, key: &str, value: &str) -> Option<String> {
    let of = |input: usize| plan.inputs[input].sessions.iter();
    let Some(this) = of(input).find(|found| i64::from(found.session) == session) else {
        return Some(value.to_string());
    };
    let others = (0..plan.inputs.len()).filter(|other| *other != input);
    let parts = others.flat_map(|other| of(other).map(move |session| (other, session)));
    let parts: Vec<(usize, &SessionInfo)> =
        parts.filter(|(_, other)| other.get(key).is_some() && is_same_session(this, other)).collect();
    if parts.iter().any(|(other, _)| *other < input) {
        return None;
    }
    let largest = parts.iter().filter_map(|(_, part)| part.number(key)).max();
    Some(match (largest, value.trim().parse::<u64>()) {
        (Some(largest), Ok(own)) => largest.max(own).to_string(),
        (Some(largest), Err(_)) => largest.to_string(),
        (None, _) => value.to_string(),
    })
}

/// Whether two sessions of two traces are one. A process has several where it goes on in another file; each has counts of its own.
fn is_same_session(one: &SessionInfo, other: &SessionInfo) -> bool {
    let facts = [session_fact::BOOT_ID, session_fact::PID, session_fact::START_MONOTONIC_NS];
    if !facts.iter().all(|fact| one.get(fact).is_some() && one.get(fact) == other.get(fact)) {
        return false;
    }
    if one.get(session_fact::PART) != other.get(session_fact::PART) {
        return false;
    }
    let end = |session: &SessionInfo| session.get(session_fact::END_MONOTONIC_NS).map(str::to_string);
    if let (Some(one), Some(other)) = (end(one), end(other)) {
        return one == other;
    }
    // One was cut out before the end, or there was none: then no count is larger in the earlier one.
    let no_less = |later: &SessionInfo, earlier: &SessionInfo| {
        let mut counts = earlier.facts.keys().filter(|key| is_count(key));
        counts.all(|key| later.number(key) >= earlier.number(key))
    };
    match end(one).is_some() {
        true => no_less(one, other),
        false => no_less(other, one) || end(other).is_none() && no_less(one, other),
    }
}

/// The processes of sessions that say nothing of themselves, of parts of one trace: a session of each part was one before.
fn processes(plan: &MergePlan<'_>, number: usize, input: &Input) -> Vec<(String, String)> {
    let Some(origin) = &input.origin else { return Vec::new() };
    let is_silent = |session: &&i64| {
        let mut known = input.sessions.iter().filter(|known| i64::from(known.session) == **session);
        known.all(|known| known.pid().is_none() && known.get(session_fact::PROCESS).is_none())
    };
    let fact = |session: &i64| {
        let now = session + (plan.offsets[number] >> 32);
        (format!("session::{now}::{}", session_fact::PROCESS), format!("{session} of {origin}"))
    };
    input.with_calls.iter().filter(is_silent).map(fact).collect()
}

/// Adds what is true of the whole: sessions, nodes, and the passes that cover it. Says which process ids several processes have.
///
/// # Errors
/// When the new trace cannot be written.
pub(super) fn finish(making: &NewTrace<'_>, plan: &MergePlan<'_>, tables: &Tables) -> Result<Vec<i64>> {
    let made = making.made;
    let last = plan.inputs.len() - 1;
    let sessions = (plan.offsets[last] >> 32) + plan.inputs[last].session_span;
    let mut facts: Vec<(String, String)> = vec![("session_count".into(), sessions.to_string())];
    let version = plan.inputs[0].version.to_string();
    facts.push(("schema_version".into(), version));
    let mut shifts: BTreeMap<i64, i64> = BTreeMap::new();
    for (number, input) in plan.inputs.iter().enumerate() {
        for session in &input.sessions {
            let moved = plan.nodes.moved(number, session.session.into());
            let now = i64::from(session.session) + (plan.offsets[number] >> 32);
            facts.push((format!("session::{now}::{NODE}"), moved.to.to_string()));
            shifts.entry(moved.to).or_insert_with(|| plan.shift(number, moved));
        }
        if input.sessions.is_empty() {
            let moved = plan.nodes.moved(number, 0);
            facts.push((format!("session::{}::{}", plan.offsets[number] >> 32, NODE), moved.to.to_string()));
            shifts.entry(moved.to).or_insert_with(|| plan.shift(number, moved));
        }
    }
    for (number, input) in plan.inputs.iter().enumerate() {
        facts.extend(processes(plan, number, input));
    }
    for (number, name) in plan.nodes.names().enumerate() {
        facts.push((format!("node::{number}::host"), name.to_string()));
        let shift = shifts.get(&(number as i64)).copied().unwrap_or(0);
        facts.push((format!("node::{number}::shift_ns"), shift.to_string()));
    }
    for table in &tables.subclasses {
        if let Some(members) = plan.inputs[0].subclasses.get(table) {
            facts.push((subclass::tag(table), members.clone()));
        }
    }
    for (tag, value) in facts {
        made.execute("DELETE FROM rocpd_metadata WHERE tag = ?1", [&tag])?;
        made.execute("INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)", [&tag, &value])?;
    }
    making.show("threads");
    let Threads { shared_pids, are_apart } = Threads::of(made, plan)?;
    for definition in &tables.passes {
        let all = plan.inputs.iter().filter_map(|input| input.passes.get(definition.name).copied());
        let rank = |freshness: &Freshness| match freshness {
            Freshness::Current => 0,
            Freshness::Unknown => 1,
            Freshness::Stale => 2,
        };
        let worst = all.max_by_key(rank).unwrap_or(Freshness::Unknown);
        let is_apart = definition.name != Callstack.definition().name || are_apart;
        mark::set_as(made, definition, if is_apart { worst } else { Freshness::Stale })?;
    }
    Ok(shared_pids)
}

/// What is known of the threads of the result.
struct Threads {
    /// Process ids that several processes have.
    shared_pids: Vec<i64>,
    /// Whether no thread has calls of one trace among those of another: of a process that the traces are parts of. The call
    /// stacks of each are as they were then.
    are_apart: bool,
}

impl Threads {
    fn of(made: &Connection, plan: &MergePlan<'_>) -> rusqlite::Result<Threads> {
        let spans = spans(made, plan)?;
        let mut processes: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for [process, pid, _] in spans.keys() {
            processes.entry(*pid).or_default().insert(*process);
        }
        processes.retain(|_, processes| processes.len() > 1);
        let are_apart = spans.into_values().all(|spans| {
            let mut spans: Vec<Span> = spans.into_values().collect();
            spans.sort_by_key(|span| span.start_ns);
            spans.is_sorted_by(|span, next| span.end_ns <= next.start_ns)
        });
        Ok(Threads { shared_pids: processes.into_keys().collect(), are_apart })
    }
}

/// From the first start to the last end of the calls that each trace has of each thread: by process, process id and thread id.
fn spans(
    made: &Connection,
    plan: &MergePlan<'_>,
) -> rusqlite::Result<HashMap<[i64; 3], BTreeMap<usize, Span>>> {
    let processes = Processes::of(made)?;
    let mut threads: HashMap<[i64; 3], BTreeMap<usize, Span>> = HashMap::new();
    let mut calls = made.prepare("SELECT id, pid, tid, start, \"end\" FROM rocpd_api")?;
    let mut calls = calls.query([])?;
    while let Some(call) = calls.next()? {
        let number = |column| call.get_ref(column).ok().and_then(|value| value.as_i64().ok());
        let (Some(id), Some(pid), Some(tid), Some(start), Some(end)) =
            (number(0), number(1), number(2), number(3), number(4))
        else {
            continue;
        };
        let input = plan.offsets.partition_point(|offset| *offset <= id).saturating_sub(1);
        let spans = threads.entry([processes.of_row(id), pid, tid]).or_default();
        let span = spans.entry(input).or_insert(Span { start_ns: start, end_ns: end });
        *span = Span { start_ns: span.start_ns.min(start), end_ns: span.end_ns.max(end) };
    }
    Ok(threads)
}
