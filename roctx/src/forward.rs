//! Where the calls of one function go: to the recorder in the process, otherwise to AMD's library, otherwise nowhere.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rpd_preload::cancellation;

use crate::real;

/// The recorder's soname, under which it is in the process whatever path it was loaded from.
const RECORDER: &CStr = c"librpd_tracer.so";

/// Counts the times that functions had to look anew, from 1.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// What every function has found may be out of date.
pub(crate) fn look_again() {
    GENERATION.fetch_add(1, Ordering::Release);
}

/// One function, of type `F`, a function pointer.
pub(crate) struct Forward<F> {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    /// Generation in which `found` was found.
    generation: AtomicU32,
    signature: PhantomData<F>,
}

impl<F: Copy> Forward<F> {
    /// The function of that name, whose signature is `F`.
    pub(crate) const fn new(name: &'static CStr) -> Forward<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a function pointer") };
        let found = AtomicPtr::new(ptr::null_mut());
        Forward { name, found, generation: AtomicU32::new(0), signature: PhantomData }
    }

    /// The function that takes the call. Threads that look for it at the same time find the same: there is no lock, because one of
    /// them may hold the dynamic loader's.
    pub(crate) fn get(&self) -> Option<F> {
        let now = GENERATION.load(Ordering::Acquire);
        if self.generation.load(Ordering::Acquire) != now {
            self.found.store(cancellation::disabled(|| look_for(self.name)), Ordering::Relaxed);
            self.generation.store(now, Ordering::Release);
        }
        let found = self.found.load(Ordering::Relaxed);
        // SAFETY: `found` is the function of that name, of whose signature the name speaks; the sizes are equal (see `new`).
        (!found.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
    }
}

fn look_for(name: &CStr) -> *mut c_void {
    // SAFETY: NUL-terminated names; RTLD_NOLOAD loads nothing. The recorder is never unloaded.
    let recorder = unsafe {
        let library = libc::dlopen(RECORDER.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() { ptr::null_mut() } else { libc::dlsym(library, name.as_ptr()) }
    };
    if recorder.is_null() { real::function(name) } else { recorder }
}
