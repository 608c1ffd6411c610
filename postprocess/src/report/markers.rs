//! Ranges of markers as a tree: how often, and how much time of the CPU and the GPU inside of each, with and without those inside it.
//!
//! CPU time is that of the thread that pushed the range. Where two ranges overlap without one inside the other, the time in which both
//! are open is that of the later one. GPU time belongs to the innermost range that is open on the thread of the launching call when that
//! call begins. An operation counts with the time in which none ran on its GPU that began before it, so that the GPU times of all ranges
//! and of what is in none add up to the time in which the GPUs were busy.
//!
//! The own times of a range and of all below it add up to its inclusive time. Memory grows with the number of paths (some 70 bytes each), not
//! of ranges. Where many texts differ in numbers alone, as those of the steps of a training run, they are one, so that there are not as many
//! paths as ranges.

mod names;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use self::names::Names;
use super::caused::CausedOps;
use super::diff::family;
use super::gpu_time::LeftOut;
use super::ranking::RankBy;
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::pass::sorted::Sorter;
use crate::region::Selected;

/// Texts that may differ in numbers alone and still be told apart: layers, not steps.
const ALIKE: usize = 64;

/// The tree of ranges, and what could not be counted.
pub struct Markers {
    /// How they are read.
    pub nodes: MarkerNodes,
    /// From the first start to the last end of markers and operations, ns.
    pub span_ns: u64,
    /// Threads that have markers.
    pub threads: u64,
    /// GPUs that have operations.
    pub gpus: u64,
    /// Markers with impossible times.
    pub impossible: u64,
    /// Ranges that end inside of one that began later on their thread: from there on the time is the later one's.
    pub cut: u64,
    /// Texts that became one with others because they differ in numbers alone.
    pub alike: u64,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// Ranges with one path: their own text, and those of the ranges around them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarkerNode {
    /// Its place among all, from 0.
    pub node: usize,
    /// The node around it.
    pub parent: Option<usize>,
    /// How many are around it.
    pub depth: usize,
    /// Its text, in which # may be any number; none of what is in no marker.
    #[serde(serialize_with = "text")]
    pub name: Option<Arc<str>>,
    /// How many ranges.
    pub ranges: u64,
    /// Operations launched in them.
    pub operations: u64,
    /// Time in them on their threads, ns.
    pub cpu_ns: u64,
    /// The part of that which is in no range inside.
    pub cpu_own_ns: u64,
    /// Share of `cpu_ns` in the time of all threads that have markers, percent.
    pub cpu_percent: f64,
    /// GPU time of what was launched in them, ns.
    pub gpu_ns: u64,
    /// The part of that which was launched in no range inside.
    pub gpu_own_ns: u64,
    /// Share of `gpu_ns` in the time of all GPUs, percent.
    pub gpu_percent: f64,
}

#[allow(clippy::ref_option)] // serde's way
fn text<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

/// A range, or an operation that was launched; ordered as a stack takes them, thread after thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Event {
    thread: [i64; 3],
    start: i64,
    /// 0: a range; 1: a launch, which is inside of what begins at the same time.
    is_launch: i64,
    /// For a range: the end with all bits turned over, so that of two with one start the longer one is first.
    not_end: i64,
    id: i64,
    /// For a range: number of its text. For a launch: GPU time, ns.
    value: i64,
}

/// The parent of what is in no other.
const ROOT: u32 = u32::MAX;

/// A node while ranges are read.
#[derive(Debug, Clone, Copy)]
struct Growing {
    parent: u32,
    name: u32,
    ranges: u64,
    operations: u64,
    cpu_ns: u64,
    gpu_ns: u64,
}

/// The tree, and the ranges that are open on a thread.
#[derive(Default)]
struct Tree {
    nodes: Vec<Growing>,
    /// Nodes by their parents and names.
    places: FxHashMap<(u32, u32), u32>,
    /// Node and end, outermost first.
    open: Vec<(u32, i64)>,
    now: i64,
    /// Operations and GPU time of what was launched in no marker.
    outside: (u64, u64),
    /// Ranges that end inside of a later one.
    cut: u64,
}

impl Tree {
    /// Gives the time up to `time` to the innermost open ranges.
    fn advance(&mut self, time: i64) {
        while let Some((node, end)) = self.open.last().copied() {
            let until = end.min(time);
            if until > self.now {
                self.nodes[node as usize].cpu_ns += until.abs_diff(self.now);
                self.now = until;
            }
            if end > time {
                break;
            }
            self.open.pop();
        }
        self.now = time;
    }

