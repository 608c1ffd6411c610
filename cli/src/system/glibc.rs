//! The C library that this process runs on.

#![allow(unsafe_code)]

use std::ffi::CStr;

/// Its version: 2.36.
pub(crate) fn version() -> String {
    // SAFETY: the function takes nothing and returns a text that is there for ever.
    unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
}
