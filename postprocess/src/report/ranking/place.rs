//! Where operations ran, and who launched them: GPUs, queues, streams, ranks, sessions, threads.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;

use crate::region::Selected;
use crate::report::caused::{CausedOp, CausedOps, CausingCall};
use crate::report::gpu_time::{GpuOps, LeftOut};
use crate::report::process_label::ProcessLabels;
use crate::report::rank_by::RankBy;
use crate::report::stream::Streams;
use crate::trace::ids::Ids;
use crate::trace::queue_streams::QueueStreams;

/// What operations are put together by.
type Place = [i64; 3];

/// Of operations of which the file does not say it.
const NOWHERE: Place = [-1, -1, i64::MIN];

/// Hands the place and duration of each operation of the region that is not among `left` to `each`. Says what the places are called.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, and those of `each`.
pub(super) fn each(
    (trace, version): (&Connection, Version),
    by: RankBy,
    selected: &Selected,
    left: &Ids,
    each: &mut dyn FnMut(i64, u64) -> Result<()>,
) -> Result<(Vec<String>, LeftOut)> {
    let mut places = Places { numbers: HashMap::new(), found: Vec::new() };
    let mut texts = Vec::new();
    let left_out = match by {
        RankBy::Stream | RankBy::Thread => {
            let ops = CausedOps::of(trace, selected)?;
            let left_out = ops.left_out;
            let queues = QueueStreams::of(trace)?;
            let mut read = Streams::of(trace, version)?;
            let mut read = read.rows()?;
            let mut numbers: HashMap<String, i64> = HashMap::new();
            ops.each(|op: &CausedOp, call: Option<CausingCall>| {
                if left.has(op.id) {
                    return Ok(());
                }
                let mut stream_of = |call: i64| match queues.stream(op.gpu, op.queue) {
                    Some(stream) => Ok(Some(format!("{stream} of GPU {}", op.gpu))),
                    None => read.at(call),
                };
                let place = match call {
                    None => NOWHERE,
                    Some(CausingCall { thread: (process, pid, tid), .. }) if by == RankBy::Thread => {
                        [process, pid, tid]
                    }
                    Some(CausingCall { id, thread: (process, pid, _), .. }) => match stream_of(id)? {
                        None => NOWHERE,
                        Some(stream) => {
                            let next = numbers.len() as i64;
                            let number = *numbers.entry(stream).or_insert_with_key(|stream| {
                                texts.push(stream.clone());
                                next
                            });
                            [process, pid, number]
                        }
                    },
                };
                each(places.number(place), op.duration())
            })?;
            left_out
        }
        _ => {
            let GpuOps { mut ops, left_out } = GpuOps::of(trace, selected)?;
            let ranks = if by == RankBy::Rank { ranks(trace, &mut texts)? } else { BTreeMap::new() };
            while let Some(op) = ops.next()? {
                if left.has(op.id) {
                    continue;
                }
                let place = match by {
                    RankBy::Gpu => [op.gpu, 0, 0],
                    RankBy::Queue => [op.gpu, op.queue, 0],
                    RankBy::Rank => ranks.get(&(op.id >> 32)).map_or(NOWHERE, |rank| [*rank, 0, 0]),
                    _ => [op.id >> 32, 0, 0],
                };
                each(places.number(place), op.end.abs_diff(op.start))?;
            }
            left_out
        }
    };
    Ok((labels(by, &places.found, &texts), left_out))
}

/// Numbers of places, in the order in which they are met.
struct Places {
    numbers: HashMap<Place, i64>,
    found: Vec<Place>,
}

impl Places {
    fn number(&mut self, place: Place) -> i64 {
        *self.numbers.entry(place).or_insert_with(|| {
            self.found.push(place);
            self.found.len() as i64 - 1
        })
    }
}

/// What each place is called; two of different processes with one process id are told apart by their sessions.
fn labels(by: RankBy, places: &[Place], texts: &[String]) -> Vec<String> {
    let text = |number: i64| {
        usize::try_from(number).ok().and_then(|number| texts.get(number)).map_or("", String::as_str)
    };
    let known = places.iter().filter(|place| **place != NOWHERE);
    let named = ProcessLabels::of(known.map(|[process, pid, _]| (*process, *pid)));
    let label = |place: &Place| match (by, *place) {
        (RankBy::Rank, NOWHERE) => "(no rank in the file)".to_string(),
        (RankBy::Stream, NOWHERE) => "(no stream in the file)".to_string(),
        (RankBy::Thread, NOWHERE) => "(no call in the file launched it)".to_string(),
        (RankBy::Gpu, [gpu, ..]) => format!("GPU {gpu}"),
        (RankBy::Queue, [gpu, queue, _]) => format!("GPU {gpu} queue {queue}"),
        (RankBy::Thread, [process, pid, tid]) => named.thread(process, pid, tid),
        (RankBy::Stream, [process, pid, stream]) => {
            format!("{} stream {}", named.process(process, pid), text(stream))
        }
        (RankBy::Rank, [rank, ..]) => format!("rank {}", text(rank)),
        (_, [session, ..]) => format!("session {session}"),
    };
    places.iter().map(label).collect()
}

/// The ranks of sessions, by their numbers in `texts`.
fn ranks(trace: &Connection, texts: &mut Vec<String>) -> rusqlite::Result<BTreeMap<i64, i64>> {
    let mut found = BTreeMap::new();
    for session in rpd_schema::sessions(trace)? {
        if let Some(rank) = session.rank() {
            let number = texts.iter().position(|text| text == rank).unwrap_or(texts.len());
            if number == texts.len() {
                texts.push(rank.to_string());
            }
            found.insert(i64::from(session.session), number as i64);
        }
    }
    Ok(found)
}
