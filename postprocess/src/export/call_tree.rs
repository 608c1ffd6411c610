//! The calls of each thread as a tree, with the frames of the program that made them and what the GPU did for them: what flame graphs show.
//!
//! Calls and markers nest by time, as the callstack pass has them. Where two overlap without one inside the other, the time in which both
//! are open is that of the later one, so that each moment of a thread belongs to one stack. The frames of a call (`rocpd_stackframe`) are
//! between what is around it and itself; those that a call around it has too are not repeated.
//!
//! A tree is walked along a clock: that of the trace, where its widths are CPU time, or one that runs while operations do, thread after
//! thread, where they are GPU time.

mod names;

use anyhow::{Result, bail};
use bytemuck::{Pod, Zeroable};
use rpd_schema::{Processes, SessionInfo, Version};
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::Exported;
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::notes::{Notes, RowCount};
use crate::pass::sorted::{Sorted, Sorter};
use crate::passes::callstack::DEEPEST;
use crate::region::{Region, Selected};
use crate::report::by_id::{ById, integer};
use crate::report::caused::CausedOps;
use crate::text;
use crate::trace::has_table;
use crate::trace::ids::Ids;
pub(super) use names::{FrameNames, REMEMBERED, TreeFrame};

/// What the width of a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Time of the thread.
    Cpu,
    /// Durations of the operations that were launched.
    Gpu,
}

/// How trees are made.
#[derive(Debug, Clone)]
pub struct TreeOptions {
    /// What widths are.
    pub width: Width,
    /// Whether PyTorch's operators that differ in sequence number, id or sizes alone stay apart.
    pub exact: bool,
    /// What part of the trace.
    pub region: Region,
}

/// What is made of trees. Frames are entered and left in the order of a clock, and each is left before the one around it.
pub(super) trait Trees {
    /// Another thread's tree begins, at this time of its clock. All frames of the one before were left.
    fn thread(&mut self, thread: &Thread<'_>, now: i64) -> Result<()>;

    /// A frame begins, which is that call, a frame of it or an operation of it.
    fn enter(&mut self, names: &mut FrameNames<'_>, frame: TreeFrame, call: i64, now: i64) -> Result<()>;

    /// The frame that was entered last and is open ends.
    fn leave(&mut self, now: i64) -> Result<()>;
}

/// The names of a thread and its process; what no call caused is in the process [`NO_CALL`], and in no thread.
pub(super) struct Thread<'a> {
    pub(super) process: &'a str,
    pub(super) name: &'a str,
}

/// In place of a process: no call caused the operations.
pub(super) const NO_CALL: &str = "(no call)";

/// Columns of a command in the name of a process.
const COMMAND_WIDTH: usize = 60;

/// What a record is, in the order of those of one call.
const FRAME: i64 = 0;
const CALL: i64 = 1;
const OP: i64 = 2;

/// A call, a frame of it or an operation of it; thread after thread, in the order in which a stack takes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Record {
    thread: i64,
    /// Of the call; the end with all bits turned over, so that of two that begin together the longer one is first.
    start: i64,
    not_end: i64,
    call: i64,
    what: i64,
    /// For a frame: its depth with all bits turned over: the outermost is first. For an operation: its begin.
    place: i64,
    /// For a frame: its text. For a call: its function. For an operation: its description.
    name: i64,
    /// For a marker: its text. For an operation: its type.
    text: i64,
    /// For an operation: its duration, ns. For a call: 1 if it is a marker.
    value: i64,
}

/// Walks the trees of the part of `trace` that `options` name, and shows them to `trees`.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when calls nest deeper than [`DEEPEST`], when a signal came (`notes`), or what
/// `trees` fails with.
pub(super) fn walk<T: Trees>(
    (trace, version): (&Connection, Version),
    options: &TreeOptions,
    notes: &dyn Notes,
    trees: &mut T,
) -> Result<Exported> {
    let mut scan = Scan {
        trace,
        rows: RowCount::new(notes, "calls and operations read"),
        threads: Threads::default(),
        records: Sorter::new(),
        exported: Exported::default(),
        first_ns: i64::MAX,
    };
    let selected = options.region.select(trace, version)?;
    if options.width == Width::Gpu {
        scan.ops(CausedOps::of(trace, &selected)?)?;
    }
    scan.calls(&selected, options.width)?;
    let Scan { threads, records, exported, first_ns, .. } = scan;
    notes.show("sorting");
    let mut names = FrameNames::of(trace, version, options.exact)?;
    let mut walk = Walk {
        trees,
        width: options.width,
        first_ns,
        is_begun: false,
        open: Vec::new(),
        frames_ahead: Vec::new(),
        entered: 0,
        clock: 0,
    };
    walk.all(records.sorted()?, &threads.names(trace)?, &mut names, notes)?;
    Ok(exported)
}

/// Threads by their number.
#[derive(Default)]
struct Threads {
    /// Process, its id, and thread.
    known: Vec<(i64, i64, i64)>,
    numbers: FxHashMap<(i64, i64, i64), i64>,
}

/// In place of a process: no call is known.
const NO_PROCESS: (i64, i64, i64) = (i64::MIN, 0, 0);

