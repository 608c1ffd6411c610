//! A library that the process has loaded, and its functions by name.
//!
//! libloading would close what it opens, where every library here stays: its functions may be called at any time. It also copies each name,
//! and takes the message that `dlerror` has, which may be the program's to read where a symbol is only looked for.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;

/// See the module.
#[derive(Clone, Copy)]
pub struct Loaded(NonNull<c_void>);

impl Loaded {
    /// The library of that name or path, where the process has loaded it. It stays from now on.
    pub fn find(name: &CStr) -> Option<Loaded> {
        // SAFETY: RTLD_NOLOAD runs no code of the library.
        unsafe { Loaded::open(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
    }

    /// The library of that name or path, loaded by `dlopen` in that mode if need be. It stays from now on.
    ///
    /// # Safety
    /// The library's constructors may run here.
    pub unsafe fn open(name: &CStr, mode: c_int) -> Option<Loaded> {
        // SAFETY: the caller's promise, and a NUL-terminated name.
        NonNull::new(unsafe { libc::dlopen(name.as_ptr(), mode) }).map(Loaded)
    }

    /// Why `dlopen` failed just now on this thread.
    pub fn failure() -> String {
        // SAFETY: null or a NUL-terminated text that stays until this thread's next call.
        unsafe {
            let text = libc::dlerror();
            if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        }
    }

    /// The address of that symbol.
    pub fn symbol(self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a handle that is never closed, and a NUL-terminated name.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }

    /// The function of that name.
    ///
    /// # Safety
    /// `F` is its function pointer type.
    pub unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        // SAFETY: the caller's promise.
        self.symbol(name).map(|address| unsafe { function(address) })
    }
}

/// The function at `address`.
///
/// # Safety
/// `F` is its function pointer type.
pub unsafe fn function<F: Copy>(address: NonNull<c_void>) -> F {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>(), "a function pointer") };
    // SAFETY: the caller names the type, which is as large as the address.
    unsafe { std::mem::transmute_copy(&address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_what_is_loaded_and_only_there() {
        let library = Loaded::find(c"libc.so.6").expect("every process has it");
        // SAFETY: getpid(2).
        let getpid = unsafe { library.function::<extern "C" fn() -> libc::pid_t>(c"getpid") };
        assert_eq!(getpid.map(|getpid| getpid()), Some(std::process::id() as libc::pid_t));
        assert!(library.symbol(c"no_such_function").is_none());
        assert!(Loaded::find(c"libno_such_library.so").is_none());
        // SAFETY: there is none whose constructors run.
        assert!(unsafe { Loaded::open(c"/no/such/library.so", libc::RTLD_NOW) }.is_none());
        assert!(Loaded::failure().contains("/no/such/library.so"), "{}", Loaded::failure());
    }
}
