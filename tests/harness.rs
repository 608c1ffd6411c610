//! What the tests share: artifacts built once, programs run in directories of their own, traces as typed rows, the device's
//! log as the ops it must become.

mod artifacts;
mod clock;
mod held;
mod mapping;
mod patience;
mod run;
#[allow(dead_code)] // other crates use the rest
mod skip;
mod tool;
mod trace;

pub(crate) use artifacts::{
    aql_code_object, block_kernel, candidate, code_object, compared_candidate, dh_comms_program, hip_library,
    hip_symbols, library_symbols, loader, newer_rocm, probe_candidate, program, recorder, rpd, rpd_remote,
    saxpy_candidate, software_gpu, validate_candidate,
};
pub(crate) use clock::{boot_minus_monotonic, monotonic};
pub(crate) use held::HeldThread;
pub(crate) use mapping::Expected;
pub(crate) use patience::{PATIENCE, wait_for};
pub(crate) use run::{Dir, Loading, Ran, Run, Running};
pub(crate) use skip::{not_installed, not_tested};
pub(crate) use tool::{command, llvm, llvm_tool, make, tool, unbundled};
pub(crate) use trace::{Op, Trace};