impl Threads {
    fn number(&mut self, thread: (i64, i64, i64)) -> i64 {
        *self.numbers.entry(thread).or_insert_with(|| {
            self.known.push(thread);
            self.known.len() as i64 - 1
        })
    }

    /// Names of process and thread; ids of which there are several have their session behind them.
    fn names(&self, trace: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
        let sessions = rpd_schema::sessions(trace)?;
        let name = |thread: &(i64, i64, i64)| {
            let &(process, pid, tid) = thread;
            if *thread == NO_PROCESS {
                return (NO_CALL.to_string(), String::new());
            }
            let known = sessions.iter().find(|info| i64::from(info.session) == process);
            let others = self.known.iter().any(|(other, id, _)| *id == pid && *other != process);
            let session = if others { format!(", session {process}") } else { String::new() };
            let rank = known.and_then(SessionInfo::rank).map(|rank| format!("rank {rank}: "));
            let rank = rank.unwrap_or_default();
            let process = match known.and_then(SessionInfo::command) {
                Some(command) => format!("{} (pid {pid}{session})", text::shorten(command, COMMAND_WIDTH)),
                None => format!("process {pid}{session}"),
            };
            let main = if pid == tid { "main thread" } else { "thread" };
            (format!("{rank}{process}"), format!("{main} {tid}"))
        };
        Ok(self.known.iter().map(name).collect())
    }
}

/// What is read.
struct Scan<'a> {
    trace: &'a Connection,
    rows: RowCount<'a>,
    threads: Threads,
    records: Sorter<Record>,
    exported: Exported,
    /// The begin of the first call.
    first_ns: i64,
}

impl Scan<'_> {
    fn ops(&mut self, ops: CausedOps<'_>) -> Result<()> {
        self.exported.impossible += ops.left_out.impossible;
        ops.each(|op, call| {
            self.rows.step()?;
            self.exported.ops += 1;
            let (name, text) = op.name.ids();
            let call = call.and_then(|call| Some((call.thread, call.times?, call.id)));
            let (thread, (start, end), call) = call.unwrap_or((NO_PROCESS, (op.start, op.start), i64::MIN));
            let thread = self.threads.number(thread);
            let value = op.duration().cast_signed();
            self.records.push(Record {
                thread,
                what: OP,
                start,
                not_end: !end,
                call,
                place: op.start,
                name,
                text,
                value,
            })
        })
    }

    fn calls(&mut self, selected: &Selected, width: Width) -> Result<()> {
        if !has_table(self.trace, "rocpd_api")? {
            return Ok(());
        }
        let markers = "SELECT id FROM rocpd_string WHERE string = 'UserMarker'";
        let markers = Ids::of(self.trace, markers, [])?;
        let processes = Processes::of(self.trace)?;
        let mut outliers = Outliers::new();
        let mut frames = ById::of(self.trace, "rocpd_stackframe", "api_ptr_id", "depth, name_id")?;
        let mut frames = frames.rows()?;
        let mut rows = self.trace.prepare(
            "SELECT id, pid, tid, start, rocpd_api.\"end\", apiName_id, args_id FROM rocpd_api ORDER BY id",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            self.rows.step()?;
            let number = |column| row.get_ref(column).ok().and_then(|value| value.as_i64().ok());
            let times = number(3).zip(number(4)).filter(|times| are_sound(*times));
            let (Some(call), Some(pid), Some(tid), Some(times)) = (number(0), number(1), number(2), times)
            else {
                self.exported.impossible += 1;
                continue;
            };
            if outliers.is_outlier(self.trace, times)? {
                self.exported.impossible += 1;
                continue;
            }
            let name = number(5).unwrap_or(-1);
            let is_marker = markers.has(name);
            let is_selected = selected.has_call(call);
            // Markers around the region have no GPU time of their own, but name what has.
            let is_around = is_marker && width == Width::Gpu;
            if !(is_selected || is_around) {
                continue;
            }
            self.exported.calls += u64::from(is_selected);
            self.first_ns = self.first_ns.min(times.0);
            let thread = self.threads.number((processes.of_row(call), pid, tid));
            let of_call = Record {
                thread,
                what: CALL,
                start: times.0,
                not_end: !times.1,
                call,
                place: 0,
                name: if is_marker { -1 } else { name },
                text: if is_marker { number(6).unwrap_or(-1) } else { 0 },
                value: i64::from(is_marker),
            };
            self.records.push(of_call)?;
            while let Some(frame) = frames.take(call)? {
                let place = !integer(&frame, 0).unwrap_or(0);
                let name = integer(&frame, 1).unwrap_or(-1);
                self.records.push(Record { what: FRAME, place, name, value: 0, ..of_call })?;
            }
        }
        Ok(())
    }
}

/// A frame that is open.
struct Open {
    frame: TreeFrame,
    end: i64,
    /// The call that this is, or that it is a frame of.
    call: i64,
    is_frame: bool,
}

