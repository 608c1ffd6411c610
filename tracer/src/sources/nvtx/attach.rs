//! Each of the application's copies of NVTX lets this library put its functions into tables of its own.

use std::ffi::{CStr, c_void};

use super::abi::{self, CallbackModule, CallbacksTable, GetExportTable, Slot};
use super::callbacks;

use rpd_preload::loaded::{self, Loaded};
use rpd_transport::log;

/// Names the injection library; ours, or the one of a tool that the user wants instead.
const INJECTION: &CStr = c"NVTX_INJECTION64_PATH";
/// What NVTX calls in it.
const ENTRY: &CStr = c"InitializeInjectionNvtx2";

/// Puts the recorder's functions into the tables of the NVTX copy that calls. False: this copy has nothing that we know.
///
/// # Safety
/// `get_export_table` is the one that NVTX passes.
pub(super) unsafe fn attach(get_export_table: GetExportTable) -> bool {
    // SAFETY: the id of a table that NVTX has had since version 2; it answers null for what it does not have.
    let callbacks = unsafe { get_export_table(abi::ETID_CALLBACKS) }.cast::<CallbacksTable>();
    if callbacks.is_null() {
        return false;
    }
    // SAFETY: NVTX's own static table, whose first field is its size.
    let get_module = match unsafe { (*callbacks).struct_size } {
        size if size < size_of::<CallbacksTable>() => return false,
        // SAFETY: the table is as large as this structure.
        _ => unsafe { (*callbacks).get_module_function_table },
    };
    let Some(get_module) = get_module else { return false };
    for (module, functions) in
        [(CallbackModule::Core, callbacks::CORE), (CallbackModule::Core2, callbacks::CORE2)]
    {
        let (mut slots, mut count) = (std::ptr::null_mut::<*mut Slot>(), 0);
        // SAFETY: both places are valid. 0 means that this copy has no such module.
        if unsafe { get_module(module as u32, &mut slots, &mut count) } == 0 || slots.is_null() {
            continue;
        }
        for &(id, function) in functions.iter().filter(|(id, _)| *id < count) {
            // SAFETY: `id` is below the number of places; a place is null or leads to the pointer that NVTX calls through.
            unsafe {
                let slot = *slots.add(id as usize);
                if !slot.is_null() {
                    *slot = function.0;
                }
            }
        }
    }
    log::info(|| "NVTX: attached".into());
    true
}

/// The entry of another injection library that the environment names. A preloaded recorder is found first by newer NVTX, but a
/// user who names another tool wants that one. `own` is ours.
pub(super) fn wanted_instead(own: *mut c_void) -> Option<unsafe extern "C-unwind" fn(GetExportTable) -> i32> {
    // SAFETY: a NUL-terminated name; the value is used before anything could change the environment.
    let path = unsafe { libc::getenv(INJECTION.as_ptr()) };
    // SAFETY: a NUL-terminated string.
    if path.is_null() || unsafe { *path } == 0 {
        return None;
    }
    // SAFETY: a NUL-terminated path, of a library that NVTX itself would load so.
    let entry = unsafe { Loaded::open(CStr::from_ptr(path), libc::RTLD_LAZY) }?.symbol(ENTRY)?;
    // SAFETY: what NVTX takes a function of that name for.
    (entry.as_ptr() != own).then(|| unsafe { loaded::function(entry) })
}
