//! Lines on standard error, nothing on standard output.
//!
//! Silent unless something went wrong or RPDT_LOG asks for more.

use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rpd_preload::lock::lock_within;
use rpd_preload::stderr;

static LEVEL: AtomicU8 = AtomicU8::new(0);
/// How many problems there were, and the last of them.
static PROBLEMS: Mutex<(u64, String)> = Mutex::new((0, String::new()));
/// A forked child may find that lock held by a thread that it does not have.
const PATIENCE: Duration = Duration::from_millis(10);

/// Sets what [`info`] lets through.
pub fn set_level(level: u8) {
    LEVEL.store(level, Ordering::Relaxed);
}

/// Something went wrong that the user must know.
pub fn problem(message: &str) {
    note(message);
    write(message);
}

/// Remembers a problem that need not be said, because it was a moment ago.
pub fn note(message: &str) {
    if let Some(mut problems) = lock_within(&PROBLEMS, PATIENCE) {
        *problems = (problems.0 + 1, message.to_string());
    }
}

/// How many problems there were so far, and the last of them.
pub fn problems() -> (u64, String) {
    lock_within(&PROBLEMS, PATIENCE).map(|problems| problems.clone()).unwrap_or_default()
}

/// What the recorder does; shown with RPDT_LOG=1 and up.
pub fn info(message: impl FnOnce() -> String) {
    if LEVEL.load(Ordering::Relaxed) >= 1 {
        write(&message());
    }
}

fn write(message: &str) {
    stderr::write_line("rpd_tracer", message);
}

/// Says a problem at most once a minute.
#[derive(Default)]
pub struct Complaint {
    last: Option<Instant>,
}

impl Complaint {
    /// Says it, or remembers it where another one was said a moment ago.
    pub(crate) fn say(&mut self, message: &str) {
        if self.last.is_none_or(|at| at.elapsed() > Duration::from_secs(60)) {
            self.last = Some(Instant::now());
            return problem(message);
        }
        note(message);
    }

    /// The program has named a file that cannot be the trace.
    pub(crate) fn say_refused(&mut self, error: &dyn Display) {
        self.say(&format!("{error}; the trace stays the one that it was"));
    }
}
