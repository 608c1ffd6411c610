//! Getting everything into the file: on request, and when the process ends.

use std::time::{Duration, Instant};

use rpd_transport::config::Template;
use rpd_transport::log;
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::writer;

use super::report;
use crate::gpu::{code_objects, selection};
use crate::intercept;
use crate::sources;

/// How long a flush may take.
pub(crate) const FLUSH_DEADLINE: Duration = Duration::from_secs(10);
/// How long the end of the process waits for GPU operations that have not completed.
const GPU_DEADLINE: Duration = Duration::from_secs(2);
/// How long the recorder may hold up a program that is about to come down.
const FAILURE_DEADLINE: Duration = Duration::from_secs(2);
/// How long the end of the program waits for kernels behind which a thread may launch more.
const LAST_LAUNCHES: Duration = Duration::from_secs(1);
/// How often it is looked whether HIP's commands have completed.
const GLANCE: Duration = Duration::from_millis(1);

/// Puts all that completed before the call into the file.
pub(crate) fn flush(recorder: &'static Recorder) {
    sources::ALL.iter().for_each(|source| {
        source.collect(Duration::from_secs(1));
    });
    recorder.requests.flush(FLUSH_DEADLINE);
}

/// Waits up to `patience` until what has been launched while recording has completed, and puts it into the file. How many launches in
/// the file have no operation then.
pub(crate) fn drain(recorder: &'static Recorder, patience: Duration) -> u64 {
    let begin = Instant::now();
    sources::ALL.iter().for_each(|source| source.drain(patience));
    while recorder.counters.has_commands() && begin.elapsed() < patience {
        std::thread::park_timeout(GLANCE);
    }
    flush(recorder);
    recorder.requests.progress.launches_without_op()
}

/// Puts all that completed before the call into the file, and what comes after it into `filename`. False: no trace can be there,
/// and nothing has changed.
pub(crate) fn change_file(recorder: &'static Recorder, filename: Template) -> bool {
    sources::ALL.iter().for_each(|source| {
        source.collect(Duration::from_secs(1));
    });
    let was_on = recorder.switch.is_on();
    let changed = recorder.requests.change_file(recorder, filename, FLUSH_DEADLINE);
    if !was_on && recorder.switch.is_on() {
        // What was to be the file before it was none.
        sources::ALL.iter().for_each(|source| source.started(recorder));
    }
    changed
}

/// The program calls `abort`, or a library of it does. What was recorded reaches the file; the session stays open, because a handler
/// of SIGABRT may jump away and go on.
pub(crate) fn abort() {
    let own = |recorder: &&'static Recorder| recorder.pid == std::process::id();
    let Some(recorder) = recorder::get().filter(own).filter(|recorder| has_something(recorder)) else {
        return;
    };
    recorder.failures.abort(|| {
        sources::ALL.iter().for_each(|source| source.abort(FAILURE_DEADLINE));
        if recorder.requests.is_started() {
            writer::abort(recorder, FAILURE_DEADLINE);
        }
    });
}

/// Whether anything may have been recorded.
fn has_something(recorder: &Recorder) -> bool {
    recorder.requests.is_started() || sources::ALL.iter().any(|source| source.is_used())
}

/// Main has returned, or `exit` was called; the destructors of HIP follow. Where other threads go on launching kernels, recording ends
/// here: HIP may crash them from now on, the likelier the longer the process takes to end.
pub(crate) fn main_returned() {
    if recorder::get().is_none_or(|recorder| recorder.pid != std::process::id()) {
        return;
    }
    for source in sources::ALL.iter().filter(|source| source.launched().all > 0) {
        let (begin, before) = (Instant::now(), source.launched());
        let mut now = before;
        // A thread may wait for what it has launched, and go on then.
        while begin.elapsed() < if now.in_flight > 0 { LAST_LAUNCHES } else { GLANCE } {
            std::thread::park_timeout(GLANCE);
            source.collect(LAST_LAUNCHES);
            now = source.launched();
            if now.all > before.all {
                log::problem("threads launch kernels while the program ends: recording ends here");
                return process_end();
            }
        }
    }
}

/// The process ends: the last completions, the last rows, the session's end. Later calls do nothing.
pub(crate) fn process_end() {
    let Some(recorder) = recorder::get() else { return };
    // A child made by vfork or clone shares this memory but is not the process that records.
    if recorder.pid != std::process::id() {
        return;
    }
    sources::ALL.iter().for_each(|source| source.finish(GPU_DEADLINE));
    // What threads would record from here on could reach the file no more, nor its counts.
    recorder.switch.close();
    // The last rows name the code objects.
    code_objects::finish(recorder.config.exit_wait);
    writer::finish(recorder);
    selection::say_if_in_vain(recorder);
    intercept::say_if_in_vain(recorder);
    report::ended(recorder);
}
