//! The library's exported surface, all of it; `exports.txt` is the same list for the linker's side of the check.

pub mod exit;
pub mod hip;
pub mod hsa;
mod load;
pub mod nvtx;
pub mod register;
pub mod roctx;
pub mod rpd;
pub mod state;
