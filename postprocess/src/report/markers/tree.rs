//! The tree of ranges: sums by path, and the order in which they are shown.
//!
//! The path of a range is a key made of its name's and of the path around it. Sums are added up by path, sorted so that the nodes of one
//! parent are beside each other, and sorted again in the order of the tree. Memory has a number for each node alone: four bytes.

use std::sync::Arc;
use std::vec;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};

use super::MarkerNode;
use super::ranges::{OpenRange, ROOT, Ranges, Times, Walked};
use super::texts::{RangeName, RangeTexts};
use crate::pass::parts::{Key, Parts, Summand};
use crate::pass::sorted::{Sorted, Sorter};
use crate::trace::ids::Ids;

/// Nodes of one parent and the same times that are put in the order of their names at once.
const SAME_TIMES: usize = 1 << 16;

/// Nodes whose texts are read at once.
const READ: usize = 1 << 8;

/// No place of a node.
const NONE: u32 = u32::MAX;

/// Ranges of one path, or some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct PathSums {
    path: Key,
    around: Key,
    name: RangeName,
    ranges: u64,
    own: Times,
    all: Times,
}

impl Summand for PathSums {
    fn key(&self) -> Key {
        self.path
    }

    fn add(&mut self, more: &PathSums) {
        // Whatever is read first: the same ids name it.
        self.name = self.name.min(more.name);
        self.ranges += more.ranges;
        self.own.add(more.own);
        self.all.add(more.all);
    }
}

/// A path; those of one parent are beside each other, the ones with the most time first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Node {
    around: Key,
    not_gpu_ns: u64,
    not_cpu_ns: u64,
    name: RangeName,
    path: Key,
    ranges: u64,
    operations: u64,
    own: Times,
}

impl Node {
    fn of(sums: &PathSums) -> Node {
        Node {
            around: sums.around,
            not_gpu_ns: !sums.all.gpu_ns,
            not_cpu_ns: !sums.all.cpu_ns,
            name: sums.name,
            path: sums.path,
            ranges: sums.ranges,
            operations: sums.all.operations,
            own: sums.own,
        }
    }

    fn has_times_of(&self, other: &Node) -> bool {
        (self.around, self.not_gpu_ns, self.not_cpu_ns) == (other.around, other.not_gpu_ns, other.not_cpu_ns)
    }
}

/// Adds ranges up by path. `L` is told of each operation, by its id, in which path it was launched; [`ROOT`] for none.
pub(super) struct PathAdder<L> {
    parts: Parts<PathSums>,
    launched: L,
}

impl<L: FnMut(i64, Key) -> Result<()>> PathAdder<L> {
    pub(super) fn new(launched: L) -> PathAdder<L> {
        PathAdder { parts: Parts::new(), launched }
    }

    /// The nodes of what was added up.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(super) fn nodes<'trace>(
        self,
        mut texts: RangeTexts<'trace>,
        walked: &Walked,
    ) -> Result<MarkerNodes<'trace>> {
        let (mut sums, mut nodes) = (self.parts.sums()?, Sorter::new());
        while let Some(path) = sums.next()? {
            nodes.push(Node::of(&path))?;
        }
        drop(sums);
        let reading = texts.reading()?;
        let (placed, places, count) = placed(nodes.sorted()?, &mut texts)?;
        drop(reading);
        let nodes = in_order(placed, places, count)?;
        let span = walked.span_ns as f64;
        Ok(MarkerNodes {
            nodes,
            around: Vec::new(),
            texts,
            found: 0,
            read: Vec::new().into_iter(),
            count: usize::try_from(count)? + usize::from(walked.outside.operations > 0),
            outside: walked.outside,
            whole: (span * walked.threads as f64, span * walked.gpus as f64),
        })
    }
}

impl<L: FnMut(i64, Key) -> Result<()>> Ranges for PathAdder<L> {
    fn end(&mut self, range: &OpenRange, around: Option<&OpenRange>) -> Result<()> {
        self.parts.add(PathSums {
            path: range.path,
            around: around.map_or(ROOT, |around| around.path),
            name: range.name,
            ranges: 1,
            own: range.own,
            all: range.all(),
        })
    }

    fn launch(&mut self, op: i64, range: Option<&OpenRange>) -> Result<()> {
        (self.launched)(op, range.map_or(ROOT, |range| range.path))
    }
}

