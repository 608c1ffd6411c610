//! Reports on a trace, read only.

pub mod blocks;
pub(crate) mod by_id;
pub mod calls;
pub mod categories;
pub(crate) mod caused;
pub mod copies;
pub mod diff;
pub mod durations;
pub mod energy;
pub mod gaps;
pub mod gpu_time;
pub mod kernel;
mod launched;
pub mod libraries;
pub mod marker_table;
pub mod markers;
pub mod memory;
mod named;
pub mod overlap;
pub mod process_label;
pub mod queues;
pub mod rank_by;
pub mod ranking;
pub mod replacements;
mod stream;
pub mod utilisation;
pub mod variability;
