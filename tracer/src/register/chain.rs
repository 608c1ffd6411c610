//! A real rocprofiler-sdk in the process. Our symbol comes before its own, so that rocprofiler-register hands the tables to us. It gets
//! them from us.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;

use rpd_preload::loaded::{self, Loaded};

/// rocprofiler_set_api_table.
pub(crate) type SetApiTable =
    unsafe extern "C-unwind" fn(*const c_char, u64, u64, *mut *mut c_void, u64) -> c_int;

/// Sonames of rocprofiler-sdk: ROCm 7, ROCm 6.
const SDK: [&CStr; 3] = [c"librocprofiler-sdk.so.1", c"librocprofiler-sdk.so.0", c"librocprofiler-sdk.so"];

/// The function that would have been called if `own` did not exist: that of the library named in ROCPROFILER_REGISTER_LIBRARY, or of a
/// rocprofiler-sdk that is loaded or for which ROCP_TOOL_LIBRARIES names tools. A process that uses neither gets none loaded.
pub(crate) fn next(own: *const ()) -> Option<SetApiTable> {
    let named = std::env::var_os("ROCPROFILER_REGISTER_LIBRARY").filter(|name| !name.is_empty());
    let named = named.and_then(|name| CString::new(name.into_vec()).ok());
    let load = libc::RTLD_LAZY | libc::RTLD_GLOBAL;
    let mut attempts: Vec<(&CStr, c_int)> = named.iter().map(|name| (name.as_c_str(), load)).collect();
    attempts.extend(SDK.map(|name| (name, libc::RTLD_LAZY | libc::RTLD_NOLOAD)));
    if std::env::var_os("ROCP_TOOL_LIBRARIES").is_some_and(|tools| !tools.is_empty()) {
        attempts.extend(SDK.map(|name| (name, load)));
    }
    attempts.into_iter().find_map(|(library, mode)| entry(library, mode, own))
}

fn entry(library: &CStr, mode: c_int, own: *const ()) -> Option<SetApiTable> {
    // SAFETY: as rocprofiler-register itself would load it.
    let found = unsafe { Loaded::open(library, mode) }?.symbol(c"rocprofiler_set_api_table")?;
    // SAFETY: the one signature of a function of that name (rocprofiler-register.cpp).
    (!std::ptr::addr_eq(found.as_ptr(), own)).then(|| unsafe { loaded::function(found) })
}
