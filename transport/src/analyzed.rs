//! Findings of analyzers about an instrumented dispatch, on their way to the file.

use crate::counters::Cause;
use crate::recorder::Recorder;
use crate::records::ring::Entry;
use crate::records::{Analyzed, Kind};
use crate::source::AnalysisText;
use crate::thread::{self, Patience};

/// Puts it into the ring of the calling thread, which is one of the recorder's. What finds no room is counted.
pub fn push(recorder: &'static Recorder, dispatch: &Analyzed, analyses: &[AnalysisText]) {
    match postcard::to_stdvec(analyses) {
        Ok(text) => {
            let body = bytemuck::bytes_of(dispatch);
            thread::push(recorder, Kind::Analyzed, body, [&text, &[]], Patience::Waits);
        }
        Err(_) => recorder.counters.lose(Cause::BufferFull, 1),
    }
}

/// What [`push`] has put there.
pub(crate) fn read(entry: &Entry<'_>) -> Option<(Analyzed, Vec<AnalysisText>)> {
    Some((bytemuck::pod_read_unaligned(entry.body), postcard::from_bytes(entry.text).ok()?))
}
