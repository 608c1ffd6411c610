//! `ext_candidate` and `ext_replacement`: kernels that ran in place of the application's own.

use super::{Cells, Row};
use crate::id::{CandidateId, CodeObjectId, Offset, OpId};
use rpd_sql::insert::{self, Insert};

/// What a candidate has in place of a path where it is no file: instrumented kernels that the program itself has loaded.
pub const THE_PROGRAM: &str = "(the program)";

/// What became of a file of the kernel cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its kernels can be used.
    Loaded,
    /// It is for a processor that no GPU here is.
    OtherTarget,
    /// It was read, and none of its kernels can be used.
    Refused,
    /// It could not be read or loaded.
    Failed,
    /// The program has launched no kernel that one of its kernels could run in the place of.
    Unused,
    /// It was loaded, and the file is gone now or has other bytes.
    Removed,
}

impl Outcome {
    /// The text in the file.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Outcome::Loaded => "loaded",
            Outcome::OtherTarget => "other-target",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
            Outcome::Unused => "unused",
            Outcome::Removed => "removed",
        }
    }
}

/// A file of the kernel cache.
#[derive(Clone, Copy, Debug)]
pub struct CandidateRow<'a> {
    /// This content of the file.
    pub id: CandidateId,
    /// The file.
    pub path: &'a str,
    /// SHA-256 of its bytes, in hexadecimal digits; empty where they could not be read.
    pub sha256: &'a str,
    /// The processor that it is for; empty where that is not known.
    pub target: &'a str,
    /// When its kernels could be used, ns; 0 where they cannot.
    pub loaded: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, in words.
    pub reason: &'a str,
}

impl Row for CandidateRow<'_> {
    const INSERT: &'static Insert = &insert::EXT_CANDIDATE;

    fn largest_id(&self) -> u64 {
        self.id.0
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.local(self.id.0)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.text(self.path);
        cells.text(self.sha256);
        cells.text(self.target);
        cells.unsigned(self.loaded);
        cells.text(self.outcome.text());
        cells.text(self.reason);
    }
}

/// A dispatch that ran another kernel than the application's.
#[derive(Clone, Copy, Debug)]
pub struct ReplacementRow {
    /// The dispatch.
    pub op: OpId,
    /// The application's kernel.
    pub original: CodeObjectId,
    /// The kernel that ran.
    pub replacement: CodeObjectId,
    /// Where that kernel comes from.
    pub candidate: CandidateId,
}

impl Row for ReplacementRow {
    const INSERT: &'static Insert = &insert::EXT_REPLACEMENT;

    fn largest_id(&self) -> u64 {
        self.op.0.max(self.original.0).max(self.replacement.0).max(self.candidate.0)
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.op(self.op)
    }

    fn fill(&self, offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(offset.op(self.op));
        cells.integer(offset.code_object(self.original));
        cells.integer(offset.code_object(self.replacement));
        cells.integer(offset.local(self.candidate.0));
    }
}
