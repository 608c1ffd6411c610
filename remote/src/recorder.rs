//! librpd_tracer.so: finding it, loading it, and its C interface (include/rpd_tracer.h).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};

use rpd_preload::cuda_injection::InitializeInjection;
use rpd_preload::loaded::Loaded;
use rpd_preload::threads;

use crate::fork;
use crate::load::{self, RPD_REMOTE_LOADING};

/// The recorder's file name.
pub(crate) const LIBRARY: &str = "librpd_tracer.so";
/// Names the recorder, or the directory it is in, where it is neither beside the loader nor known to the dynamic loader.
const PATH_VARIABLE: &str = "RPD_TRACER_PATH";

/// `struct rpd_state` of include/rpd_tracer.h.
#[repr(C)]
#[derive(Clone)]
pub(crate) struct ReportedState {
    size: u32,
    /// 1: recording.
    pub(crate) recording: u32,
    /// -1: no file yet.
    pub(crate) session: i64,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    /// How often it complained, said or not.
    pub(crate) problems: u64,
    file: [c_char; 4096],
    problem: [c_char; 512],
}

impl ReportedState {
    /// The trace.
    pub(crate) fn file(&self) -> Vec<u8> {
        text(&self.file)
    }

    /// What it last complained of.
    pub(crate) fn problem(&self) -> Vec<u8> {
        text(&self.problem)
    }
}

fn text(bytes: &[c_char]) -> Vec<u8> {
    bytes.iter().take_while(|byte| **byte != 0).map(|byte| byte.to_ne_bytes()[0]).collect()
}

/// What ROCr calls in each of its tools: with its table, its version, and the number and names of tools that failed.
type OnLoad = unsafe extern "C" fn(*mut c_void, u64, u64, *const *const c_char) -> bool;

/// The recorder's functions.
pub(crate) struct RecorderFunctions {
    pub(crate) start: extern "C" fn(),
    pub(crate) stop: extern "C" fn(),
    pub(crate) flush: extern "C" fn(),
    pub(crate) drain: extern "C" fn(u64) -> u64,
    pub(crate) open: extern "C" fn(),
    finish: extern "C" fn(),
    on_load: OnLoad,
    on_unload: extern "C" fn(),
    initialize_injection: InitializeInjection,
    state: unsafe extern "C" fn(*mut ReportedState),
    set_filename: unsafe extern "C" fn(*const c_char) -> c_int,
}

static RECORDER: AtomicPtr<RecorderFunctions> = AtomicPtr::new(std::ptr::null_mut());

fn known() -> Option<&'static RecorderFunctions> {
    // SAFETY: null or a leaked box.
    unsafe { RECORDER.load(Ordering::Acquire).as_ref() }
}

/// What the end of the process does about a recorder that this library has loaded.
pub(crate) fn finish() {
    if let Some(recorder) = known() {
        (recorder.finish)();
    }
}

/// The HSA runtime offers its table: the recorder gets it, where it came too late to be one of the runtime's tools but before this
/// moment.
///
/// # Safety
/// `table` is the live table of the calling runtime, which offers it to tools at this moment.
pub(crate) unsafe fn offer(table: *mut c_void, version: u64) {
    if let Some(recorder) = known() {
        // SAFETY: the caller's promise; no tool has failed.
        unsafe { (recorder.on_load)(table, version, 0, std::ptr::null()) };
    }
}

/// The HSA runtime that has offered its table shuts down.
pub(crate) fn withdraw() {
    if let Some(recorder) = known() {
        (recorder.on_unload)();
    }
}

/// CUDA's driver initialises: the recorder hears of it.
pub(crate) fn initialize_injection() {
    if let Some(recorder) = present() {
        (recorder.initialize_injection)();
    }
}

/// Whether it is in the process, as far as this library has looked.
pub(crate) fn is_known() -> bool {
    known().is_some()
}

/// The recorder, if it is in the process, whoever loaded it.
pub(crate) fn present() -> Option<&'static RecorderFunctions> {
    known().or_else(|| fork::without(|| open(Path::new(LIBRARY), libc::RTLD_NOLOAD))?.ok())
}

/// The recorder, loaded if it is not there: beside this library, by its name, from RPD_TRACER_PATH.
///
/// # Errors
/// Why none of these could be loaded.
pub(crate) fn load() -> Result<&'static RecorderFunctions, String> {
    if let Some(recorder) = present() {
        return Ok(recorder);
    }
    be_found();
    let _loading = LoadingFlag::begin();
    let loaded = fork::without(|| {
        let mut reasons = Vec::new();
        for place in places() {
            match open(&place, 0) {
                Ok(recorder) => return Ok(recorder),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("; "))
    });
    loaded.unwrap_or_else(|| Err("this process was forked while its parent loaded the recorder".into()))
}

