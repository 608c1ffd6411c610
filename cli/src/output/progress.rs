//! Progress of long work: one line on standard error that is written over, on a terminal only. A thread writes it where the work itself
//! says nothing for a while.

use std::any::Any;
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rpd_postprocess::notes::{Notes, SharedNotes};
use rpd_postprocess::text;

use super::note::note;
use crate::system::interruption::Interruption;

/// Work that is done sooner than this needs no line.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often the thread looks whether the line is to be written.
const LOOK: Duration = Duration::from_millis(100);

/// What rpd does with the notes of long work: for one command, after which the line is gone.
pub(crate) fn notes() -> SharedNotes {
    Arc::new(Progress::new())
}

/// The line; it goes away with this.
struct Progress {
    is_seen: bool,
    line: Arc<SharedLine>,
}

/// The line, as the work and the thread have it.
struct SharedLine {
    begun: Instant,
    line: Mutex<Line>,
    /// It has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Line {
    what: String,
    is_written: bool,
    is_current: bool,
    /// The thread was started.
    is_watched: bool,
    has_ended: bool,
}

impl Line {
    /// Takes it away.
    fn erase(&mut self) {
        if self.is_written {
            self.is_written = false;
            self.is_current = false;
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

impl SharedLine {
    fn get(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, line: &mut Line) {
        if !line.is_current && !line.has_ended && self.begun.elapsed() >= PATIENCE {
            line.is_written = true;
            line.is_current = true;
            let _ = io::stderr().write_all(format!("\r\x1b[K{}", text::escape(&line.what)).as_bytes());
        }
    }

    /// The body of the thread.
    fn watch(&self) {
        let mut line = self.get();
        while !line.has_ended {
            self.write(&mut line);
            line = self.ended.wait_timeout(line, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Progress {
    /// Nothing is shown yet, and nothing ever will be where nobody looks.
    fn new() -> Progress {
        let line = SharedLine { begun: Instant::now(), line: Mutex::default(), ended: Condvar::new() };
        Progress { is_seen: io::stderr().is_terminal(), line: Arc::new(line) }
    }
}

impl Notes for Progress {
    fn note(&self, line: Arguments<'_>) {
        let mut shown = self.line.get();
        shown.erase();
        note(line);
    }

    fn show(&self, what: &str) {
        if self.is_seen {
            let mut line = self.line.get();
            line.what.clear();
            line.what.push_str(what);
            line.is_current = false;
            self.line.write(&mut line);
            if !std::mem::replace(&mut line.is_watched, true) {
                let watched = Arc::clone(&self.line);
                // Without the thread the line comes when the work next says something.
                let _ = thread::Builder::new().name("rpd-progress".into()).spawn(move || watched.watch());
            }
        }
    }

    fn tick(&self) {
        if self.is_seen {
            self.line.write(&mut self.line.get());
        }
    }

    fn hold_signals(&self) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(Interruption::note()?))
    }

    fn signal(&self) -> Option<i32> {
        Interruption::signal()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let mut line = self.line.get();
        line.has_ended = true;
        line.erase();
        self.line.ended.notify_all();
    }
}
