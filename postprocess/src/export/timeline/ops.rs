//! Slices of queues: kernels, copies and fills, with the arrows that reach them.

use anyhow::Result;
use rustc_hash::FxHashMap;

use super::details::Details;
use super::events::{Events, Op, Place};
use super::rows::OpRecord;
use super::subtracks::Subtracks;
use super::tracks::{Gpus, Hosts, QueueTrackKind};
use super::written::Output;
use crate::pass::sorted::Sorted;
use crate::trace::op_kind::OpKind;

/// Types that are remembered at once: there are few.
const REMEMBERED: usize = 4096;

/// Writes the operations.
///
/// # Errors
/// When the trace or a temporary file cannot be read, or the output has failed.
pub(super) fn write_ops<E: Events>(
    output: &mut Output<'_, E>,
    (hosts, gpus): (&Hosts, &mut Gpus),
    mut ops: Sorted<OpRecord>,
    details: &mut Details<'_>,
) -> Result<()> {
    let mut kinds: FxHashMap<i64, OpKind> = FxHashMap::default();
    let (mut subtracks, mut queue) = (Subtracks::default(), None);
    let mut place = Place { process: 0, track: 0, subtrack: 0 };
    while let Some(op) = ops.next()? {
        if queue != Some(op.queue) {
            queue = Some(op.queue);
            subtracks = Subtracks::default();
        }
        if !op.is_further() {
            output.row()?;
            let kind = match kinds.get(&op.op_type) {
                Some(kind) => *kind,
                None => {
                    let kind = OpKind::of(std::str::from_utf8(output.texts.name(op.op_type)?)?);
                    if kinds.len() == REMEMBERED {
                        kinds.clear();
                    }
                    kinds.insert(op.op_type, kind);
                    kind
                }
            };
            let subtrack = subtracks.place(op.times());
            place = gpus.queue_track(op.queue, QueueTrackKind::Op, subtrack, &mut output.events)?;
            let call = op.call().map(|(call, thread)| (call, hosts.ids(thread)));
            let slice = Op {
                place,
                queue: gpus.place(op.queue),
                kind,
                times: op.times(),
                name: op.name,
                op_type: op.op_type,
                call,
                details: details.of_op(kind, op.id, gpus.place(op.queue), call.map(|(call, _)| call))?,
            };
            output.events.op(&mut output.texts, &slice)?;
        }
        if let Some(arrow) = op.arrow() {
            output.events.arrival(arrow, place, op.times().0)?;
        }
    }
    Ok(())
}
