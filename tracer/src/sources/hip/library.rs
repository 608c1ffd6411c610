//! The HIP library of this process, if there is one: never loaded by us, and its functions found by name.

use std::ffi::{CStr, c_char, c_void};

use rpd_preload::library;
use rpd_preload::loaded::Loaded;

use super::description::{self, HipVersion};

/// hipRegisterActivityCallback (HIP 5.2 hip_intercept.cpp): `function` is called as
/// `void *(u32 id, void *record, const void *data, void *argument)`.
pub(super) type RegisterActivityCallback = unsafe extern "C-unwind" fn(u32, *mut c_void, *mut c_void) -> i32;
/// hipRegisterApiCallback (HIP 5.2 hip_intercept.cpp): called as `void (u32 domain, u32 id, const void *data, void *argument)`.
pub(super) type RegisterApiCallback = unsafe extern "C-unwind" fn(u32, *mut c_void, *mut c_void) -> i32;
/// hipInitActivityCallback (HIP 5.2 hip_activity.cpp): called as `void (u64 id)` and `void (u32 operation, void *record, void *argument)`.
pub(super) type InitActivityCallback = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_void);
/// hipEnableActivityCallback (HIP 5.2 hip_activity.cpp).
pub(super) type EnableActivityCallback = unsafe extern "C-unwind" fn(u32, bool) -> bool;
/// hipRegisterTracerCallback (HIP 5.3 hip_intercept.cpp): called as `int (u32 domain, u32 operation, void *data)`.
pub(super) type RegisterTracerCallback = unsafe extern "C-unwind" fn(*mut c_void);
type ApiName = unsafe extern "C-unwind" fn(u32) -> *const c_char;
type StreamDevice = unsafe extern "C-unwind" fn(*const c_void) -> i32;
type KernelName = unsafe extern "C-unwind" fn(*const c_void) -> *const c_char;
type KernelNameByHostFunction = unsafe extern "C-unwind" fn(*const c_void, *const c_void) -> *const c_char;

/// Major versions that are looked for.
const NAMES: [&CStr; 3] = [c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5"];

/// See the module. Functions are there for as long as the process: the library is kept.
pub(super) struct LoadedHip {
    pub(super) register_activity: Option<RegisterActivityCallback>,
    pub(super) register_api: Option<RegisterApiCallback>,
    pub(super) init_commands: Option<InitActivityCallback>,
    pub(super) enable_commands: Option<EnableActivityCallback>,
    pub(super) register_tracer: Option<RegisterTracerCallback>,
    /// Its commands name devices by HIP's own number, not by the driver's: HIP up to 5.3 (ROCclr 5.3.3 and 5.4.0 activity.cpp), whose
    /// functions have the same names in HIP's table as those of 5.4, which exports one more.
    pub(super) numbers_devices: bool,
    api_name: ApiName,
    stream_device: StreamDevice,
    kernel_name: KernelName,
    kernel_name_by_host_function: KernelNameByHostFunction,
}

impl LoadedHip {
    /// The library, where the process has loaded it.
    pub(super) fn find() -> Option<LoadedHip> {
        if !library::is_loaded("libamdhip64.so") {
            return None;
        }
        let hip = NAMES.iter().find_map(|name| Loaded::find(name))?;
        // SAFETY: functions of these names have these types in every HIP version (HIP 5.2 and 6.4 hip_runtime_api.h,
        // hip_intercept.cpp).
        unsafe {
            Some(LoadedHip {
                register_activity: hip.function(c"hipRegisterActivityCallback"),
                register_api: hip.function(c"hipRegisterApiCallback"),
                init_commands: hip.function(c"hipInitActivityCallback"),
                enable_commands: hip.function(c"hipEnableActivityCallback"),
                register_tracer: hip.function(c"hipRegisterTracerCallback"),
                numbers_devices: hip.symbol(c"hipLaunchHostFunc").is_none(),
                api_name: hip.function(c"hipApiName")?,
                stream_device: hip.function(c"hipGetStreamDeviceId")?,
                kernel_name: hip.function(c"hipKernelNameRef")?,
                kernel_name_by_host_function: hip.function(c"hipKernelNameRefByPtr")?,
            })
        }
    }

    /// Name of the function with that id; nothing for an id that has none.
    pub(super) fn api_name(&self, id: u32) -> Option<&'static str> {
        // SAFETY: takes any number, answers with a literal.
        let name = unsafe { text((self.api_name)(id)) }?;
        (name != "unknown" && !name.is_empty()).then_some(name)
    }

    /// HIP's number of the device of a stream, for null that of the calling thread's current device.
    ///
    /// # Safety
    /// `stream` is null or was a stream a moment ago.
    pub(super) unsafe fn stream_device(&self, stream: u64) -> i32 {
        // SAFETY: the caller's promise; HIP looks the stream up.
        unsafe { (self.stream_device)(stream as *const c_void) }
    }

    /// Mangled name of a kernel.
    ///
    /// # Safety
    /// `function` is a live hipFunction_t.
    pub(super) unsafe fn kernel_name(&self, function: u64) -> Option<&str> {
        // SAFETY: the caller's promise.
        unsafe { text((self.kernel_name)(function as *const c_void)) }
    }

    /// Mangled name of the kernel that a host function stands for; nothing for an address that stands for none.
    ///
    /// # Safety
    /// `stream` is a live stream or null.
    pub(super) unsafe fn kernel_name_by_host_function(&self, function: u64, stream: u64) -> Option<&str> {
        // SAFETY: the caller's promise; HIP looks the address up.
        unsafe {
            text((self.kernel_name_by_host_function)(function as *const c_void, stream as *const c_void))
        }
    }
}

/// # Safety
/// `text` is null or NUL-terminated, and stays for the caller's use of the result.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Whether the process has loaded the HSA runtime, by HIP or without it.
pub(super) fn has_hsa() -> bool {
    library::is_loaded("libhsa-runtime64.so")
}

/// Whether the process has loaded HIP before this library.
pub(super) fn came_first() -> bool {
    library::place("libamdhip64.so")
        .zip(library::place("librpd_tracer.so"))
        .is_some_and(|(hip, own)| hip < own)
}

/// Functions by HIP's own ids.
pub(super) fn names(library: &LoadedHip) -> impl Iterator<Item = (u32, &'static str)> {
    let most = description::get().versions.iter().map(|version| version.last_id).max().unwrap_or(0);
    // Beyond the largest id known: a version with more functions is another one.
    (1..=most + 64).filter_map(|id| Some((id, library.api_name(id)?)))
}

/// Which version it is, if it is one that the description knows.
pub(super) fn version(library: &LoadedHip) -> Option<&'static HipVersion> {
    description::get().version_of(names(library))
}
