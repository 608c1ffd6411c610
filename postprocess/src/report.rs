//! Reports on a trace, read only.

pub mod calls;
pub mod ranking;
