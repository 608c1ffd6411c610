//! The tool table: the three symbols by which ROCr finds and starts a tool (docs/architecture.md).

use std::ffi::c_char;

use super::load::{self, TableOrigin};
use super::state;
use crate::guard::guard;
use crate::hsa_runtime::abi::ApiTable;
use crate::hsa_runtime::known;

/// ROCr >= 5.3 starts every loaded library that has this symbol, in ascending order of its value: LD_PRELOAD is enough.
#[unsafe(no_mangle)]
pub static HSA_AMD_TOOL_PRIORITY: u32 = 50;

/// ROCr offers its API table, once per hsa_init, before hsa_init returns (ROCr 5.2 runtime.cpp LoadTools).
///
/// # Safety
/// `table` is the live table of the runtime that calls.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn OnLoad(
    table: *mut ApiTable,
    _runtime_version: u64,
    _failed_tool_count: u64,
    _failed_tool_names: *const *const c_char,
) -> bool {
    // Answering false would make ROCr call the tool failed; a recorder that stays out of the way has not failed.
    // SAFETY: the caller's promise.
    guard(false, || unsafe { load::load(table, TableOrigin::Tool) });
    // HIP itself is initialising this runtime, as a rule.
    guard((), known::notice);
    true
}

/// ROCr is about to shut down: nothing of it may be touched after this returns.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn OnUnload() {
    guard((), state::unload);
}
