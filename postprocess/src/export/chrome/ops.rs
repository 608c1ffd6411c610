//! Slices of queues: kernels, copies and fills, with the arrows that reach them.

use anyhow::Result;
use rustc_hash::FxHashMap;

use super::details::Details;
use super::lanes::Lanes;
use super::rows::OpRecord;
use super::tracks::{Gpus, Hosts, Kind};
use super::{Output, digits, exact_times};
use crate::pass::sorted::Sorted;
use crate::trace::op_kind::OpKind;

/// The category of an operation, as rocprofv3 names it.
fn category(kind: OpKind) -> &'static [u8] {
    match kind {
        OpKind::Kernel => b"kernel_dispatch",
        OpKind::Copy => b"memory_copy",
        OpKind::Fill => b"memory_fill",
        OpKind::Other => b"gpu_operation",
    }
}

/// Types that are remembered at once: there are few.
const REMEMBERED: usize = 4096;

/// Writes the operations.
///
/// # Errors
/// When the trace or a temporary file cannot be read, or the output has failed.
pub(super) fn write_ops(
    output: &mut Output<'_, '_>,
    (hosts, gpus): (&Hosts, &mut Gpus),
    mut ops: Sorted<OpRecord>,
    details: &mut Details<'_>,
) -> Result<()> {
    let mut kinds: FxHashMap<i64, OpKind> = FxHashMap::default();
    let (mut lanes, mut queue, mut numbers) = (Lanes::default(), None, (0, 0));
    while let Some(op) = ops.next()? {
        if queue != Some(op.queue) {
            queue = Some(op.queue);
            lanes = Lanes::default();
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
            numbers = gpus.queue_lane(op.queue, Kind::Op, lanes.place(op.times()));
            let origin = Origin {
                place: gpus.place(op.queue),
                call: op.call().map(|(call, thread)| (call, hosts.ids(thread))),
            };
            write_op(output, &op, kind, numbers, &origin, details)?;
        }
        if let Some(link) = op.arrow() {
            let bytes = output.elements.next()?;
            bytes.extend_from_slice(
                b"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"api_op\",\"name\":\"api_op\",\"id\":",
            );
            digits(bytes, link);
            place(bytes, numbers);
            bytes.extend_from_slice(b",\"ts\":");
            output.clock.time(bytes, op.times().0);
            bytes.push(b'}');
        }
    }
    Ok(())
}

fn place(bytes: &mut Vec<u8>, (process, thread): (i64, i64)) {
    bytes.extend_from_slice(b",\"pid\":");
    digits(bytes, process);
    bytes.extend_from_slice(b",\"tid\":");
    digits(bytes, thread);
}

/// Where an operation ran, and who caused it.
struct Origin {
    /// GPU and queue.
    place: (i64, i64),
    /// The call, with its process and thread id.
    call: Option<(i64, (i64, i64))>,
}

fn write_op(
    output: &mut Output<'_, '_>,
    op: &OpRecord,
    kind: OpKind,
    numbers: (i64, i64),
    origin: &Origin,
    details: &mut Details<'_>,
) -> Result<()> {
    let (gpu, queue) = origin.place;
    let bytes = output.elements.next()?;
    bytes.extend_from_slice(b"{\"ph\":\"X\",\"cat\":\"");
    bytes.extend_from_slice(category(kind));
    bytes.extend_from_slice(b"\",\"name\":\"");
    let name = output.texts.name(op.name)?;
    if name.is_empty() {
        bytes.extend_from_slice(output.texts.name(op.op_type)?);
    } else {
        bytes.extend_from_slice(name);
    }
    bytes.push(b'"');
    place(bytes, numbers);
    output.clock.slice(bytes, op.times());
    bytes.extend_from_slice(b",\"args\":{\"desc\":\"");
    bytes.extend_from_slice(output.texts.name(op.op_type)?);
    // TraceLens takes an agent that is the number 0 for none.
    bytes.extend_from_slice(b"\",\"agent\":\"GPU ");
    digits(bytes, gpu);
    bytes.extend_from_slice(b"\",\"queue\":");
    digits(bytes, queue);
    bytes.push(b',');
    exact_times(bytes, op.times());
    if let Some((call, (pid, tid))) = origin.call {
        for (name, number) in [(&b",\"corr_id\":"[..], call), (b",\"pid\":", pid), (b",\"tid\":", tid)] {
            bytes.extend_from_slice(name);
            digits(bytes, number);
        }
    }
    details.write(bytes, kind, op.id, origin.call.map(|(call, _)| call))?;
    bytes.extend_from_slice(b"}}");
    Ok(())
}
