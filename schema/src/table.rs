//! One row type per table, in plain Rust types.
//!
//! Handles and pointers are `u64` here and `0x` text in the file (null: `0x0`). Sizes and times above `i64::MAX`, which
//! SQLite cannot hold, are stored as `i64::MAX`.

mod api;
mod cell;
mod code_object;
mod copy_api;
mod dispatch;
mod instrumentation;
mod kernel_api;
mod launch_attribute;
mod library_call;
mod link;
mod monitor;
mod op;
mod replacement;
mod saved_code;
mod string;
mod tick;
mod validation;

pub use api::ApiRow;
pub use cell::Fence;
pub use code_object::{CodeObjectRow, ExtCodeObjectRow};
pub use copy_api::CopyApiRow;
pub use dispatch::DispatchRow;
pub use instrumentation::{Block, Finding, InstrumentationRow};
pub use kernel_api::KernelApiRow;
pub use launch_attribute::LaunchAttributeRow;
pub use library_call::LibraryCallRow;
pub use monitor::MonitorRow;
pub use op::{BarrierRow, OpRow};
pub use replacement::{CandidateRow, Outcome, ReplacementRow, THE_PROGRAM};
pub use saved_code::SavedCodeRow;
pub use tick::TickRow;
pub(crate) use validation::NumberedValidation;
pub use validation::ValidationRow;

pub(crate) use cell::Cells;
pub(crate) use link::{ApiOp, InputSignal, StackFrame};
pub(crate) use monitor::NumberedMonitor;
pub(crate) use saved_code::SavedKernel;
pub(crate) use string::StringRow;

use crate::id::Offset;
use rpd_sql::insert::Insert;

/// A row that can be written many at a time.
pub(crate) trait Row {
    /// The table and its columns.
    const INSERT: &'static Insert;

    /// The largest local id among the row's own and those it refers to: it must lie below 2^32.
    fn largest_id(&self) -> u64;

    /// Its primary key as it is in the file: the first column of [`Self::INSERT`].
    fn key(&self, offset: Offset) -> i64;

    /// Writes every cell behind the first, in the order of [`Self::INSERT`].
    fn fill(&self, offset: Offset, cells: &mut Cells<'_>);
}
