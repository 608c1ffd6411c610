//! The rows of one file, by the part of the run that they are in, and what they add up to there.
//!
//! Calls are sorted by thread, links by call, parts by operation, and everything by part: on disk where there is much of it.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use regex::Regex;
use rustc_hash::FxHashMap;

use super::division::Division;
use super::markers::{MarkerNames, family};
use super::shapes::{Contexts, Shapes};
use super::source::{ComparedTrace, ThreadKey};
use super::units::{UnitKind, Units};
use crate::notes::{Notes, look};
use crate::pass::sorted::{Sorted, Sorter};
use crate::report::gpu_time::{GpuOp, LeftOut, OpName, OpTexts, each_op};
use crate::report::overlap::{GpuOverlap, Sweep, work};
use crate::trace::op_kind::OpKind;
use crate::trace::{Strings, has_table};

/// Rows between two looks for a signal.
const LOOK: u64 = 1 << 14;

/// Kept of the durations of a unit's launches on each side.
const LAUNCHES: usize = 256;

/// What ran on a GPU or on a thread in a part of the run; ordered by part, then as [`Sweep`] takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Event {
    part: u32,
    /// 0 of a GPU, 1 of a thread.
    class: u32,
    gpu: i64,
    start: i64,
    end: i64,
    /// Of what was not asked for and only says which iterations are alike, with all bits turned over.
    unit: i64,
}

/// What a unit took in a part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PartTotal {
    pub(super) unit: u32,
    pub(super) part: u32,
    pub(super) count: u64,
    pub(super) total_ns: u64,
}

/// What the GPUs did in a part of a run, or in all of it, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) busy_ns: u64,
    pub(super) idle_ns: u64,
    pub(super) exposed_communication_ns: u64,
    pub(super) exposed_copies_ns: u64,
    /// From the first start to the last end of anything.
    pub(super) wall_ns: u64,
}

impl Spent {
    fn add(&mut self, gpu: &GpuOverlap) {
        for (sum, part) in [
            (&mut self.busy_ns, gpu.busy_ns),
            (&mut self.idle_ns, gpu.idle_ns),
            (&mut self.exposed_communication_ns, gpu.exposed_communication_ns),
            (&mut self.exposed_copies_ns, gpu.exposed_copies_ns),
        ] {
            *sum = sum.saturating_add(part);
        }
    }
}

/// What all files are added up to.
pub(super) struct DiffSums<'a> {
    pub(super) units: Units,
    pub(super) samples: Sorter<PartTotal>,
    pub(super) shapes: Shapes,
    /// Per part what its GPUs did, and its shape; by the number of the part.
    pub(super) spent: FxHashMap<u32, (Spent, u32)>,
    /// Per unit and side durations of some of its launches.
    pub(super) launches: FxHashMap<(u32, usize), Launches>,
    pub(super) communication: &'a Regex,
    pub(super) notes: &'a dyn Notes,
}

/// Durations of launches, of many some that were drawn.
#[derive(Default)]
pub(super) struct Launches {
    pub(super) drawn: Vec<f64>,
    seen: u64,
}

impl Launches {
    fn add(&mut self, ns: u64) {
        self.seen += 1;
        if self.drawn.len() < LAUNCHES {
            self.drawn.push(ns as f64);
            return;
        }
        // Each is as likely to stay; numbers that look random and are the same in every run (splitmix64).
        let mut number = self.seen.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let place = (number ^ (number >> 31)) % self.seen;
        if let Some(kept) = self.drawn.get_mut(place as usize) {
            *kept = ns as f64;
        }
    }
}

/// All operations of a file, whichever part they are in.
pub(super) struct Whole {
    pub(super) spent: Spent,
    pub(super) left_out: LeftOut,
    /// When operations began, or calls where there are no operations, and how many there are.
    pub(super) starts: (Sorter<i64>, u64),
}

impl Whole {
    /// Reads them.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(super) fn of(source: &ComparedTrace<'_>, communication: &Regex) -> Result<Whole> {
        let mut ops = Sorter::new();
        let left_out = each_op(source.trace, &source.selected, "", |op| ops.push(op))?;
        let mut texts = OpTexts::of(source.trace)?;
        let mut works: FxHashMap<OpName, usize> = FxHashMap::default();
        let (mut starts, mut count, mut spent) = (Sorter::new(), 0, Spent::default());
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        let mut ops = ops.sorted()?;
        let mut sweep: Option<Sweep> = None;
        while let Some(op) = ops.next()? {
            let kind = match works.get(&op.name) {
                Some(kind) => *kind,
                None => {
                    let (description, op_type) = texts.description_and_type(op.name)?;
                    let kind = work((&description, &op_type), communication);
                    works.insert(op.name, kind);
                    kind
                }
            };
            if sweep.as_ref().is_some_and(|sweep| sweep.gpu != op.gpu)
                && let Some(sweep) = sweep.take()
            {
                spent.add(&sweep.finished());
            }
            sweep.get_or_insert_with(|| Sweep::from(&op)).begin(&op, kind);
            starts.push(op.start)?;
            count += 1;
            (first, last) = (first.min(op.start), last.max(op.end));
        }
        if let Some(sweep) = sweep {
            spent.add(&sweep.finished());
        }
        let has_ops = count > 0;
        source.each_call(false, |call| {
            if !call.is_asked {
                return Ok(());
            }
            (first, last) = (first.min(call.start), last.max(call.end));
            if has_ops {
                return Ok(());
            }
            count += 1;
            starts.push(call.start)
        })?;
        spent.wall_ns = last.saturating_sub(first).max(0).unsigned_abs();
        Ok(Whole { spent, left_out, starts: (starts, count) })
    }
}

