//! The timeline of a trace, and the overview of a dataset: a server on this machine, and the pages that it serves.
//!
//! The server reads every row once, into columns, and answers from there: no SQL is run for what the page draws. The file is read again for the
//! details of one event only, by its key. Nothing is ever written into it or beside it.
//!
//! | file | owns |
//! |---|---|
//! | `gathering.rs`, `reads.rs` | the rows of a trace into memory, also while it grows; those of threads and queues |
//! | `reading.rs` | these rows, of one trace or of two, into a timeline |
//! | `timeline.rs` | processes, GPUs, tracks, rows |
//! | `columns.rs`, `layout.rs` | the events; where they lie so that none covers another |
//! | `packed.rs` | millions of numbers in few bits each |
//! | `pyramid.rs`, `tiles.rs` | what a row shows zoomed out; that as bytes |
//! | `counters.rs` | numbers over time: sensors, how many operations wait or run |
//! | `names.rs`, `links.rs` | texts and kinds; which call caused which operations |
//! | `waits.rs`, `recording.rs` | what waits waited for; when a process was not recorded, or records were lost |
//! | `derived.rs` | rows that are worked out when they are asked for: streams, what markers ran, memory, bandwidth |
//! | `reports.rs`, `trees.rs`, `console.rs`, `kernel_code.rs` | reports, the tree of calls, questions in SQL, code of kernels |
//! | `roofline.rs` | how fast counted kernels compute and move data |
//! | `details.rs`, `search.rs`, `statistics.rs`, `delta.rs` | answers about one event, about names, about a selection, about two traces |
//! | `overview.rs` | the ranks of a dataset on the time axes of their jobs |
//! | `export.rs`, `export/levels.rs` | the page as one file: with its events, or with what is seen of them from afar |
//! | `pool.rs` | connections that read the file |
//! | `server/` | who may ask, the answers as HTTP, the files of the page, the browser |
//!
//! Types that have the names of others in the recorder (`Row`, `Source`, `Stack`) are what the page shows.
//!
//! Times are ns since the trace's first event, rows are counted from 0, and an event is its place in the columns.

#![forbid(unsafe_code)]

pub mod columns;
pub mod console;
pub mod counters;
pub mod delta;
pub mod derived;
pub mod details;
pub mod export;
pub mod gathering;
pub mod kernel_code;
pub mod layout;
pub mod links;
pub mod names;
pub mod overview;
pub mod packed;
pub mod pool;
pub mod pyramid;
pub mod reading;
mod reads;
pub mod recording;
pub mod reports;
pub mod roofline;
pub mod search;
pub mod server;
pub mod statistics;
pub mod tiles;
pub mod timeline;
pub mod trees;
pub mod waits;
