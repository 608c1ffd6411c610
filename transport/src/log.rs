//! Lines on standard error, or in the file that RPDT_LOG_FILE names; nothing on standard output.
//!
//! Silent unless something went wrong or RPDT_LOG asks for more.

use std::ffi::CString;
use std::fmt::Display;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rpd_preload::lock::lock_within;
use rpd_preload::stderr;

use crate::env::Template;

static LEVEL: AtomicU8 = AtomicU8::new(0);
/// Where lines go that do not go to standard error.
static FILE: OnceLock<Template> = OnceLock::new();
const SPEAKER: &str = "rpd_tracer";
/// How many problems there were, and the last of them.
static PROBLEMS: Mutex<(u64, String)> = Mutex::new((0, String::new()));
/// A forked child may find that lock held by a thread that it does not have.
const PATIENCE: Duration = Duration::from_millis(10);

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// 0: problems only, 1: what the recorder does as well.
    pub level: u8,
    /// Where that is said, if not on standard error.
    pub file: Option<Template>,
}

impl LogConfig {
    /// Holds from now on. Where the file cannot be written, lines go to standard error.
    pub fn apply(&self) {
        LEVEL.store(self.level, Ordering::Relaxed);
        if let Some(file) = &self.file {
            let _ = FILE.set(file.clone());
        }
    }
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
    let file = FILE.get().and_then(|file| CString::new(file.expanded().into_os_string().into_vec()).ok());
    if !file.is_some_and(|file| stderr::write_line_into(&file, SPEAKER, message)) {
        stderr::write_line(SPEAKER, message);
    }
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
