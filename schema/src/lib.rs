//! What an .rpd file is: create, open, check, sessions, ids, rows.
//!
//! The one seam between recording and reading. The recorder appends through [`Appender`]; tools open through
//! [`open_read`] or [`open_write`] and ask what the file says of itself through [`sessions()`], [`gpus`] and [`lost`].
//!
//! | file | owns |
//! |---|---|
//! | `version.rs` | which kind of file this is, found without changing it |
//! | `create.rs` | a fresh file, also when many processes want it at once |
//! | `open.rs` | connections: flags, pragmas, waiting for locks |
//! | `place.rs` | why there can be no file at a path |
//! | `derive.rs` | making a new file out of traces |
//! | `session.rs`, `facts.rs` | a writer's session: its number, ids, texts and facts |
//! | `appender.rs`, `append.rs`, `transaction.rs` | a writer: its transactions and rows |
//! | `known_tables.rs` | which tables a file has, and whether others have written it |
//! | `pending.rs`, `batch.rs` | rows that wait |
//! | `transfer.rs`, `image.rs`, `record.rs` | how they get into the file: as records of a database in memory |
//! | `intern.rs` | text to id, in bounded memory |
//! | `id.rs`, `table/` | local ids, and one row type per table |
//! | `note.rs` | what a process could not say in the file, beside it |
//! | `session_fact.rs`, `sessions.rs` | names of facts about a session, and reading them back (`numbered.rs`) |
//! | `process.rs` | which sessions are of one process |
//! | `text.rs` | reading texts, whatever they are |
//! | `error.rs` | what can go wrong, and what to do about it |
//!
//! Units: times are nanoseconds of `CLOCK_MONOTONIC` of the recording host. Ids in this interface are *local*: each
//! process counts from 1, and the file's id is the local one plus the session number times 2^32.

#![forbid(unsafe_code)]

mod append;
mod appender;
mod batch;
mod create;
mod derive;
mod error;
mod facts;
mod id;
mod image;
mod intern;
mod known_tables;
mod leaves;
mod note;
mod numbered;
mod open;
mod pending;
mod place;
mod process;
mod record;
mod session;
pub mod session_fact;
mod session_times;
mod sessions;
pub mod table;
pub mod text;
mod transaction;
mod transfer;
mod version;

pub use appender::Appender;
pub use create::{check_place, create, create_or_check};
pub use derive::{attach, derive};
pub use error::{Error, ErrorKind};
pub use id::{ApiId, CandidateId, CodeObjectId, OpId, SavedCodeId, StringId};
pub use note::{leave_note, note_files, remove_note, remove_notes};
pub use open::{BUSY_TIME, open_read, open_read_within, open_write};
pub use place::check_name;
pub use process::Processes;
pub use session_times::{MOST_TIMES, SessionTime, moved_session_times, session_times, session_times_text};
pub use sessions::{GpuInfo, SessionInfo, gpus, launches_without_op, lost, noted_sessions, sessions};
pub use table::{
    ApiRow, BarrierRow, Block, CandidateRow, CodeObjectRow, CopyApiRow, DispatchRow, ExtCodeObjectRow, Fence,
    Finding, InstrumentationRow, KernelApiRow, LaunchAttributeRow, LibraryCallRow, MonitorRow, OpRow,
    Outcome, ReplacementRow, SavedCodeRow, THE_PROGRAM, TickRow, ValidationRow,
};
pub use version::{Version, identify, identify_within};
