//! The ranges of each thread as a stack, with the time of the CPU and the GPU in each, with and without those inside it.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap;

use super::texts::{KeyFinder, MarkerKeys, RangeName};
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::pass::parts::Key;
use crate::pass::sorted::Sorter;
use crate::region::Selected;
use crate::report::caused::CausedOps;
use crate::report::gpu_time::LeftOut;
use crate::report::rank_by::RankBy;

/// The path of what is in no range.
pub(super) const ROOT: Key = [0, 0];

/// What is added up.
pub(super) trait Ranges {
    /// A range begins.
    fn begin(&mut self, _range: &OpenRange) {}

    /// One ends, inside of another or of none.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    fn end(&mut self, range: &OpenRange, around: Option<&OpenRange>) -> Result<()>;

    /// An operation, by its id, was launched in a range or in none.
    ///
    /// # Errors
    /// As [`Ranges::end`].
    fn launch(&mut self, _op: i64, _range: Option<&OpenRange>) -> Result<()> {
        Ok(())
    }
}

/// Operations, and the time of the CPU and the GPU, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Times {
    pub(super) operations: u64,
    pub(super) cpu_ns: u64,
    pub(super) gpu_ns: u64,
}

impl Times {
    pub(super) fn add(&mut self, more: Times) {
        self.operations += more.operations;
        self.cpu_ns += more.cpu_ns;
        self.gpu_ns += more.gpu_ns;
    }
}

/// A range that is open, or that ends.
pub(super) struct OpenRange {
    /// The key of its name and of those of all ranges around it.
    pub(super) path: Key,
    /// The key of its name.
    pub(super) key: Key,
    pub(super) name: RangeName,
    end: i64,
    /// Without ranges inside.
    pub(super) own: Times,
    /// Of those that were inside and have ended.
    inside: Times,
}

impl OpenRange {
    /// With ranges inside.
    pub(super) fn all(&self) -> Times {
        let mut all = self.own;
        all.add(self.inside);
        all
    }
}

/// What was walked, and what could not be counted.
pub(super) struct Walked {
    pub(super) span_ns: u64,
    pub(super) threads: u64,
    pub(super) gpus: u64,
    pub(super) impossible: u64,
    pub(super) cut: u64,
    pub(super) alike: u64,
    pub(super) left_out: LeftOut,
    /// What was launched in no range.
    pub(super) outside: Times,
}

/// A range, or an operation that was launched; ordered as a stack takes them, thread after thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Event {
    /// By a number of its own.
    thread: i64,
    start: i64,
    /// For a range: the end with all bits turned over, so that of two with one start the longer one is first. For a launch: [`LAUNCH`].
    not_end: i64,
    id: i64,
    /// For a launch: GPU time, ns.
    gpu_ns: i64,
    /// Of a range.
    keys: MarkerKeys,
}

/// A launch is inside of what begins at the same time. No range has this end.
const LAUNCH: i64 = i64::MAX;

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

/// The numbers of threads: process, its id, and thread.
#[derive(Default)]
struct Threads(FxHashMap<[i64; 3], i64>);

impl Threads {
    fn number(&mut self, thread: [i64; 3]) -> i64 {
        let next = self.0.len() as i64;
        *self.0.entry(thread).or_insert(next)
    }
}

