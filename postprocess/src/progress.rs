//! How far long work has come: one line on standard error that is written over, on a terminal only.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::text;

/// Work that is done sooner than this needs no line.
const PATIENCE: Duration = Duration::from_millis(500);

/// The line; it goes away with this.
pub(crate) struct Progress {
    is_seen: bool,
    begun: Instant,
    is_written: Cell<bool>,
}

impl Progress {
    /// Nothing is shown yet, and nothing ever will be where nobody looks.
    pub(crate) fn new() -> Progress {
        Progress { is_seen: io::stderr().is_terminal(), begun: Instant::now(), is_written: Cell::new(false) }
    }

    /// Shows what is being worked on.
    pub(crate) fn show(&self, what: &str) {
        if self.is_seen && self.begun.elapsed() >= PATIENCE {
            self.is_written.set(true);
            let _ = io::stderr().write_all(format!("\r\x1b[K{}", text::escape(what)).as_bytes());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_written.get() {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
