//! Calls of GPU libraries: what they compute and move, the command that runs one again, and what libraries' logs have of them.
//!
//! - `arguments`: a call's arguments as the recorder writes them, and what they say
//! - `work`: floating point operations and bytes; `bench`: the command; `replay`: which commands may be run, and what they print
//! - `profile`: the lines by which rocBLAS counts its calls
//! - `log`: lines of logs; `kernel_trace`: those of RCCL's kernels, with times; `trace_csv`: madengine's library_trace.csv

pub mod arguments;
pub mod bench;
pub mod kernel_trace;
pub mod log;
pub mod profile;
pub mod replay;
pub mod trace_csv;
pub mod work;
