//! Where this library is, and which others the process has loaded.

use std::ffi::{CStr, c_int, c_void};

/// Path of the library that this code is linked into, as the loader knows it. It may be relative to the directory that was the working
/// directory when the library was loaded.
pub fn own_path() -> Option<&'static CStr> {
    // SAFETY: the library of this code is loaded for as long as the code runs.
    unsafe { of_address(own_path as *const c_void) }
}

/// Path of the library that an address belongs to, as the loader knows it.
///
/// # Safety
/// That library stays loaded while the result is used.
pub unsafe fn of_address(address: *const c_void) -> Option<&'static CStr> {
    // SAFETY: all-zero is a valid Dl_info to be overwritten.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for, `info` is valid; the name lives as long as the library.
    unsafe {
        if libc::dladdr(address, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        Some(CStr::from_ptr(info.dli_fname))
    }
}

/// Whether the process has loaded a library whose file name begins so.
pub fn is_loaded(file: &str) -> bool {
    place(file).is_some()
}

/// Place in the loader's list, which is the order of loading, of the first library whose file name begins so. Takes no lock that a thread
/// inside dlopen holds.
pub fn place(file: &str) -> Option<usize> {
    struct Search<'a> {
        file: &'a [u8],
        seen: usize,
    }
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes an entry of its own, whose name is null or NUL-terminated, and the search below.
        let (name, search) = unsafe { ((*info).dlpi_name, &mut *search.cast::<Search<'_>>()) };
        // SAFETY: as above.
        let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
        if file_name(name.to_bytes()).starts_with(search.file) {
            return 1;
        }
        search.seen += 1;
        0
    }
    let mut search = Search { file: file.as_bytes(), seen: 0 };
    // SAFETY: `look` has the callback's type and gets the search it expects, only during the call.
    let found = unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    (found != 0).then_some(search.seen)
}

/// The last part of a path.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_how_their_names_begin() {
        assert!(is_loaded("libc.so") && !is_loaded("libamdhip64.so"));
        assert!(place("libc.so") < place("ld-linux"), "a library comes after what needs it");
    }

    #[test]
    fn this_code_is_in_a_file() {
        let own = own_path().unwrap().to_str().unwrap();
        assert!(std::path::Path::new(own).exists(), "{own}");
    }
}
