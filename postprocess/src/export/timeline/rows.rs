//! The rows of a trace, as they are written: calls thread after thread, operations queue after queue, each in order of time.
//!
//! Three scans in the order of ids (`scan.rs`) and sorts on disk: links by call meet the calls, what is known of a call then goes by operation and
//! meets the operations. Nothing is looked up row by row.

use std::thread;

use anyhow::{Result, anyhow};
use bytemuck::{Pod, Zeroable};
use rpd_schema::Processes;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::Exported;
use super::events::Arrow;
use super::scan::{Arriving, ScannedRows};
use super::tracks::Tracks;
use crate::check::outlier::{DAY, Outliers};
use crate::check::rule::are_sound;
use crate::notes::{Notes, RowCount};
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;

/// Gives a record the order of a key of it.
macro_rules! ordered {
    ($record:ty, $key:expr) => {
        impl Ord for $record {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                let key = $key;
                key(self).cmp(&key(other))
            }
        }

        impl PartialOrd for $record {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $record {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other) == std::cmp::Ordering::Equal
            }
        }

        impl Eq for $record {}
    };
}
pub(super) use ordered;

/// Where a call stands: its thread, begin, turned-over end and id. Of two that begin together the longer one comes first.
pub(super) type CallKey = (u32, i64, i64, i64);

/// A call or marker.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct CallRecord {
    /// Number of the thread in [`Tracks`].
    pub(super) thread: u32,
    /// 1 if it is not in the region: a marker that names what is.
    pub(super) is_hidden: u32,
    start: i64,
    not_end: i64,
    /// Row of rocpd_api.
    pub(super) id: i64,
    /// Text of the function.
    pub(super) name: i64,
    /// Text of the arguments.
    pub(super) arguments: i64,
}

ordered!(CallRecord, CallRecord::key);

impl CallRecord {
    pub(super) fn key(&self) -> CallKey {
        (self.thread, self.start, self.not_end, self.id)
    }

    /// Begin and end, ns.
    pub(super) fn times(&self) -> (i64, i64) {
        (self.start, !self.not_end)
    }
}

/// An operation by the call that caused it, in the order of the calls.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct LaunchedOp {
    thread: u32,
    /// Number of the queue in [`Tracks`].
    pub(super) queue: u32,
    start: i64,
    not_end: i64,
    call: i64,
    /// Begin and end of the operation, ns.
    pub(super) op_start: i64,
    pub(super) op_end: i64,
    /// Row of rocpd_api_ops: number of the arrow.
    pub(super) link: i64,
}

ordered!(LaunchedOp, |op: &LaunchedOp| (op.key(), op.op_start, op.op_end, op.link));

impl LaunchedOp {
    /// Of the call.
    pub(super) fn key(&self) -> CallKey {
        (self.thread, self.start, self.not_end, self.call)
    }
}

/// In place of a thread: no call is known.
const NO_THREAD: u32 = u32::MAX;

/// In place of a thread: the record before has the operation, this one a further arrow to it.
const FURTHER: u32 = u32::MAX - 1;

/// In place of a link: there is none.
const NO_LINK: i64 = i64::MIN;

/// An operation.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct OpRecord {
    /// Number of the queue in [`Tracks`].
    pub(super) queue: u32,
    /// Number of the thread of the call that caused it, or one of the two above.
    thread: u32,
    start: i64,
    not_end: i64,
    /// Row of rocpd_op.
    pub(super) id: i64,
    link: i64,
    call: i64,
    /// Text of its name, which may be empty.
    pub(super) name: i64,
    /// Text of its type.
    pub(super) op_type: i64,
}

ordered!(OpRecord, |op: &OpRecord| (op.queue, op.start, op.not_end, op.id, op.link));

impl OpRecord {
    /// Begin and end, ns.
    pub(super) fn times(&self) -> (i64, i64) {
        (self.start, !self.not_end)
    }

    /// Whether it only has a further arrow to the operation before it.
    pub(super) fn is_further(&self) -> bool {
        self.thread == FURTHER
    }

    /// The arrow to it.
    pub(super) fn arrow(&self) -> Option<Arrow> {
        (self.link != NO_LINK).then_some(Arrow { link: self.link, call: self.call })
    }

    /// The call that caused it, with its thread.
    pub(super) fn call(&self) -> Option<(i64, u32)> {
        (self.thread != NO_THREAD).then_some((self.call, self.thread))
    }
}

/// One more or less in the queues of a GPU.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct DepthChange {
    /// Number of the GPU in [`Tracks`].
    pub(super) gpu: u32,
    /// 1 or -1.
    pub(super) change: i32,
    pub(super) time: i64,
}