impl DiffSums<'_> {
    /// The shape of a part; that of one in which nothing ran is not among those that are known.
    pub(super) fn shape_of(&self, part: u32) -> u32 {
        self.spent.get(&part).map_or(u32::MAX, |(_, shape)| *shape)
    }

    /// Adds the rows of a file. Says how many calls have times that cannot be.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read, or a signal came.
    pub(super) fn add(
        &mut self,
        source: &ComparedTrace<'_>,
        division: &Division,
        (names, iteration): (&MarkerNames, Option<&str>),
    ) -> Result<u64> {
        let mut events = Sorter::new();
        let (mut calls, impossible) = self.calls(source, division, (names, iteration), &mut events)?;
        let mut parts = match calls.take().filter(|_| division.goes_by_calls()) {
            Some(calls) => Some(parts_of_ops(source, calls)?),
            None => None,
        };
        self.ops(source, division, &mut parts, &mut events)?;
        self.parts(source.side, events.sorted()?)?;
        Ok(impossible)
    }

    /// Reads the calls; what is known of each goes by its row.
    fn calls(
        &mut self,
        source: &ComparedTrace<'_>,
        division: &Division,
        (names, iteration): (&MarkerNames, Option<&str>),
        events: &mut Sorter<Event>,
    ) -> Result<(Option<Sorter<[i64; 2]>>, u64)> {
        let mut functions: FxHashMap<i64, u32> = FxHashMap::default();
        let mut strings = Strings::of(source.trace)?;
        let (mut rows, mut parts, mut read) = (Sorter::new(), Sorter::new(), 0_u64);
        let impossible = source.each_call(false, |call| {
            if read.is_multiple_of(LOOK) {
                self.notes.tick();
                look(self.notes)?;
            }
            read += 1;
            let part = division.of_call(call.thread, call.start);
            let unit = match &call.text {
                _ if !call.is_asked => None,
                Some(text) if Some(family(text).as_ref()) == iteration => None,
                Some(text) => Some(self.units.number(UnitKind::Marker, &names.name(text), 0)),
                None => match functions.get(&call.name) {
                    Some(unit) => Some(*unit),
                    None => {
                        let name = strings.get(call.name)?.unwrap_or_default();
                        let unit = self.units.number(UnitKind::Call, name_or_none(&name), 0);
                        functions.insert(call.name, unit);
                        Some(unit)
                    }
                },
            };
            if call.text.is_none() && division.goes_by_calls() {
                parts.push([call.id, i64::from(part)])?;
            }
            match unit {
                Some(unit) => rows.push(NestedRow {
                    thread: call.thread,
                    start: call.start,
                    not_end: !call.end,
                    part: i64::from(part),
                    unit: i64::from(unit),
                }),
                None => Ok(()),
            }
        })?;
        let mut rows = rows.sorted()?;
        let mut open: Vec<NestedRow> = Vec::new();
        while let Some(row) = rows.next()? {
            while open.last().is_some_and(|last| last.thread != row.thread || !last.not_end <= row.start) {
                open.pop();
            }
            // Of those inside one of the same name the time counts there already.
            let is_counted =
                open.iter().any(|outer| outer.unit == row.unit && !outer.not_end >= !row.not_end);
            let end = if is_counted { row.start } else { !row.not_end };
            let part = u32::try_from(row.part)?;
            events.push(Event { part, class: 1, gpu: 0, start: row.start, end, unit: row.unit })?;
            if open.len() < DEEPEST {
                open.push(row);
            }
        }
        Ok((Some(parts), impossible))
    }

    /// Reads the operations; `parts` has those that calls caused, by their rows.
    fn ops(
        &mut self,
        source: &ComparedTrace<'_>,
        division: &Division,
        parts: &mut Option<Sorted<[i64; 2]>>,
        events: &mut Sorter<Event>,
    ) -> Result<()> {
        let mut texts = OpTexts::of(source.trace)?;
        let mut known: FxHashMap<OpName, u32> = FxHashMap::default();
        let mut next = match parts {
            Some(parts) => parts.next()?,
            None => None,
        };
        let mut read = 0_u64;
        each_op(source.trace, &source.alike, "ORDER BY id", |op| {
            if read.is_multiple_of(LOOK) {
                self.notes.tick();
                look(self.notes)?;
            }
            read += 1;
            let mut part = None;
            while let (Some(parts), Some([id, of_call])) = (parts.as_mut(), next)
                && id <= op.id
            {
                if id == op.id && part.is_none() {
                    part = Some(u32::try_from(of_call)?);
                }
                next = parts.next()?;
            }
            let unit = match known.get(&op.name) {
                Some(unit) => *unit,
                None => {
                    let (description, op_type) = texts.description_and_type(op.name)?;
                    let kind = match OpKind::of(&op_type) {
                        OpKind::Copy | OpKind::Fill => UnitKind::Copy,
                        OpKind::Kernel | OpKind::Other => UnitKind::Kernel,
                    };
                    let work = work((&description, &op_type), self.communication);
                    let unit = self.units.number(kind, &texts.name(op.name)?, work);
                    known.insert(op.name, unit);
                    unit
                }
            };
            let part = part.unwrap_or_else(|| division.at(op.start));
            events.push(Event {
                part,
                class: 0,
                gpu: op.gpu,
                start: op.start,
                end: op.end,
                unit: if source.selected.has_op(op.id) { i64::from(unit) } else { !i64::from(unit) },
            })
        })?;
        Ok(())
    }

    /// Adds up the events of each part.
    fn parts(&mut self, side: usize, mut events: Sorted<Event>) -> Result<()> {
        let mut next = events.next()?;
        while let Some(first) = next {
            let mut totals: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
            let mut launched: FxHashMap<u32, u64> = FxHashMap::default();
            let (mut spent, mut contexts) = (Spent::default(), Contexts::default());
            let mut sweep: Option<Sweep> = None;
            while let Some(event) = next.filter(|event| event.part == first.part) {
                next = events.next()?;
                let is_asked = event.unit >= 0;
                let unit = u32::try_from(if is_asked { event.unit } else { !event.unit })?;
                let of = self.units.get(unit);
                if of.kind == UnitKind::Kernel {
                    contexts.next(unit);
                    *launched.entry(unit).or_default() += 1;
                }
                if !is_asked {
                    continue;
                }
                let duration = event.end.abs_diff(event.start);
                let (count, total) = totals.entry(unit).or_default();
                *count += 1;
                *total = total.saturating_add(duration);
                if event.class == 1 {
                    continue;
                }
                let op = GpuOp {
                    gpu: event.gpu,
                    start: event.start,
                    end: event.end,
                    id: 0,
                    queue: 0,
                    name: OpName::zeroed(),
                };
                if sweep.as_ref().is_some_and(|sweep| sweep.gpu != op.gpu)
                    && let Some(sweep) = sweep.take()
                {
                    spent.add(&sweep.finished());
                }
                sweep.get_or_insert_with(|| Sweep::from(&op)).begin(&op, of.work);
                if of.kind == UnitKind::Kernel {
                    self.launches.entry((unit, side)).or_default().add(duration);
                }
            }
            if let Some(sweep) = sweep {
                spent.add(&sweep.finished());
            }
            let mut launched: Vec<(u32, u64)> = launched.into_iter().collect();
            launched.sort_unstable();
            let shape = self.shapes.number(launched, side, contexts);
            self.spent.insert(first.part, (spent, shape));
            for (unit, (count, total_ns)) in totals {
                self.samples.push(PartTotal { unit, part: first.part, count, total_ns })?;
            }
        }
        Ok(())
    }
}

