//! Reports on a trace, read only.

pub mod calls;
pub mod durations;
pub mod ranking;
pub mod replacements;
