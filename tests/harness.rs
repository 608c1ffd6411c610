//! What the tests share: artifacts built once, programs run in directories of their own, traces as typed rows, the device's
//! log as the ops it must become.

mod artifacts;
mod clock;
mod mapping;
mod patience;
mod run;
#[allow(dead_code)] // other crates use the rest
mod skip;
mod tool;
mod trace;

pub(crate) use artifacts::{
    aql_code_object, candidate, code_object, hip_library, hip_symbols, loader, newer_rocm, program, recorder,
    rpd, rpd_remote, saxpy_candidate, software_gpu,
};
pub(crate) use clock::boot_minus_monotonic;
pub(crate) use mapping::Expected;
pub(crate) use patience::{PATIENCE, wait_for};
pub(crate) use run::{Dir, Loading, Ran, Run, Running};
pub(crate) use skip::{not_installed, not_tested};
pub(crate) use tool::{command, make, tool};
pub(crate) use trace::{Op, Trace};
