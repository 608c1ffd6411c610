//! The process ends, and its writer does not get on: on a disk that hangs, or without a processor. What is not in the file is said beside
//! it by another thread, which may come to hang as well: it is waited for only so long.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rpd_preload::lock::lock;
use rpd_preload::threads;
use rpd_schema::session_fact;

use super::session;
use crate::counters::Cause;
use crate::log;
use crate::recorder::Recorder;

/// How long the end of the process waits for the note.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// Leaves the note.
pub(super) fn leave(recorder: &'static Recorder) {
    let done = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = done.clone();
    let spawned = threads::spawn(c"rpd-note", move || {
        write(recorder);
        *lock(&theirs.0) = true;
        theirs.1.notify_all();
    });
    if spawned.is_ok() {
        let waiting = done.1.wait_timeout_while(lock(&done.0), PATIENCE, |done| !*done);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

fn write(recorder: &'static Recorder) {
    let Some(missing) = recorder.unaccounted(PATIENCE).filter(|missing| *missing > 0) else { return };
    let mut facts = vec![(session_fact::lost(Cause::Write.name()), missing.to_string())];
    let mut state = |key: &str, value: &str| {
        facts.push((key.to_owned(), value.to_owned()));
        Ok(())
    };
    // Nothing here fails.
    let _ = session::begin(&mut state, recorder);
    let named = || lock(&recorder.filename).expanded();
    let path = recorder.requests.progress.get().map_or_else(named, |(.., path)| path);
    // The writer's own notes have the name without the end.
    let name = format!("{}-end", session::name_of_note(recorder));
    // What the session lost before stands in the file, as of its last transaction: this is one of its own.
    let left = rpd_schema::leave_note(&path, &name, None, &facts);
    if recorder.requests.is_finished(PATIENCE) {
        // It has got on after all.
        rpd_schema::remove_note(&path, &name);
    } else if let Err(error) = left {
        log::problem(&format!("{}: {missing} records lost, not said beside it: {error}", path.display()));
    }
}
