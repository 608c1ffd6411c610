//! The function in which a call goes on: the recorder's, or the library's.

use std::ffi::{CStr, c_char, c_void};

use crate::loaded::{self, From};

/// See [`crate::Interposed::ask`].
type Ask = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut c_void;

/// Where a call goes on.
#[derive(Clone, Copy)]
pub(crate) struct NextFunction {
    /// The function to call.
    pub(crate) function: usize,
    /// The library's own.
    pub(crate) original: usize,
}

/// The function to call for `symbol`, which is the function `name`; nothing where nobody has it. Takes no lock that a thread inside dlopen
/// holds: that one may be waiting for this call.
pub(crate) fn function(ask: &CStr, symbol: &CStr, name: &CStr) -> Option<NextFunction> {
    // Of two symbols of one function, that of C++ may call the other.
    let original = original(name).or_else(|| original(symbol))?;
    let Some(recorder) = loaded::function(ask, From::Start) else {
        return Some(NextFunction { function: original, original });
    };
    // SAFETY: only librpd_tracer.so has a function of that name, and that is its signature.
    let function =
        unsafe { std::mem::transmute::<usize, Ask>(recorder)(name.as_ptr(), original as *mut c_void) };
    Some(NextFunction { function: function as usize, original })
}

/// The library's own function, that of the first library behind this one that has it: also of one that the program has loaded for itself alone
/// (RTLD_LOCAL). Nothing is loaded.
pub(crate) fn original(symbol: &CStr) -> Option<usize> {
    loaded::function(symbol, From::BehindThis)
}
