//! Operations that a few threads launched, each thread in a span of time.
//!
//! Only the calls, links and operations that may be among them are sorted. [`super::caused`] has all of a trace.

use std::collections::HashMap;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::Processes;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::gpu_time::{GpuOp, LeftOut, each_sound_op};
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;
use crate::trace::has_table;
use crate::trace::ids::Ids;

/// Process, its id, and thread: ids alone may be equal.
pub(super) type Thread = [i64; 3];

/// An operation this far from its call, ns, may be far from all others.
const HALF_A_DAY: u64 = 43_200_000_000_000;

/// Threads, each with a stretch of time.
#[derive(Default)]
pub(super) struct Threads {
    numbers: HashMap<Thread, usize>,
    /// Thread, first and last moment.
    all: Vec<(Thread, (i64, i64))>,
}

impl Threads {
    /// Makes a thread's stretch of time reach over these times.
    pub(super) fn add(&mut self, thread: Thread, (start, end): (i64, i64)) {
        let number = *self.numbers.entry(thread).or_insert(self.all.len());
        if number == self.all.len() {
            self.all.push((thread, (start, end)));
        }
        let (first, last) = self.all[number].1;
        self.all[number].1 = (first.min(start), last.max(end));
    }

    /// The number of a thread that has this moment in its stretch of time.
    fn at(&self, thread: Thread, moment: i64) -> Option<usize> {
        let number = *self.numbers.get(&thread)?;
        let (first, last) = self.all[number].1;
        (first <= moment && moment <= last).then_some(number)
    }

    /// From the first moment of all to the last.
    fn hull(&self) -> (i64, i64) {
        let all = self.all.iter().map(|(_, times)| times);
        all.fold((i64::MAX, i64::MIN), |hull, times| (hull.0.min(times.0), hull.1.max(times.1)))
    }
}

/// A call of the threads; ordered by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Call {
    id: i64,
    thread: u64,
    start: i64,
}

/// A call that an operation is linked to; ordered by operation, then by call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Link {
    op: i64,
    call: i64,
    /// [`OTHER`] of a call that is none of those asked for.
    thread: u64,
    start: i64,
}

/// No thread of those that are asked for.
const OTHER: u64 = u64::MAX;

/// The call that launched an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchingCall {
    pub(super) thread: Thread,
    pub(super) start: i64,
}

/// The operations that may be among them, and the calls that they are linked to.
pub(super) struct Launched<'threads> {
    threads: &'threads Threads,
    ops: Ids,
    links: Sorted<Link>,
}

