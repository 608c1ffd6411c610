//! What people write to rpd on command lines and in environment variables, read one way in all of its parts.
//!
//! | file | owns |
//! |---|---|
//! | `quantity.rs` | times (`1.5ms`) and sizes (`512MiB`) |
//! | `nearest.rs` | the known name that a misspelt one is nearest to |
//! | `variable.rs` | the names of the environment variables |
//! | `library.rs` | the names of libraries whose calls are recorded |
//! | `sensor.rs` | the names of sensors |
//! | `rank.rs`, `job.rs` | the rank of a process in its job, and the job |
//! | `library_filter.rs` | files that say which libraries' kernels may be replaced |
//! | `measure.rs` | as what two buffers are compared |
//! | `function_list.rs` | lists of functions whose calls are recorded |
//! | `rotation.rs` | when a recording goes on in a next file, and the names of these |
//! | `file_name.rs` | `%p`, `%h`, `%r` and `%j` in the name of a trace, and names that no trace can have |

#![forbid(unsafe_code)]

pub mod file_name;
pub mod function_list;
pub mod job;
pub mod library;
pub mod library_filter;
pub mod measure;
mod nearest;
pub mod quantity;
pub mod rank;
pub mod rotation;
pub mod sensor;
pub mod variable;

pub use nearest::{nearest, tip};
