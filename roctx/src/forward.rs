//! Passing the calls of one function on: to the recorder in the process, otherwise to AMD's library, otherwise nowhere.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rpd_preload::cancellation;
use rpd_preload::loaded::{self, Loaded};

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
        // SAFETY: the function of that name, of whose signature the name speaks.
        NonNull::new(self.found.load(Ordering::Relaxed)).map(|found| unsafe { loaded::function(found) })
    }
}

fn look_for(name: &CStr) -> *mut c_void {
    let recorder = Loaded::find(RECORDER).and_then(|recorder| recorder.symbol(name));
    recorder.map_or_else(|| real::function(name), NonNull::as_ptr)
}
