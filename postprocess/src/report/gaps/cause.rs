//! Why a GPU is idle: what the thread that launched the next operation did meanwhile.
//!
//! A gap is taken apart at two moments, the beginning and the end of the launching call:
//!
//! | time | cause |
//! |---|---|
//! | before it, inside another call | what that call does: launching, waiting, copying, anything else |
//! | before it, outside of calls | the program itself |
//! | inside it | launching; copying or waiting, if that is what it does |
//! | after it | the operation waited on the GPU's side: behind a barrier, an event, or for the GPU to start it |
//!
//! Before that the time in which the process was not recorded is taken out (`unrecorded.rs`): nobody knows what ran then. The parts of a gap add
//! up to it. Where no call is known to have launched the operation, nothing is known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::Processes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde::Serialize;

use super::FoundGap;
use super::timeline::{CallKind, KINDS, ThreadCall, Timeline};
use super::unrecorded::{Unrecorded, UnrecordedTimes};
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::pass::sorted::{Sorted, Sorter};
use crate::report::gpu_time::OpTexts;
use crate::trace::has_table;
use crate::trace::ids::Ids;

/// Why a GPU is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The thread was inside a call that launches kernels, this one or others: the launch came late.
    Launch,
    /// The thread was inside a call that waits for the GPU.
    Sync,
    /// The thread was inside a call that copies or fills memory.
    Copy,
    /// The thread was inside another call: allocating memory, loading code.
    Call,
    /// The thread was in no call: the program itself.
    Host,
    /// The launch had returned: the operation waited for others, or for the GPU to start it.
    Queued,
    /// No call in the file launched the operation.
    Unknown,
    /// The process was not recorded: recording was stopped, records were lost, or no session was running.
    Unrecorded,
}

/// All causes, in the order in which parts of a gap are given.
pub const CAUSES: [Cause; 8] = [
    Cause::Launch,
    Cause::Sync,
    Cause::Copy,
    Cause::Call,
    Cause::Host,
    Cause::Queued,
    Cause::Unknown,
    Cause::Unrecorded,
];

impl Cause {
    /// Its place in [`CAUSES`].
    fn place(self) -> usize {
        self as usize
    }

    fn of(kind: CallKind) -> Cause {
        match kind {
            CallKind::Launch => Cause::Launch,
            CallKind::Sync => Cause::Sync,
            CallKind::Copy => Cause::Copy,
            CallKind::Other => Cause::Call,
        }
    }
}

/// A gap and when the launching call began and ended, both inside the gap; ordered by thread and time. Its times are those of the process's
/// clock, which stands still while it is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct LaunchedGap {
    /// Number of the thread; of an unknown one -1.
    thread: i64,
    begin: i64,
    launch: i64,
    launched: i64,
    end: i64,
    /// Place in [`CAUSES`] of what the launching call does.
    inside: i64,
    gap: FoundGap,
}

/// An operation and a call that launched it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Link {
    op: i64,
    call: i64,
}

/// A gap and the call that launched the operation behind it; ordered by the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct LinkedGap {
    call: i64,
    gap: FoundGap,
}

/// A call that launched something behind a gap; ordered by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Launch {
    id: i64,
    process: i64,
    thread: i64,
    start: i64,
    end: i64,
    /// Place in [`CAUSES`] of what the call does.
    inside: i64,
}

/// A row of `rocpd_api` with possible times.
struct Call {
    id: i64,
    pid: i64,
    tid: i64,
    times: (i64, i64),
    name: i64,
}

/// Looks for the causes of gaps.
pub(super) struct Causes<'trace> {
    trace: &'trace Connection,
    links: Sorted<Link>,
    /// The first link that has not been passed.
    ahead: Option<Link>,
    /// The calls that launched something behind a gap.
    launching: Ids,
    linked: Sorter<LinkedGap>,
    unrecorded: Unrecorded,
    processes: Processes,
    /// By process, its id, and thread: ids alone may be equal.
    threads: HashMap<(i64, i64, i64), i64>,
    kinds: Kinds<'trace>,
    gaps: Sorter<LaunchedGap>,
}

