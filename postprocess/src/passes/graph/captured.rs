//! The kernel launches that were captured into each graph.
//!
//! A launch belongs to the capture of its own stream that is under way in its process. A capture forks to other streams
//! when those wait for it, which a trace does not say; but a launch that is captured runs nothing. So one on another stream,
//! that no operation is linked to, belongs to the capture that its thread began last, or to the only one under way.

use std::collections::HashMap;

use anyhow::Result;
use roaring::RoaringTreemap;

use super::call::{GraphCalls, GraphProcess, NO_HANDLE};
use super::history::{GraphHistory, HistoryGraph};
use crate::pass::Change;
use crate::pass::sorted::{Sorted, Sorter};

/// Rows between two lines of progress.
const ROWS_PER_STEP: u64 = 1 << 17;

/// A captured launch: its graph's place among the graphs, its begin, its call.
pub(crate) type CapturedLaunch = [i64; 3];

/// Captures of one process, by their begin.
#[derive(Default)]
struct Captures {
    /// Place among the graphs.
    graphs: Vec<usize>,
    /// The latest end among a capture and those before it.
    latest_ends: Vec<i64>,
}

/// The captured launches by graph and time, and how many could not be told to be of one graph.
pub(crate) struct Captured {
    pub(crate) sorted: Sorted<CapturedLaunch>,
    pub(crate) ambiguous: u64,
}

impl Captured {
    /// Looks at every launch of the file.
    ///
    /// # Errors
    /// When the file or a temporary file fails.
    pub(crate) fn of(change: &Change<'_>, calls: &GraphCalls, history: &GraphHistory) -> Result<Captured> {
        let mut sorter = Sorter::new();
        for node in &history.nodes {
            sorter.push([node.graph as i64, node.start, node.api])?;
        }
        let captures = captures(&history.graphs);
        let mut ambiguous = 0;
        if captures.is_empty() {
            return Ok(Captured { sorted: sorter.sorted()?, ambiguous });
        }
        let mut forked = Sorter::new();
        let mut without_ops = RoaringTreemap::new();
        let mut select = change.trace.prepare(
            "SELECT A.id, K.stream, A.pid, A.tid, A.start, A.apiName_id
             FROM rocpd_kernelapi K JOIN rocpd_api A ON A.id = K.api_ptr_id",
        )?;
        let mut rows = select.query([])?;
        let mut done = 0_u64;
        while let Some(row) = rows.next()? {
            if done.is_multiple_of(ROWS_PER_STEP) {
                change.show(&format!("graphs: {done} launches"));
                change.check()?;
            }
            done += 1;
            let number = |column| row.get_ref(column).ok().and_then(|value| value.as_i64().ok());
            let (Some(api), Some(pid), Some(start)) = (number(0), number(2), number(4)) else { continue };
            let Some(process) = captures.get(&calls.process(api, pid)) else { continue };
            // A graph launch has launch arguments too in some files, and a node of a graph is one by itself.
            if number(5).is_some_and(|name| calls.functions.contains_key(&name)) {
                continue;
            }
            let under_way = process.at(start, &history.graphs);
            let stream = calls.handles.known(row.get_ref(1)?.as_str().unwrap_or_default());
            let own = under_way.iter().find(|graph| history.graphs[**graph].stream == stream);
            match own.copied().or_else(|| only(&under_way, number(3), &history.graphs)) {
                Some(graph) if own.is_some() => sorter.push([graph as i64, start, api])?,
                None if under_way.is_empty() => {}
                graph => {
                    without_ops.insert(api.cast_unsigned());
                    forked.push([graph.map_or(-1, |graph| graph as i64), start, api])?;
                }
            }
        }
        remove_with_ops(change, &mut without_ops)?;
        let mut forked = forked.sorted()?;
        while let Some(launch) = forked.next()? {
            if without_ops.contains(launch[2].cast_unsigned()) {
                if launch[0] < 0 { ambiguous += 1 } else { sorter.push(launch)? }
            }
        }
        Ok(Captured { sorted: sorter.sorted()?, ambiguous })
    }
}

/// The capture that a launch of thread `tid` outside of the captured streams belongs to, if that can be told.
fn only(under_way: &[usize], tid: Option<i64>, graphs: &[HistoryGraph]) -> Option<usize> {
    // The last one under way is first.
    let own_thread = under_way.iter().find(|graph| Some(graphs[**graph].tid) == tid);
    own_thread.or(if let [only] = under_way { Some(only) } else { None }).copied()
}

/// Leaves of these calls those that no operation is linked to.
fn remove_with_ops(change: &Change<'_>, calls: &mut RoaringTreemap) -> Result<()> {
    if calls.is_empty() {
        return Ok(());
    }
    let mut select = change.trace.prepare("SELECT api_id FROM rocpd_api_ops")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if let Ok(api) = row.get_ref(0)?.as_i64() {
            calls.remove(api.cast_unsigned());
        }
    }
    Ok(())
}

fn captures(graphs: &[HistoryGraph]) -> HashMap<GraphProcess, Captures> {
    let mut order: Vec<usize> = (0..graphs.len()).filter(|at| graphs[*at].stream != NO_HANDLE).collect();
    order.sort_by_key(|at| graphs[*at].start);
    let mut captures: HashMap<GraphProcess, Captures> = HashMap::new();
    for at in order {
        let process = captures.entry(graphs[at].process).or_default();
        let latest = process.latest_ends.last().map_or(i64::MIN, |end| *end).max(graphs[at].end);
        process.graphs.push(at);
        process.latest_ends.push(latest);
    }
    captures
}

impl Captures {
    /// The captures that are under way at a time, the one that was begun last first.
    fn at(&self, time: i64, graphs: &[HistoryGraph]) -> Vec<usize> {
        let begun = self.graphs.partition_point(|graph| graphs[*graph].start <= time);
        let open = (0..begun).rev().take_while(|at| self.latest_ends[*at] >= time);
        open.map(|at| self.graphs[at]).filter(|graph| graphs[*graph].end >= time).collect()
    }
}
