//! Symbol interposition: what librpd_hip.so asks.

use std::ffi::{CStr, c_char, c_void};

use crate::guard::guard;
use crate::sources::hip::symbols;

/// What librpd_hip.so is to call for HIP's function `name`, of which `original` is HIP's own. Asked once for each function, at its first
/// call.
///
/// # Safety
/// `name` is NUL-terminated; `original` is that function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpd_hip_symbol(name: *const c_char, original: *mut c_void) -> *mut c_void {
    guard(original, || {
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(name) };
        symbols::function(name, original as usize) as *mut c_void
    })
}
