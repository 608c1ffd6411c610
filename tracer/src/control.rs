//! The functions by which a program or librpd_remote.so controls the recorder (include/rpd_tracer.h), under the names the original gave
//! them.
//!
//! Every function may be called from any thread, before or after the GPU runtime exists, and does nothing where recording is
//! not possible.

pub mod state;

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rpd_transport::config::Template;
use rpd_transport::recorder;

use crate::guard::{bytes, guard, with_recorder};
use crate::process::finish;

/// One more start: recording runs while there were more starts than stops. RPDT_AUTOSTART=1 counts as one.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpdstart() {
    with_recorder(|recorder| {
        recorder.switch.start();
        recorder.setup.sources.iter().for_each(|source| source.started(recorder));
    });
}

/// One more stop.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpdstop() {
    with_recorder(|recorder| recorder.switch.stop());
}

/// Returns when all that was recorded and completed before the call is in the file, or after 10 s.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpdflush() {
    with_recorder(finish::flush);
}

/// As [`rpdflush`], after up to `ns` ns in which what was launched while recording may complete. Returns how many recorded launches have no
/// operation in the file then: their kernels have not completed.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpddrain(ns: u64) -> u64 {
    guard(0, || recorder::get().map_or(0, |recorder| finish::drain(recorder, Duration::from_nanos(ns))))
}

/// Another trace: what was recorded before the call is in the old file when it returns (after 10 s at the latest), what is
/// recorded after it goes into this one. `%p`, `%h`, `%r` and `%j` stand for what they do in RPDT_FILENAME. Returns 0, or -1 where no trace
/// can have that name; nothing has changed then.
///
/// # Safety
/// `name` is a NUL-terminated string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpd_setFilename(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { bytes(name) };
    if name.is_empty() {
        return -1;
    }
    let mut changed = true;
    with_recorder(|recorder| {
        changed = finish::change_file(recorder, Template::new(Path::new(OsStr::from_bytes(name))))
    });
    if changed { 0 } else { -1 }
}

/// What the end of the process does, for one that ends by `_exit` and has loaded the recorder late: the last rows and the session's
/// end. Nothing is recorded after it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpdfinish() {
    guard((), finish::process_end);
}
