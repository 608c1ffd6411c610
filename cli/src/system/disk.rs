//! Room on file systems.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Room on a file system, in bytes.
pub(crate) struct Space {
    /// What this user may still fill.
    pub(crate) free: u64,
    /// Its size.
    pub(crate) total: u64,
}

/// Room on the file system that `path` is on.
///
/// # Errors
/// When there is no such file, or it may not be looked at.
pub(crate) fn space(path: &Path) -> io::Result<Space> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut status = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the string ends in NUL, and there is room for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), status.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: integers, for which zeros are a value, and which the call has filled.
    let status = unsafe { status.assume_init() };
    let bytes = |blocks: u64| blocks.saturating_mul(status.f_frsize);
    Ok(Space { free: bytes(status.f_bavail), total: bytes(status.f_blocks) })
}
