//! Analyzers: what they make of the messages of instrumented kernels, dispatch by dispatch.
//!
//! - `selection`: which analyzers the user asked for, by their names or those of omniprobe's libraries; `block_filter`: whose
//!   messages they are given
//! - `message_logger`, `heatmap`, `memory_analysis`, `time_interval`, `basic_blocks`: one analyzer each
//! - [`handler_protocol`]: how the recorder talks to analyzers of the user's own
//! - [`analysis`]: all analyzers of a dispatch, and their reports; [`source_files`]: the files that messages name
//!
//! Memory is bounded: what an analyzer has no room for is counted, and its report says so.

#![forbid(unsafe_code)]

pub mod analysis;
mod basic_blocks;
mod block_filter;
pub mod handler_protocol;
mod heatmap;
mod memory_analysis;
mod message_logger;
mod selection;
pub mod source_files;
mod time_interval;

pub use analysis::{Analysis, Report, Subject, log_header};
pub use block_filter::BlockFilter;
pub use selection::{AnalyzerKind, Analyzers};
pub use source_files::SourceFiles;
