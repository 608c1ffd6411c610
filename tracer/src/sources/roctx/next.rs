//! The functions of a roctx library behind ours, if there is one.
//!
//! That is the next definition in the program's search order or, where the program has loaded its library for itself alone
//! (dlopen), a roctx library that is in the process. Our own libroctx64.so is in front of the recorder, never behind
//! it. It is asked for the library behind it. The recorder looks once, at the first call, and loads nothing.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use rpd_preload::loaded::{self, Loaded};
use rpd_preload::{cancellation, library};

/// Names under which roctx libraries are loaded: programs link these sonames.
const LIBRARIES: [&CStr; 5] = [
    c"libroctx64.so.4",
    c"libroctx64.so",
    c"librocprofiler-sdk-roctx.so.1",
    c"librocprofiler-sdk-roctx.so.0",
    c"librocprofiler-sdk-roctx.so",
];
/// Exported by our own libroctx64.so: `void *rpd_roctx_next(const char *name)`, the function it would call without the recorder.
const OURS: &CStr = c"rpd_roctx_next";

/// Exported by it too: `void rpd_roctx_refresh(void)`.
const REFRESH: &CStr = c"rpd_roctx_refresh";

/// The recorder is in the process now. Our own libroctx64.so, where the program has it already, sends calls here from now on.
pub(crate) fn arrived() {
    // Every process comes by here. Where the library is not loaded, the loader would look for it in each directory that may have one.
    if !library::is_loaded("libroctx64.so") {
        return;
    }
    let library = Loaded::find(LIBRARIES[0]);
    // SAFETY: only our library has a function of that name, which takes nothing.
    let refresh = library.and_then(|library| unsafe { library.function::<extern "C-unwind" fn()>(REFRESH) });
    if let Some(refresh) = refresh {
        refresh();
    }
}

/// One function, of type `F`, a function pointer.
pub(crate) struct NextFunction<F> {
    name: &'static CStr,
    /// Null: not looked for yet. [`NONE`]: there is none.
    found: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

/// Stands for "there is none".
static NONE: u8 = 0;

impl<F: Copy> NextFunction<F> {
    /// The function of that name, whose signature is `F`.
    pub(super) const fn new(name: &'static CStr) -> NextFunction<F> {
        NextFunction { name, found: AtomicPtr::new(ptr::null_mut()), signature: PhantomData }
    }

    /// The function. Threads that look for it at the same time find the same: there is no lock, because one of them may hold the
    /// dynamic loader's.
    pub(crate) fn get(&self) -> Option<F> {
        let none = (&raw const NONE).cast_mut().cast::<c_void>();
        let mut found = self.found.load(Ordering::Acquire);
        if found.is_null() {
            found = cancellation::disabled(|| look_for(self.name)).map_or(none, NonNull::as_ptr);
            self.found.store(found, Ordering::Release);
        }
        // SAFETY: the function of that name, of whose signature the name speaks.
        NonNull::new(found).filter(|_| found != none).map(|found| unsafe { loaded::function(found) })
    }
}

fn look_for(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a NUL-terminated name.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    let loaded = LIBRARIES.iter().filter_map(|library| Loaded::find(library)?.symbol(name));
    NonNull::new(next).into_iter().chain(loaded).find_map(|function| {
        // SAFETY: libraries whose functions may be called from here on stay loaded.
        match unsafe { library::of_address(function.as_ptr()) } {
            Some(file) if Some(file) == library::own_path() => None,
            Some(file) => behind(file, name).unwrap_or(Some(function)),
            None => Some(function),
        }
    })
}

/// What is behind our own libroctx64.so. Nothing if `file` is another library.
fn behind(file: &CStr, name: &CStr) -> Option<Option<NonNull<c_void>>> {
    type AskNext = unsafe extern "C-unwind" fn(*const c_char) -> *mut c_void;
    // SAFETY: only our library has a function of that name, and that is its signature.
    let ask = unsafe { Loaded::find(file)?.function::<AskNext>(OURS) }?;
    // SAFETY: a NUL-terminated name.
    Some(NonNull::new(unsafe { ask(name.as_ptr()) }))
}