impl<'trace> Causes<'trace> {
    /// Sorts the links between calls and operations.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(super) fn of(trace: &'trace Connection) -> Result<Causes<'trace>> {
        let mut links = Sorter::new();
        if has_table(trace, "rocpd_api_ops")? {
            let mut rows = trace.prepare("SELECT op_id, api_id FROM rocpd_api_ops")?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                if let (ValueRef::Integer(op), ValueRef::Integer(call)) = (row.get_ref(0)?, row.get_ref(1)?) {
                    links.push(Link { op, call })?;
                }
            }
        }
        let mut links = links.sorted()?;
        let processes = Processes::of(trace)?;
        Ok(Causes {
            trace,
            ahead: links.next()?,
            links,
            launching: Ids::default(),
            linked: Sorter::new(),
            unrecorded: Unrecorded::of(trace, &processes)?,
            processes,
            threads: HashMap::new(),
            kinds: Kinds { texts: OpTexts::of(trace)?, known: HashMap::new() },
            gaps: Sorter::new(),
        })
    }

    /// Adds a gap. They come in the order of the operations behind them.
    ///
    /// # Errors
    /// When a temporary file cannot be read or written.
    pub(super) fn push(&mut self, gap: FoundGap) -> Result<()> {
        while self.ahead.is_some_and(|link| link.op < gap.op) {
            self.ahead = self.links.next()?;
        }
        match self.ahead.filter(|link| link.op == gap.op) {
            Some(link) => {
                self.launching.add(link.call);
                self.linked.push(LinkedGap { call: link.call, gap })
            }
            None => self.gaps.push(self.unknown(gap)),
        }
    }

    /// A gap that no call is known to have ended.
    fn unknown(&self, gap: FoundGap) -> LaunchedGap {
        LaunchedGap::unknown(gap, self.unrecorded.of_process(self.processes.of_row(gap.op)))
    }

    /// Finds the calls that launched something behind gaps.
    fn launch(&mut self) -> Result<()> {
        let mut launches = Sorter::new();
        let (launching, processes) = (&self.launching, &self.processes);
        let (threads, kinds) = (&mut self.threads, &mut self.kinds);
        each_call(self.trace, |call| {
            if !launching.has(call.id) {
                return Ok(());
            }
            let number = threads.len() as i64;
            let of = call.thread(processes);
            let thread = *threads.entry(of).or_insert(number);
            let inside = match kinds.of(call.name)? {
                Some(kind @ (CallKind::Sync | CallKind::Copy)) => Cause::of(kind),
                _ => Cause::Launch,
            };
            let (start, end) = call.times;
            let inside = inside.place() as i64;
            launches.push(Launch { id: call.id, process: of.0, thread, start, end, inside })
        })?;
        let mut launches = launches.sorted()?;
        let mut ahead = launches.next()?;
        let mut linked = std::mem::replace(&mut self.linked, Sorter::new()).sorted()?;
        while let Some(LinkedGap { call, gap }) = linked.next()? {
            while ahead.is_some_and(|launch| launch.id < call) {
                ahead = launches.next()?;
            }
            let launched = match ahead.filter(|launch| launch.id == call) {
                Some(launch) => LaunchedGap::by(&launch, gap, self.unrecorded.of_process(launch.process)),
                None => self.unknown(gap),
            };
            self.gaps.push(launched)?;
        }
        Ok(())
    }

    /// Gives each gap with the part that each of [`CAUSES`] has in it, ns.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(super) fn each(mut self, mut explained: impl FnMut(&FoundGap, &[u64; CAUSES.len()])) -> Result<()> {
        self.launch()?;
        let mut timeline = Timeline::new(self.calls()?)?;
        let mut gaps = self.gaps.sorted()?;
        // Gaps of several GPUs that one thread launches on may lie over each other: by the beginning of their launches.
        let mut open: BinaryHeap<Reverse<(i64, LaunchedGap, [u64; KINDS])>> = BinaryHeap::new();
        let mut thread = -1;
        loop {
            let next = gaps.next()?;
            let until = next.filter(|gap| gap.thread == thread).map_or(i64::MAX, |gap| gap.begin);
            while let Some(Reverse((launch, gap, before))) = open.peek()
                && *launch <= until
            {
                let spent = timeline.spent(thread, *launch)?;
                let spent = std::array::from_fn(|kind| spent[kind] - before[kind]);
                explained(&gap.gap, &parts(gap, &spent));
                open.pop();
            }
            let Some(gap) = next else { break };
            thread = gap.thread;
            if gap.launch == gap.begin {
                explained(&gap.gap, &parts(&gap, &[0; KINDS]));
            } else {
                open.push(Reverse((gap.launch, gap, timeline.spent(thread, gap.begin)?)));
            }
        }
        Ok(())
    }

    /// The calls of the threads that launched something behind a gap.
    fn calls(&mut self) -> Result<Sorted<ThreadCall>> {
        let mut calls = Sorter::new();
        let mut outliers = Outliers::new();
        let (trace, processes, threads) = (self.trace, &self.processes, &self.threads);
        let (unrecorded, kinds) = (&self.unrecorded, &mut self.kinds);
        each_call(trace, |call| {
            let of = call.thread(processes);
            if let Some(thread) = threads.get(&of)
                && let Some(kind) = kinds.of(call.name)?
                && !outliers.has(trace, call.times)?
            {
                let unrecorded = unrecorded.of_process(of.0);
                let (start, end) = call.times;
                let times = (unrecorded.recorded(start), unrecorded.recorded(end));
                calls.push(ThreadCall::new(*thread, times, end - start, kind))?;
            }
            Ok(())
        })?;
        calls.sorted()
    }
}

