//! The kit that passes are made of. A pass works something out of the rows of a trace and keeps it in tables and views of its own.
//!
//! | file | owns |
//! |---|---|
//! | `definition.rs` | what a pass is called, reads and owns; what it can do |
//! | `apply.rs` | making one in a trace |
//! | `change.rs` | changing a trace: one transaction, who else writes, Ctrl-C, what a failure means |
//! | `mark.rs` | whether a pass is in a file, and whether the file has grown since |
//! | `report.rs` | what a pass made, and what it met on the way |
//! | `object.rs` | tables and views: making and removing those of a pass |
//! | `sorted.rs` | sorting more records than fit into memory |
//! | `parts.rs` | adding up by key, of more keys than fit into memory |
//! | `batch.rs` | rows to insert, many per statement |
//! | `texts.rs` | texts: finding, adding, removing what is not in use |
//!
//! The passes themselves, and the list of them, are in `passes/`, which knows this and is not known here.

pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod definition;
pub(crate) mod mark;
pub(crate) mod object;
pub(crate) mod parts;
pub(crate) mod report;
pub(crate) mod sorted;
pub(crate) mod texts;

pub use apply::{ApplyOutcome, apply};
pub use change::{Change, change};
pub use definition::{Definition, Making, Pass};
pub use mark::{Freshness, PassState};
pub use report::{PassReport, Remark};
