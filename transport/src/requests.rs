//! Requests of others to the writer's thread, and how far it is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rpd_preload::clock;
use rpd_preload::lock::{lock, lock_within};
use rpd_preload::threads;
use rpd_schema::check_name;

use crate::config::Template;
use crate::exit_wait::ExitWait;
use crate::log::{self, Complaint};
use crate::progress::FileProgress;
use crate::recorder::Recorder;

/// What others want of the writer, and how far it is.
#[derive(Default)]
struct Wanted {
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
pub struct Requests {
    started: AtomicBool,
    /// The thread that writes, once it sleeps for the first time.
    thread: OnceLock<Thread>,
    /// It is to drain soon.
    wake: AtomicBool,
    wanted: Mutex<Wanted>,
    /// Something of that has been done.
    done: Condvar,
    /// Operations put into the file.
    pub(crate) ops: AtomicU64,
    /// What is said of names that no trace can have, before there is a thread.
    refused: Mutex<Complaint>,
    /// How far the file is.
    pub progress: FileProgress,
    /// Somebody waits for the file to be there.
    file_wanted: AtomicBool,
    /// When a flush of a program that is about to come down leaves a note instead, ns of CLOCK_MONOTONIC; 0: no such flush.
    note_at: AtomicU64,
    /// How long the process waits for the writer at its end.
    pub(crate) exit_wait: ExitWait,
}

impl Requests {
    /// Nobody wants anything. At its end the process waits for the writer for so long.
    pub(crate) fn new(exit_wait: Duration) -> Requests {
        Requests {
            started: AtomicBool::new(false),
            thread: OnceLock::new(),
            wake: AtomicBool::new(false),
            wanted: Mutex::default(),
            done: Condvar::new(),
            ops: AtomicU64::new(0),
            refused: Mutex::default(),
            progress: FileProgress::default(),
            file_wanted: AtomicBool::new(false),
            note_at: AtomicU64::new(0),
            exit_wait: ExitWait::new(exit_wait),
        }
    }

    /// Starts the thread unless it runs.
    pub fn start(&self, recorder: &'static Recorder) {
        if self.started.swap(true, Ordering::AcqRel) {
            return;
        }
        recorder.config.complaints.iter().for_each(|line| log::problem(line));
        if let Err(error) = threads::spawn(c"rpd-writer", move || (recorder.setup.writer)(recorder)) {
            log::problem(&format!("cannot start a thread ({error}): recording is off for this process"));
            recorder.switch.disable();
            lock(&self.wanted).finished = true;
        }
    }

    /// Drain soon, not only when the timer runs out. Takes no lock: a signal handler that interrupts this may end the process.
    #[inline]
    pub fn wake(&self) {
        // Producers that wait call this often.
        if !self.wake.load(Ordering::Relaxed) && !self.wake.swap(true, Ordering::AcqRel) {
            self.unpark();
        }
    }

    /// Ends the sleep of the thread that writes.
    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Waits until all that is in the rings now is in the file.
    pub fn flush(&self, deadline: Duration) {
        self.ask(deadline, |_| {});
    }

    /// As [`Requests::flush`], for a program that is about to come down: where others have the file for most of that time, a note beside it
    /// says what is not in there. It goes when that gets in after all.
    pub fn flush_or_note(&self, deadline: Duration) {
        let patience = deadline / 4 * 3;
        self.note_at.store(clock::monotonic() + patience.as_nanos() as u64, Ordering::Relaxed);
        self.flush(deadline);
        self.note_done();
    }

    /// Whether such a flush has waited long enough.
    pub(crate) fn note_is_due(&self) -> bool {
        let at = self.note_at.load(Ordering::Relaxed);
        at != 0 && clock::monotonic() >= at
    }

    /// There is a note, or there can be none.
    pub(crate) fn note_done(&self) {
        self.note_at.store(0, Ordering::Relaxed);
    }

    /// As [`Requests::flush`]; what is recorded from then on goes into another file. False: no trace can be there, and nothing has
    /// changed. Before anything was recorded no file is opened, so that what is in one is not known.
    pub fn change_file(&self, recorder: &Recorder, filename: Template, deadline: Duration) -> bool {
        if self.is_started() {
            return self.ask(deadline, |wanted| {
                (wanted.filename, wanted.refused) = (Some(filename), false);
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
    fn ask(&self, deadline: Duration, ask: impl FnOnce(&mut Wanted)) -> bool {
        if !self.is_started() {
            return true;
        }
        let Some(mut wanted) = lock_within(&self.wanted, deadline) else { return true };
        ask(&mut wanted);
        wanted.flush_wanted += 1;
        let mine = wanted.flush_wanted;
        self.unpark();
        let (wanted, _) = self
            .done
            .wait_timeout_while(wanted, deadline, |w| w.flush_done < mine && !w.finished)
            .unwrap_or_else(PoisonError::into_inner);
        !wanted.refused
    }

    /// Has the file made when the writer next looks, instead of with the first record.
    pub fn want_file(&self) {
        self.file_wanted.store(true, Ordering::Release);
    }

    /// Makes the file now instead of with the first record.
    pub fn open(&self, recorder: &'static Recorder, deadline: Duration) {
        self.want_file();
        self.start(recorder);
        self.flush(deadline);
    }

    /// Has the session ended and the file closed, waiting up to RPDT_EXIT_MS; whether that was done. True where there is nothing to write.
    pub(crate) fn finish(&self, recorder: &Recorder) -> bool {
        if !self.is_started() {
            return true;
        }
        self.exit_wait.begin();
        let Some(mut wanted) = lock_within(&self.wanted, recorder.config.exit_wait) else { return false };
        wanted.finish = true;
        self.unpark();
        while !wanted.finished && !self.exit_wait.rest().is_zero() {
            wanted = self
                .done
                .wait_timeout_while(wanted, self.exit_wait.rest(), |w| !w.finished)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        wanted.finished
    }

    /// Whether there is, or was, anything to write.
    pub fn is_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Whether somebody waits for the file to be there; asked once.
    pub(crate) fn file_is_wanted(&self) -> bool {
        self.file_wanted.swap(false, Ordering::Acquire)
    }

    /// Operations put into the file so far.
    pub fn ops(&self) -> u64 {
        self.ops.load(Ordering::Relaxed)
    }

    /// Sleeps until the timer runs out or somebody wants something. Returns (flush number to acknowledge, file to go on in,
    /// finish).
    pub(crate) fn wait(&self, interval: Duration) -> (u64, Option<Template>, bool) {
        self.thread.get_or_init(std::thread::current);
        let begin = Instant::now();
        loop {
            let mut wanted = lock(&self.wanted);
            let rest = interval.saturating_sub(begin.elapsed());
            let is_wanted = wanted.finish || wanted.flush_wanted != wanted.flush_done;
            if self.wake.swap(false, Ordering::AcqRel) || is_wanted || rest.is_zero() {
                return (wanted.flush_wanted, wanted.filename.take(), wanted.finish);
            }
            drop(wanted);
            std::thread::park_timeout(rest);
        }
    }

    /// Whether the file has been written to its end, as far as that is known within `patience`.
    pub(crate) fn is_finished(&self, patience: Duration) -> bool {
        lock_within(&self.wanted, patience).is_some_and(|wanted| wanted.finished)
    }

    pub(crate) fn refuse(&self) {
        lock(&self.wanted).refused = true;
    }

    pub(crate) fn acknowledge(&self, flush: u64, finished: bool) {
        let mut wanted = lock(&self.wanted);
        wanted.flush_done = flush;
        wanted.finished |= finished;
        drop(wanted);
        self.done.notify_all();
    }
}
