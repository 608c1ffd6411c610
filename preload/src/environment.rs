//! The process's environment: whether its caller may be believed, and variables that are set while other threads read.

use std::ffi::{CStr, c_char};
use std::sync::Mutex;

use crate::lock::lock;

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// The address of every array ever published. Who looks for leaks when a process ends finds the arrays by it, and by them their variables,
/// also where the program has changed its environment since.
static PUBLISHED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Whether the program has rights that its caller has not: it must not load or write what its caller names.
pub fn is_secure() -> bool {
    // SAFETY: no pointers; AT_SECURE is always in the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Sets a variable without freeing anything that another thread may be reading: setenv may move the array under a getenv
/// when the library is loaded late, in a process with threads. A new array is published instead; the old one stays.
pub fn put(name: &CStr, value: &CStr) {
    let mut entry = name.to_bytes().to_vec();
    entry.push(b'=');
    let prefix = entry.clone();
    entry.extend_from_slice(value.to_bytes_with_nul());
    let entry = Box::leak(entry.into_boxed_slice());
    // SAFETY: `environ` is null or a null-terminated array of C strings; only its pointer is replaced, by one that stays
    // valid for ever, and getenv reads it once per call.
    unsafe {
        let mut list = Vec::new();
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if !CStr::from_ptr(*at).to_bytes().starts_with(&prefix) {
                list.push(*at);
            }
            at = at.add(1);
        }
        list.push(entry.as_mut_ptr().cast());
        list.push(std::ptr::null_mut());
        environ = Box::leak(list.into_boxed_slice()).as_mut_ptr();
        lock(&PUBLISHED).push(environ as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_and_replaced() {
        put(c"RPD_PRELOAD_TEST", c"one");
        put(c"RPD_PRELOAD_TEST", c"two");
        // SAFETY: the name is NUL-terminated; the value is one we leaked.
        let value = unsafe { CStr::from_ptr(libc::getenv(c"RPD_PRELOAD_TEST".as_ptr())) };
        assert_eq!(value, c"two");
        assert!(std::env::var_os("PATH").is_some(), "the rest is still there");
    }
}
