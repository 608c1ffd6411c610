//! The recorder in the life of its process: how it comes in, what a fork means, and each way in which a process ends.
//!
//! - `load`: the library is loaded; `fork`: its children
//! - `exit`: the ends that run no destructor
//! - `finish`: what is to get into the file, on request and at the end; `report`: lines for `rpd record`

pub mod exit;
pub(crate) mod finish;
pub(crate) mod fork;
mod load;
pub(crate) mod report;
