//! Forking a process that records.
//!
//! A child is a session of its own: the parent's locks, rings, threads and database connection are forgotten. SQLite's own state
//! in memory cannot be forgotten, so a fork waits until the writer is between two transactions; a child forked in the middle of
//! one (the wait has a deadline) records nothing.

use rpd_transport::log;
use rpd_transport::recorder;
use rpd_transport::writer;

use crate::gpu::selection;
use crate::guard::guard;
use crate::intercept;

/// Has the three steps below called around every fork.
pub(crate) fn watch() {
    // SAFETY: the handlers live as long as the process: the library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

unsafe extern "C" fn before() {
    guard((), || writer::GATE.before());
}

unsafe extern "C" fn parent() {
    guard((), || writer::GATE.parent());
}

unsafe extern "C" fn child() {
    guard((), || {
        let between_transactions = writer::GATE.child();
        // Whether or not this child records: an open file keeps its locks while anybody has a descriptor of it.
        writer::close_inherited();
        intercept::forked();
        selection::forked();
        let Some(parent) = recorder::get() else { return };
        if !between_transactions {
            recorder::forget();
            return log::problem("forked while the trace was being written: this child is not recorded");
        }
        recorder::inherit(parent);
    });
}