/// Open calls that are looked at: deeper ones count as if they were in none.
const DEEPEST: usize = 256;

/// A call or marker; ordered as a stack takes them, thread after thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct NestedRow {
    thread: ThreadKey,
    start: i64,
    /// The end with all bits turned over.
    not_end: i64,
    part: i64,
    unit: i64,
}

fn name_or_none(name: &str) -> &str {
    if name.is_empty() { "(no name in the file)" } else { name }
}

/// By operation the part of the call that caused it.
fn parts_of_ops(source: &ComparedTrace<'_>, calls: Sorter<[i64; 2]>) -> Result<Sorted<[i64; 2]>> {
    let (mut links, mut found) = (Sorter::new(), Sorter::new());
    if has_table(source.trace, "rocpd_api_ops")? {
        let mut rows = source.trace.prepare("SELECT api_id, op_id FROM rocpd_api_ops")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            if let (Ok(call), Ok(op)) = (row.get_ref(0)?.as_i64(), row.get_ref(1)?.as_i64()) {
                links.push([call, op])?;
            }
        }
    }
    let (mut links, mut calls) = (links.sorted()?, calls.sorted()?);
    let mut call = calls.next()?;
    while let Some([of, op]) = links.next()? {
        while call.is_some_and(|[id, _]| id < of) {
            call = calls.next()?;
        }
        if let Some([id, part]) = call
            && id == of
        {
            found.push([op, part])?;
        }
    }
    found.sorted()
}
