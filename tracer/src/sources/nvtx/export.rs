//! NVTX injection: what each copy of NVTX in the process calls.

use std::ffi::{c_int, c_void};

use rpd_transport::recorder;

use super::abi::GetExportTable;
use super::attach;
use crate::guard::guard;

/// Every copy of NVTX in the process calls this at its first use (NVTX 3 nvtxDetail/nvtxInit.h). 0 makes it do nothing from then
/// on.
///
/// # Safety
/// NVTX passes a function of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn InitializeInjectionNvtx2(get_export_table: Option<GetExportTable>) -> c_int {
    let Some(get_export_table) = get_export_table else { return 0 };
    if let Some(other) = guard(None, || attach::wanted_instead(InitializeInjectionNvtx2 as *mut c_void)) {
        // SAFETY: NVTX would have called it so.
        return unsafe { other(get_export_table) };
    }
    // SAFETY: the caller's promise.
    guard(0, || (recorder::get().is_some() && unsafe { attach::attach(get_export_table) }).into())
}