impl LaunchedGap {
    /// One that no call is known to have ended.
    fn unknown(gap: FoundGap, unrecorded: &UnrecordedTimes) -> LaunchedGap {
        let inside = Cause::Unknown.place() as i64;
        let (begin, end) = (unrecorded.recorded(gap.start), unrecorded.recorded(gap.end));
        LaunchedGap { thread: -1, begin, launch: begin, launched: end, end, inside, gap }
    }

    /// One that the operation of `launch` ended.
    fn by(launch: &Launch, gap: FoundGap, unrecorded: &UnrecordedTimes) -> LaunchedGap {
        let begin = launch.start.clamp(gap.start, gap.end);
        LaunchedGap {
            thread: launch.thread,
            begin: unrecorded.recorded(gap.start),
            launch: unrecorded.recorded(begin),
            launched: unrecorded.recorded(launch.end.clamp(begin, gap.end)),
            end: unrecorded.recorded(gap.end),
            inside: launch.inside,
            gap,
        }
    }
}

/// Gives each call of a trace that has possible times.
fn each_call(trace: &Connection, mut give: impl FnMut(&Call) -> Result<()>) -> Result<()> {
    // By itself, "end" is a text to SQLite where there is no such column.
    let mut rows =
        trace.prepare(r#"SELECT id, pid, tid, start, rocpd_api."end", apiName_id FROM rocpd_api"#)?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(call) = Call::of(row)? {
            give(&call)?;
        }
    }
    Ok(())
}

impl Call {
    /// None where its times cannot be.
    fn of(row: &Row<'_>) -> rusqlite::Result<Option<Call>> {
        let (ValueRef::Integer(start), ValueRef::Integer(end)) = (row.get_ref(3)?, row.get_ref(4)?) else {
            return Ok(None);
        };
        let number = |column| row.get_ref(column).map(|value| value.as_i64().unwrap_or(0));
        let call =
            Call { id: number(0)?, pid: number(1)?, tid: number(2)?, times: (start, end), name: number(5)? };
        Ok(are_sound(call.times).then_some(call))
    }

    fn thread(&self, processes: &Processes) -> (i64, i64, i64) {
        (processes.of_row(self.id), self.pid, self.tid)
    }
}

/// What calls do, by the ids of their names.
struct Kinds<'trace> {
    texts: OpTexts<'trace>,
    known: HashMap<i64, Option<CallKind>>,
}

impl Kinds<'_> {
    /// None of what is no call of a GPU's API.
    fn of(&mut self, name: i64) -> rusqlite::Result<Option<CallKind>> {
        if let Some(kind) = self.known.get(&name) {
            return Ok(*kind);
        }
        let kind = CallKind::of(self.texts.text(name)?);
        self.known.insert(name, kind);
        Ok(kind)
    }
}

/// The parts of a gap, of which the thread spent `spent` in calls before the launch.
fn parts(gap: &LaunchedGap, spent: &[u64; KINDS]) -> [u64; CAUSES.len()] {
    let mut parts = [0; CAUSES.len()];
    for (kind, spent) in CallKind::ALL.iter().zip(spent) {
        parts[Cause::of(*kind).place()] += spent;
    }
    let before = gap.launch.abs_diff(gap.begin);
    parts[Cause::Host.place()] += before - spent.iter().sum::<u64>();
    parts[usize::try_from(gap.inside).unwrap_or(Cause::Unknown.place())] += gap.launched.abs_diff(gap.launch);
    parts[Cause::Queued.place()] += gap.end.abs_diff(gap.launched);
    parts[Cause::Unrecorded.place()] = gap.gap.length() - gap.end.abs_diff(gap.begin);
    parts
}
