//! Reports on a trace, read only.

pub mod blocks;
pub mod calls;
pub mod durations;
pub mod gaps;
pub mod gpu_time;
pub mod overlap;
pub mod ranking;
pub mod replacements;
