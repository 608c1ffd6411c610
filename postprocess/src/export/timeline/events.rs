//! What a timeline is made of, as it is handed to a format: slices, arrows, values over time and names of tracks.
//!
//! A format sees the events of a track in the order in which they begin; among those that begin together the longer one comes first. A track is
//! named before its first event.

use anyhow::Result;
use rpd_schema::SessionInfo;

use crate::export::elements::Elements;
use crate::export::texts::TraceTexts;
use crate::passes::graph::function::GraphFunction;
use crate::trace::op_kind::OpKind;

use super::details::OpDetails;

/// A format that timelines are written in.
pub(in crate::export) trait TimelineFormat: Sync {
    /// What makes the events of it.
    type Events: Events + Send;

    /// What is between two events.
    const SEPARATOR: &'static [u8];

    /// Appends a text as this format has it.
    const PUT_TEXT: fn(&mut Vec<u8>, &str);

    /// The number of GPU 0 among the processes; those of the others follow.
    const FIRST_GPU: i64;

    /// What is before the first event and behind the last one.
    fn around(&self, facts: &Facts<'_>) -> (Vec<u8>, Vec<u8>);

    /// A maker of events: 0 makes those of threads and how much waits for the GPUs, 1 those of queues, 2 makes others when these are done.
    fn events(&self, elements: Elements, maker: usize, facts: &Facts<'_>) -> Self::Events;
}

/// What is known of a timeline before its events.
pub(in crate::export) struct Facts<'a> {
    /// The trace, as it was named.
    pub(in crate::export) name: &'a str,
    /// First begin in the trace, ns, whatever the region is; 0 where there is none.
    pub(in crate::export) first_ns: i64,
    /// Sessions that say something of themselves.
    pub(in crate::export) sessions: &'a [SessionInfo],
    /// Processes whose calls these are, with the first of their sessions, in their order.
    pub(in crate::export) processes: Vec<(i64, Option<&'a SessionInfo>)>,
    /// GPUs with their names, in their order.
    pub(in crate::export) gpus: Vec<(i64, Option<String>)>,
}

/// Makes events of a format.
pub(in crate::export) trait Events {
    /// A process, GPU or other device is named: it has tracks or values.
    fn process(&mut self, process: &Process<'_>) -> Result<()>;

    /// A track is named.
    fn track(&mut self, track: &Track<'_>) -> Result<()>;

    /// A call, range or mark.
    fn call(&mut self, texts: &mut TraceTexts<'_>, call: &Call) -> Result<()>;

    /// An arrow with this number leaves the call that came last.
    fn departure(&mut self, link: i64, call: &Call) -> Result<()>;

    /// An operation.
    fn op(&mut self, texts: &mut TraceTexts<'_>, op: &Op<'_>) -> Result<()>;

    /// An arrow reaches the operation that came last, which is at this place and begins at this time.
    fn arrival(&mut self, arrow: Arrow, place: Place, start_ns: i64) -> Result<()>;

    /// What a queue did for a marker or the launch of a graph.
    fn frame(&mut self, texts: &mut TraceTexts<'_>, frame: &TimelineFrame) -> Result<()>;

    /// A value of a counter.
    fn value(&mut self, counter: &Counter<'_>) -> Result<()>;

    /// There are no more events of this maker.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// An arrow from a call to what it caused.
#[derive(Debug, Clone, Copy)]
pub(in crate::export) struct Arrow {
    /// Its number: row of rocpd_api_ops.
    pub(in crate::export) link: i64,
    /// The call that it leaves.
    pub(in crate::export) call: i64,
}

/// The numbers of a track: no two tracks have the same. Both are positive and below 2^31; only GPU 0 may have 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::export) struct Place {
    /// Of the process, GPU or other device.
    pub(in crate::export) process: i64,
    /// Of the track in it.
    pub(in crate::export) track: i64,
    /// 0, or how many tracks of the same thread or queue came before, because slices overlap.
    pub(in crate::export) subtrack: u32,
}

/// What has tracks or values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::export) enum Owner {
    /// A process.
    Process,
    /// A GPU with its index in the trace.
    Gpu(i64),
    /// Something else that has sensors.
    Other,
}

/// The name of a process, GPU or other device.
pub(in crate::export) struct Process<'a> {
    pub(in crate::export) number: i64,
    pub(in crate::export) owner: Owner,
    pub(in crate::export) name: &'a str,
    /// Its place among the others.
    pub(in crate::export) order: i64,
}

/// The name of a track.
pub(in crate::export) struct Track<'a> {
    pub(in crate::export) place: Place,
    pub(in crate::export) owner: TrackOwner,
    /// Without what tells tracks of one thread or queue apart.
    pub(in crate::export) name: &'a str,
    /// Its place among those of its process.
    pub(in crate::export) order: i64,
}

impl Track<'_> {
    /// Its name, which no other track of the process has.
    pub(in crate::export) fn own_name(&self) -> String {
        match self.place.subtrack {
            0 => self.name.to_string(),
            subtrack => format!("{} ({})", self.name, subtrack + 1),
        }
    }
}

/// What a track is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::export) enum TrackOwner {
    /// A thread, with the number of its first track.
    Thread { first: i64 },
    /// A queue.
    Queue,
}

/// What a function's name says of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::export) enum Sort {
    /// A range or mark of the program.
    Marker,
    /// The launch of a graph.
    GraphLaunch { is_cuda: bool },
    /// Another call of HIP.
    Hip,
    /// A call of HSA.
    Hsa,
    /// Another call of CUDA.
    Cuda,
    /// A call of anything else.
    Other,
}

impl Sort {
    /// What the calls of a function are.
    pub(super) fn of(name: &str) -> Sort {
        match name {
            "UserMarker" => Sort::Marker,
            name if GraphFunction::of(name) == Some(GraphFunction::Launch) => {
                Sort::GraphLaunch { is_cuda: name.starts_with("cu") }
            }
            name if name.starts_with("hip") => Sort::Hip,
            name if name.starts_with("hsa_") => Sort::Hsa,
            name if name.starts_with("cu") => Sort::Cuda,
            _ => Sort::Other,
        }
    }