ordered!(DepthChange, |change: &DepthChange| (change.gpu, change.time, change.change));

/// A link with what is known of its call, ordered by operation: operation, link, call, thread, start, turned-over end.
type LinkedCall = [i64; 6];

/// What is written of a trace.
pub(super) struct Rows {
    pub(super) calls: Sorted<CallRecord>,
    pub(super) launched: Sorted<LaunchedOp>,
    pub(super) ops: Sorted<OpRecord>,
    pub(super) depths: Sorted<DepthChange>,
    pub(super) tracks: Tracks,
    /// First begin in the trace, ns, whatever the region is; 0 where there is none.
    pub(super) first_ns: i64,
    /// Last end in the region.
    pub(super) last_ns: i64,
    /// What sensors read before or after this is far from all calls and operations.
    pub(super) sensed: (i64, i64),
    pub(super) exported: Exported,
}

impl Rows {
    /// Sorts what was `scanned`. GPU 0 has the number `first_gpu`.
    ///
    /// # Errors
    /// When the trace or a temporary file fails, or a signal came.
    pub(super) fn of(
        trace: &Connection,
        selected: &Selected,
        first_gpu: i64,
        scanned: ScannedRows,
        notes: &dyn Notes,
    ) -> Result<Rows> {
        let ScannedRows { links, calls, ops, sensors } = scanned;
        thread::scope(|scope| {
            let links = scope.spawn(|| sorted(links));
            let mut scan = Scan {
                trace,
                selected,
                rows: RowCount::new(notes, "calls and operations read"),
                tracks: Tracks::of(trace, first_gpu)?,
                outliers: Outliers::of(trace)?,
                span: (i64::MAX, i64::MIN),
                last_ns: i64::MIN,
                exported: Exported::default(),
            };
            let failed = |_| anyhow!("the rows could not be sorted");
            let (calls, linked) = scan.calls(links.join().map_err(failed)??, calls)?;
            let calls = scope.spawn(|| calls.sorted());
            let (ops, launched, depths) = scan.ops(ops, linked)?;
            let others = scope.spawn(|| -> Result<_> { Ok((launched.sorted()?, depths.sorted()?)) });
            let sensed = match scan.span {
                (first, last) if first <= last => (first.saturating_sub(DAY), last.saturating_add(DAY)),
                _ => (i64::MIN, i64::MAX),
            };
            for [start, end] in sensors {
                let is_near = |time: &i64| (sensed.0..=sensed.1).contains(time);
                scan.times(start.filter(is_near), end.filter(is_near))?;
            }
            scan.tracks.arrange();
            notes.show("sorting");
            let ops = ops.sorted()?;
            let (launched, depths) = others.join().map_err(failed)??;
            let calls = calls.join().map_err(failed)??;
            let Scan { tracks, span: (first, _), last_ns, exported, .. } = scan;
            let first_ns = if first == i64::MAX { 0 } else { first };
            Ok(Rows { calls, launched, ops, depths, tracks, first_ns, last_ns, sensed, exported })
        })
    }
}

/// The scans, and what they find.
struct Scan<'a> {
    trace: &'a Connection,
    selected: &'a Selected,
    rows: RowCount<'a>,
    tracks: Tracks,
    outliers: Outliers,
    /// First begin and last end, whatever the region is.
    span: (i64, i64),
    /// Last end in the region.
    last_ns: i64,
    exported: Exported,
}

