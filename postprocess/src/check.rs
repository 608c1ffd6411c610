//! What `rpd check` looks for in a file, and what it can put right.
//!
//! | file | owns |
//! |---|---|
//! | `verdict.rs` | the whole check, in order |
//! | `kind.rs`, `finding.rs` | what can be found, and one finding |
//! | `journal.rs` | journals beside the file |
//! | `expected.rs` | the tables there should be |
//! | `structure.rs` | pages, version, tables, views, keys |
//! | `rule.rs`, `scan.rs` | conditions on rows, and one pass over a table that counts them all |
//! | `links.rs`, `outlier.rs` | ops beside their calls; times far from all others |
//! | `sessions.rs`, `liveness.rs` | sessions without an end, lost records, ids out of order; whether a process lives |
//! | `writer.rs` | who records into a file or has it open for writing |
//! | `repair.rs` | what can be mended without inventing anything, in one transaction |
//!
//! Rows are judged by what the file itself declares, so that extensions and other writers' tables are too.

mod expected;
mod finding;
mod journal;
mod kind;
mod links;
pub mod liveness;
pub(crate) mod outlier;
mod repair;
pub(crate) mod rule;
mod scan;
mod sessions;
mod structure;
mod verdict;
pub(crate) mod writer;

pub use finding::{CheckFinding, EXAMPLES, Example};
pub use kind::{FindingKind, Severity};
pub use outlier::Outliers;
pub use repair::{Repair, obstacle, repair};
pub use rule::are_sound;
pub use verdict::Verdict;
pub use writer::{RecordedBy, recorded_by};
