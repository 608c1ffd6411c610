//! Door E: NVTX's injection library.

use std::ffi::c_int;

use rpd_transport::recorder;

use crate::guard::guard;
use crate::nvtx::{self, GetExportTable};

/// Every copy of NVTX in the process calls this at its first use (NVTX 3 nvtxDetail/nvtxInit.h). 0 makes it do nothing from then
/// on.
///
/// # Safety
/// NVTX passes a function of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn InitializeInjectionNvtx2(get_export_table: Option<GetExportTable>) -> c_int {
    let Some(get_export_table) = get_export_table else { return 0 };
    if let Some(other) = guard(None, nvtx::wanted_instead) {
        // SAFETY: NVTX would have called it so.
        return unsafe { other(get_export_table) };
    }
    // SAFETY: the caller's promise.
    guard(0, || (recorder::get().is_some() && unsafe { nvtx::attach(get_export_table) }).into())
}
