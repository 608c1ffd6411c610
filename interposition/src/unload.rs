//! `dlclose`. A library whose functions were found may leave the process with it, and come again at another address, or another one in its
//! place: where its functions go is forgotten then, and their next calls look for them again.

use std::ffi::{c_int, c_void};

use crate::loaded::RealFunction;
use crate::{Interposed, loaded};

static REAL: RealFunction = RealFunction::new(c"dlclose");

type Real = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Closes the library, and forgets what has left the process.
///
/// # Safety
/// As the C library demands.
pub unsafe fn close(interposed: &Interposed, handle: *mut c_void) -> c_int {
    // Without the C library's function nothing leaves the process.
    let Some(real) = REAL.get() else { return 0 };
    let before = loaded::unloaded();
    // SAFETY: that function's type; the caller's promise.
    let status = unsafe { std::mem::transmute::<usize, Real>(real)(handle) };
    if loaded::unloaded() != before {
        interposed.forget(|original| !loaded::is_loaded(original));
    }
    status
}
