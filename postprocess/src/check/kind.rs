//! The kinds of findings: their names (part of the interface), how bad they are, what they mean, what to do.
//!
//! An *error* is something that cannot be: an answer from the file may be wrong. A *warning* is a file that
//! is sound but not whole, or that some tool will stumble over. A *note* is what real recorders do and
//! readers should know; the notes of docs/glossary.md are files beside a trace.

use serde::Serialize;

/// How bad a finding is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Answers from the file may be wrong.
    Error,
    /// The file is sound, but not whole.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

macro_rules! kinds {
    ($($kind:ident $name:literal $severity:ident $repair:literal $meaning:literal, $advice:literal;)*) => {
        /// What can be found; each kind's meaning is in its entry below.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FindingKind {
            $(#[doc = $meaning] $kind,)*
        }

        impl FindingKind {
            /// Every kind.
            #[cfg(test)]
            const ALL: &[FindingKind] = &[$(FindingKind::$kind,)*];

            /// Its stable name.
            pub fn name(self) -> &'static str {
                match self { $(FindingKind::$kind => $name,)* }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $(FindingKind::$kind => Severity::$severity,)* }
            }

            /// Whether `--repair` can do something about it.
            pub fn is_repairable(self) -> bool {
                match self { $(FindingKind::$kind => $repair,)* }
            }

            /// What it means, as the end of a sentence about the place where it was found.
            pub fn meaning(self) -> &'static str {
                match self { $(FindingKind::$kind => $meaning,)* }
            }

            /// What to do.
            pub fn advice(self) -> &'static str {
                match self { $(FindingKind::$kind => $advice,)* }
            }
        }
    };
}

kinds! {
    DamagedDatabase "damaged-database" Error false
        "SQLite's own check fails", "save what can be saved with: sqlite3 FILE .recover";
    UnreadableTable "unreadable-table" Error false
        "cannot be read to its end", "save what can be saved with: sqlite3 FILE .recover";
    IndexOutOfStep "index-out-of-step" Error true
        "the index does not say what its table says, so lookups miss rows", "--repair builds it anew";
    SchemaVersion "schema-version" Error true
        "the version in the metadata is not that of the tables", "--repair writes the one that the tables have";
    MissingTable "missing-table" Error true
        "the table is missing", "tools fail without it; --repair adds it, empty, in schema 2";
    MissingColumn "missing-column" Error false
        "the column is missing, or has another name", "tools that read it fail; give it its name: ALTER TABLE ... RENAME COLUMN";
    DuplicateId "duplicate-id" Error false
        "several rows have one id, so what refers to it is counted several times", "copy the rows from their source again";
    DanglingId "dangling-id" Error true
        "refers to rows that do not exist",
        "--repair removes such rows; for a text it puts the empty one, for a code object or candidate 0 (unknown)";
    NegativeDuration "negative-duration" Error true
        "ends before it starts, which falsifies sums", "--repair removes such rows and what hangs off them";
    ImpossibleTime "impossible-time" Error true
        "starts or ends at zero, before it, or at the end of all numbers: it was never timed",
        "--repair removes such rows and what hangs off them";
    NotANumber "not-a-number" Error false
        "holds nothing, or something that is no integer, which SQLite takes for another value or for 0",
        "do not add the column up; tools leave calls and operations without times out";
    DuplicateLink "duplicate-link" Error true
        "links one call and one op more than once, so the op counts several times", "--repair leaves one link each";
    NoPrimaryKey "no-primary-key" Warning false
        "ids are not declared unique, so what refers to them was not checked", "copy the rows into a table of the format";
    MissingView "missing-view" Warning true
        "the view is missing", "--repair adds it in schema 2";
    BrokenView "broken-view" Warning true
        "the view cannot be read", "--repair replaces it if it is one of the format";
    MissingIndex "missing-index" Warning true
        "the index is missing, so looking a text up reads them all", "--repair adds it in schema 2";
    UnknownReference "unknown-reference" Warning true
        "is declared to refer to texts, but there is no such column", "--repair removes the declaration";
    UnclaimedId "unclaimed-id" Warning true
        "has ids of sessions that were never taken: another recorder would write the same ones",
        "--repair corrects session_count";
    FarTime "far-time" Warning false
        "lies more than a day from nearly everything else in the file", "mind such rows when asking for a time span";
    UnnamedOp "unnamed-op" Warning false
        "kernels without a name: they show under their type", "record again, with the code objects readable";
    MissingDispatch "missing-dispatch" Warning false
        "kernels without launch geometry, in a session that wrote it for others", "mind them when grouping by it";
    SessionKilled "session-killed" Warning false
        "the process is gone and its session has no end: what came after its last commit, up to a second, may be missing", "nothing can be done";
    SessionAborted "session-aborted" Note false
        "the program called abort(): what it had recorded by then is in the file", "look at what it did last";
    QueueFailed "queue-failed" Warning false
        "a queue of a GPU failed in this session", "look at the kernel that is named";
    SessionUnfinished "session-unfinished" Warning false
        "the session has no end: its process was killed or still runs, which only its own host or container can tell",
        "run rpd check there";
    LostRecords "lost-records" Warning false
        "records that did not make it into the file, by cause", "record again: with a larger RPDT_BUFFER_MB if the buffer was full, with another CUPTI (RPDT_CUPTI) if CUPTI lost them";
    LaunchWithoutOp "launch-without-op" Warning false
        "launches whose kernels were not known to have completed when the file was last written: recording or the process had \
         ended before, or HIP, whose own times were recorded, had not reported the kernels yet",
        "let the program synchronise before it ends, or stop with: rpdRemote stop --drain 30s";
    SessionRunning "session-running" Note false
        "is being recorded: its rows are not judged yet", "check again when it has ended";
    PagesNotChecked "pages-not-checked" Note false
        "the pages of a large file that is being recorded were not checked: it would hold the recorder up",
        "check again when it has ended";
    JournalRolledBack "journal-rolled-back" Note false
        "a writer died in mid-transaction; opening the file took it back to the last commit", "nothing is left to do";
    LeftoverJournal "leftover-journal" Note false
        "a journal lies beside the file; SQLite needs it if a writer is at work",
        "keep it with the file; the next writer removes it";
    OlderLayout "older-layout" Note false
        "an older file: it lacks later additions to the format", "nothing needs to be done";
    EmptyNumber "empty-number" Note false
        "holds the empty text where a number belongs, as some recorders write it", "read it as: not known";
    UnlinkedOp "unlinked-op" Note false
        "ops that no call caused", "they have no launching thread";
    SharedOp "shared-op" Note false
        "ops that several calls caused", "joins with calls count them several times";
}

#[cfg(test)]
mod tests {
    use super::FindingKind;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_words_and_unique() {
        let names: BTreeSet<&str> = FindingKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FindingKind::ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
    }

    #[test]
    fn what_can_be_repaired_says_so_and_nothing_else_does() {
        for kind in FindingKind::ALL {
            assert_eq!(kind.is_repairable(), kind.advice().contains("--repair"), "{}", kind.name());
        }
    }
}
