//! What the system says: room on a disk, columns of the terminal, the version of the C library.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Room on a file system, in bytes.
pub(crate) struct DiskSpace {
    /// What this user may still fill.
    pub(crate) free: u64,
    /// Its size.
    pub(crate) total: u64,
}

/// Room on the file system that `path` is on.
///
/// # Errors
/// When there is no such file, or it may not be looked at.
pub(crate) fn space(path: &Path) -> io::Result<DiskSpace> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut status = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the string ends in NUL, and there is room for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), status.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: integers, for which zeros are a value, and which the call has filled.
    let status = unsafe { status.assume_init() };
    let bytes = |blocks: u64| blocks.saturating_mul(status.f_frsize);
    Ok(DiskSpace { free: bytes(status.f_bavail), total: bytes(status.f_blocks) })
}

/// Columns of the terminal on standard output, if it is one that knows its size.
pub(crate) fn terminal_width() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one winsize.
    let rc = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (rc == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// The version of the C library that this process runs on: 2.36.
pub(crate) fn glibc_version() -> String {
    // SAFETY: the function takes nothing and returns a text that is there for ever.
    unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
}
