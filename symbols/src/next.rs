//! Where a call goes on: the recorder, or HIP.

use std::ffi::{CStr, c_char, c_int, c_void};

/// HIP's sonames, newest first.
const HIP: [&CStr; 3] = [c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5"];

/// `void *rpd_hip_symbol(const char *name, void *original)` of librpd_tracer.so: what to call for `name`.
type Ask = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut c_void;

/// hipErrorNoDevice.
const NO_DEVICE: c_int = 100;

/// What a function of HIP answers in a process without HIP: there is no GPU.
pub(crate) extern "C" fn without_hip() -> c_int {
    NO_DEVICE
}

/// The function to call for `name`; nothing where HIP is not in the process.
pub(crate) fn function(name: &CStr) -> Option<usize> {
    let original = original(name)?;
    // SAFETY: a NUL-terminated name.
    let recorder = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"rpd_hip_symbol".as_ptr()) };
    if recorder.is_null() {
        return Some(original as usize);
    }
    // SAFETY: only librpd_tracer.so has a function of that name, and that is its signature.
    let function = unsafe { std::mem::transmute::<*mut c_void, Ask>(recorder)(name.as_ptr(), original) };
    Some(function as usize)
}

/// HIP's own function: the next in the search order or, where the program has loaded HIP for itself alone (RTLD_LOCAL), that of the
/// library that is in the process. Nothing is loaded.
fn original(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a NUL-terminated name.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    let loaded = HIP.iter().map(|library| {
        // SAFETY: NUL-terminated names; RTLD_NOLOAD runs no code. The handle is not given back: the library stays for as long as its
        // function may be called.
        unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() { std::ptr::null_mut() } else { libc::dlsym(handle, name.as_ptr()) }
        }
    });
    std::iter::once(next).chain(loaded).find(|function| !function.is_null())
}
