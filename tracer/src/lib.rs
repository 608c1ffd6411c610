//! librpd_tracer.so: records what a program does on its GPUs, from inside the program.
//!
//! Hooks fill records, which the crate `rpd-transport` carries to the file. The lowest layer is first; a layer uses only those listed before it:
//!
//! - `guard`: the border of every exported function and hook
//! - `gpu`: kernels, and what times operations; `call`: the call that a thread is in; `library_call`: calls of libraries whose functions
//!   are described; `hsa_runtime`: questions to the HSA runtime; `sized_table`: tables that libraries offer
//! - `intercept`: what changes packets on their way to the hardware
//! - [`sources`]: a folder for each thing that is observed, and their list
//! - `register`: the tables that rocprofiler-register hands over
//! - [`process`]: load, fork, exit; [`control`]: start, stop, flush
//!
//! Exported functions are in the modules that they belong to; tests/exports.txt lists them. The rules that every line here keeps are in
//! docs/architecture.md.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod call;
pub mod control;
mod gpu;
mod guard;
mod hsa_runtime;
mod intercept;
mod library_call;
pub mod process;
pub mod register;
mod sized_table;
pub mod sources;
