//! Reports: what is told of a trace, read only.

pub mod calls;
pub mod ranking;