impl Scan<'_> {
    /// Begin and end of a row, if they can be.
    fn times(&mut self, start: Option<i64>, end: Option<i64>) -> Result<Option<(i64, i64)>> {
        let Some(times) = start.zip(end).filter(|times| are_sound(*times)) else { return Ok(None) };
        if self.outliers.is_outlier(self.trace, times)? {
            return Ok(None);
        }
        self.span = (self.span.0.min(times.0), self.span.1.max(times.1));
        Ok(Some(times))
    }

    fn calls(
        &mut self,
        mut links: Sorted<[i64; 3]>,
        rows: Arriving<7>,
    ) -> Result<(Sorter<CallRecord>, Sorter<LinkedCall>)> {
        let (mut calls, mut linked) = (Sorter::new(), Sorter::new());
        let mut link = links.next()?;
        let processes = Processes::of(self.trace)?;
        let mut markers = Markers::of(self.trace)?;
        for [id, pid, tid, start, end, name, arguments] in rows {
            self.rows.step()?;
            let (Some(id), Some(pid), Some(tid), Some((start, end))) =
                (id, pid, tid, self.times(start, end)?)
            else {
                self.exported.impossible += 1;
                continue;
            };
            let (name, arguments) = (name.unwrap_or(-1), arguments.unwrap_or(-1));
            let is_selected = self.selected.has_call(id);
            // Markers around the region name what is in it.
            if !is_selected && !markers.has(name)? {
                continue;
            }
            let thread = self.tracks.thread(processes.of_row(id), pid, tid);
            if is_selected {
                self.tracks.show(thread);
                self.exported.calls += 1;
                self.last_ns = self.last_ns.max(end);
            }
            let is_hidden = u32::from(!is_selected);
            calls.push(CallRecord { thread, is_hidden, start, not_end: !end, id, name, arguments })?;
            while let Some([call, row, op]) = link.filter(|[call, ..]| *call <= id) {
                if call == id && is_selected {
                    linked.push([op, row, call, i64::from(thread), start, !end])?;
                }
                link = links.next()?;
            }
        }
        Ok((calls, linked))
    }

    fn ops(
        &mut self,
        rows: Arriving<7>,
        linked: Sorter<LinkedCall>,
    ) -> Result<(Sorter<OpRecord>, Sorter<LaunchedOp>, Sorter<DepthChange>)> {
        let (mut ops, mut launched, mut depths) = (Sorter::new(), Sorter::new(), Sorter::new());
        let mut linked = linked.sorted()?;
        let mut link = linked.next()?;
        for [id, gpu, queue, start, end, name, op_type] in rows {
            self.rows.step()?;
            let (Some(id), Some(gpu), Some(queue), Some((start, end))) =
                (id, gpu, queue, self.times(start, end)?)
            else {
                self.exported.impossible += 1;
                continue;
            };
            if !self.selected.has_op(id) {
                continue;
            }
            self.exported.ops += 1;
            self.last_ns = self.last_ns.max(end);
            let queue = self.tracks.gpus.queue(gpu, queue);
            let gpu = u32::try_from(self.tracks.gpus.gpu_of(queue))?;
            let mut op = OpRecord {
                queue,
                thread: NO_THREAD,
                start,
                not_end: !end,
                id,
                link: NO_LINK,
                call: 0,
                name: name.unwrap_or(-1),
                op_type: op_type.unwrap_or(-1),
            };
            let mut is_first = true;
            while let Some([of, row, call, thread, call_start, call_not_end]) =
                link.filter(|[op, ..]| *op <= id)
            {
                link = linked.next()?;
                if of < id {
                    continue;
                }
                let thread = u32::try_from(thread)?;
                op = OpRecord { thread: if is_first { thread } else { FURTHER }, link: row, call, ..op };
                is_first = false;
                ops.push(op)?;
                launched.push(LaunchedOp {
                    thread,
                    queue,
                    start: call_start,
                    not_end: call_not_end,
                    call,
                    op_start: start,
                    op_end: end,
                    link: row,
                })?;
                // From the launch to the end. Where clocks disagree an op may have ended before its launch: it never waited then.
                if call_start <= end {
                    depths.push(DepthChange { gpu, change: 1, time: call_start })?;
                    depths.push(DepthChange { gpu, change: -1, time: end })?;
                }
            }
            if is_first {
                ops.push(op)?;
            }
        }
        Ok((ops, launched, depths))
    }
}

/// Links by call: call, row, operation.
fn sorted(links: Arriving<3>) -> Result<Sorted<[i64; 3]>> {
    let mut sorter = Sorter::new();
    for link in links {
        if let [Some(call), Some(link), Some(op)] = link {
            sorter.push([call, link, op])?;
        }
    }
    sorter.sorted()
}

/// Which names of functions are those of markers.
struct Markers<'trace> {
    names: rusqlite::Statement<'trace>,
    known: FxHashMap<i64, bool>,
}

impl Markers<'_> {
    fn of(trace: &Connection) -> rusqlite::Result<Markers<'_>> {
        let names = trace
            .prepare("SELECT EXISTS (SELECT 1 FROM rocpd_string WHERE id = ?1 AND string = 'UserMarker')")?;
        Ok(Markers { names, known: FxHashMap::default() })
    }

    fn has(&mut self, name: i64) -> rusqlite::Result<bool> {
        if let Some(is_marker) = self.known.get(&name) {
            return Ok(*is_marker);
        }
        let is_marker = self.names.query_row([name], |row| row.get(0))?;
        self.known.insert(name, is_marker);
        Ok(is_marker)
    }
}
