//! The one thread that owns the file: drains all rings, makes rows of records, commits at least once a second.
//!
//! Everybody else only wakes it, or waits for it with a deadline.

mod calls;
mod file;
mod frames;
mod last_note;
mod links;
mod names;
mod process_ranges;
pub mod progress;
mod ranges;
mod rows;
mod session;
mod sink;
mod system_calls;
mod turn;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rpd_preload::clock::{self, Clock};
use rpd_preload::lock::{lock, lock_within};
use rpd_preload::threads;
use rpd_schema::{Error, ErrorKind, check_name};

use crate::config::Template;
use crate::counters::Cause;
use crate::recorder::Recorder;
use crate::{log, provoked};
use file::File;
use progress::Progress;
pub use turn::GATE;

/// What others want of the writer, and how far it is.
#[derive(Default)]
struct Wishes {
    wake: bool,
    /// Flushes asked for and done, counted.
    flush_wanted: u64,
    flush_done: u64,
    /// The file to go on in after the next flush.
    filename: Option<Template>,
    /// The last file that was asked for cannot be had.
    refused: bool,
    finish: bool,
    finished: bool,
}

/// How the rest of the recorder talks to the writer.
#[derive(Default)]
pub struct Handle {
    started: AtomicBool,
    wishes: Mutex<Wishes>,
    changed: Condvar,
    /// Operations put into the file.
    ops: AtomicU64,
    /// What is said of names that no trace can have, before there is a thread.
    refused: Mutex<Complaint>,
    /// How far the file is.
    pub progress: Progress,
    /// Somebody waits for the file to be there.
    file_wanted: AtomicBool,
    /// When a flush of a program that is about to come down leaves a note instead, ns of CLOCK_MONOTONIC; 0: no such flush.
    note_at: AtomicU64,
    /// When the end of the process began to wait, ns of CLOCK_MONOTONIC; 0 before. The time in which others got on is left out.
    finish_began: AtomicU64,
    /// The same with that time.
    finish_called: AtomicU64,
}

/// How many times RPDT_EXIT_MS the end of the process may take where other processes write the file meanwhile.
const MOST_EXIT_WAITS: u32 = 6;

impl Handle {
    /// Starts the thread unless it runs.
    pub fn start(&self, recorder: &'static Recorder) {
        if self.started.swap(true, Ordering::AcqRel) {
            return;
        }
        log::set_level(recorder.config.log);
        recorder.config.complaints.iter().for_each(|line| log::problem(line));
        if let Err(error) = threads::spawn(c"rpd-writer", move || run(recorder)) {
            log::problem(&format!("cannot start a thread ({error}): recording is off for this process"));
            recorder.switch.disable();
            lock(&self.wishes).finished = true;
        }
    }

    /// Drain soon, not only when the timer runs out.
    #[inline]
    pub fn wake(&self) {
        // Producers that wait call this often; a busy lock means that somebody else is telling the writer something.
        if let Ok(mut wishes) = self.wishes.try_lock()
            && !wishes.wake
        {
            wishes.wake = true;
            self.changed.notify_all();
        }
    }

    /// Waits until all that is in the rings now is in the file.
    pub fn flush(&self, deadline: Duration) {
        self.ask(deadline, |_| {});
    }

    /// As [`Handle::flush`], for a program that is about to come down: where others have the file for most of that time, a note beside it says
    /// what is not in there. It goes when that gets in after all.
    pub fn flush_or_note(&self, deadline: Duration) {
        let patience = deadline / 4 * 3;
        self.note_at.store(clock::monotonic() + patience.as_nanos() as u64, Ordering::Relaxed);
        self.flush(deadline);
        self.note_done();
    }

    /// Whether such a flush has waited long enough.
    fn note_is_due(&self) -> bool {
        let at = self.note_at.load(Ordering::Relaxed);
        at != 0 && clock::monotonic() >= at
    }

    /// There is a note, or there can be none.
    fn note_done(&self) {
        self.note_at.store(0, Ordering::Relaxed);
    }

    /// As [`Handle::flush`]; what is recorded from then on goes into another file. False: no trace can be there, and nothing has
    /// changed. Before anything was recorded no file is opened, so that what stands in one is not known.
    pub fn change_file(&self, recorder: &Recorder, filename: Template, deadline: Duration) -> bool {
        if self.is_started() {
            return self.ask(deadline, |wishes| {
                (wishes.filename, wishes.refused) = (Some(filename), false);
            });
        }
        if let Err(error) = check_name(&filename.expanded()) {
            lock(&self.refused).say_refused(&error);
            return false;
        }
        *lock(&recorder.filename) = filename;
        recorder.switch.find_file();
        true
    }

