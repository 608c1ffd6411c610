//! What the GPU did for a marker, and for the launch of a graph: slices around operations, on tracks of their own.
//!
//! A marker's frame covers the operations of one queue that calls inside the marker caused: of nested markers the innermost one counts.
//! Where there is nothing of it for 200 us on the queue, another frame begins.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

use super::events::{Events, TimelineFrame};
use super::rows::{LaunchedOp, ordered};
use super::subtracks::Subtracks;
use super::tracks::{Gpus, QueueTrackKind};
use super::written::Output;
use crate::pass::sorted::Sorter;
use crate::trace::arguments;

/// Operations of one marker that are this far apart, ns, are in two frames.
const APART: i64 = 200_000;

/// A frame, in the order of queues and time.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct FrameRecord {
    queue: u32,
    /// 1 for a graph.
    is_graph: u32,
    start: i64,
    not_end: i64,
    /// The marker's text, or the arguments of the launch.
    text: i64,
    /// How many operations are in it.
    ops: i64,
}

ordered!(FrameRecord, |frame: &FrameRecord| (
    frame.queue,
    frame.is_graph,
    frame.start,
    frame.not_end,
    frame.text,
    frame.ops
));

/// An open marker.
struct Marker {
    id: i64,
    end: i64,
    text: i64,
}

/// A frame that may still grow.
struct Growing {
    marker: i64,
    text: i64,
    start: i64,
    end: i64,
    ops: i64,
}

impl Growing {
    fn around(op: &LaunchedOp, marker: i64, text: i64) -> Growing {
        Growing { marker, text, start: op.op_start, end: op.op_end, ops: 1 }
    }

    fn add(&mut self, op: &LaunchedOp) {
        self.start = self.start.min(op.op_start);
        self.end = self.end.max(op.op_end);
        self.ops += 1;
    }

    fn is_near(&self, op: &LaunchedOp) -> bool {
        op.op_start.saturating_sub(self.end) < APART && self.start.saturating_sub(op.op_end) < APART
    }

    fn record(&self, queue: u32, is_graph: u32) -> FrameRecord {
        let Growing { text, start, end, ops, .. } = *self;
        FrameRecord { queue, is_graph, start, not_end: !end, text, ops }
    }
}

/// The frames of one thread after the other, as its calls come in order.
pub(super) struct Frames {
    open: Vec<Marker>,
    /// By queue.
    growing: FxHashMap<u32, Growing>,
    graph: FxHashMap<u32, Growing>,
    done: Sorter<FrameRecord>,
}

impl Frames {
    pub(super) fn new() -> Frames {
        Frames {
            open: Vec::new(),
            growing: FxHashMap::default(),
            graph: FxHashMap::default(),
            done: Sorter::new(),
        }
    }

    /// The thread comes to this time: markers that end then are over.
    pub(super) fn begin_call(&mut self, start: i64) {
        while self.open.last().is_some_and(|marker| marker.end <= start) {
            self.open.pop();
        }
    }

    /// A marker begins.
    pub(super) fn open_marker(&mut self, id: i64, (start, end): (i64, i64), text: i64) {
        if start < end {
            self.open.push(Marker { id, end, text });
        }
    }

    /// The call that began last caused this.
    pub(super) fn op(&mut self, op: &LaunchedOp) -> Result<()> {
        let Some(&Marker { id, text, .. }) = self.open.last() else { return Ok(()) };
        match self.growing.get_mut(&op.queue) {
            Some(frame) if frame.marker == id && frame.is_near(op) => frame.add(op),
            _ => {
                if let Some(done) = self.growing.insert(op.queue, Growing::around(op, id, text)) {
                    self.done.push(done.record(op.queue, 0))?;
                }
            }
        }
        Ok(())
    }

    /// The launch of a graph that began last caused this.
    pub(super) fn graph_op(&mut self, op: &LaunchedOp, arguments: i64) {
        match self.graph.get_mut(&op.queue) {
            Some(graph) => graph.add(op),
            None => {
                self.graph.insert(op.queue, Growing::around(op, 0, arguments));
            }
        }
    }

    /// No more operations are of that launch.
    pub(super) fn end_graph(&mut self) -> Result<()> {
        for (queue, graph) in self.graph.drain() {
            self.done.push(graph.record(queue, 1))?;
        }
        Ok(())
    }

    /// No more calls are of that thread.
    pub(super) fn end_thread(&mut self) -> Result<()> {
        self.open.clear();
        for (queue, frame) in self.growing.drain() {
            self.done.push(frame.record(queue, 0))?;
        }
        Ok(())
    }

    /// All frames.
    pub(super) fn into_sorter(self) -> Sorter<FrameRecord> {
        self.done
    }
}

/// Writes the frames.
///
/// # Errors
/// When the trace or a temporary file cannot be read, or the output has failed.
pub(super) fn write_frames<E: Events>(
    output: &mut Output<'_, E>,
    gpus: &mut Gpus,
    frames: Sorter<FrameRecord>,
) -> Result<()> {
    let mut frames = frames.sorted()?;
    let mut subtracks = Subtracks::default();
    let mut track = None;
    while let Some(FrameRecord { queue, is_graph, start, not_end, text, ops }) = frames.next()? {
        output.row()?;
        if track != Some((queue, is_graph)) {
            track = Some((queue, is_graph));
            subtracks = Subtracks::default();
        }
        let times = (start, !not_end);
        let is_graph = is_graph == 1;
        let kind = if is_graph { QueueTrackKind::Graph } else { QueueTrackKind::Marker };
        let place = gpus.queue_track(queue, kind, subtracks.place(times), &mut output.events)?;
        let frame = TimelineFrame { place, gpu: gpus.place(queue).0, is_graph, times, text, ops };
        output.events.frame(&mut output.texts, &frame)?;
    }
    Ok(())
}

/// The handle of the graph that a call with these arguments launched. It has nothing in it that a format escapes.
pub(in crate::export) fn graph_handle(arguments: &[u8]) -> Option<&str> {
    arguments::value(std::str::from_utf8(arguments).ok()?, "graphExec")
}
