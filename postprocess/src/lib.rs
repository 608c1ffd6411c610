//! What is worked out of an .rpd file: whether it is sound, tables that are kept in it, parts of it, several in one, reports.
//!
//! A function here prints nothing and ends no process: it returns, or tells by [`notes::Notes`] what it is working on.
//!
//! | folder | owns |
//! |---|---|
//! | `trace/` | opening a trace; its tables and what their ids refer to; questions to it |
//! | `check/` | what is wrong with a trace, and mending it |
//! | `pass/` | the kit that passes are made of: changing a trace in one transaction, marks, sorting |
//! | `passes/` | the passes, and the one list of them |
//! | `rewrite/` | making a trace out of others: it appears whole or not at all |
//! | `merge/`, `trim/` | several traces in one; a part of one |
//! | `moment/`, `pattern.rs` | times and names as people write them |
//! | `report/` | rankings, one kernel, copies, markers, queues, categories, memory, idle time and its causes, overlap, calls, two runs and builds compared |
//! | `query/` | queries of a user's own, which may only read |
//! | `region/` | a part of a trace as people name it: times, GPUs, queues, streams, processes, markers, kernels |
//! | `export/` | a trace in the formats of other tools |
//! | `dataset/` | the traces of jobs as Parquet files in folders |
//! | `import/` | what other tools recorded, as a trace |
//! | `library/` | calls of GPU libraries: their work, the command that runs one again, their logs |
//! | `code/` | what kernels need, out of code objects |
//! | `statistics/` | whether two samples differ, by how much; knows nothing of traces |
//! | `text.rs`, `notes.rs`, `system.rs` | names made harmless; notes to the caller; system calls |
//!
//! Dependencies: `passes` -> `pass` -> `check` -> `trace`; `trim`, `merge` -> `rewrite`, `passes`; `dataset`, `import` -> `rewrite`; `export` -> `report`, `region`; `report` -> `library`. No circle across folders.

#![deny(unsafe_code)]

pub mod check;
pub mod code;
#[cfg(feature = "parquet")]
pub mod dataset;
pub mod export;
pub mod import;
pub mod library;
pub mod merge;
pub mod moment;
pub mod notes;
pub mod pass;
pub mod passes;
pub mod pattern;
pub mod query;
pub mod region;
pub mod report;
mod rewrite;
pub mod statistics;
mod system;
pub mod text;
pub mod trace;
pub mod trim;
