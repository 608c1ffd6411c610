//! This crate in another program than rpd: what it tells, how it is interrupted, and a pass that it does not know.

// A panic is how tests fail.
#![allow(clippy::unwrap_used)]

use std::fmt::Arguments;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use rpd_postprocess::notes::{Interrupted, Notes, SharedNotes};
use rpd_postprocess::pass::{ApplyOutcome, Change, Definition, Freshness, Pass, PassReport, apply, change};
use rpd_postprocess::passes::autograd::Autograd;
use rpd_postprocess::passes::callstack::Callstack;
use rpd_postprocess::region::Selected;
use rpd_postprocess::report::calls;
use rpd_schema::Version;
use rusqlite::Connection;
use tempfile::TempDir;

/// A program that keeps what it is told.
#[derive(Default)]
struct Program {
    notes: Mutex<Vec<String>>,
    shown: Mutex<Vec<String>>,
    signal: Option<i32>,
}

impl Notes for Program {
    fn note(&self, line: Arguments<'_>) {
        self.notes.lock().unwrap().push(line.to_string());
    }

    fn show(&self, what: &str) {
        self.shown.lock().unwrap().push(what.to_string());
    }

    fn signal(&self) -> Option<i32> {
        self.signal
    }
}

/// A trace of two calls, of which one is inside the other, with `more` (SQL).
fn trace(dir: &TempDir, more: &str) -> PathBuf {
    let file = dir.path().join("trace.rpd");
    rpd_schema::create(&file).unwrap();
    let calls = "INSERT INTO rocpd_string (id, string) VALUES (2, 'outer'), (3, 'inner');
                 INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id)
                     VALUES (1, 7, 7, 10, 50, 2, 1), (2, 7, 7, 20, 30, 3, 1);";
    let trace = Connection::open(&file).unwrap();
    trace.execute_batch(&format!("PRAGMA foreign_keys = OFF; {calls} {more}")).unwrap();
    file
}

fn number(file: &Path, query: &str) -> i64 {
    Connection::open(file).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn what_a_reader_has_to_know_reaches_the_caller() {
    let dir = tempfile::tempdir().unwrap();
    let file =
        trace(&dir, "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::lost::buffer_full', '3')");
    let program = Arc::new(Program::default());
    let notes: SharedNotes = program.clone();
    let made = apply(&file, &Callstack, false, &notes).unwrap();
    assert!(matches!(made, ApplyOutcome::Made(report) if report.rows["ext_callstack"] == 3));
    let notes_of_pass = program.notes.lock().unwrap().clone();
    assert_eq!(notes_of_pass.len(), 1, "{notes_of_pass:?}");
    assert!(
        notes_of_pass[0].ends_with("is incomplete: 3 records were lost while recording (3 buffer_full)"),
        "{notes_of_pass:?}"
    );
    assert!(program.shown.lock().unwrap()[0].starts_with("call stacks"));
}

#[test]
fn an_interrupted_change_is_an_error_that_says_so_and_leaves_the_file_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let file = trace(&dir, "");
    let before = fs::read(&file).unwrap();
    let interrupted: SharedNotes = Arc::new(Program { signal: Some(libc::SIGTERM), ..Program::default() });
    let failed = apply(&file, &Callstack, false, &interrupted).err().unwrap();
    assert_eq!(failed.downcast_ref::<Interrupted>().unwrap().signal, libc::SIGTERM);
    assert!(failed.to_string().starts_with("callstack was not made, and "), "{failed}");
    assert!(fs::read(&file).unwrap() == before);
    // A failure without a signal is no interruption.
    let notes: SharedNotes = Arc::new(Program::default());
    let failed = change(&file, "nothing was done", &notes, |_| -> Result<()> { anyhow::bail!("no") });
    assert!(failed.unwrap_err().downcast_ref::<Interrupted>().is_none());
}

/// Counts the calls of each thread.
struct Toy;

static TOY: Definition = Definition {
    name: "toy",
    about: "Count the calls of each thread",
    tag: "Toy",
    reads: &["rocpd_api"],
    tables: &["ext_toy"],
    views: &[],
    changes: None,
    making: None,
};

impl Pass for Toy {
    fn definition(&self) -> &'static Definition {
        &TOY
    }

    fn run(&self, change: &Change<'_>) -> Result<PassReport> {
        change.trace.execute_batch(
            "CREATE TABLE ext_toy AS SELECT pid, tid, count(*) AS calls FROM rocpd_api GROUP BY pid, tid",
        )?;
        Ok(PassReport::default())
    }
}

#[test]
fn a_pass_of_another_crate_is_made_once_marked_and_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let file = trace(&dir, "");
    let notes: SharedNotes = Arc::new(Program::default());
    assert!(matches!(apply(&file, &Toy, false, &notes).unwrap(), ApplyOutcome::Made(_)));
    assert_eq!(number(&file, "SELECT calls FROM ext_toy"), 2);
    let again = apply(&file, &Toy, false, &notes).unwrap();
    assert!(matches!(again, ApplyOutcome::AlreadyThere(Freshness::Current)));
    let added =
        "INSERT INTO rocpd_api SELECT 3, pid, tid, 60, 70, apiName_id, args_id FROM rocpd_api WHERE id = 2";
    Connection::open(&file).unwrap().execute_batch(&format!("PRAGMA foreign_keys = OFF; {added}")).unwrap();
    let stale = apply(&file, &Toy, false, &notes).unwrap();
    assert!(matches!(stale, ApplyOutcome::AlreadyThere(Freshness::Stale)));
    assert!(matches!(apply(&file, &Toy, true, &notes).unwrap(), ApplyOutcome::Made(_)));
    assert_eq!(number(&file, "SELECT calls FROM ext_toy"), 3);
    // Those of this crate are made beside it.
    apply(&file, &Autograd::PLAIN, false, &notes).unwrap();
    assert_eq!(number(&file, "SELECT calls FROM ext_toy"), 3);
}

/// How many steps SQLite makes until `rpd api` has its first call of many, and all of them.
#[test]
fn the_first_call_is_there_before_the_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = trace(
        &dir,
        "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) SELECT i, 7, 7, 100 * i, 100 * i + 50, 2, 1 FROM n;
         WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id) SELECT i, 0, 0, i, '', 100 * i + 20, 100 * i + 90, 3, 2 FROM n;
         INSERT INTO rocpd_api_ops (api_id, op_id) SELECT id, id FROM rocpd_op;",
    );
    let steps_of = |most: usize| {
        let mut trace = Connection::open(&file).unwrap();
        let steps = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&steps);
        trace
            .progress_handler(
                1,
                Some(move || {
                    counted.fetch_add(1, Ordering::Relaxed);
                    false
                }),
            )
            .unwrap();
        let mut seen = 0;
        calls::each(&trace, Version::V2, &Selected::everything(), |_, _| {
            seen += 1;
            Ok(if seen < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })
        .unwrap();
        (seen, steps.load(Ordering::Relaxed))
    };
    let ((one, first), (all, whole)) = (steps_of(1), steps_of(usize::MAX));
    assert_eq!((one, all), (1, 2993));
    assert!(4 * first < whole, "{first} steps to the first call, {whole} to the last");
}
