//! Progress of long work: one line on standard error that is written over, on a terminal only.

use std::any::Any;
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rpd_postprocess::notes::{Notes, SharedNotes};
use rpd_postprocess::text;

use super::note::note;
use crate::system::interruption::Interruption;

/// Work that is done sooner than this needs no line.
const PATIENCE: Duration = Duration::from_millis(500);

/// What rpd does with the notes of long work: for one command, after which the line is gone.
pub(crate) fn notes() -> SharedNotes {
    Arc::new(Progress::new())
}

/// The line; it goes away with this.
struct Progress {
    is_seen: bool,
    begun: Instant,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    what: String,
    is_written: bool,
    is_current: bool,
}

impl Progress {
    /// Nothing is shown yet, and nothing ever will be where nobody looks.
    fn new() -> Progress {
        Progress { is_seen: io::stderr().is_terminal(), begun: Instant::now(), line: Mutex::default() }
    }

    fn write(&self, line: &mut Line) {
        if !line.is_current && self.begun.elapsed() >= PATIENCE {
            line.is_written = true;
            line.is_current = true;
            let _ = io::stderr().write_all(format!("\r\x1b[K{}", text::escape(&line.what)).as_bytes());
        }
    }

    /// Takes the line away.
    fn erase(&self) {
        let mut line = self.line();
        if line.is_written {
            line.is_written = false;
            line.is_current = false;
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notes for Progress {
    fn note(&self, line: Arguments<'_>) {
        self.erase();
        note(line);
    }

    fn show(&self, what: &str) {
        if self.is_seen {
            let mut line = self.line();
            line.what.clear();
            line.what.push_str(what);
            line.is_current = false;
            self.write(&mut line);
        }
    }

    fn tick(&self) {
        if self.is_seen {
            self.write(&mut self.line());
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
        self.erase();
    }
}
