//! Ranges that one thread begins and any thread may end.
//!
//! While recording runs, both are records. One that begins in a pause is kept here until the writer comes by, because it is
//! recorded from the resume time on if it is still open then.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::clock;
use rpd_preload::lock::lock;

use crate::marker;
use crate::recorder::Recorder;
use crate::records::{Kind, ProcessRange};
use crate::thread::{self, Patience};

/// A range that has begun.
#[derive(Debug, PartialEq, Eq)]
pub struct Begun {
    /// Unique in the process.
    pub id: u64,
    /// The thread that began it.
    pub tid: u32,
    /// When, ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// Api name of its row.
    pub name: String,
    /// Arguments of its row.
    pub args: String,
}

/// Ranges begun in a pause that the writer has not yet heard of.
#[derive(Default)]
pub struct Waiting {
    any: AtomicBool,
    ranges: Mutex<Vec<Begun>>,
}

impl Waiting {
    fn add(&self, range: Begun) {
        let mut ranges = lock(&self.ranges);
        ranges.push(range);
        self.any.store(true, Ordering::Relaxed);
    }

    /// Forgets the range. False: it is not here.
    fn remove(&self, id: u64) -> bool {
        let mut ranges = lock(&self.ranges);
        let place = ranges.iter().rposition(|range| range.id == id);
        place.map(|place| ranges.swap_remove(place)).is_some()
    }

    /// All of them, for the writer.
    pub fn take(&self) -> Vec<Begun> {
        if self.any.swap(false, Ordering::Relaxed) { std::mem::take(&mut lock(&self.ranges)) } else { vec![] }
    }
}

/// A range begins. `id` is not in use by another open range of the process.
#[inline]
pub fn start(recorder: &'static Recorder, id: u64, text: &[u8]) {
    recorder.in_use();
    let time = clock::monotonic();
    if recorder.switch.is_on() {
        push(recorder, Kind::Start, ProcessRange { time, id }, text);
    } else {
        let args = String::from_utf8_lossy(text).into_owned();
        let name = marker::USER_MARKER.to_string();
        recorder.waiting.add(Begun { id, tid: thread::tid(), time, name, args });
    }
}

/// A range ends. Nothing happens when there is none of that id.
#[inline]
pub fn stop(recorder: &'static Recorder, id: u64) {
    // In a pause the writer need not hear of a range that it does not know.
    let is_known =
        recorder.switch.is_on() || (!recorder.waiting.remove(id) && recorder.requests.is_started());
    if is_known {
        push(recorder, Kind::Stop, ProcessRange { time: clock::monotonic(), id }, &[]);
    }
}

fn push(recorder: &'static Recorder, kind: Kind, body: ProcessRange, text: &[u8]) {
    thread::push(recorder, kind, bytemuck::bytes_of(&body), [text, &[]], Patience::Waits);
}
