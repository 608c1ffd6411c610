//! Slices of threads: calls and markers, with the arrows that leave them.

use anyhow::Result;
use rustc_hash::FxHashMap;

use super::frames::{FrameRecord, Frames};
use super::lanes::NestingLanes;
use super::rows::{CallRecord, LaunchedOp};
use super::tracks::{Hosts, ThreadLanes};
use super::{Output, digits, exact_times};
use crate::pass::sorted::{Sorted, Sorter};
use crate::passes::graph::function::Function;

/// What a function's name says of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Marker,
    GraphLaunch,
    Hip,
    Hsa,
    Cuda,
    Other,
}

impl Sort {
    fn of(name: &str) -> Sort {
        match name {
            "UserMarker" => Sort::Marker,
            name if Function::of(name) == Some(Function::Launch) => Sort::GraphLaunch,
            name if name.starts_with("hip") => Sort::Hip,
            name if name.starts_with("hsa_") => Sort::Hsa,
            name if name.starts_with("cu") => Sort::Cuda,
            _ => Sort::Other,
        }
    }

    /// The category, as rocprofv3 names it.
    fn category(self, name: &[u8]) -> &'static str {
        match self {
            Sort::Marker => "marker_api",
            Sort::GraphLaunch if name.starts_with(b"cu") => "cuda_api",
            Sort::GraphLaunch | Sort::Hip => "hip_api",
            Sort::Hsa => "hsa_api",
            Sort::Cuda => "cuda_api",
            Sort::Other => "api",
        }
    }
}

/// Names that are remembered at once.
const REMEMBERED: usize = 1 << 16;

/// Writes the calls, and finds what the GPU did for markers and graphs.
///
/// # Errors
/// When the trace or a temporary file cannot be read, or the output has failed.
pub(super) fn write_calls(
    output: &mut Output<'_, '_>,
    (hosts, tracks): (&Hosts, &mut ThreadLanes),
    mut calls: Sorted<CallRecord>,
    mut launched: Sorted<LaunchedOp>,
) -> Result<Sorter<FrameRecord>> {
    let mut sorts: FxHashMap<i64, Sort> = FxHashMap::default();
    let (mut lanes, mut frames) = (NestingLanes::default(), Frames::new());
    let mut thread = None;
    let mut op = launched.next()?;
    while let Some(call) = calls.next()? {
        output.row()?;
        if thread != Some(call.thread) {
            thread = Some(call.thread);
            lanes = NestingLanes::default();
            frames.end_thread()?;
        }
        let sort = match sorts.get(&call.name) {
            Some(sort) => *sort,
            None => {
                let sort = Sort::of(std::str::from_utf8(output.texts.name(call.name)?)?);
                if sorts.len() == REMEMBERED {
                    sorts.clear();
                }
                sorts.insert(call.name, sort);
                sort
            }
        };
        let times = call.times();
        frames.begin_call(times.0);
        let mut track = None;
        if call.is_hidden == 0 {
            let is_mark = sort == Sort::Marker && times.0 == times.1;
            let lane = if is_mark { 0 } else { lanes.place(times) };
            let numbers = tracks.place(hosts, call.thread, lane);
            write_call(output, &call, sort, numbers)?;
            track = Some(numbers);
        }
        while let Some(caused) = op.filter(|op| op.key() <= call.key()) {
            op = launched.next()?;
            // Of a row with the same id that was left out.
            let Some(numbers) = track.filter(|_| caused.key() == call.key()) else { continue };
            write_departure(output, times.0, numbers, caused.link)?;
            frames.op(&caused)?;
            if sort == Sort::GraphLaunch {
                frames.graph_op(&caused, call.arguments);
            }
        }
        frames.end_graph()?;
        if sort == Sort::Marker {
            frames.open_marker(call.id, times, call.arguments);
        }
    }
    frames.end_thread()?;
    Ok(frames.into_sorter())
}

fn write_call(
    output: &mut Output<'_, '_>,
    call: &CallRecord,
    sort: Sort,
    (process, thread): (i64, i64),
) -> Result<()> {
    let times = call.times();
    let is_mark = sort == Sort::Marker && times.0 == times.1;
    let bytes = output.elements.next()?;
    let begin: &[u8] =
        if is_mark { b"{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"" } else { b"{\"ph\":\"X\",\"cat\":\"" };
    bytes.extend_from_slice(begin);
    let name = output.texts.name(call.name)?;
    bytes.extend_from_slice(sort.category(name).as_bytes());
    bytes.extend_from_slice(b"\",\"name\":\"");
    if sort == Sort::Marker {
        bytes.extend_from_slice(output.texts.arguments(call.arguments)?);
    } else {
        bytes.extend_from_slice(name);
    }
    bytes.extend_from_slice(b"\",\"pid\":");
    digits(bytes, process);
    bytes.extend_from_slice(b",\"tid\":");
    digits(bytes, thread);
    if is_mark {
        bytes.extend_from_slice(b",\"ts\":");
        output.clock.time(bytes, times.0);
        bytes.push(b'}');
        return Ok(());
    }
    output.clock.slice(bytes, times);
    if sort != Sort::Marker {
        bytes.extend_from_slice(b",\"args\":{\"corr_id\":");
        digits(bytes, call.id);
        bytes.push(b',');
        exact_times(bytes, times);
        let arguments = output.texts.arguments(call.arguments)?;
        if !arguments.is_empty() {
            bytes.extend_from_slice(b",\"desc\":\"");
            bytes.extend_from_slice(arguments);
            bytes.push(b'"');
        }
        bytes.push(b'}');
    }
    bytes.push(b'}');
    Ok(())
}

/// The beginning of an arrow. It is where the call begins, because there no call inside of it has begun.
fn write_departure(
    output: &mut Output<'_, '_>,
    start: i64,
    (process, thread): (i64, i64),
    link: i64,
) -> Result<()> {
    let bytes = output.elements.next()?;
    bytes.extend_from_slice(b"{\"ph\":\"s\",\"cat\":\"api_op\",\"name\":\"api_op\",\"id\":");
    digits(bytes, link);
    bytes.extend_from_slice(b",\"pid\":");
    digits(bytes, process);
    bytes.extend_from_slice(b",\"tid\":");
    digits(bytes, thread);
    bytes.extend_from_slice(b",\"ts\":");
    output.clock.time(bytes, start);
    bytes.push(b'}');
    Ok(())
}
