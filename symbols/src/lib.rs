//! librpd_hip.so: HIP's functions by their own names, for LD_PRELOAD (symbol interposition in docs/architecture.md).
//!
//! A library of its own, because in a process that has these names whoever asks for one by `dlsym(RTLD_DEFAULT)` finds it, whether or not
//! HIP is there: only programs that were asked to get them.

#![deny(clippy::print_stdout, clippy::print_stderr)]

include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
