//! The duration log (LOGDUR_LOG_LOCATION): a line for each kernel that has completed, while the program runs.
//!
//! The writer's thread sees each operation with its call, and notes four numbers ([`LogFeed`]). A thread of its own, which is there
//! while there is something to write, makes lines of them and writes those ([`output`]). Between the two is a queue that holds so much
//! and no more: a file or pipe that takes lines slowly, or not at all, holds up nobody but that thread.
//!
//! Lines are of records, whatever becomes of those in the trace: where the trace cannot be written, the log has them as soon as they are given
//! up, at the latest when the process ends. Where kernels are
//! instrumented, the log has the reports of analyzers in place of these lines.

mod output;

use std::collections::VecDeque;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rpd_duration_log::{LineName, LineTimes, LineWriter, LogFormat};
use rpd_preload::clock::{self, Clock};
use rpd_preload::errands::Errands;
use rpd_preload::lock::lock;
use rustc_hash::FxHashMap;

use crate::config::DurationLogConfig;
use crate::correlation;
use crate::log;
use crate::recorder::{self, Recorder};
use crate::records::{Call, Dispatch, KernelId};
use crate::source::Role;
use output::LogOutput;

/// Kernels that are handed to the thread at once, at most.
const BATCH: usize = 4096;
/// Which part of the buffers' size may wait for the thread.
const SHARE: usize = 16;
/// Calls whose begin is remembered for their operations. Where there are more, the oldest are forgotten: their kernels were launched when the packet
/// was seen.
const CALLS: usize = 1 << 18;
/// How long a report waits for room.
const ROOM: Duration = Duration::from_secs(1);
/// Which part of the time for the end of the process goes to an output that takes nothing.
const STUCK: u32 = 10;

/// What this process logs. A forked child, which has not its parent's thread, begins anew.
static LOG: AtomicPtr<DurationLog> = AtomicPtr::new(ptr::null_mut());

/// A kernel that has completed.
#[derive(Clone, Copy)]
struct LoggedKernel {
    kernel: KernelId,
    times: LineTimes,
}

/// What is to be written next.
enum LogWork {
    Kernels(Vec<LoggedKernel>),
    /// Whole lines.
    Report(String),
}

struct DurationLog {
    pid: u32,
    queue: Errands<LogWork>,
    lines: Mutex<Lines>,
    /// Kernels that are to be in the log, and those that are.
    wanted: AtomicU64,
    written: AtomicU64,
    /// Nobody waits for the output any more.
    is_over: AtomicBool,
}

/// What the thread has: names of kernels as its lines have them, and where the lines go.
struct Lines {
    format: LogFormat,
    names: FxHashMap<KernelId, LineName>,
    output: LogOutput,
    /// Something that could not be written was said.
    said: bool,
}

/// The writer's end of the queue.
pub(super) struct LogFeed {
    recorder: &'static Recorder,
    log: &'static DurationLog,
    /// Whether a kernel is to be logged, by its number.
    wanted: Vec<Option<bool>>,
    /// When calls began that may have operations to come, and the calls in their order.
    begun: FxHashMap<u64, u64>,
    calls: VecDeque<u64>,
    batch: Vec<LoggedKernel>,
    /// Dispatches of this drain whose calls have not come.
    waiting: Vec<Dispatch>,
}

impl LogFeed {
    /// Nothing where no log was asked for. Files are opened with the first kernel.
    pub(super) fn new(recorder: &'static Recorder) -> Option<LogFeed> {
        if recorder.setup.gpus.report_header().is_some() {
            return None;
        }
        let header = recorder.config.duration_log.as_ref()?.format.header();
        let log = begin(recorder, header)?;
        Some(LogFeed {
            recorder,
            log,
            wanted: Vec::new(),
            begun: FxHashMap::default(),
            calls: VecDeque::new(),
            batch: Vec::new(),
            waiting: Vec::new(),
        })
    }

    /// A call that has ended.
    pub(super) fn call(&mut self, call: &Call) {
        self.begun.insert(call.correlation, call.start);
        self.calls.push_back(call.correlation);
        while let Some(oldest) = self.calls.front()
            && (self.calls.len() > CALLS || !self.begun.contains_key(oldest))
        {
            self.begun.remove(oldest);
            self.calls.pop_front();
        }
    }

    /// A dispatch that has completed, or never will.
    pub(super) fn dispatch(&mut self, record: &Dispatch) {
        if record.end == 0 || !self.is_wanted(record.kernel) {
            return;
        }
        match self.begun_with(record) {
            Some(begun) => self.add(record, begun),
            None if record.correlation == correlation::NONE => self.add(record, record.submit_start),
            // Its call may come later in the drain.
            None => self.waiting.push(*record),
        }
    }

    /// When the call of a dispatch began, where that is known.
    fn begun_with(&mut self, record: &Dispatch) -> Option<u64> {
        // A call that launches one kernel has no other.
        if record.ends_launch() {
            return self.begun.remove(&record.correlation);
        }
        self.begun.get(&record.correlation).copied()
    }

