//! Ranges and instants of the application, through the tracer's own API.

use crate::clock;
use crate::record::{Kind, Marker};
use crate::recorder::Recorder;
use crate::thread;

/// An instant.
pub(crate) fn mark(recorder: &'static Recorder, name: &[u8], args: &[u8]) {
    recorder.in_use();
    if recorder.switch.is_on() {
        marker(recorder, Kind::Mark, name, args);
    }
}

/// A range of this thread begins.
pub(crate) fn push(recorder: &'static Recorder, name: &[u8], args: &[u8]) {
    recorder.in_use();
    if recorder.switch.is_on() {
        marker(recorder, Kind::Push, name, args);
    } else {
        thread::with_paused(|paused| paused.push(name, args));
    }
}

/// The innermost range of this thread ends.
pub(crate) fn pop(recorder: &'static Recorder) {
    if recorder.switch.is_on() {
        marker(recorder, Kind::Pop, &[], &[]);
    } else if !thread::with_paused(|paused| paused.pop()) && thread::has_recorded() {
        // A range from before the pause: the writer must know now, because this thread may never say anything again.
        let body = Marker { time: clock::monotonic(), name_len: 0, count: 1 };
        thread::push_marker(recorder, Kind::Discard, body, [&[], &[]]);
    }
}

fn marker(recorder: &'static Recorder, kind: Kind, name: &[u8], args: &[u8]) {
    let body = Marker { time: clock::monotonic(), name_len: name.len() as u32, count: 0 };
    thread::push_marker(recorder, kind, body, [name, args]);
}
