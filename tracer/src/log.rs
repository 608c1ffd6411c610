//! One line to stderr by a raw write: no allocation lock of stdio, no buffering, nothing on stdout.
//!
//! Silent unless something went wrong or RPDT_LOG asks for more.

use std::sync::atomic::{AtomicU8, Ordering};

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Sets what [`info`] lets through.
pub(crate) fn set_level(level: u8) {
    LEVEL.store(level, Ordering::Relaxed);
}

/// Something went wrong that the user must know.
pub(crate) fn problem(message: &str) {
    write(message);
}

/// What the recorder does; shown with RPDT_LOG=1 and up.
pub(crate) fn info(message: impl FnOnce() -> String) {
    if LEVEL.load(Ordering::Relaxed) >= 1 {
        write(&message());
    }
}

fn write(message: &str) {
    let line = format!("rpd_tracer[{}]: {}\n", std::process::id(), message.replace('\n', " "));
    // SAFETY: the pointer and length describe `line`; a short or failed write only loses a message.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
