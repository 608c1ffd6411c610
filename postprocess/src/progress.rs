//! How far long work has come: one line on standard error that is written over, on a terminal only.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::text;

/// Work that is done sooner than this needs no line.
const PATIENCE: Duration = Duration::from_millis(500);

/// The line; it goes away with this.
pub(crate) struct Progress {
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
    pub(crate) fn new() -> Progress {
        Progress { is_seen: io::stderr().is_terminal(), begun: Instant::now(), line: Mutex::default() }
    }

    /// Says what is being worked on; it is shown now, or by [`Progress::tick`] once the work takes long.
    pub(crate) fn show(&self, what: &str) {
        if self.is_seen {
            let mut line = self.line();
            line.what.clear();
            line.what.push_str(what);
            line.is_current = false;
            self.write(&mut line);
        }
    }

    /// Shows what is being worked on, if that is not yet seen: for work that is one long step.
    pub(crate) fn tick(&self) {
        if self.is_seen {
            self.write(&mut self.line());
        }
    }

    fn write(&self, line: &mut Line) {
        if !line.is_current && self.begun.elapsed() >= PATIENCE {
            line.is_written = true;
            line.is_current = true;
            let _ = io::stderr().write_all(format!("\r\x1b[K{}", text::escape(&line.what)).as_bytes());
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.line().is_written {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
