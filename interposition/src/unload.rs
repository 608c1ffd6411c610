//! `dlclose`. A library whose functions were found may leave the process with it, and come again at another address, or another one in its
//! place: where its functions go is forgotten then, and their next calls look for them again.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Interposed, loaded};

const NAME: &CStr = c"dlclose";
/// Zero until the first call.
static REAL: AtomicUsize = AtomicUsize::new(0);

type Real = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The next function of that name: the C library's, or that of somebody else who has one.
fn real() -> Option<usize> {
    let known = REAL.load(Ordering::Relaxed);
    if known != 0 {
        return Some(known);
    }
    let found = loaded::first_function(NAME)?;
    REAL.store(found, Ordering::Relaxed);
    Some(found)
}

/// Closes the library, and forgets what has left the process.
///
/// # Safety
/// As the C library demands.
pub unsafe fn close(interposed: &Interposed, handle: *mut c_void) -> c_int {
    // Without the C library's function nothing leaves the process.
    let Some(real) = real() else { return 0 };
    let before = loaded::unloaded();
    // SAFETY: that function's type; the caller's promise.
    let status = unsafe { std::mem::transmute::<usize, Real>(real)(handle) };
    if loaded::unloaded() != before {
        interposed.forget(|original| !loaded::is_loaded(original));
    }
    status
}
