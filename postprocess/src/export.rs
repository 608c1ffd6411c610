//! A trace in the formats of other tools.
//!
//! Every export streams: memory does not grow with the trace, and the trace is not touched.

pub mod chrome;
pub mod columns;
mod elements;
mod json;
pub mod kineto;
pub mod perfetto;
mod texts;
mod timeline;
mod trace_event;

pub use timeline::Exported;
