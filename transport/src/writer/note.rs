//! The note beside the trace: what is missing from a file that cannot be written, until it can be.
//!
//! The writer leaves one while it goes on trying. Where the process ends and its writer does not get on, on a disk that hangs or without a
//! processor, another thread leaves the last note. That may come to hang as well: it is waited for only so long.

use std::io::ErrorKind::{AlreadyExists, NotADirectory, PermissionDenied};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rpd_preload::lock::lock;
use rpd_preload::{descriptors, threads};
use rpd_schema::{Appender, Error, session_fact};

use super::{session, system_calls};
use crate::counters::Cause;
use crate::log;
use crate::recorder::Recorder;

/// How long the end of the process waits for the last note.
const PATIENCE: Duration = Duration::from_millis(500);

/// The writer's note.
#[derive(Default)]
pub(super) struct WriterNote {
    is_there: bool,
}

impl WriterNote {
    /// Whether it was left, and nobody but its readers may have removed it.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    /// Leaves the note, in place of an earlier one: `lost` records are missing, as `facts` say.
    pub(super) fn leave(
        &mut self,
        recorder: &Recorder,
        trace: &Path,
        session: Option<u32>,
        facts: &[(String, String)],
        lost: u64,
    ) {
        let name = session::name_of_note(recorder);
        if self.is_there {
            rpd_schema::remove_note(trace, &name);
        }
        // Why the file cannot be written was said when that began.
        let shown = trace.display();
        match system_calls::with_room(|| rpd_schema::leave_note(trace, &name, session, facts)) {
            Ok(()) => {
                self.is_there = true;
                log::info(|| format!("{shown}: {lost} records lost, said beside it"));
            }
            // What keeps the file from being written keeps the note from it, and was said.
            Err(error) if !matches!(error.kind(), NotADirectory | AlreadyExists | PermissionDenied) => {
                log::info(|| format!("{shown}: {lost} records lost, not said beside it: {error}"));
            }
            Err(error) => log::problem(&format!(
                "{shown}: {lost} records lost, which the trace will not say: no note can be written into {shown}-lost ({error}); that must \
                 be a directory that this process may write, or not exist"
            )),
        }
    }

    /// What it says gets into the file after all, with the open transaction. False: there is none.
    pub(super) fn withdraw(&self, recorder: &Recorder, appender: &mut Appender) -> Result<bool, Error> {
        if self.is_there {
            appender.withdraw_note(&session::name_of_note(recorder))?;
        }
        Ok(self.is_there)
    }

    /// The transaction that withdrew it is in the file. `noted`: it was left again while the commit waited.
    pub(super) fn committed(&mut self, recorder: &Recorder, appender: &Appender, noted: bool) {
        // Others may have taken it in by now, which the next transaction finds.
        self.is_there = noted;
        if noted {
            rpd_schema::remove_note(appender.path(), &session::name_of_note(recorder));
        }
    }

    /// The transaction that withdrew it is in the file.
    pub(super) fn forget(&mut self) {
        self.is_there = false;
    }
}

/// Leaves the last note.
pub(super) fn leave_last(recorder: &'static Recorder) {
    let done = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = done.clone();
    let spawned = threads::spawn(c"rpd-note", move || {
        write_last(recorder);
        *lock(&theirs.0) = true;
        theirs.1.notify_all();
    });
    if spawned.is_ok() {
        let waiting = done.1.wait_timeout_while(lock(&done.0), PATIENCE, |done| !*done);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

fn write_last(recorder: &'static Recorder) {
    let Some(missing) = recorder.unaccounted(PATIENCE).filter(|missing| *missing > 0) else { return };
    let mut facts = vec![(session_fact::lost(Cause::Write.name()), missing.to_string())];
    let mut state = |key: &str, value: &str| {
        facts.push((key.to_owned(), value.to_owned()));
        Ok(())
    };
    // Nothing here fails.
    let _ = session::begin(&mut state, recorder, None);
    let named = || lock(&recorder.filename).expanded();
    let path = recorder.requests.progress.get().map_or_else(named, |(.., path)| path);
    // The writer's own notes have the name without the end.
    let name = format!("{}-end", session::name_of_note(recorder));
    // What the session lost before is in the file, as of its last transaction: this is one of its own.
    let left = descriptors::with_room(|| rpd_schema::leave_note(&path, &name, None, &facts));
    if recorder.requests.is_finished(PATIENCE) {
        // It has got on after all.
        rpd_schema::remove_note(&path, &name);
    } else if let Err(error) = left {
        log::problem(&format!("{}: {missing} records lost, not said beside it: {error}", path.display()));
    }
}