    fn begin(&mut self, (start, end): (i64, i64), name: u32) {
        self.advance(start);
        // Those that end earlier have no time any more: all of it is this one's.
        while self.open.last().is_some_and(|(_, other)| *other < end) {
            self.open.pop();
            self.cut += 1;
        }
        let parent = self.open.last().map_or(ROOT, |(node, _)| *node);
        let next = self.nodes.len() as u32;
        let node = *self.places.entry((parent, name)).or_insert(next);
        if node == next {
            self.nodes.push(Growing { parent, name, ranges: 0, operations: 0, cpu_ns: 0, gpu_ns: 0 });
        }
        self.nodes[node as usize].ranges += 1;
        self.open.push((node, end));
    }

    /// The node that it is in, if it is in any.
    fn launch(&mut self, time: i64, gpu_ns: u64) -> Option<u32> {
        self.advance(time);
        let Some((node, _)) = self.open.last().copied() else {
            self.launch_outside(gpu_ns);
            return None;
        };
        let in_it = &mut self.nodes[node as usize];
        in_it.operations += 1;
        in_it.gpu_ns += gpu_ns;
        Some(node)
    }

    fn launch_outside(&mut self, gpu_ns: u64) {
        self.outside.0 += 1;
        self.outside.1 += gpu_ns;
    }

    fn end_thread(&mut self) {
        self.advance(i64::MAX);
        self.now = i64::MIN;
    }
}

/// From the first start to the last end.
#[derive(Clone, Copy)]
struct Extent(i64, i64);

impl Extent {
    fn add(&mut self, (start, end): (i64, i64)) {
        *self = Extent(self.0.min(start), self.1.max(end));
    }

    fn ns(self) -> u64 {
        if self.1 < self.0 { 0 } else { self.1.abs_diff(self.0) }
    }
}

/// GPU time of markers of one text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MarkerGpuTime {
    /// Of what was launched in them, ns; in one inside another of the same text once.
    pub gpu_ns: u64,
    /// The part of that which was launched in no range inside, ns.
    pub gpu_own_ns: u64,
}

impl Markers {
    /// The GPU time by text.
    pub fn gpu_times(self) -> HashMap<Arc<str>, MarkerGpuTime> {
        let mut times: HashMap<Arc<str>, MarkerGpuTime> = HashMap::new();
        // The texts around the node that is read, outermost first.
        let mut around: Vec<Arc<str>> = Vec::new();
        for node in self.nodes {
            around.truncate(node.depth);
            let Some(name) = node.name else { continue };
            let of = times.entry(Arc::clone(&name)).or_default();
            of.gpu_own_ns += node.gpu_own_ns;
            if !around.contains(&name) {
                of.gpu_ns += node.gpu_ns;
            }
            around.push(name);
        }
        times
    }

    /// Reads the markers of a part of a trace, and the operations of it; unless texts are `exact`, PyTorch's operators have their names alone.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of(trace: (&Connection, Version), selected: &Selected, exact: bool) -> Result<Markers> {
        Ok(Grown::of(trace, selected, exact, |_, _| Ok(()))?.into_markers())
    }
}

/// The tree when all ranges and launches have been put into it.
pub(super) struct Grown {
    tree: Tree,
    names: Vec<Arc<str>>,
    span_ns: u64,
    threads: u64,
    gpus: u64,
    impossible: u64,
    alike: u64,
    left_out: LeftOut,
}

