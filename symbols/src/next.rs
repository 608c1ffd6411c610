//! Where a call goes on: the recorder, or HIP.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::loaded::{self, From};

/// `void *rpd_hip_symbol(const char *name, void *original)` of librpd_tracer.so: what to call for `name`.
type Ask = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut c_void;

/// hipErrorNoDevice.
const NO_DEVICE: c_int = 100;

/// What a function of HIP answers in a process without HIP: there is no GPU.
pub(crate) extern "C" fn without_hip() -> c_int {
    NO_DEVICE
}

/// The function to call for `symbol`, which is HIP's function `name`; nothing where HIP is not in the process. Takes no lock that a
/// thread inside dlopen holds: that one may be waiting for this call. The recorder keeps HIP in the process.
pub(crate) fn function(symbol: &CStr, name: &CStr) -> Option<usize> {
    // Of two symbols of one function, that of C++ may call the other.
    let original = original(name).or_else(|| original(symbol))?;
    let Some(recorder) = loaded::function(c"rpd_hip_symbol", From::Start) else { return Some(original) };
    // SAFETY: only librpd_tracer.so has a function of that name, and that is its signature.
    let function =
        unsafe { std::mem::transmute::<usize, Ask>(recorder)(name.as_ptr(), original as *mut c_void) };
    Some(function as usize)
}

/// HIP's own function, that of the first library behind this one that has it: also of one that the program has loaded for itself alone
/// (RTLD_LOCAL). Nothing is loaded.
pub(crate) fn original(symbol: &CStr) -> Option<usize> {
    loaded::function(symbol, From::BehindThis)
}
