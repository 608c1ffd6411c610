//! librpd_libraries.so: functions of rocBLAS, RCCL, cuBLAS and other GPU libraries by their own names, for LD_PRELOAD.
//!
//! As librpd_hip.so, and a library of its own for the same reason: programs get these names only where `rpd record --libraries` asks.

#![deny(clippy::print_stdout, clippy::print_stderr)]

include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
