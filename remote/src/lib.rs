//! librpd_remote.so: waits inside a process, at no cost, until somebody asks for a recording (docs/remote.md).
//!
//! Commands write what they want into the process's block of shared memory (crate `rpd-remote-block`), or send a signal; one
//! thread sleeps until then, loads the recorder at the first start, and does as asked.
//!
//! - `load`: what runs when the library is loaded, when a GPU runtime comes, when the process ends
//! - `presence`: block and thread of this process; `memory`: the block's memfd; `fork`: children
//! - `thread`: what is done about a request; `recorder`: librpd_tracer.so and its C interface
//! - `guard`: the border between the loader and the program
//! - `end`: ends of a process that a recorder loaded late would miss
//! - `signal`: SIGUSR1 and SIGUSR2; `interpose`: the program's own handlers for them
//! - `settings`: the environment
//!
//! It knows nothing of traces, and only the C interface of the recorder. In a process without a GPU runtime it does nothing.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod end;
mod fork;
mod guard;
pub mod interpose;
pub mod load;
mod memory;
mod presence;
mod recorder;
mod settings;
mod signal;
mod thread;
