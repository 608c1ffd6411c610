//! Slices of threads: calls and markers, with the arrows that leave them.

use anyhow::Result;
use rustc_hash::FxHashMap;

use super::events::{Call, Events, Sort};
use super::frames::{FrameRecord, Frames};
use super::rows::{CallRecord, LaunchedOp};
use super::subtracks::NestingSubtracks;
use super::tracks::{Hosts, ThreadTracks};
use super::written::Output;
use crate::pass::sorted::{Sorted, Sorter};

/// Names that are remembered at once.
const REMEMBERED: usize = 1 << 16;

/// Writes the calls, and finds what the GPU did for markers and graphs.
///
/// # Errors
/// When the trace or a temporary file cannot be read, or the output has failed.
pub(super) fn write_calls<E: Events>(
    output: &mut Output<'_, E>,
    (hosts, tracks): (&Hosts, &mut ThreadTracks),
    mut calls: Sorted<CallRecord>,
    mut launched: Sorted<LaunchedOp>,
) -> Result<Sorter<FrameRecord>> {
    let mut sorts: FxHashMap<i64, Sort> = FxHashMap::default();
    let (mut subtracks, mut frames) = (NestingSubtracks::default(), Frames::new());
    let mut thread = None;
    let mut op = launched.next()?;
    while let Some(call) = calls.next()? {
        output.row()?;
        if thread != Some(call.thread) {
            thread = Some(call.thread);
            subtracks = NestingSubtracks::default();
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
        let mut shown = None;
        if call.is_hidden == 0 {
            let is_mark = sort == Sort::Marker && times.0 == times.1;
            let subtrack = if is_mark { 0 } else { subtracks.place(times) };
            let place = tracks.place(hosts, call.thread, subtrack, &mut output.events)?;
            let CallRecord { id, name, arguments, .. } = call;
            let slice = Call { place, sort, id, times, name, arguments };
            output.events.call(&mut output.texts, &slice)?;
            shown = Some(slice);
        }
        while let Some(caused) = op.filter(|op| op.key() <= call.key()) {
            op = launched.next()?;
            // Of a row with the same id that was left out.
            let Some(slice) = shown.as_ref().filter(|_| caused.key() == call.key()) else { continue };
            output.events.departure(caused.link, slice)?;
            frames.op(&caused)?;
            if matches!(sort, Sort::GraphLaunch { .. }) {
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
