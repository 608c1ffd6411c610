//! The graphs of each process: captures, graphs put together by hand, and what was instantiated from them.
//!
//! Handles are addresses: another process has the same ones, and the same process has them again later. So a handle means
//! what the latest call before made of it, in its process.

use std::collections::{HashMap, HashSet};

use super::call::{GraphCall, GraphProcess, HandleNumber, NO_HANDLE};
use super::function::GraphFunction;

/// A graph as it came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryGraph {
    pub(crate) process: GraphProcess,
    /// Thread that began it.
    pub(crate) tid: i64,
    /// None of a capture that did not come to its end, or failed.
    pub(crate) handle: HandleNumber,
    /// The stream that was captured; none of a graph that was put together by hand.
    pub(crate) stream: HandleNumber,
    /// From the begin of the first call to the end of the last, ns.
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Kernels put into it by hand, as far as is known.
    pub(crate) nodes: u64,
}

/// A graph under the handle it is launched by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Its graph among [`GraphHistory::graphs`].
    pub(crate) graph: usize,
    pub(crate) exec: HandleNumber,
}

/// A kernel put into a graph by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddedKernel {
    pub(crate) graph: usize,
    pub(crate) start: i64,
    /// The call: row of `rocpd_api`.
    pub(crate) api: i64,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct GraphHistory {
    pub(crate) graphs: Vec<HistoryGraph>,
    pub(crate) nodes: Vec<AddedKernel>,
    /// In the order in which they were made in each process.
    pub(crate) instances: Vec<Instance>,
    /// When each executable handle was made, ns, and whether its kernels are known, in order of time.
    execs: HashMap<(GraphProcess, HandleNumber), Vec<(i64, bool)>>,
    /// Captures whose begin or end is not in the file.
    pub(crate) unfinished: u64,
    /// Captures that gave no graph, or whose end does not say which.
    pub(crate) failed: u64,
    /// Graphs that were never instantiated.
    pub(crate) unused: u64,
}

/// What the handles of one process mean at a time.
#[derive(Default)]
struct Now {
    /// By stream, place among [`GraphHistory::graphs`].
    captures: HashMap<HandleNumber, usize>,
    /// By their own handle, the same.
    graphs: HashMap<HandleNumber, usize>,
}

impl GraphHistory {
    /// Goes through the calls, which are in order of process and time. `has_launch` says whether a call that puts a
    /// kernel into a graph has the arguments of a launch.
    ///
    /// # Errors
    /// Those of `has_launch`.
    pub(crate) fn of<E>(
        calls: &[GraphCall],
        mut has_launch: impl FnMut(i64) -> Result<bool, E>,
    ) -> Result<GraphHistory, E> {
        let mut history = GraphHistory::default();
        for calls in calls.chunk_by(|one, other| one.process == other.process) {
            let mut now = Now::default();
            for call in calls {
                let has_launch = call.function == GraphFunction::AddKernelNode && has_launch(call.id)?;
                history.take(call, has_launch, &mut now);
            }
            history.unfinished += now.captures.len() as u64;
        }
        let used: HashSet<usize> = history.instances.iter().map(|instance| instance.graph).collect();
        let graphs = history.graphs.iter().enumerate();
        let unused = graphs.filter(|(at, graph)| graph.handle != NO_HANDLE && !used.contains(at));
        history.unused = unused.count() as u64;
        Ok(history)
    }

    fn take(&mut self, call: &GraphCall, has_launch: bool, now: &mut Now) {
        match call.function {
            GraphFunction::BeginCapture => {
                let unfinished = now.captures.insert(call.stream, self.graphs.len());
                self.unfinished += u64::from(unfinished.is_some());
                if let Some(at) = unfinished {
                    self.graphs[at].end = call.start;
                }
                // Until its end is found it goes on, and gives no graph.
                self.graphs.push(HistoryGraph {
                    handle: NO_HANDLE,
                    end: i64::MAX,
                    ..graph(call, call.stream)
                });
            }
            GraphFunction::EndCapture => match now.captures.remove(&call.stream) {
                Some(at) => {
                    self.graphs[at].end = call.end;
                    self.graphs[at].handle = call.graph;
                    if call.graph == NO_HANDLE {
                        self.failed += 1;
                    } else {
                        now.graphs.insert(call.graph, at);
                    }
                }
                None => {
                    self.unfinished += 1;
                    now.graphs.remove(&call.graph);
                }
            },
            GraphFunction::Create => {
                now.graphs.remove(&call.graph);
            }
            GraphFunction::AddKernelNode => self.add_node(call, has_launch, now),
            GraphFunction::Instantiate => {
                let known = now.graphs.get(&call.graph).copied();
                // By hand, with kernels of which not even the names are known: its launches tell more.
                let known = known.filter(|at| {
                    let graph = &self.graphs[*at];
                    graph.stream != NO_HANDLE || graph.nodes > 0
                });
                self.execs.entry((call.process, call.exec)).or_default().push((call.start, known.is_some()));
                self.instances.extend(known.map(|graph| Instance { graph, exec: call.exec }));
            }
            GraphFunction::Launch => {}
        }
    }

    fn add_node(&mut self, call: &GraphCall, has_launch: bool, now: &mut Now) {
        let at = *now.graphs.entry(call.graph).or_insert_with(|| {
            self.graphs.push(graph(call, NO_HANDLE));
            self.graphs.len() - 1
        });
        let graph = &mut self.graphs[at];
        graph.end = graph.end.max(call.end);
        if has_launch {
            graph.nodes += 1;
            self.nodes.push(AddedKernel { graph: at, start: call.start, api: call.id });
        }
    }

    /// Which making of this executable handle a launch at `start` launches, counted from 1, or 0 if none is in the file; and
    /// whether its kernels are known.
    pub(crate) fn made_before(&self, launch: &GraphCall) -> (usize, bool) {
        let made = self.execs.get(&(launch.process, launch.exec)).map_or(&[][..], Vec::as_slice);
        let count = made.partition_point(|(start, _)| *start <= launch.start);
        (count, count > 0 && made[count - 1].1)
    }
}

/// A graph of which this is the only call so far.
fn graph(call: &GraphCall, stream: HandleNumber) -> HistoryGraph {
    let &GraphCall { process, tid, graph: handle, start, end, .. } = call;
    HistoryGraph { process, tid, handle, stream, start, end, nodes: 0 }
}
