//! What runs when the library is loaded, when a GPU runtime comes, and when the process ends.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rpd_preload::cuda_injection::{self, Named};
use rpd_preload::tools_list::{self, End};
use rpd_preload::{environment, library, threads};

use crate::guard::guard;
use crate::{end, presence, recorder, settings, signal, thread};

/// The process's last destructors run: nothing may be begun any more.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Where this library is.
static OWN_PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
/// Libraries whose presence means that the process uses a GPU.
const RUNTIMES: [&str; 3] = ["libhsa-runtime64.so", "libamdhip64.so", "libcuda.so"];

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
        if environment::is_secure() {
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
        if !environment::is_secure() {
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

/// CUDA's driver initialises: the process uses a GPU. The recorder hears of it where it is in the process.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn InitializeInjection() -> c_int {
    guard(|| {
        if !environment::is_secure() {
            presence::appear();
            thread::await_recorder();
            recorder::initialize_injection();
        }
    });
    1
}

/// The thread that is loading the recorder, otherwise 0. The recorder looks here while it is being loaded: this thread's wants it
/// paused, and no trace of it in the environment that children inherit.
#[unsafe(no_mangle)]
pub static RPD_REMOTE_LOADING: AtomicI32 = AtomicI32::new(0);

/// Has GPU runtimes start this library. It stands behind the others in `HSA_TOOLS_LIB`, because ROCr before 5.3 starts no tool that is merely
/// preloaded. CUDA's driver starts one library: it is this one unless the user names another tool, and the recorder hears of it from here.
fn announce() {
    // Loaded late, in a process with threads, the environment is left alone: the runtime has read it.
    if threads::others() {
        return;
    }
    let tools = std::env::var_os(tools_list::VARIABLE).unwrap_or_default();
    let Some(own) = own_path() else { return };
    if let Ok(own) = CString::new(own.as_os_str().as_bytes())
        && cuda_injection::claim(&own, &[recorder::LIBRARY]) == Named::Known
        && library::is_loaded(recorder::LIBRARY)
    {
        cuda_injection::replace(&own);
    }
    if let Some(list) = tools_list::with_tool(tools.as_bytes(), own.as_os_str().as_bytes(), End::Back)
        && let Ok(list) = CString::new(list)
    {
        environment::put(c"HSA_TOOLS_LIB", &list);
    }
}

/// Absolute path of this library.
pub(crate) fn own_path() -> Option<&'static Path> {
    // The constructor is the first to ask: the directory is the one the name is relative to.
    let found = || std::path::absolute(OsStr::from_bytes(library::own_path()?.to_bytes())).ok();
    OWN_PATH.get_or_init(found).as_deref()
}

/// Whether the program is linked with a GPU runtime, or has loaded one.
fn has_runtime() -> bool {
    RUNTIMES.iter().any(|runtime| library::is_loaded(runtime))
}
