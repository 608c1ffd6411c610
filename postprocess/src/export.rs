//! A trace in the formats of other tools.
//!
//! Every export streams: memory does not grow with the trace, and the trace is not touched.

pub mod chrome;
mod elements;
mod json;
pub mod perfetto;
mod texts;
mod timeline;

pub use timeline::Exported;
