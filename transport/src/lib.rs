//! Transport: carries what hooks record into the file, whatever they observe.
//!
//! A hook makes a [`records`] body and pushes it into the ring of its thread ([`thread`]). One thread, the [`writer`], drains all rings,
//! makes rows of records and owns the file. What it must know beyond a record, it asks the record's [`source`].
//!
//! - [`recorder`]: the one process-wide object, made of [`config`] ([`mod@env`]), [`buffers`], [`switch`], [`counters`], [`failure`] and writer
//! - [`requests`], [`progress`]: requests to the writer, and how far it is; `exit_wait`: how long the end of the process waits for it
//! - [`records`]: what travels, and the rings that it travels in; [`correlation`], [`lost_calls`]: what ties operations to calls
//! - [`marker`], [`process_range`], [`paused`]: ranges and instants of the application
//! - [`analyzed`]: what analyzers found in what instrumented kernels streamed out
//! - [`sensors`]: GPUs whose sensors another process records into the same file
//! - [`stack`]: who made a call, RPDT_STACKFRAMES
//! - [`log`]: lines on standard error; [`host`], [`cgroup`]: what the system says of the process
//!
//! Nothing here knows a GPU runtime, exports a symbol or runs by itself.
//!
//! Types of events (`Call`, `Copy`, `Dispatch`, `Stack`) are records in memory. Crates that read files have others of these names, of rows.

#![deny(clippy::print_stdout, clippy::print_stderr)]

// models/ puts loom's in their place, for the modules that name them so.
use std::sync::atomic;

pub mod analyzed;
pub mod buffers;
pub mod cgroup;
pub mod config;
pub mod correlation;
pub mod counters;
pub mod env;
mod exit_wait;
pub mod failure;
pub mod host;
pub mod log;
pub mod lost_calls;
pub mod marker;
pub mod paused;
pub mod process_range;
#[cfg(feature = "panic-in-hooks")]
pub mod provoked;
#[cfg(not(feature = "panic-in-hooks"))]
pub mod provoked {
    //! Panics on demand, of which there are none in a library that is used.

    /// Nothing.
    #[inline(always)]
    pub fn panic(_place: &str) {}
}
pub mod progress;
pub mod recorder;
pub mod records;
pub mod requests;
pub mod sensors;
pub mod source;
pub mod stack;
pub mod switch;
pub mod thread;
pub mod writer;
