//! Getting everything into the file: on request, and when the process ends.

use std::time::Duration;

use crate::config::Template;
use crate::recorder::{self, Recorder};
use crate::{hsa, report};

/// How long a flush may take.
pub(crate) const FLUSH_DEADLINE: Duration = Duration::from_secs(10);
/// How long the end of the process waits for GPU operations that have not completed.
const GPU_DEADLINE: Duration = Duration::from_secs(2);

/// Puts all that completed before the call into the file.
pub(crate) fn flush(recorder: &'static Recorder) {
    hsa::collect(Duration::from_secs(1));
    recorder.writer.flush(FLUSH_DEADLINE);
}

/// Puts all that completed before the call into the file, and what comes after it into `filename`.
pub(crate) fn change_file(recorder: &'static Recorder, filename: Template) {
    hsa::collect(Duration::from_secs(1));
    recorder.writer.change_file(recorder, filename, FLUSH_DEADLINE);
}

/// The process ends: the last completions, the last rows, the session's end. Later calls do nothing.
pub(crate) fn process_end() {
    let Some(recorder) = recorder::get() else { return };
    // A child made by vfork or clone shares this memory but is not the process that records.
    if recorder.pid != std::process::id() {
        return;
    }
    hsa::finish(GPU_DEADLINE);
    recorder.writer.finish(recorder);
    // Threads that still run record nothing that could reach the file.
    recorder.switch.disable();
    report::ended(recorder);
}