/// RPD_REMOTE_LOADING is set, also when loading panics.
struct LoadingFlag;

impl LoadingFlag {
    fn begin() -> LoadingFlag {
        RPD_REMOTE_LOADING.store(threads::id(), Ordering::Release);
        LoadingFlag
    }
}

impl Drop for LoadingFlag {
    fn drop(&mut self) {
        RPD_REMOTE_LOADING.store(0, Ordering::Release);
    }
}

/// Where ROCr has loaded this library it sees to it that nobody finds our symbols; the recorder must find the one above.
fn be_found() {
    let own = load::own_path().and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    if let Some(own) = own {
        // SAFETY: a NUL-terminated name of a library that is loaded and stays so.
        unsafe { libc::dlopen(own.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_GLOBAL) };
    }
}

fn places() -> Vec<PathBuf> {
    let beside = load::own_path().and_then(Path::parent).map(|directory| directory.join(LIBRARY));
    let mut places: Vec<PathBuf> = beside.into_iter().chain([PathBuf::from(LIBRARY)]).collect();
    if let Some(given) = std::env::var_os(PATH_VARIABLE).filter(|given| !given.is_empty()) {
        let given = PathBuf::from(given);
        places.push(if given.is_dir() { given.join(LIBRARY) } else { given });
    }
    places
}

fn open(path: &Path, how: c_int) -> Result<&'static RecorderFunctions, String> {
    let name =
        CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path with a NUL in it".to_string())?;
    // Global, so that programs that look for the marker functions by name find them from now on.
    // SAFETY: what the library's constructor does is its own business.
    let library = unsafe { Loaded::open(&name, libc::RTLD_NOW | libc::RTLD_GLOBAL | how) }
        .ok_or_else(Loaded::failure)?;
    let recorder = interface(library).map_err(|name| {
        let path = path.display();
        format!("{path} is another version than this loader: it has no {name}")
    })?;
    let recorder = Box::into_raw(Box::new(recorder));
    RECORDER.store(recorder, Ordering::Release);
    // SAFETY: leaked above.
    Ok(unsafe { &*recorder })
}

fn interface(library: Loaded) -> Result<RecorderFunctions, String> {
    // SAFETY: functions of these types under these names, by include/rpd_tracer.h.
    unsafe {
        Ok(RecorderFunctions {
            start: find(library, c"rpdstart")?,
            stop: find(library, c"rpdstop")?,
            flush: find(library, c"rpdflush")?,
            drain: find(library, c"rpddrain")?,
            open: find(library, c"rpdopen")?,
            finish: find(library, c"rpdfinish")?,
            on_load: find(library, c"OnLoad")?,
            on_unload: find(library, c"OnUnload")?,
            initialize_injection: find(library, c"InitializeInjection")?,
            state: find(library, c"rpd_state")?,
            set_filename: find(library, c"rpd_setFilename")?,
        })
    }
}

/// The function of that name, or the name.
///
/// # Safety
/// `F` is its function pointer type.
unsafe fn find<F: Copy>(library: Loaded, name: &CStr) -> Result<F, String> {
    // SAFETY: the caller's promise.
    unsafe { library.function(name) }.ok_or_else(|| name.to_string_lossy().into_owned())
}

impl RecorderFunctions {
    /// What it is at.
    pub(crate) fn state(&self) -> ReportedState {
        // SAFETY: all-zero is a valid state.
        let mut state: ReportedState = unsafe { std::mem::zeroed() };
        state.size = size_of::<ReportedState>() as u32;
        // SAFETY: writable, of the size that it says.
        unsafe { (self.state)(&mut state) };
        state
    }

    /// Names the trace to make. False: none can have that name, and the recorder complains.
    pub(crate) fn set_filename(&self, file: &[u8]) -> bool {
        // SAFETY: NUL-terminated; the recorder copies it.
        CString::new(file).is_ok_and(|file| unsafe { (self.set_filename)(file.as_ptr()) } == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_panics_leaves_no_flag() {
        let loads = std::panic::catch_unwind(|| {
            let _loading = LoadingFlag::begin();
            assert_eq!(RPD_REMOTE_LOADING.load(Ordering::Acquire), threads::id());
            panic!("in the recorder's load");
        });
        assert!(loads.is_err());
        assert_eq!(RPD_REMOTE_LOADING.load(Ordering::Acquire), 0);
    }
}
