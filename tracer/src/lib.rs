//! librpd_tracer.so: records what a program does on its GPUs, from inside the program.
//!
//! Hooks fill records, which the crate `rpd-transport` carries to the file:
//!
//! - [`export`]: every symbol the library exports. `guard`: no panic crosses, errno stays
//! - `sources`: the list of sources. `hsa`: queues, dispatches, copies and code objects of the HSA runtime; `hip`: calls of the HIP API,
//!   and its own times; `roctx`, `nvtx`: AMD's and NVIDIA's way to mark what a program is at
//! - `gpu`: what sources share: kernels, and whose times are used
//! - `register`: the tables that rocprofiler-register hands over
//! - `fork`: children; `finish`, `report`: the end of the process; `got`: seeing the end where the recorder came late; `environment`: what
//!   children of the process inherit
//!
//! The rules that every line here keeps are in docs/architecture.md.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod environment;
pub mod export;
mod finish;
mod fork;
mod got;
mod gpu;
mod guard;
mod hip;
mod hsa;
mod nvtx;
mod register;
mod report;
mod roctx;
mod sources;
