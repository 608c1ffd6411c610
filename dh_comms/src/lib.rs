//! The host side of AMD's dh_comms: what instrumented kernels stream out, byte for byte as its device header writes it.
//!
//! Each workgroup of a kernel writes messages into one of several sub-buffers in memory of the host. When one is full, the kernel sets a
//! flag and waits until the host has taken the bytes and reset the flag.
//!
//! - [`layout`]: what device and host share; [`reader`]: taking bytes out of sub-buffers while a kernel runs
//! - [`message`]: what the bytes say; [`file_name_hash()`]: how messages name files of the source
//!
//! The bytes come from kernels and are not trusted.

#![deny(unsafe_code)]

mod file_name_hash;
pub mod layout;
pub mod message;
pub mod reader;

pub use file_name_hash::file_name_hash;
