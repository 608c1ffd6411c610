//! Capabilities of a process or a program.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// Whether the file has capabilities attached (setcap), which make the dynamic loader distrust the
/// environment.
pub(crate) fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both strings end in NUL, and a size of 0 asks for the length only.
    let length =
        unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), ptr::null_mut(), 0) };
    length > 0
}

/// Asks whether this process may read and write a file, without opening it: a driver keeps books for who opens its device.
///
/// # Errors
/// Why not.
pub(crate) fn may_read_and_write(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the string ends in NUL.
    match unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Effective user and group of this process.
pub(crate) fn user_and_group() -> (u32, u32) {
    // SAFETY: both calls take nothing and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