impl<'threads> Launched<'threads> {
    /// Reads which operations the calls launched that each of the `threads` began in its time.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(super) fn by(trace: &Connection, threads: &'threads Threads) -> Result<Launched<'threads>> {
        let (mut ops, mut links) = (Ids::default(), Sorter::new());
        if has_table(trace, "rocpd_api_ops")? && has_table(trace, "rocpd_api")? {
            let (ids, calls) = calls(trace, threads)?;
            let mut of_calls = Sorter::new();
            each_link(trace, &ids.near("api_id"), |op, call| {
                if !ids.has(call) {
                    return Ok(());
                }
                ops.add(op);
                of_calls.push([call, op])
            })?;
            join(calls, of_calls.sorted()?, &mut links)?;
            // An operation is of the first call that it is linked to, if that call is in the file.
            let (mut others, mut of_others) = (Ids::default(), Sorter::new());
            each_link(trace, &ops.near("op_id"), |op, call| {
                if !ops.has(op) || ids.has(call) {
                    return Ok(());
                }
                others.add(call);
                of_others.push([call, op])
            })?;
            let others =
                Ids::of(trace, &format!("SELECT id FROM rocpd_api WHERE {}", others.near("id")), [])?;
            let mut of_others = of_others.sorted()?;
            while let Some([call, op]) = of_others.next()? {
                if others.has(call) {
                    links.push(Link { op, call, thread: OTHER, start: 0 })?;
                }
            }
        }
        Ok(Launched { threads, ops, links: links.sorted()? })
    }

    /// Hands those of a part of the trace to `each`, and says which are no work of a GPU.
    ///
    /// # Errors
    /// When the trace cannot be read, and those of `each`.
    pub(super) fn each(
        self,
        trace: &Connection,
        selected: &Selected,
        mut each: impl FnMut(&GpuOp, LaunchingCall) -> Result<()>,
    ) -> Result<LeftOut> {
        let Launched { threads, ops, mut links } = self;
        let Some((first, last)) = ops.hull() else {
            return Ok(LeftOut::default());
        };
        let mut outliers = Outliers::new();
        let mut link = links.next()?;
        // In the order of the table, which sorts nothing: SQLite would look for each span of ids and sort, so it looks for one.
        let order = format!("WHERE id BETWEEN {first} AND {last} AND {} ORDER BY id", ops.near("+id"));
        each_sound_op(
            trace,
            |id| ops.has(id) && selected.has_op(id),
            &order,
            |op| {
                while link.is_some_and(|link| link.op < op.id) {
                    link = links.next()?;
                }
                let Some(Link { thread, start, .. }) =
                    link.filter(|link| link.op == op.id && link.thread != OTHER)
                else {
                    return Ok(true);
                };
                // Beside its call it is where the marker is, wherever that is.
                let is_near = op.start.abs_diff(start) < HALF_A_DAY && op.end.abs_diff(start) < HALF_A_DAY;
                if !is_near && outliers.is_outlier(trace, (op.start, op.end))? {
                    return Ok(false);
                }
                each(&op, LaunchingCall { thread: threads.all[thread as usize].0, start })?;
                Ok(true)
            },
        )
    }
}

/// The calls that each thread began in its time, by their ids.
fn calls(trace: &Connection, threads: &Threads) -> Result<(Ids, Sorted<Call>)> {
    let (mut ids, mut calls) = (Ids::default(), Sorter::new());
    let processes = Processes::of(trace)?;
    let (first, last) = threads.hull();
    // By itself, "end" is a text to SQLite where there is no such column.
    let mut rows = trace.prepare(
        r#"SELECT id, pid, tid, start, rocpd_api."end" FROM rocpd_api WHERE start BETWEEN ?1 AND ?2"#,
    )?;
    let mut rows = rows.query([first, last])?;
    while let Some(row) = rows.next()? {
        let number = |column| row.get_ref(column).map(|value| value.as_i64().unwrap_or(-1));
        let (ValueRef::Integer(id), ValueRef::Integer(start), ValueRef::Integer(end)) =
            (row.get_ref(0)?, row.get_ref(3)?, row.get_ref(4)?)
        else {
            continue;
        };
        let thread = threads.at([processes.of_row(id), number(1)?, number(2)?], start);
        if let Some(thread) = thread.filter(|_| are_sound((start, end))) {
            ids.add(id);
            calls.push(Call { id, thread: thread as u64, start })?;
        }
    }
    Ok((ids, calls.sorted()?))
}

/// Hands `each` the operation and the call of each link for which `which` (SQL) is true.
fn each_link(trace: &Connection, which: &str, mut each: impl FnMut(i64, i64) -> Result<()>) -> Result<()> {
    let mut rows = trace.prepare(&format!("SELECT op_id, api_id FROM rocpd_api_ops WHERE {which}"))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        if let (ValueRef::Integer(op), ValueRef::Integer(call)) = (row.get_ref(0)?, row.get_ref(1)?) {
            each(op, call)?;
        }
    }
    Ok(())
}

/// Puts what is known of the calls to their links.
fn join(mut calls: Sorted<Call>, mut of_calls: Sorted<[i64; 2]>, links: &mut Sorter<Link>) -> Result<()> {
    let mut call = calls.next()?;
    while let Some([id, op]) = of_calls.next()? {
        while call.is_some_and(|call| call.id < id) {
            call = calls.next()?;
        }
        if let Some(Call { id, thread, start }) = call.filter(|call| call.id == id) {
            links.push(Link { op, call: id, thread, start })?;
        }
    }
    Ok(())
}