/// The walk along the tree of a thread.
struct Walk<'a, T> {
    trees: &'a mut T,
    width: Width,
    first_ns: i64,
    /// Whether the thread was shown: one without a width is not.
    is_begun: bool,
    open: Vec<Open>,
    /// Frames of the next call, the outermost first.
    frames_ahead: Vec<i64>,
    /// How many of those that are open were entered: all of them, where widths are CPU time.
    entered: usize,
    /// The time of the operations of the thread so far, ns.
    clock: i64,
}

impl<T: Trees> Walk<'_, T> {
    fn all(
        &mut self,
        mut records: Sorted<Record>,
        threads: &[(String, String)],
        names: &mut FrameNames<'_>,
        notes: &dyn Notes,
    ) -> Result<()> {
        let mut thread = None;
        let mut walked = RowCount::new(notes, "calls and operations written");
        while let Some(record) = records.next()? {
            walked.step()?;
            if thread != Some(record.thread) {
                self.end_thread()?;
                thread = Some(record.thread);
                self.clock = 0;
                self.is_begun = false;
            }
            match record.what {
                FRAME => self.frames_ahead.push(record.name),
                CALL => {
                    self.begin_thread(&record, threads, Width::Cpu)?;
                    self.call(&record, names)?;
                }
                _ => {
                    self.begin_thread(&record, threads, Width::Gpu)?;
                    self.op(&record, names)?;
                }
            }
        }
        self.end_thread()
    }

    /// Begins the thread of a record that has a width.
    fn begin_thread(&mut self, record: &Record, threads: &[(String, String)], width: Width) -> Result<()> {
        if self.is_begun || self.width != width {
            return Ok(());
        }
        self.is_begun = true;
        match threads.get(record.thread as usize) {
            Some((process, name)) => self.trees.thread(&Thread { process, name }, self.now(record.start)),
            None => Ok(()),
        }
    }

    fn now(&self, time: i64) -> i64 {
        match self.width {
            Width::Cpu => time - self.first_ns,
            Width::Gpu => self.clock,
        }
    }

    /// Ends the innermost frame, at its end or earlier.
    fn leave(&mut self, time: i64) -> Result<()> {
        if self.entered == self.open.len() {
            self.trees.leave(self.now(time))?;
            self.entered -= 1;
        }
        self.open.pop();
        Ok(())
    }

    /// The thread comes to this time.
    fn leave_until(&mut self, time: i64) -> Result<()> {
        while let Some(end) = self.open.last().map(|open| open.end).filter(|end| *end <= time) {
            self.leave(end)?;
        }
        Ok(())
    }

    fn end_thread(&mut self) -> Result<()> {
        self.frames_ahead.clear();
        self.leave_until(i64::MAX)
    }

    fn call(&mut self, record: &Record, names: &mut FrameNames<'_>) -> Result<()> {
        let (start, end) = (record.start, !record.not_end);
        self.leave_until(start)?;
        // Those that end earlier have no time any more: all of it is this one's.
        while self.open.last().is_some_and(|open| open.end < end) {
            self.leave(start)?;
        }
        let around: Vec<TreeFrame> = match self.open.iter().rev().find(|open| open.is_frame) {
            None => Vec::new(),
            Some(Open { call, .. }) => {
                let of_call = self.open.iter().filter(|open| open.is_frame && open.call == *call);
                of_call.map(|open| open.frame).collect()
            }
        };
        let mut frames = std::mem::take(&mut self.frames_ahead);
        let repeated =
            frames.iter().zip(&around).take_while(|(name, known)| TreeFrame::function(**name) == **known);
        let repeated = repeated.count();
        for name in frames.drain(..).skip(repeated) {
            self.push(
                names,
                Open { frame: TreeFrame::function(name), end, call: record.call, is_frame: true },
                start,
            )?;
        }
        self.frames_ahead = frames;
        let frame =
            if record.value == 1 { TreeFrame::marker(record.text) } else { TreeFrame::function(record.name) };
        self.push(names, Open { frame, end, call: record.call, is_frame: false }, start)
    }

    fn push(&mut self, names: &mut FrameNames<'_>, open: Open, start: i64) -> Result<()> {
        if self.width == Width::Cpu {
            self.trees.enter(names, open.frame, open.call, self.now(start))?;
            self.entered += 1;
        }
        self.open.push(open);
        if self.open.len() > DEEPEST {
            bail!(
                "calls of a thread nest more than {DEEPEST} deep: ranges that are pushed and never popped? \
                 Leave them out with: --start, --end"
            );
        }
        Ok(())
    }

    /// An operation of the call that came last, or of one that was left out.
    fn op(&mut self, record: &Record, names: &mut FrameNames<'_>) -> Result<()> {
        if self.open.last().is_none_or(|open| open.call != record.call) {
            self.leave_until(record.start)?;
        }
        for open in self.open.iter().skip(self.entered) {
            self.trees.enter(names, open.frame, open.call, self.clock)?;
        }
        self.entered = self.open.len();
        let frame = TreeFrame::operation(record.name, record.text);
        self.trees.enter(names, frame, record.call, self.clock)?;
        self.clock = self.clock.saturating_add(record.value);
        self.trees.leave(self.clock)
    }
}