impl Grown {
    /// Reads it; `launched` is told of each operation, by its id, in which node it was launched, if in any.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read, and those of `launched`.
    pub(super) fn of(
        (trace, version): (&Connection, Version),
        selected: &Selected,
        exact: bool,
        mut launched: impl FnMut(i64, Option<u32>) -> Result<()>,
    ) -> Result<Grown> {
        let mut events = Sorter::new();
        let mut extent = Extent(i64::MAX, i64::MIN);
        let mut tree = Tree { now: i64::MIN, ..Tree::default() };
        let ops = CausedOps::of(trace, selected)?;
        let left_out = ops.left_out;
        let mut gpus = HashSet::new();
        ops.each(|op, call| {
            gpus.insert(op.gpu);
            extent.add((op.start, op.end));
            match call.and_then(|call| Some((call.thread, call.times?))) {
                None => {
                    tree.launch_outside(op.uncovered.unsigned_abs());
                    launched(op.id, None)?;
                }
                Some(((process, pid, tid), (start, _))) => events.push(Event {
                    thread: [process, pid, tid],
                    start,
                    is_launch: 1,
                    not_end: 0,
                    id: op.id,
                    value: op.uncovered,
                })?,
            }
            Ok(())
        })?;
        let mut names = Names::of(trace, RankBy::Marker.texts(version), !exact)?;
        let processes = Processes::of(trace)?;
        let (mut outliers, mut impossible, mut threads) = (Outliers::new(), 0, HashSet::new());
        let mut rows = trace.prepare(&RankBy::Marker.query("1", false))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column| row.get_ref(column).map(|value| value.as_i64().unwrap_or(0));
            let id = number(4)?;
            if !selected.has_call(id) {
                continue;
            }
            let times = match (row.get_ref(0)?, row.get_ref(1)?) {
                (ValueRef::Integer(start), ValueRef::Integer(end)) => Some((start, end)),
                _ => None,
            };
            let Some(times) = times.filter(|times| are_sound(*times)) else {
                impossible += 1;
                continue;
            };
            if outliers.is_outlier(trace, times)? {
                impossible += 1;
                continue;
            }
            extent.add(times);
            let thread = [processes.of_row(id), number(5)?, number(6)?];
            threads.insert(thread);
            let value = names.number((number(2)?, number(3)?))? as i64;
            events.push(Event { thread, start: times.0, is_launch: 0, not_end: !times.1, id, value })?;
        }
        let Merged { names, of, alike } = Merged::of(names.into_names(), exact);
        let mut events = events.sorted()?;
        let mut thread = None;
        while let Some(event) = events.next()? {
            if thread.is_some_and(|thread| thread != event.thread) {
                tree.end_thread();
            }
            thread = Some(event.thread);
            if event.is_launch == 1 {
                let node = tree.launch(event.start, event.value.unsigned_abs());
                launched(event.id, node)?;
            } else {
                tree.begin((event.start, !event.not_end), of[event.value as usize]);
            }
        }
        tree.end_thread();
        let (threads, gpus) = (threads.len() as u64, gpus.len() as u64);
        let span_ns = extent.ns();
        Ok(Grown { tree, names, span_ns, threads, gpus, impossible, alike, left_out })
    }

    /// What could not be counted.
    pub(super) fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Each node: its parent, which is before it, its name, and how many ranges it has.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (Option<u32>, &str, u64)> {
        self.tree.nodes.iter().map(|node| {
            let parent = (node.parent != ROOT).then_some(node.parent);
            (parent, &*self.names[node.name as usize], node.ranges)
        })
    }

    fn into_markers(self) -> Markers {
        let Grown { tree, names, span_ns, threads, gpus, impossible, alike, left_out } = self;
        let cut = tree.cut;
        let nodes = MarkerNodes::of(tree, names, (span_ns, threads, gpus));
        Markers { nodes, span_ns, threads, gpus, impossible, cut, alike, left_out }
    }
}

/// The names of nodes: texts, or what many texts have in common.
struct Merged {
    names: Vec<Arc<str>>,
    /// Of each text the number of its name.
    of: Vec<u32>,
    alike: u64,
}

impl Merged {
    /// Unless they are `exact`, texts of which more than [`ALIKE`] differ in numbers alone are one name.
    fn of(texts: Vec<Box<str>>, exact: bool) -> Merged {
        let mut families: HashMap<String, usize> = HashMap::new();
        if !exact {
            for text in &texts {
                *families.entry(family(text).into_owned()).or_default() += 1;
            }
            families.retain(|_, texts| *texts > ALIKE);
        }
        let mut numbers: HashMap<Arc<str>, u32> = HashMap::new();
        let (mut names, mut of, mut alike) = (Vec::new(), Vec::with_capacity(texts.len()), 0);
        for text in texts {
            let family = family(&text);
            let is_alike = families.contains_key(family.as_ref());
            alike += u64::from(is_alike);
            let name: Arc<str> = if is_alike { family.into() } else { Arc::from(text) };
            of.push(*numbers.entry(name).or_insert_with_key(|name| {
                names.push(Arc::clone(name));
                names.len() as u32 - 1
            }));
        }
        Merged { names, of, alike }
    }
}

/// Nodes: parents before their children, and of one parent those with the most time first; the last one is what is in no marker, if there
/// is any.
pub struct MarkerNodes {
    growing: Vec<Growing>,
    /// For each node with those below it: operations, time of the CPU and the GPU.
    all: Vec<(u64, u64, u64)>,
    names: Vec<Arc<str>>,
    /// The children of each parent beside each other, those with least time first.
    siblings: Vec<u32>,
    /// What is read next is the last: a node, its parent and its depth.
    waiting: Vec<(u32, Option<usize>, usize)>,
    /// How many have been read.
    read: usize,
    /// Operations and GPU time in no marker, until they have been read.
    outside: Option<(u64, u64)>,
    /// Time of all threads with markers, and of all GPUs, ns.
    whole: (f64, f64),
}

