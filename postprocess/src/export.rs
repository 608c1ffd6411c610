//! A trace in the formats of other tools.
//!
//! Every export streams: memory does not grow with the trace, and the trace is not touched.

pub mod call_tree;
pub mod chrome;
pub mod collapsed;
pub mod columns;
mod elements;
pub mod gpu_info;
pub mod html;
mod json;
pub mod kineto;
pub mod perfetto;
pub mod rocprofv3;
mod section;
pub mod speedscope;
mod texts;
mod timeline;
mod trace_event;

pub use timeline::Exported;