    /// Whether the last file that was asked for can be had, as far as is known at the deadline.
    fn ask(&self, deadline: Duration, wish: impl FnOnce(&mut Wishes)) -> bool {
        if !self.is_started() {
            return true;
        }
        let Some(mut wishes) = lock_within(&self.wishes, deadline) else { return true };
        wish(&mut wishes);
        wishes.flush_wanted += 1;
        let mine = wishes.flush_wanted;
        self.changed.notify_all();
        let (wishes, _) = self
            .changed
            .wait_timeout_while(wishes, deadline, |w| w.flush_done < mine && !w.finished)
            .unwrap_or_else(PoisonError::into_inner);
        !wishes.refused
    }

    /// Makes the file now instead of with the first record.
    pub fn open(&self, recorder: &'static Recorder, deadline: Duration) {
        self.file_wanted.store(true, Ordering::Release);
        self.start(recorder);
        self.flush(deadline);
    }

    /// Ends the session and closes the file, waiting up to RPDT_EXIT_MS.
    pub fn finish(&self, recorder: &'static Recorder) {
        if !self.is_started() {
            return;
        }
        let now = clock::monotonic();
        self.finish_called.store(now, Ordering::Relaxed);
        self.finish_began.store(now, Ordering::Relaxed);
        let Some(mut wishes) = lock_within(&self.wishes, recorder.config.exit_wait) else { return };
        wishes.finish = true;
        self.changed.notify_all();
        while !wishes.finished && !self.has_waited(recorder.config.exit_wait) {
            let rest = recorder.config.exit_wait.saturating_sub(self.waited());
            wishes = self
                .changed
                .wait_timeout_while(wishes, rest, |w| !w.finished)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let finished = wishes.finished;
        drop(wishes);
        if !finished {
            log::problem(
                "the trace was not written to its end within RPDT_EXIT_MS: its last rows are missing",
            );
            last_note::leave(recorder);
        }
    }

    /// Whether there is, or was, anything to write.
    pub fn is_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Whether the process ends and has waited for rows as long as it may: half of RPDT_EXIT_MS. The rest are counted.
    fn is_late(&self, recorder: &Recorder) -> bool {
        self.has_waited(recorder.config.exit_wait / 2)
    }

    /// Whether the process ends and has waited for the file as long as it may; what is left of RPDT_EXIT_MS is for the commit.
    fn is_over(&self, recorder: &Recorder) -> bool {
        self.has_waited(recorder.config.exit_wait / 4 * 3)
    }

    /// How long it may wait for the file; endless while the process does not end.
    fn time_left(&self, recorder: &Recorder) -> Duration {
        let most = recorder.config.exit_wait / 4 * 3;
        if self.is_ending() { most.saturating_sub(self.waited()) } else { Duration::MAX }
    }

    /// Whether the process waits for its end.
    fn is_ending(&self) -> bool {
        self.finish_began.load(Ordering::Relaxed) != 0
    }

    /// Other processes have written the file since this one began to wait for it. At the end of the process that time does not count.
    fn others_wrote(&self, recorder: &Recorder) {
        let (now, called) = (clock::monotonic(), self.finish_called.load(Ordering::Relaxed));
        let most = MOST_EXIT_WAITS.saturating_sub(1) * recorder.config.exit_wait;
        if self.is_ending() && now.saturating_sub(called) < most.as_nanos() as u64 {
            self.finish_began.store(now, Ordering::Relaxed);
        }
    }

    /// How long the end of the process has waited.
    fn waited(&self) -> Duration {
        let began = self.finish_began.load(Ordering::Relaxed);
        Duration::from_nanos(clock::monotonic().saturating_sub(began))
    }

    fn has_waited(&self, time: Duration) -> bool {
        self.is_ending() && self.waited() > time
    }

    /// Whether somebody waits for the file to be there; asked once.
    fn file_is_wanted(&self) -> bool {
        self.file_wanted.swap(false, Ordering::Acquire)
    }

    /// Operations put into the file so far.
    pub fn ops(&self) -> u64 {
        self.ops.load(Ordering::Relaxed)
    }

    /// Sleeps until the timer runs out or somebody wants something. Returns (flush number to acknowledge, file to go on in,
    /// finish).
    fn wait(&self, interval: Duration) -> (u64, Option<Template>, bool) {
        let wishes = lock(&self.wishes);
        let (mut wishes, _) = self
            .changed
            .wait_timeout_while(wishes, interval, |w| !w.wake && !w.finish && w.flush_wanted == w.flush_done)
            .unwrap_or_else(PoisonError::into_inner);
        wishes.wake = false;
        (wishes.flush_wanted, wishes.filename.take(), wishes.finish)
    }

    /// Whether the file has been written to its end.
    fn is_finished(&self) -> bool {
        lock_within(&self.wishes, last_note::PATIENCE).is_some_and(|wishes| wishes.finished)
    }

    fn refuse(&self) {
        lock(&self.wishes).refused = true;
    }

    fn acknowledge(&self, flush: u64, finished: bool) {
        let mut wishes = lock(&self.wishes);
        wishes.flush_done = flush;
        wishes.finished |= finished;
        drop(wishes);
        self.changed.notify_all();
    }
}

fn run(recorder: &'static Recorder) {
    let body = std::panic::AssertUnwindSafe(|| serve(recorder));
    if std::panic::catch_unwind(body).is_err() {
        recorder.switch.disable();
    }
    recorder.writer.acknowledge(u64::MAX, true);
}

fn serve(recorder: &'static Recorder) {
    recorder.fit_into_memory();
    let mut file = File::new(recorder);
    let mut cpu = clock::read(Clock::ThreadCpu);
    let mut account = || {
        let now = clock::read(Clock::ThreadCpu);
        recorder.counters.cpu_ns.fetch_add(now - cpu, Ordering::Relaxed);
        cpu = now;
    };
    let mut flushed = 0;
    loop {
        provoked::panic("writer");
        let edge = recorder.switch.keep_time().map_or(Duration::MAX, Duration::from_nanos);
        let (flush, filename, mut finish) = recorder.writer.wait(recorder.config.flush_interval.min(edge));
        finish |= threads::are_alone();
        if flush != flushed {
            // Who asks hears whether it can be written now.
            file.try_again();
            flushed = flush;
        }
        // The last drain comes after the wish to finish was seen, so it sees all that was pushed before it.
        GATE.without(|| {
            if !finish {
                recorder.switch.keep_time();
                recorder.sources.iter().for_each(|source| source.visit(recorder));
            }
            file.drain();
            if recorder.writer.note_is_due() {
                file.leave_early_note();
            }
        });
        if file.name_frames() {
            GATE.without(|| file.drain());
        }
        if let Some(filename) = filename
            && !GATE.without(|| file.change_to(filename))
        {
            recorder.writer.refuse();
        }
        account();
        if finish {
            // The session's last facts tell what recording has cost up to here.
            GATE.without(|| file.end());
            account();
        }
        recorder.writer.ops.store(file.ops(), Ordering::Relaxed);
        recorder.writer.acknowledge(flush, finish);
        if finish {
            return;
        }
    }
}

/// In a forked child: closes the parent's descriptors, so that its locks on the file do not outlive it.
pub fn close_inherited() {
    system_calls::close_inherited();
}

/// Whether the file is something that must not be touched, however often it is tried.
fn is_somebody_elses(kind: &ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(
        kind,
        NotAFile
            | NotSqlite
            | Truncated
            | Corrupt
            | OtherSqlite
            | Rocprofv3
            | UnsupportedVersion(_)
            | NotWritable(_)
            | NameTooLong
            | NoWorkingDirectory
    )
}

/// Says a problem at most once a minute.
#[derive(Default)]
struct Complaint {
    last: Option<Instant>,
}

impl Complaint {
    fn say(&mut self, message: &str) {
        if self.last.is_none_or(|at| at.elapsed() > Duration::from_secs(60)) {
            self.last = Some(Instant::now());
            return log::problem(message);
        }
        log::note(message);
    }

    /// The program has named a file that cannot be the trace.
    fn say_refused(&mut self, error: &Error) {
        self.say(&format!("{error}; the trace stays the one that it was"));
    }
}

/// Counts what could not be written.
fn lose(recorder: &Recorder, records: u64) {
    recorder.counters.lose(Cause::Write, records);
}