/// A node with its place: first among those of its parent, then among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Placed {
    place: u64,
    node: Node,
}

/// Nodes beside those of the same parent, in the order in which they are shown; the place of each path; and how many there are.
fn placed(
    mut nodes: Sorted<Node>,
    texts: &mut RangeTexts<'_>,
) -> Result<(Sorter<Placed>, Sorted<[u64; 3]>, u64)> {
    let (mut placed, mut places) = (Sorter::new(), Sorter::new());
    let (mut place, mut next) = (0, nodes.next()?);
    while let Some(node) = next {
        let mut alike = nodes.group(&mut next, SAME_TIMES, |other| other.has_times_of(&node))?;
        if alike.len() > 1 {
            let named = alike.into_iter().map(|node| Ok((texts.get(node.name)?, node)));
            let mut named: Vec<(Arc<str>, Node)> = named.collect::<Result<_>>()?;
            named.sort_by(|(one, _), (other, _)| one.cmp(other));
            alike = named.into_iter().map(|(_, node)| node).collect();
        }
        for node in alike {
            let [first, second] = node.path;
            places.push([first, second, place])?;
            placed.push(Placed { place, node })?;
            place += 1;
        }
    }
    Ok((placed, places.sorted()?, place))
}

/// Nodes in the order of the tree, parents before their children.
fn in_order(placed: Sorter<Placed>, mut places: Sorted<[u64; 3]>, count: u64) -> Result<Sorted<Placed>> {
    let (mut nodes, mut again) = placed.sorted_twice()?;
    // Of each node the place of its first child, until it has its number in the tree.
    let mut numbers = vec![NONE; usize::try_from(count)?];
    let mut last_of_parents = Ids::default();
    let (mut levels, mut around, mut parent) = (Vec::new(), None, places.next()?);
    while let Some(Placed { place, node }) = nodes.next()? {
        if around == Some(node.around) {
            continue;
        }
        around = Some(node.around);
        last_of_parents.add(place.cast_signed() - 1);
        let first = u32::try_from(place)?;
        // Parents are in the order of their paths.
        while parent.is_some_and(|[first, second, _]| [first, second] < node.around) {
            parent = places.next()?;
        }
        match parent.filter(|[first, second, _]| [*first, *second] == node.around) {
            Some([.., parent]) => numbers[parent as usize] = first,
            None => levels.push(first),
        }
    }
    last_of_parents.add(count.cast_signed() - 1);
    let mut number = 0;
    while let Some(level) = levels.last_mut() {
        let place = *level;
        *level += 1;
        if last_of_parents.has(place.into()) {
            levels.pop();
        }
        let child = std::mem::replace(&mut numbers[place as usize], number);
        levels.extend(Some(child).filter(|child| *child != NONE));
        number += 1;
    }
    let mut ordered = Sorter::new();
    while let Some(Placed { place, node }) = again.next()? {
        ordered.push(Placed { place: numbers[place as usize].into(), node })?;
    }
    ordered.sorted()
}

/// Nodes: parents before their children, and of one parent those with the most time first; the last one is what is in no marker, if there
/// is any.
pub struct MarkerNodes<'trace> {
    nodes: Sorted<Placed>,
    /// Those around the node that was read last, and that node.
    around: Vec<Around>,
    texts: RangeTexts<'trace>,
    /// How many there are.
    pub count: usize,
    /// How many were found.
    found: usize,
    /// Those whose texts were read.
    read: vec::IntoIter<MarkerNode>,
    /// What is in no marker.
    outside: Times,
    /// Time of all threads with markers, and of all GPUs, ns.
    whole: (f64, f64),
}

/// A node that others are inside of.
#[derive(Clone, Copy)]
struct Around {
    path: Key,
    number: usize,
    name: RangeName,
}

/// A node without its text.
struct Found {
    number: usize,
    depth: usize,
    parent: Option<usize>,
    /// None for what is in no marker.
    node: Option<Node>,
}

impl<'trace> MarkerNodes<'trace> {
    fn find(&mut self) -> Result<Option<Found>> {
        let number = self.found;
        if number == self.count {
            return Ok(None);
        }
        self.found += 1;
        let Some(Placed { node, .. }) = self.nodes.next()? else {
            self.around.clear();
            return Ok(Some(Found { number, depth: 0, parent: None, node: None }));
        };
        while self.around.last().is_some_and(|around| around.path != node.around) {
            self.around.pop();
        }
        let (depth, parent) = (self.around.len(), self.around.last().map(|around| around.number));
        self.around.push(Around { path: node.path, number, name: node.name });
        Ok(Some(Found { number, depth, parent, node: Some(node) }))
    }

