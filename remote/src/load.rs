//! What runs when the library is loaded, when a GPU runtime comes, and when the process ends.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::guard::guard;
use crate::{end, presence, recorder, settings, signal, thread};

/// The process's last destructors run: nothing may be begun any more.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Where this library is.
static OWN_PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
/// Libraries whose presence means that the process uses a GPU.
const RUNTIMES: [&str; 2] = ["libhsa-runtime64.so", "libamdhip64.so"];

// In the loader's lists of constructors and destructors. Under LD_PRELOAD the first runs before main, in every helper process
// that inherits the environment.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

extern "C" fn constructor() {
    guard(|| {
        if is_secure() {
            return;
        }
        presence::begin();
        announce();
        end::watch();
        let settings = settings::get();
        if settings.signals {
            signal::take();
        }
        if settings.early || has_runtime() {
            presence::appear();
        }
    });
}

extern "C" fn destructor() {
    ENDING.store(true, Ordering::Relaxed);
}

/// Whether the process is past its exit handlers.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Whether the program has rights that its caller has not: it must not load or write what its caller names.
fn is_secure() -> bool {
    // SAFETY: no pointers; AT_SECURE is always in the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// ROCr from 5.3 on starts every loaded library that has this symbol, in ascending order of its value: after those that do
/// something with the table.
#[unsafe(no_mangle)]
pub static HSA_AMD_TOOL_PRIORITY: u32 = 1000;

/// ROCr starts its tools, at the end of hsa_init: the process uses a GPU. The table is the recorder's, where a start has been asked for
/// before this moment.
///
/// # Safety
/// `table` is the live table of the runtime that calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(
    table: *mut c_void,
    runtime_version: u64,
    _failed_tool_count: u64,
    _failed_tool_names: *const *const c_char,
) -> bool {
    guard(|| {
        if !is_secure() {
            presence::appear();
            thread::await_recorder();
            // SAFETY: the caller's promise.
            unsafe { recorder::offer(table, runtime_version) };
        }
    });
    true
}

/// ROCr is about to shut down.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    guard(recorder::withdraw);
}

/// The thread that is loading the recorder, otherwise 0. The recorder looks here while it is being loaded: this thread's wants it
/// paused, and no trace of it in the environment that children inherit.
#[unsafe(no_mangle)]
pub static RPD_REMOTE_LOADING: AtomicI32 = AtomicI32::new(0);

/// Puts this library behind the others in `HSA_TOOLS_LIB`: ROCr before 5.3 starts no tool that is merely preloaded.
fn announce() {
    // Loaded late, in a process with threads, the environment is left alone: others may be reading it.
    if std::fs::metadata("/proc/self/task").map_or(0, |folder| folder.nlink()) != 3 {
        return;
    }
    let tools = std::env::var_os("HSA_TOOLS_LIB").unwrap_or_default();
    if let Some(own) = own_path()
        && let Some(list) = with_tool(tools.as_bytes(), own.as_os_str().as_bytes())
    {
        // SAFETY: the process has one thread, which is here.
        unsafe { std::env::set_var("HSA_TOOLS_LIB", OsStr::from_bytes(&list)) };
    }
}

/// `list` with `own` at its end; nothing when a library of that file name is already in it. ROCr splits the list at blanks, takes
/// double quotes as grouping and a backslash as escape (ROCr 5.2 runtime.cpp).
fn with_tool(list: &[u8], own: &[u8]) -> Option<Vec<u8>> {
    let file = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
    if list.split(|byte| matches!(byte, b' ' | b'"')).any(|tool| file(tool) == file(own)) {
        return None;
    }
    let mut out = list.to_vec();
    if !out.is_empty() {
        out.push(b' ');
    }
    for byte in own {
        if matches!(byte, b' ' | b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    Some(out)
}

/// Absolute path of this library.
pub(crate) fn own_path() -> Option<&'static Path> {
    let found = || {
        // SAFETY: all-zero is a valid Dl_info to be overwritten.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: an address of ours, a writable place; the name lives as long as the library, which is never unloaded.
        let name = unsafe {
            if libc::dladdr(own_path as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            CStr::from_ptr(info.dli_fname)
        };
        // The constructor is the first to ask: the directory is the one the name is relative to.
        std::path::absolute(OsStr::from_bytes(name.to_bytes())).ok()
    };
    OWN_PATH.get_or_init(found).as_deref()
}

/// Whether the program is linked with a GPU runtime, or has loaded one.
fn has_runtime() -> bool {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid entry with a NUL-terminated name or null, and our own flag back.
        unsafe {
            let name = (*info).dlpi_name;
            if name.is_null() {
                return 0;
            }
            let name = CStr::from_ptr(name).to_bytes();
            let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let is_runtime = RUNTIMES.iter().any(|runtime| file.starts_with(runtime.as_bytes()));
            found.cast::<bool>().write(is_runtime);
            c_int::from(is_runtime)
        }
    }
    let mut found = false;
    // SAFETY: the callback writes to `found` alone, during this call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

#[cfg(test)]
mod tests {
    use super::with_tool;

    #[test]
    fn tool_lists() {
        let with = |list: &str| {
            with_tool(list.as_bytes(), b"/my lib/librpd_remote.so")
                .map(|list| String::from_utf8(list).unwrap())
        };
        assert_eq!(with("").unwrap(), "/my\\ lib/librpd_remote.so");
        assert_eq!(with("other.so").unwrap(), "other.so /my\\ lib/librpd_remote.so");
        assert_eq!(with("librpd_remote.so x.so"), None);
        assert_eq!(with("\"/else where/librpd_remote.so\""), None);
    }
}
