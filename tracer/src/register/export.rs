//! Registered tables: the symbols by which rocprofiler-register finds a tool and hands it the API tables of ROCm's libraries as each is
//! first used: HSA from ROCm 6.1 on, HIP and roctx from 6.2 on (docs/architecture.md).

use std::ffi::{CStr, c_char, c_int, c_void};

use rpd_transport::source::Offer;

use super::chain;
use crate::guard::guard;
use crate::register;

/// Called once per library, on the thread that first uses it and inside its initialisation: nothing here may call HIP, or wait for
/// anybody who does. Returns 0 when the tables are taken.
///
/// # Safety
/// `name` is NUL-terminated, `tables` are that library's `num_tables` live tables.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rocprofiler_set_api_table(
    name: *const c_char,
    lib_version: u64,
    lib_instance: u64,
    tables: *mut *mut c_void,
    num_tables: u64,
) -> c_int {
    let mut taken = false;
    if !name.is_null() && !tables.is_null() {
        // SAFETY: the caller's promises.
        let offer = unsafe {
            Offer {
                name: CStr::from_ptr(name).to_bytes(),
                instance: lib_instance,
                tables: std::slice::from_raw_parts(tables, num_tables as usize),
            }
        };
        taken = guard(false, || register::take(&offer));
    }
    // Another profiler comes second, so that it wraps what we put in: what its hooks call reaches ours.
    if let Some(next) = guard(None, || chain::next(rocprofiler_set_api_table as *const ())) {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { next(name, lib_version, lib_instance, tables, num_tables) };
    }
    if taken { 0 } else { register::NOT_TAKEN }
}

/// Its presence says to rocprofiler-register that this process has a tool. A real rocprofiler-sdk calls it, and learns that this
/// one needs nothing from it.
///
/// # Safety
/// None of the arguments is used.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rocprofiler_configure(
    _version: u32,
    _runtime_version: *const c_char,
    _priority: u32,
    _client: *mut c_void,
) -> *mut c_void {
    std::ptr::null_mut()
}
