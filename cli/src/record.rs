//! `rpd record`: running a command with the recorder in it, unnoticed.
//!
//! | file | owns |
//! |---|---|
//! | `destination.rs`, `job.rs` | the file that is written, what may happen to an existing one, and whose it is |
//! | `duration_log.rs` | the log of durations beside it |
//! | `preload.rs`, `hip_library.rs`, `roctx.rs`, `loader.rs` | what is put into the command's environment |
//! | `handlers.rs` | processes with handlers of the user's own |
//! | `launch.rs` | starting the command and waiting for it |
//! | `recorded.rs`, `replaced.rs` | what the run added to its trace |
//! | `report.rs`, `executable.rs`, `empty_trace.rs` | why a run recorded nothing |

pub(crate) mod destination;
pub(crate) mod duration_log;
pub(crate) mod empty_trace;
pub(crate) mod executable;
pub(crate) mod handlers;
pub(crate) mod hip_library;
mod job;
pub(crate) mod launch;
pub(crate) mod loader;
pub(crate) mod preload;
pub(crate) mod recorded;
mod replaced;
pub(crate) mod report;
pub(crate) mod roctx;
