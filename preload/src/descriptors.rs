//! A descriptor for a file of ours where the program has used up its own.

use std::io::{Error, Result};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// By how many descriptors the limit is raised.
const MORE: libc::rlim_t = 16;

/// Runs `open`. Where the process has as many descriptors as its limit allows, `open` runs again with a higher one, which is the program's
/// again when this returns: a descriptor above it can be used and closed as any other.
///
/// # Errors
/// Those of `open`.
pub fn with_room<T>(mut open: impl FnMut() -> Result<T>) -> Result<T> {
    match open() {
        Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
            let _raised = raise();
            open()
        }
        opened => opened,
    }
}

/// The limit is higher until this is dropped.
struct Raised {
    program: libc::rlimit,
    ours: libc::rlimit,
}

/// Whether a thread has raised the limit.
static IS_RAISED: AtomicBool = AtomicBool::new(false);

/// Nothing where another thread has raised it, or where the process may not: beyond the hard limit only a privileged one may.
fn raise() -> Option<Raised> {
    if IS_RAISED.swap(true, Ordering::Acquire) {
        return None;
    }
    let raised = exchange(None).ok().and_then(|program| {
        let soft = program.rlim_cur.saturating_add(MORE);
        let ours = libc::rlimit { rlim_cur: soft, rlim_max: program.rlim_max.max(soft) };
        exchange(Some(ours)).ok().map(|_| Raised { program, ours })
    });
    if raised.is_none() {
        IS_RAISED.store(false, Ordering::Release);
    }
    raised
}

impl Drop for Raised {
    fn drop(&mut self) {
        // What the program has set meanwhile stands.
        if exchange(None).is_ok_and(|now| now.rlim_cur == self.ours.rlim_cur) {
            let _ = exchange(Some(self.program));
        }
        IS_RAISED.store(false, Ordering::Release);
    }
}

/// The limits that this process has, and from now on those that are given.
fn exchange(new: Option<libc::rlimit>) -> Result<libc::rlimit> {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let new = new.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: null or live limits, and a place for those that were.
    match unsafe { libc::prlimit(0, libc::RLIMIT_NOFILE, new, &mut old) } {
        0 => Ok(old),
        _ => Err(Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Whether a file is opened where all descriptors are used up, and the limit is what it was.
    fn has_room_and_the_same_limit() -> bool {
        let open = || File::open("/dev/null");
        let Ok(before) = exchange(None) else { return false };
        let full = libc::rlimit { rlim_cur: 64, ..before };
        let is_set = exchange(Some(full)).is_ok();
        let _all: Vec<File> = std::iter::from_fn(|| open().ok()).collect();
        let is_full = open().is_err_and(|error| error.raw_os_error() == Some(libc::EMFILE));
        let has_room = with_room(open).is_ok();
        let is_same =
            exchange(None).is_ok_and(|now| (now.rlim_cur, now.rlim_max) == (full.rlim_cur, full.rlim_max));
        is_set && is_full && has_room && is_same
    }

    #[test]
    fn a_file_is_opened_where_the_program_has_no_descriptor_left() {
        // In a process of its own: other tests need descriptors meanwhile.
        // SAFETY: the child opens files and ends; it takes no lock but the C library's, which a fork leaves free.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child alone.
            unsafe { libc::_exit(i32::from(!has_room_and_the_same_limit())) };
        }
        let mut status = -1;
        // SAFETY: a child of this process, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
    }
}