/// Shows `ranges` the markers of a part of a trace, and the operations of it. Texts that are `exact` are told apart in any case; their keys
/// are the `hasher`'s.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, and those of `ranges`.
pub(super) fn walk<R: Ranges>(
    (trace, version): (&Connection, Version),
    selected: &Selected,
    (exact, hasher): (bool, &RandomState),
    ranges: &mut R,
) -> Result<Walked> {
    let mut events = Sorter::new();
    let mut extent = Extent(i64::MAX, i64::MIN);
    let mut outside = Times::default();
    let ops = CausedOps::of(trace, selected)?;
    let left_out = ops.left_out;
    let (mut numbers, mut gpus) = (Threads::default(), HashSet::new());
    ops.each(|op, call| {
        gpus.insert(op.gpu);
        extent.add((op.start, op.end));
        match call.and_then(|call| Some((call.thread, call.times?))) {
            None => {
                outside.add(Times { operations: 1, cpu_ns: 0, gpu_ns: op.uncovered.unsigned_abs() });
                ranges.launch(op.id, None)
            }
            Some(((process, pid, tid), (start, _))) => events.push(Event {
                thread: numbers.number([process, pid, tid]),
                start,
                not_end: LAUNCH,
                id: op.id,
                gpu_ns: op.uncovered,
                keys: MarkerKeys::zeroed(),
            }),
        }
    })?;
    let mut keys = KeyFinder::of((trace, version), exact, hasher)?;
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
        let thread = numbers.number([processes.of_row(id), number(5)?, number(6)?]);
        threads.insert(thread);
        let keys = keys.keys((number(2)?, number(3)?))?;
        events.push(Event { thread, start: times.0, not_end: !times.1, id, gpu_ns: 0, keys })?;
    }
    let families = keys.families()?;
    let mut events = events.sorted()?;
    let mut stack = Stack { ranges, hasher, open: Vec::new(), now: i64::MIN, outside, cut: 0 };
    let mut thread = None;
    while let Some(event) = events.next()? {
        if thread.is_some_and(|thread| thread != event.thread) {
            stack.end_thread()?;
        }
        thread = Some(event.thread);
        if event.not_end == LAUNCH {
            stack.launch(event.start, event.id, event.gpu_ns.unsigned_abs())?;
        } else {
            stack.begin((event.start, !event.not_end), families.name(&event.keys))?;
        }
    }
    stack.end_thread()?;
    let Stack { outside, cut, .. } = stack;
    Ok(Walked {
        span_ns: extent.ns(),
        threads: threads.len() as u64,
        gpus: gpus.len() as u64,
        impossible,
        cut,
        alike: families.texts,
        left_out,
        outside,
    })
}

/// The ranges that are open on a thread, outermost first.
struct Stack<'a, R> {
    ranges: &'a mut R,
    hasher: &'a RandomState,
    open: Vec<OpenRange>,
    now: i64,
    outside: Times,
    cut: u64,
}

impl<R: Ranges> Stack<'_, R> {
    /// Gives the time up to `time` to the innermost open ranges.
    fn advance(&mut self, time: i64) -> Result<()> {
        while let Some(range) = self.open.last_mut() {
            let until = range.end.min(time);
            if until > self.now {
                range.own.cpu_ns += until.abs_diff(self.now);
                self.now = until;
            }
            if range.end > time {
                break;
            }
            self.end()?;
        }
        self.now = time;
        Ok(())
    }

    /// Ends the innermost range.
    fn end(&mut self) -> Result<()> {
        let Some(range) = self.open.pop() else { return Ok(()) };
        if let Some(around) = self.open.last_mut() {
            around.inside.add(range.all());
        }
        self.ranges.end(&range, self.open.last())
    }

    fn begin(&mut self, (start, end): (i64, i64), (key, name): (Key, RangeName)) -> Result<()> {
        self.advance(start)?;
        // Those that end earlier have no time any more: all of it is this one's.
        while self.open.last().is_some_and(|range| range.end < end) {
            self.end()?;
            self.cut += 1;
        }
        let around = self.open.last().map_or(ROOT, |range| range.path);
        let path = [0, 1].map(|half| self.hasher.hash_one((half, around, key)));
        let range = OpenRange { path, key, name, end, own: Times::default(), inside: Times::default() };
        self.ranges.begin(&range);
        self.open.push(range);
        Ok(())
    }

    fn launch(&mut self, time: i64, op: i64, gpu_ns: u64) -> Result<()> {
        self.advance(time)?;
        let of = self.open.last_mut().map_or(&mut self.outside, |range| &mut range.own);
        of.add(Times { operations: 1, cpu_ns: 0, gpu_ns });
        self.ranges.launch(op, self.open.last())
    }

    fn end_thread(&mut self) -> Result<()> {
        self.advance(i64::MAX)?;
        self.now = i64::MIN;
        Ok(())
    }
}
