//! librpd_tracer.so: records what a program does on its GPUs, from inside the program.
//!
//! Hooks fill records, rings carry them, one writer thread puts them into the file:
//!
//! - [`export`]: every symbol the library exports. `guard`: no panic crosses, errno stays
//! - `hsa`: queues, dispatches, copies and code objects of the HSA runtime
//! - `hip`: calls of the HIP API, and its own times; `correlation`: what ties operations to calls; `timing`: whose times are used
//! - `register`: the tables that rocprofiler-register hands over
//! - `marker`, `process_range`, `paused`: ranges and instants of the application; `roctx`, `nvtx`: AMD's and NVIDIA's way to say
//!   them
//! - `record`, `ring`, `chunk`, `budget`, `thread`: from a hook to the writer without locks
//! - `writer`: rings to rows; the only owner of the file
//! - `recorder`, `switch`, `config`, `cgroup`, `counters`, `lost_calls`: the one process-wide object and its parts
//! - `stack`: who made a call, RPDT_STACKFRAMES
//! - `fork`: children; `finish`, `report`: the end of the process; `failure`: what went wrong in it; `got`:
//!   seeing the end where the recorder came late
//!
//! The rules that every line here keeps are in docs/architecture.md.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod budget;
mod cgroup;
mod chunk;
mod config;
mod correlation;
mod counters;
mod env;
mod environment;
pub mod export;
mod failure;
mod finish;
mod fork;
mod got;
mod gpu;
mod guard;
mod hip;
mod host;
mod hsa;
mod log;
mod lost_calls;
mod marker;
mod nvtx;
mod paused;
mod process_range;
#[cfg(feature = "panic-in-hooks")]
mod provoked;
#[cfg(not(feature = "panic-in-hooks"))]
mod provoked {
    /// Nothing is provoked in a library that is used.
    #[inline(always)]
    pub(crate) fn panic(_place: &str) {}
}
mod record;
mod recorder;
mod register;
mod report;
mod ring;
mod roctx;
mod source;
mod sources;
mod stack;
mod switch;
mod thread;
mod writer;