    fn add(&mut self, record: &Dispatch, launched: u64) {
        let [launched, start, end] = [launched, record.start, record.end].map(|time| time as i64);
        self.batch.push(LoggedKernel { kernel: record.kernel, times: LineTimes { launched, start, end } });
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    fn is_wanted(&mut self, kernel: KernelId) -> bool {
        let place = kernel as usize;
        if let Some(Some(wanted)) = self.wanted.get(place) {
            return *wanted;
        }
        let gpus = self.recorder.setup.gpus;
        let text = gpus.kernel(kernel).unwrap_or_default();
        let wanted = text.role == Role::Kernel && gpus.is_logged(&text.name);
        self.wanted.resize(self.wanted.len().max(place + 1), None);
        self.wanted[place] = Some(wanted);
        wanted
    }

    /// A drain is over: all of it is written next. Calls that have not come never will.
    pub(super) fn end_drain(&mut self) {
        for record in std::mem::take(&mut self.waiting) {
            let begun = self.begun_with(&record).unwrap_or(record.submit_start);
            self.add(&record, begun);
        }
        self.hand_over();
    }

    fn hand_over(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return;
        }
        self.log.wanted.fetch_add(batch.len() as u64, Ordering::Relaxed);
        // What finds no room is missing in the end, and said then.
        let weight = size_of_val(batch.as_slice());
        self.log.queue.add(LogWork::Kernels(batch), weight);
    }
}

/// Begins the log of this process; nothing where none was asked for.
fn begin(recorder: &'static Recorder, header: String) -> Option<&'static DurationLog> {
    let DurationLogConfig { location, format } = recorder.config.duration_log.clone()?;
    let most = (recorder.buffers.bytes() / SHARE).max(2 * BATCH * size_of::<LoggedKernel>());
    let log = Box::leak(Box::new(DurationLog {
        pid: recorder.pid,
        queue: Errands::new(c"rpd-log", most, write),
        lines: Mutex::new(Lines {
            format,
            names: FxHashMap::default(),
            output: LogOutput::new(location, header),
            said: false,
        }),
        wanted: AtomicU64::new(0),
        written: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    }));
    LOG.store(log, Ordering::Release);
    Some(log)
}

/// See [`super::log_report`].
pub(super) fn report(recorder: &'static Recorder, text: String) {
    static BEGINS: Mutex<()> = Mutex::new(());
    let log = {
        let _begins = lock(&BEGINS);
        current().or_else(|| begin(recorder, recorder.setup.gpus.report_header()?.to_string()))
    };
    let Some(log) = log else { return };
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    log.wanted.fetch_add(lines as u64, Ordering::Relaxed);
    let weight = text.len();
    if log.queue.wait_for_room(weight, ROOM) {
        log.queue.add(LogWork::Report(text), weight);
    }
}

/// What this process logs, if it has logged anything.
fn current() -> Option<&'static DurationLog> {
    // SAFETY: null or a leaked box.
    let log = unsafe { LOG.load(Ordering::Acquire).as_ref() };
    log.filter(|log| log.pid == std::process::id())
}

/// On the thread of ours.
fn write(all: Vec<LogWork>) {
    let (Some(log), Some(recorder)) = (current(), recorder::get()) else { return };
    let before = clock::read(Clock::ThreadCpu);
    let lines = &mut *lock(&log.lines);
    let mut text = Vec::new();
    for work in all {
        text.clear();
        let made = match work {
            LogWork::Kernels(batch) => lines.text(recorder, &batch, &mut text),
            LogWork::Report(report) => {
                text.extend(report.bytes());
                Ok(())
            }
        };
        let written = made.and_then(|()| lines.output.write(&text, &log.written, &log.is_over));
        if let Err(error) = written
            && !std::mem::replace(&mut lines.said, true)
        {
            let name = lines.output.name();
            log::problem(&format!("{name}: lines cannot be logged ({error}); recording goes on"));
        }
    }
    let spent = clock::read(Clock::ThreadCpu) - before;
    recorder.counters.cpu_ns.fetch_add(spent, Ordering::Relaxed);
}

impl Lines {
    /// The lines of these kernels.
    fn text(
        &mut self,
        recorder: &Recorder,
        batch: &[LoggedKernel],
        text: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let mut writer = LineWriter::new(self.format, text);
        for LoggedKernel { kernel, times } in batch {
            if !self.names.contains_key(kernel) {
                let name = recorder.setup.gpus.kernel(*kernel).unwrap_or_default().name;
                self.names.insert(*kernel, LineName::new(self.format, &name)?);
            }
            writer.line(&self.names[kernel], *times)?;
        }
        writer.flush()
    }
}

/// What was handed over is written, as far as the output takes it within `patience`; whether it is.
pub(super) fn flush(patience: Duration) -> bool {
    let Some(log) = current() else { return true };
    let begin = Instant::now();
    let mut written = log.written.load(Ordering::Relaxed);
    while !log.queue.finish(patience / STUCK) {
        let now = log.written.load(Ordering::Relaxed);
        if now == written || begin.elapsed() > patience {
            return false;
        }
        written = now;
    }
    true
}

/// The process ends: no more lines come. What is missing is said, unless `rpd record` will.
pub(super) fn finish(recorder: &'static Recorder) {
    let Some(log) = current() else { return };
    flush(recorder.config.exit_wait);
    log.is_over.store(true, Ordering::Relaxed);
    let (lost, wanted) = (lost(), log.wanted.load(Ordering::Relaxed));
    if lost > 0 && recorder.config.report.is_none() {
        log::problem(&format!("{lost} of {wanted} lines are not in the log"));
    }
}

/// How many lines were to be in the log, and are not (yet).
pub(super) fn lost() -> u64 {
    current().map_or(0, |log| {
        let written = log.written.load(Ordering::Relaxed);
        log.wanted.load(Ordering::Relaxed).saturating_sub(written)
    })
}