    fn named(&mut self, found: &Found) -> Result<MarkerNode> {
        let percent = |part: u64, whole: f64| if whole > 0.0 { 100.0 * part as f64 / whole } else { 0.0 };
        let (ranges, own, all) = match found.node {
            Some(Node { not_gpu_ns, not_cpu_ns, ranges, operations, own, .. }) => {
                (ranges, own, Times { operations, cpu_ns: !not_cpu_ns, gpu_ns: !not_gpu_ns })
            }
            None => (0, self.outside, self.outside),
        };
        Ok(MarkerNode {
            node: found.number,
            parent: found.parent,
            depth: found.depth,
            name: found.node.map(|node| self.texts.get(node.name)).transpose()?,
            ranges,
            operations: all.operations,
            cpu_ns: all.cpu_ns,
            cpu_own_ns: own.cpu_ns,
            cpu_percent: percent(all.cpu_ns, self.whole.0),
            gpu_ns: all.gpu_ns,
            gpu_own_ns: own.gpu_ns,
            gpu_percent: percent(all.gpu_ns, self.whole.1),
        })
    }

    /// Reads the next nodes, with their texts.
    fn read_some(&mut self) -> Result<()> {
        let _reading = self.texts.reading()?;
        let mut read = Vec::with_capacity(READ);
        while read.len() < READ
            && let Some(found) = self.find()?
        {
            read.push(self.named(&found)?);
        }
        self.read = read.into_iter();
        Ok(())
    }

    /// The nodes, each with its path; [`ROOT`] for what is in no marker.
    pub(in crate::report) fn with_paths(mut self) -> impl Iterator<Item = Result<(Key, MarkerNode)>> {
        let mut read = move || {
            let Some(found) = self.find()? else { return Ok(None) };
            Ok(Some((found.node.map_or(ROOT, |node| node.path), self.named(&found)?)))
        };
        std::iter::from_fn(move || read().transpose())
    }

    /// The nodes with the most time first, each with the text of its parent.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub fn longest_first(
        mut self,
    ) -> Result<impl Iterator<Item = Result<(MarkerNode, Option<Arc<str>>)>> + use<'trace>> {
        let mut sorter = Sorter::new();
        while let Some(Found { number, depth, parent, node }) = self.find()? {
            let around = parent.and_then(|_| self.around.iter().nth_back(1));
            sorter.push(Ordered {
                times: node.map_or([!self.outside.gpu_ns, !0], |node| [node.not_gpu_ns, node.not_cpu_ns]),
                number: number as u64,
                depth: depth as u64,
                parent: parent.map_or(u64::MAX, |parent| parent as u64),
                around: around.map_or(RangeName::zeroed(), |around| around.name),
                is_outside: u64::from(node.is_none()),
                node: node.unwrap_or(Node::zeroed()),
            })?;
        }
        let mut sorted = sorter.sorted()?;
        let mut read = move || {
            let Some(next) = sorted.next()? else { return Ok(None) };
            let found = Found {
                number: next.number as usize,
                depth: next.depth as usize,
                parent: Some(next.parent as usize).filter(|_| next.parent != u64::MAX),
                node: Some(next.node).filter(|_| next.is_outside == 0),
            };
            let around = found.parent.map(|_| self.texts.get(next.around)).transpose()?;
            Ok(Some((self.named(&found)?, around)))
        };
        Ok(std::iter::from_fn(move || read().transpose()))
    }
}

impl Iterator for MarkerNodes<'_> {
    type Item = Result<MarkerNode>;

    fn next(&mut self) -> Option<Result<MarkerNode>> {
        if self.read.as_slice().is_empty()
            && let Err(error) = self.read_some()
        {
            return Some(Err(error));
        }
        self.read.next().map(Ok)
    }
}

/// A node in the order of times, then in that of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Ordered {
    /// Of the GPU and the CPU, with all bits turned over.
    times: [u64; 2],
    number: u64,
    depth: u64,
    /// Its number; the largest there is for none.
    parent: u64,
    /// The name of the parent.
    around: RangeName,
    is_outside: u64,
    node: Node,
}
