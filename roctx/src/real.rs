//! AMD's roctx library, where the loader would have found it without this one in front. It is loaded by its path: by its name the
//! loader would give us ourselves.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rpd_preload::library;

const NAMES: [&str; 2] = ["libroctx64.so.4", "librocprofiler-sdk-roctx.so.1"];
/// Where ROCm is installed, then where the loader looks without being told.
const FOLDERS: [&str; 8] = [
    "/opt/rocm/lib",
    "/opt/rocm/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib",
];

/// The function of that name, null where there is no such library or function.
pub(crate) fn function(name: &CStr) -> *mut c_void {
    let found = handles().into_iter().map(|handle| match handle.is_null() {
        true => ptr::null_mut(),
        // SAFETY: a handle that dlopen gave and nobody closes.
        false => unsafe { libc::dlsym(handle, name.as_ptr()) },
    });
    found.into_iter().find(|function| !function.is_null()).unwrap_or(ptr::null_mut())
}

/// A handle per name, looked for once; null: there is none.
fn handles() -> [*mut c_void; NAMES.len()] {
    static NONE: u8 = 0;
    static HANDLES: [AtomicPtr<c_void>; NAMES.len()] =
        [const { AtomicPtr::new(ptr::null_mut()) }; NAMES.len()];
    let none = (&raw const NONE).cast_mut().cast::<c_void>();
    std::array::from_fn(|place| {
        let mut handle = HANDLES[place].load(Ordering::Acquire);
        if handle.is_null() {
            handle = open(NAMES[place]).unwrap_or(none);
            HANDLES[place].store(handle, Ordering::Release);
        }
        if handle == none { ptr::null_mut() } else { handle }
    })
}

fn open(name: &str) -> Option<*mut c_void> {
    let own = own_file();
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named = std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
    named.chain(FOLDERS.iter().map(PathBuf::from)).map(|folder| folder.join(name)).find_map(|file| {
        let there = std::fs::metadata(&file).ok()?;
        if own.as_ref().is_some_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino())) {
            return None;
        }
        load(&file)
    })
}

fn load(file: &Path) -> Option<*mut c_void> {
    let file = CString::new(file.as_os_str().as_bytes()).ok()?;
    // SAFETY: a NUL-terminated path. Its functions are found by its handle alone, so ours stay in front.
    unsafe {
        let handle = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        // Another copy of this library is no real one.
        if handle.is_null() || !libc::dlsym(handle, c"rpd_roctx_next".as_ptr()).is_null() {
            None
        } else {
            Some(handle)
        }
    }
}

/// The file that this code is in.
fn own_file() -> Option<Metadata> {
    std::fs::metadata(Path::new(OsStr::from_bytes(library::own_path()?.to_bytes()))).ok()
}
