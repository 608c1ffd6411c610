//! The open transaction of a writer, and what is in the file only once it is committed.

use std::path::PathBuf;

/// What a writer knows of its open transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// It makes the file.
    pub(crate) creates: bool,
    /// Some of its rows have been written.
    pub(crate) has_written: bool,
    /// What is to be committed is written, and nothing else may be until then.
    pub(crate) is_sealed: bool,
    /// Notes beside the file that it has taken in.
    pub(crate) notes: Vec<PathBuf>,
}

/// Whether the file has what a writer adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    #[default]
    Unknown,
    InTransaction,
    Committed,
}

impl Presence {
    /// The open transaction is in the file.
    pub(crate) fn commit(&mut self) {
        if *self == Presence::InTransaction {
            *self = Presence::Committed;
        }
    }

    /// The open transaction is not in the file.
    pub(crate) fn roll_back(&mut self) {
        if *self == Presence::InTransaction {
            *self = Presence::Unknown;
        }
    }
}
