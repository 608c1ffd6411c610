//! Where this library is, and which others the process has loaded.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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

/// A library that the process has loaded, or the program itself.
#[derive(Clone, Debug, Default)]
pub struct LoadedLibrary {
    /// As the loader knows it; the program's own without symbolic links.
    pub path: PathBuf,
    /// Its name for those that need it (DT_SONAME).
    pub soname: OsString,
    /// What it needs, by such names (DT_NEEDED).
    pub needed: Vec<OsString>,
}

/// All that is loaded, the program first.
pub fn all() -> Vec<LoadedLibrary> {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, all: *mut c_void) -> c_int {
        // SAFETY: the loader's own description of a library that stays while this runs, and the list below.
        unsafe { (*all.cast::<Vec<LoadedLibrary>>()).push(described(&*info)) };
        0
    }
    let mut all: Vec<LoadedLibrary> = Vec::new();
    // SAFETY: `each` has the callback's type and gets the list it expects, only during the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut all).cast()) };
    if let Some(program) = all.first_mut().filter(|first| first.path.as_os_str().is_empty()) {
        program.path = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    }
    all
}

/// # Safety
/// The description of a library that is loaded and stays.
unsafe fn described(info: &libc::dl_phdr_info) -> LoadedLibrary {
    // Elf64_Dyn, and the tags of strings (System V ABI).
    #[repr(C)]
    struct Entry {
        tag: u64,
        value: u64,
    }
    const NEEDED: u64 = 1;
    const STRINGS: u64 = 5;
    const SONAME: u64 = 14;
    // SAFETY: null or NUL-terminated.
    let text = |text: *const c_char| unsafe { OsStr::from_bytes(CStr::from_ptr(text).to_bytes()) }.to_owned();
    let path = if info.dlpi_name.is_null() { PathBuf::new() } else { text(info.dlpi_name).into() };
    let mut loaded = LoadedLibrary { path, ..LoadedLibrary::default() };
    // SAFETY: the loader's own table.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
        return loaded;
    };
    let entries = (info.dlpi_addr + dynamic.p_vaddr) as *const Entry;
    // SAFETY: the library's dynamic section.
    let entries =
        unsafe { std::slice::from_raw_parts(entries, dynamic.p_memsz as usize / size_of::<Entry>()) };
    let Some(strings) = entries.iter().find(|entry| entry.tag == STRINGS) else { return loaded };
    // The loader has made an address of it, except where the section is read-only.
    let strings = if strings.value < info.dlpi_addr { info.dlpi_addr + strings.value } else { strings.value };
    let string = |entry: &Entry| text((strings + entry.value) as *const c_char);
    // What follows the end of the section is anything.
    for entry in entries.iter().take_while(|entry| entry.tag != 0) {
        match entry.tag {
            SONAME => loaded.soname = string(entry),
            NEEDED => loaded.needed.push(string(entry)),
            _ => {}
        }
    }
    loaded
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
    fn libraries_are_found_by_what_needs_them() {
        let all = all();
        assert_eq!(all[0].path, std::env::current_exe().unwrap());
        let libc = all.iter().find(|library| library.soname == *"libc.so.6").unwrap();
        assert!(libc.path.ends_with("libc.so.6") && libc.path.exists(), "{libc:?}");
        assert!(all[0].needed.iter().any(|name| *name == *"libc.so.6"), "{:?}", all[0]);
        assert!(libc.needed.iter().any(|name| name.as_bytes().starts_with(b"ld-linux")), "{libc:?}");
    }

    #[test]
    fn this_code_is_in_a_file() {
        let own = own_path().unwrap().to_str().unwrap();
        assert!(std::path::Path::new(own).exists(), "{own}");
    }
}
