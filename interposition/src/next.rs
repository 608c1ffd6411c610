//! The function in which a call goes on: the recorder's, or the library's.

use std::ffi::{CStr, c_char, c_void};

use crate::loaded::{self, From};

/// See [`crate::Interposed::ask`].
type Ask = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut c_void;

/// The function to call for `symbol`, which is the function `name`; nothing where nobody has it. Takes no lock that a thread inside dlopen
/// holds: that one may be waiting for this call. The recorder keeps the library in the process.
pub(crate) fn function(ask: &CStr, symbol: &CStr, name: &CStr) -> Option<usize> {
    // Of two symbols of one function, that of C++ may call the other.
    let original = original(name).or_else(|| original(symbol))?;
    let Some(recorder) = loaded::function(ask, From::Start) else { return Some(original) };
    // SAFETY: only librpd_tracer.so has a function of that name, and that is its signature.
    let function =
        unsafe { std::mem::transmute::<usize, Ask>(recorder)(name.as_ptr(), original as *mut c_void) };
    Some(function as usize)
}

/// The library's own function, that of the first library behind this one that has it: also of one that the program has loaded for itself alone
/// (RTLD_LOCAL). Nothing is loaded.
pub(crate) fn original(symbol: &CStr) -> Option<usize> {
    loaded::function(symbol, From::BehindThis)
}
