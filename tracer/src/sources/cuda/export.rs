//! CUDA injection: what the driver calls in the library that `CUDA_INJECTION64_PATH` names.

use std::ffi::c_int;

use rpd_transport::recorder;

use super::{attach, injection};
use crate::guard::guard;

/// The driver calls this inside a process's first cuInit, once (CUDA's documentation of CUPTI, "CUDA injection"). It asks for no more of the
/// answer.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn InitializeInjection() -> c_int {
    guard((), || {
        if let Some(recorder) = recorder::get() {
            injection::happened();
            recorder.in_use();
            attach::follow(recorder, true);
        }
    });
    1
}
