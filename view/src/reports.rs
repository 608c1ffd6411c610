//! The reports of the postprocess library on a part of the trace: the same numbers as those of the commands.

use std::path::Path;

use anyhow::Result;
use rpd_postprocess::moment::{Moment, TimeRange};
use rpd_postprocess::region::{Region, Selected};
use rpd_postprocess::report::copies::Copies;
use rpd_postprocess::report::gaps::Gaps;
use rpd_postprocess::report::markers::{MarkerNode, Markers};
use rpd_postprocess::report::memory::Memory;
use rpd_postprocess::report::queues::Queues;
use rpd_postprocess::text::in_shell;
use rpd_postprocess::trace::contents::Contents;
use rpd_postprocess::trace::has_table;
use rpd_schema::Version;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::console;
use crate::timeline::{Source, Timeline};

/// Nodes of the tree of markers in an answer.
const MOST_NODES: usize = 3000;

/// Keys of times on the trace's clock, which are too large for the numbers of the page.
const ON_CLOCK: [&str; 4] = ["start_ns", "end_ns", "peak_ns", "time_ns"];

/// Which report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportKind {
    /// Idle times of GPUs and their causes.
    Gaps,
    /// Copies by kind and size.
    Copies,
    /// The tree of markers.
    Markers,
    /// Queues, and how long launches take to get there.
    Queues,
    /// What is allocated.
    Memory,
    /// Launches of graphs.
    Graphs,
    /// Operators of PyTorch and the kernels that they launch.
    Operators,
    /// What was recorded by whom, and what was lost.
    Sessions,
}

/// A report, and the command that gives the same.
#[derive(Debug, Clone, Serialize)]
pub struct Reported {
    /// Its numbers. Times of the trace's clock are ns since the trace's begin.
    pub report: Value,
    /// The command.
    pub command: String,
    /// What a pass would have to add to the trace first.
    pub missing: Option<String>,
}

/// A time of the trace as the postprocess library has it: what begins from `from` to before `to`, ns since the trace's begin.
pub fn region(source: &Source, time: Option<(u64, u64)>) -> Region {
    let Some((from, to)) = time else { return Region::default() };
    let [start, end] = on_clock(source, (from, to));
    let time = TimeRange { start: Some(Moment::At(start)), end: Some(Moment::At(end)) };
    Region { time, ..Region::default() }
}

/// A time on the trace's clock; both ends belong to it.
fn on_clock(source: &Source, (from, to): (u64, u64)) -> [i64; 2] {
    [from, to.saturating_sub(1).max(from)].map(|ns| source.clock(ns))
}

/// The words behind a command's name that say which time of which trace.
pub fn of_trace(source: &Source, time: Option<(u64, u64)>) -> String {
    let file = in_shell(&source.facts.file);
    match time {
        None => file,
        Some(time) => {
            let [start, end] = on_clock(source, time);
            format!("--in {start}..{end} {file}")
        }
    }
}

/// Makes a report of what begins in a time, or of all, of the trace `file`, which is the one with the number `source`.
///
/// # Errors
/// When the trace cannot be read.
pub fn report(
    timeline: &Timeline,
    (source, file): (usize, &Path),
    (trace, version): (&Connection, Version),
    which: ReportKind,
    time: Option<(u64, u64)>,
) -> Result<Reported> {
    let of = &timeline.sources[source];
    let selected = region(of, time).select(trace, version)?;
    let behind = of_trace(of, time);
    let made = |report: Value, verb: &str| Reported {
        report,
        command: format!("rpd {verb} {behind}"),
        missing: None,
    };
    let mut reported = match which {
        ReportKind::Gaps => made(serde_json::to_value(Gaps::of(trace, &selected)?.gpus)?, "gaps"),
        ReportKind::Copies => {
            made(serde_json::to_value(Copies::of(trace, version, &selected)?.kinds)?, "copies")
        }
        ReportKind::Queues => made(serde_json::to_value(Queues::of(trace, &selected)?.queues)?, "queues"),
        ReportKind::Memory => {
            made(serde_json::to_value(Memory::of((trace, version), &selected)?.processes)?, "memory")
        }
        ReportKind::Markers => {
            let found = Markers::of((trace, version), &selected, false)?;
            let all = found.nodes.count;
            let nodes = found.nodes.take(MOST_NODES).collect::<Result<Vec<MarkerNode>>>()?;
            made(json!({ "nodes": nodes, "all": all }), "markers")
        }
        ReportKind::Sessions => {
            let contents =
                serde_json::to_value(Contents::of(file, trace, version, &Selected::everything())?)?;
            let file = of_trace(of, None);
            Reported { report: contents, command: format!("rpd info {file}"), missing: None }
        }
        ReportKind::Graphs => {
            let query = "SELECT L.id, L.graphExec, L.stream, L.gpuId, L.queueId, C.start AS start_ns, C.\"end\" - C.start AS call_ns,
                 L.opDuration * 1000 AS span_ns, L.gpuTime * 1000 AS gpu_ns
                 FROM graphLaunch L JOIN rocpd_api C ON C.id = L.id ORDER BY C.start";
            let kernels = "SELECT graphExec, sequence, kernelName, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ
                 FROM graphKernel ORDER BY graphExec, sequence";
            let parts = [("ext_graph", "launches", query), ("ext_graph", "kernels", kernels)];
            of_pass(timeline, (source, file), trace, "graph", &parts)?
        }
        ReportKind::Operators => {
            let query =
                "SELECT autogradName, kernelName, sizes, calls, avg_gpu AS average_ns, total_gpu AS total_ns
                 FROM autogradKernel ORDER BY total_gpu DESC";
            of_pass(timeline, (source, file), trace, "autograd", &[("ext_autogradapi", "operators", query)])?
        }
    };
    // Events of an answer in SQL are counted from the begin already.
    if !matches!(which, ReportKind::Graphs | ReportKind::Operators) {
        since_begin(&mut reported.report, of);
    }
    Ok(reported)
}

/// What the views of a pass say, where the trace has them.
fn of_pass(
    timeline: &Timeline,
    (source, file): (usize, &Path),
    trace: &Connection,
    pass: &str,
    parts: &[(&str, &str, &str)],
) -> Result<Reported> {
    let name = of_trace(&timeline.sources[source], None);
    let mut report = serde_json::Map::new();
    let mut missing = None;
    for (table, part, query) in parts {
        if !has_table(trace, table)? {
            missing = Some(format!("rpd {pass} {name} adds them to the trace; start rpd view again then"));
            break;
        }
        let answer = console::answer(timeline, (source, file), query)?;
        report.insert((*part).to_string(), serde_json::to_value(answer)?);
    }
    Ok(Reported { report: Value::Object(report), command: format!("rpd {pass} {name}"), missing })
}

/// Counts times of the trace's clock from the begin of the timeline.
fn since_begin(value: &mut Value, source: &Source) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| since_begin(value, source)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_i64().filter(|_| ON_CLOCK.contains(&key.as_str())) {
                    Some(time) => *value = json!(time.saturating_sub(source.clock(0))),
                    None => since_begin(value, source),
                }
            }
        }
        _ => {}
    }
}