impl MarkerNodes {
    fn of(tree: Tree, names: Vec<Arc<str>>, (span_ns, threads, gpus): (u64, u64, u64)) -> MarkerNodes {
        let Tree { nodes: growing, places, outside, .. } = tree;
        drop(places);
        let mut all: Vec<(u64, u64, u64)> =
            growing.iter().map(|node| (node.operations, node.cpu_ns, node.gpu_ns)).collect();
        // A parent is made before its children.
        for (at, node) in growing.iter().enumerate().rev() {
            if node.parent != ROOT {
                let (operations, cpu_ns, gpu_ns) = all[at];
                let parent = &mut all[node.parent as usize];
                *parent = (parent.0 + operations, parent.1 + cpu_ns, parent.2 + gpu_ns);
            }
        }
        let mut siblings: Vec<u32> = (0..growing.len() as u32).collect();
        siblings.sort_unstable_by_key(|at| {
            let node = &growing[*at as usize];
            let (_, cpu_ns, gpu_ns) = all[*at as usize];
            (node.parent, gpu_ns, cpu_ns, Reverse(&names[node.name as usize]))
        });
        let whole = (span_ns as f64 * threads as f64, span_ns as f64 * gpus as f64);
        let outside = Some(outside).filter(|(operations, _)| *operations > 0);
        let waiting = Vec::new();
        let mut nodes = MarkerNodes { growing, all, names, siblings, waiting, read: 0, outside, whole };
        nodes.wait_for_children(ROOT, None, 0);
        nodes
    }

    fn wait_for_children(&mut self, of: u32, parent: Option<usize>, depth: usize) {
        let parent_of = |at: &u32| self.growing[*at as usize].parent;
        let first = self.siblings.partition_point(|at| parent_of(at) < of);
        let count = self.siblings[first..].partition_point(|at| parent_of(at) == of);
        let children = &self.siblings[first..first + count];
        self.waiting.extend(children.iter().map(|at| (*at, parent, depth)));
    }
}

impl Iterator for MarkerNodes {
    type Item = MarkerNode;

    fn next(&mut self) -> Option<MarkerNode> {
        let percent = |part: u64, whole: f64| if whole > 0.0 { 100.0 * part as f64 / whole } else { 0.0 };
        let node = self.read;
        let Some((at, parent, depth)) = self.waiting.pop() else {
            let (operations, gpu_ns) = self.outside.take()?;
            self.read += 1;
            return Some(MarkerNode {
                node,
                parent: None,
                depth: 0,
                name: None,
                ranges: 0,
                operations,
                cpu_ns: 0,
                cpu_own_ns: 0,
                cpu_percent: 0.0,
                gpu_ns,
                gpu_own_ns: gpu_ns,
                gpu_percent: percent(gpu_ns, self.whole.1),
            });
        };
        self.read += 1;
        let (of, (operations, cpu_ns, gpu_ns)) = (self.growing[at as usize], self.all[at as usize]);
        self.wait_for_children(at, Some(node), depth + 1);
        Some(MarkerNode {
            node,
            parent,
            depth,
            name: self.names.get(of.name as usize).map(Arc::clone),
            ranges: of.ranges,
            operations,
            cpu_ns,
            cpu_own_ns: of.cpu_ns,
            cpu_percent: percent(cpu_ns, self.whole.0),
            gpu_ns,
            gpu_own_ns: of.gpu_ns,
            gpu_percent: percent(gpu_ns, self.whole.1),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.growing.len() + usize::from(self.outside.is_some());
        let left = left - self.read.min(self.growing.len());
        (left, Some(left))
    }
}

impl ExactSizeIterator for MarkerNodes {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_one_and_layers_do_not() {
        let texts = |most: usize| (0..most).flat_map(|n| [format!("step {n}"), format!("layer {}", n % 48)]);
        let mut all: Vec<Box<str>> =
            texts(1000).map(Box::from).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        all.push("aten::mm".into());
        let merged = Merged::of(all.clone(), false);
        assert_eq!((merged.names.len(), merged.alike), (50, 1000));
        assert!(merged.names.iter().any(|name| &**name == "step #"));
        assert_eq!(merged.names[merged.of[all.len() - 1] as usize].as_ref(), "aten::mm");
        let exact = Merged::of(all.clone(), true);
        assert_eq!((exact.names.len(), exact.alike), (all.len(), 0));
    }
}
