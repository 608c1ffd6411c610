//! The function behind one of ours that has its name: the C library's, or another library's in between.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::loaded;

/// A function that a library of ours interposes.
pub struct Next {
    name: &'static CStr,
    function: AtomicPtr<c_void>,
}

impl Next {
    /// The function of that name.
    pub const fn new(name: &'static CStr) -> Next {
        Next { name, function: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Its name.
    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// Looks for it, once and early: later, in a signal handler, it could not be done.
    pub fn look_up(&self) -> Option<NonNull<c_void>> {
        // SAFETY: a NUL-terminated name.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.function.store(found, Ordering::Relaxed);
        NonNull::new(found)
    }

    /// What was found.
    ///
    /// # Safety
    /// `F` is the function pointer type of the function of that name.
    pub unsafe fn get<F: Copy>(&self) -> Option<F> {
        // SAFETY: the caller's promise.
        NonNull::new(self.function.load(Ordering::Relaxed)).map(|found| unsafe { loaded::function(found) })
    }
}