    /// The category, as rocprofv3 names it.
    pub(in crate::export) fn category(self) -> &'static str {
        match self {
            Sort::Marker => "marker_api",
            Sort::GraphLaunch { is_cuda: true } | Sort::Cuda => "cuda_api",
            Sort::GraphLaunch { is_cuda: false } | Sort::Hip => "hip_api",
            Sort::Hsa => "hsa_api",
            Sort::Other => "api",
        }
    }
}

/// A call, range or mark.
#[derive(Debug, Clone, Copy)]
pub(in crate::export) struct Call {
    pub(in crate::export) place: Place,
    pub(in crate::export) sort: Sort,
    /// Row of rocpd_api.
    pub(in crate::export) id: i64,
    /// Begin and end, ns.
    pub(in crate::export) times: (i64, i64),
    /// Text of the function.
    pub(in crate::export) name: i64,
    /// Text of the arguments, or what a marker says.
    pub(in crate::export) arguments: i64,
}

impl Call {
    /// Whether it is an instant that the program marked.
    pub(in crate::export) fn is_mark(&self) -> bool {
        self.sort == Sort::Marker && self.times.0 == self.times.1
    }

    /// What it is shown as.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(in crate::export) fn shown<'a>(&self, texts: &'a mut TraceTexts<'_>) -> Result<&'a [u8]> {
        Ok(match self.sort {
            Sort::Marker => texts.arguments(self.arguments)?,
            _ => texts.name(self.name)?,
        })
    }
}

/// An operation.
#[derive(Debug, Clone, Copy)]
pub(in crate::export) struct Op<'a> {
    pub(in crate::export) place: Place,
    /// Index of the GPU, and queue.
    pub(in crate::export) queue: (i64, i64),
    pub(in crate::export) kind: OpKind,
    /// Begin and end, ns.
    pub(in crate::export) times: (i64, i64),
    /// Text of its name, which may be empty.
    pub(in crate::export) name: i64,
    /// Text of its type.
    pub(in crate::export) op_type: i64,
    /// The call that caused it, with the process and thread id of that.
    pub(in crate::export) call: Option<(i64, (i64, i64))>,
    pub(in crate::export) details: OpDetails<'a>,
}

impl Op<'_> {
    /// The text that it is shown as: its type where it has no name.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(in crate::export) fn shown(&self, texts: &mut TraceTexts<'_>) -> Result<i64> {
        Ok(if texts.name(self.name)?.is_empty() { self.op_type } else { self.name })
    }

    /// The category, as rocprofv3 names it.
    pub(in crate::export) fn category(&self) -> &'static str {
        match self.kind {
            OpKind::Kernel => "kernel_dispatch",
            OpKind::Copy => "memory_copy",
            OpKind::Fill => "memory_fill",
            OpKind::Other => "gpu_operation",
        }
    }
}

/// What a queue did for a marker or the launch of a graph.
#[derive(Debug, Clone, Copy)]
pub(in crate::export) struct TimelineFrame {
    pub(in crate::export) place: Place,
    /// Index of the GPU.
    pub(in crate::export) gpu: i64,
    pub(in crate::export) is_graph: bool,
    /// First begin and last end, ns.
    pub(in crate::export) times: (i64, i64),
    /// The marker's text, or the arguments of the launch.
    pub(in crate::export) text: i64,
    /// How many operations are in it.
    pub(in crate::export) ops: i64,
}

/// A value of a counter.
#[derive(Debug, Clone, Copy)]
pub(in crate::export) struct Counter<'a> {
    /// Number of the GPU or other device.
    pub(in crate::export) process: i64,
    pub(in crate::export) name: &'a str,
    /// What is counted.
    pub(in crate::export) key: &'a str,
    pub(in crate::export) time_ns: i64,
    pub(in crate::export) value: Value,
}

/// A number of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::export) enum Value {
    /// A whole one.
    Whole(i64),
    /// Another one; always finite.
    Real(f64),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Whole(value) => value.fmt(f),
            Value::Real(value) => value.fmt(f),
        }
    }
}
