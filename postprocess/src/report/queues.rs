//! How full the queues are, and how long operations wait in them.
//!
//! An operation is in its queue from the begin of the call that launched it to its own end. It waits from the end of that call to its own
//! start; where nothing ran in its queue meanwhile, that is the time that the runtime and the GPU take to start it.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rusqlite::Connection;
use serde::Serialize;

use super::caused::CausedOps;
use super::gaps::BINS;
use super::gpu_time::LeftOut;
use crate::check::outlier::Outliers;
use crate::pass::sorted::Sorter;
use crate::region::Selected;

/// The queues, and what could not be counted.
#[derive(Debug)]
pub struct Queues {
    /// By GPU and number.
    pub queues: Vec<Queue>,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
    /// Operations whose launch is days away from nearly all calls and operations; they count as if it were not known.
    pub far_launches: u64,
}

/// A queue of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Queue {
    /// Its GPU.
    pub gpu: i64,
    /// Its number, `queueId`.
    pub queue: i64,
    /// Its operations.
    pub operations: u64,
    /// From the first launch to the last end, ns.
    pub span_ns: u64,
    /// Operations in the queue, on average over that time.
    pub depth_mean: f64,
    /// At most.
    pub depth_max: u64,
    /// Waiting times of all operations whose launch is known.
    pub delay: Delays,
    /// Of those whose queue was empty when their launch returned.
    pub empty: Delays,
    /// How long they wait, in bins, shortest first, from the first that has any to the last.
    pub bins: Vec<DelayBin>,
}

/// Times from the end of a launch to the start of the operation, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Delays {
    /// How many.
    pub operations: u64,
    /// Their sum.
    pub total_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// What 90 percent do not exceed.
    pub p90_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Operations that wait so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DelayBin {
    /// The shortest time that counts, ns.
    pub from_ns: u64,
    /// The shortest that does not count any more, ns; none of the last bin.
    pub to_ns: Option<u64>,
    /// How many.
    pub operations: u64,
}

/// An operation; ordered as its queue starts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct QueuedOp {
    gpu: i64,
    queue: i64,
    start: i64,
    end: i64,
    id: i64,
    /// End of the launch; -1 where it is not known.
    launched: i64,
}

/// How long operations wait, in the order of their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Delay {
    gpu: i64,
    queue: i64,
    delay: u64,
    is_empty: u64,
}

impl Queues {
    /// Reads the operations of a part of a trace.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of(trace: &Connection, selected: &Selected) -> Result<Queues> {
        let ops = CausedOps::of(trace, selected)?;
        let left_out = ops.left_out;
        let (outliers, mut far_launches) = (Outliers::of(trace)?, 0);
        let (mut queued, mut changes) = (Sorter::new(), Sorter::new());
        ops.each(|op, call| {
            let mut times = call.and_then(|call| call.times);
            if times.take_if(|times| outliers.are_known(*times)).is_some() {
                far_launches += 1;
            }
            let (gpu, queue, start, end) = (op.gpu, op.queue, op.start, op.end);
            // Operations whose clock is off may start before their launch.
            let begin = times.map_or(start, |(begin, _)| begin.min(start));
            // Where one ends and another begins at one time, the end comes first.
            changes.push([gpu, queue, begin, 1])?;
            changes.push([gpu, queue, end, -1])?;
            let launched = times.map_or(-1, |(_, end)| end);
            queued.push(QueuedOp { gpu, queue, start, end, id: op.id, launched })
        })?;
        let mut queues = depths(changes)?;
        let (mut queued, mut delays) = (queued.sorted()?, Sorter::new());
        let mut covered: Option<((i64, i64), i64)> = None;
        while let Some(QueuedOp { gpu, queue, start, end, launched, .. }) = queued.next()? {
            let before = covered.filter(|(place, _)| *place == (gpu, queue)).map(|(_, end)| end);
            covered = Some(((gpu, queue), before.map_or(end, |before| before.max(end))));
            if launched >= 0 {
                let delay = (start - launched).max(0).unsigned_abs();
                let is_empty = u64::from(before.is_none_or(|before| before <= launched));
                delays.push(Delay { gpu, queue, delay, is_empty })?;
            }
        }
        measure(&mut queues, delays)?;
        Ok(Queues { queues, left_out, far_launches })
    }
}

/// The queues with their depths.
fn depths(changes: Sorter<[i64; 4]>) -> Result<Vec<Queue>> {
    let mut changes = changes.sorted()?;
    let mut queues: Vec<Queue> = Vec::new();
    let (mut first, mut now, mut depth, mut area) = (0, 0, 0_i64, 0_u128);
    while let Some([gpu, queue, time, change]) = changes.next()? {
        if queues.last().is_none_or(|last| (last.gpu, last.queue) != (gpu, queue)) {
            (first, now, depth, area) = (time, time, 0, 0);
            queues.push(Queue {
                gpu,
                queue,
                operations: 0,
                span_ns: 0,
                depth_mean: 0.0,
                depth_max: 0,
                delay: Delays::default(),
                empty: Delays::default(),
                bins: Vec::new(),
            });
        }
        let Some(last) = queues.last_mut() else { continue };
        area += u128::from(time.abs_diff(now)) * u128::from(depth.max(0).unsigned_abs());
        now = time;
        depth += change;
        last.operations += u64::from(change > 0);
        last.depth_max = last.depth_max.max(depth.max(0).unsigned_abs());
        last.span_ns = now.abs_diff(first);
        last.depth_mean = if last.span_ns == 0 { 0.0 } else { area as f64 / last.span_ns as f64 };
    }
    Ok(queues)
}

/// The n-th of so many, counted from 1, that so many percent of them do not exceed.
fn rank(count: u64, percent: u64) -> u64 {
    (u128::from(count) * u128::from(percent)).div_ceil(100) as u64
}

/// Adds the delays to the queues: once to know how many there are, once to find the percentiles.
fn measure(queues: &mut [Queue], delays: Sorter<Delay>) -> Result<()> {
    let mut delays = delays.sorted()?;
    let mut again = Sorter::new();
    let mut at = 0;
    while let Some(delay) = delays.next()? {
        while (queues[at].gpu, queues[at].queue) != (delay.gpu, delay.queue) {
            at += 1;
        }
        queues[at].delay.operations += 1;
        queues[at].empty.operations += delay.is_empty;
        again.push(delay)?;
    }
    let mut again = again.sorted()?;
    for queue in queues {
        let mut bins = [0; BINS.len()];
        let mut seen = [0, 0];
        for _ in 0..queue.delay.operations {
            let Some(Delay { delay, is_empty, .. }) = again.next()? else { break };
            bins[BINS.partition_point(|from| *from <= delay) - 1] += 1;
            for (which, delays) in [&mut queue.delay, &mut queue.empty].into_iter().enumerate() {
                if which == 1 && is_empty == 0 {
                    continue;
                }
                seen[which] += 1;
                delays.total_ns = delays.total_ns.saturating_add(delay);
                delays.max_ns = delay;
                if seen[which] == rank(delays.operations, 50) {
                    delays.p50_ns = delay;
                }
                if seen[which] == rank(delays.operations, 90) {
                    delays.p90_ns = delay;
                }
            }
        }
        let first = bins.iter().position(|count| *count > 0).unwrap_or(bins.len());
        let last = bins.iter().rposition(|count| *count > 0).map_or(first, |at| at + 1);
        let bin = |at: usize| DelayBin {
            from_ns: BINS[at],
            to_ns: BINS.get(at + 1).copied(),
            operations: bins[at],
        };
        queue.bins = (first..last).map(bin).collect();
    }
    Ok(())
}
