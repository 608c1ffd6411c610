//! Perfetto's own format: a file of protobuf packets, smaller than JSON, with every time to the nanosecond.
//!
//! | file | owns |
//! |---|---|
//! | `message.rs` | the encoding |
//! | `field.rs` | numbers of fields |
//! | `packet.rs` | packets, and the names that are in them once |
//!
//! Perfetto sorts packets by time and leaves those of one time in the order of the file. An end closes whatever is open on its track. So a
//! track's events are written in the order of time: what ends before what begins, inner ends first, outer begins first, and the end of
//! a slice without length right behind its begin. A track's description comes before its first event.

mod field;
mod message;
mod packet;

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use rpd_schema::{SessionInfo, Version, session_fact};
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::elements::Elements;
use super::texts::TraceTexts;
use super::timeline::events::{
    Arrow, Call, Counter, Events, Facts, Op, Owner, Place, Process, Sort, TimelineFormat, TimelineFrame,
    Track, TrackOwner, Value,
};
use super::timeline::{self, Exported, FIRST_GPU, OpDetails, graph_handle};
use crate::notes::Notes;
use crate::region::Region;
use field::{clock, counter as counter_field, event, host, packet as packet_field, track};
use message::{content, fixed, message, number};
use packet::{EventName, Key, Sequence, argument, category, dimensions, text};

/// Writes the part `region` of the trace `file`, which is open as `trace`, to `out`.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when a signal came (`notes`), or when `out` cannot be written: then an
/// [`std::io::Error`] is in the chain.
pub fn export(
    file: &Path,
    trace: (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    timeline::write(file, trace, region, notes, out, &Perfetto)
}

struct Perfetto;

/// The sequence of what is said before the first event.
const HEAD: u64 = 1;

/// Processes and threads are in the order that their descriptions say. Perfetto keeps this number for the root of all tracks.
const ROOT: u64 = 0;

impl TimelineFormat for Perfetto {
    type Events = Packets;

    const SEPARATOR: &'static [u8] = b"";
    const PUT_TEXT: fn(&mut Vec<u8>, &str) = |bytes, text| bytes.extend_from_slice(text.as_bytes());
    const FIRST_GPU: i64 = FIRST_GPU;

    fn around(&self, facts: &Facts<'_>) -> (Vec<u8>, Vec<u8>) {
        let mut head = Vec::new();
        let sequence = Sequence::new(HEAD);
        if let Some((monotonic, realtime)) = facts.sessions.iter().find_map(clocks) {
            sequence.other(&mut head, packet_field::CLOCK_SNAPSHOT, |bytes| {
                // Times of events are of the trace's own clock, which Perfetto calls BOOTTIME.
                for (id, time) in
                    [(clock::BOOTTIME, monotonic), (clock::MONOTONIC, monotonic), (clock::REALTIME, realtime)]
                {
                    message(bytes, clock::CLOCKS, |bytes| {
                        number(bytes, clock::ID, id);
                        number(bytes, clock::TIME, time);
                    });
                }
            });
        }
        sequence.other(&mut head, packet_field::TRACK_DESCRIPTOR, |bytes| {
            number(bytes, track::UUID, ROOT);
            number(bytes, track::CHILD_ORDERING, track::EXPLICIT_CHILDREN);
            number(bytes, track::PROCESS_ORDERING, track::EXPLICIT);
            number(bytes, track::THREAD_ORDERING, track::EXPLICIT);
        });
        (head, Vec::new())
    }

    fn events(&self, elements: Elements, maker: usize, _: &Facts<'_>) -> Packets {
        Packets {
            elements,
            sequence: Sequence::new(HEAD + 1 + maker as u64),
            event: Vec::new(),
            pending: None,
            thread: ROOT,
            open: Vec::new(),
            first_counter: FIRST_COUNTER + ((maker as u64) << 24),
            counters: FxHashMap::default(),
        }
    }
}

/// One time on the trace's clock and on that of the world, where a session noted them.
fn clocks(session: &SessionInfo) -> Option<(u64, u64)> {
    session.number(session_fact::START_MONOTONIC_NS).zip(session.number(session_fact::START_REALTIME_NS))
}

/// Makes packets.
struct Packets {
    elements: Elements,
    sequence: Sequence,
    /// The event that is being made: arrows that come after it are fields of it.
    event: Vec<u8>,
    pending: Option<Pending>,
    /// The first track of the thread whose calls are written.
    thread: u64,
    /// The further tracks of it too: which it is, and the ends of what is open, innermost last.
    open: Vec<(u64, Vec<i64>)>,
    /// The number of the first counter of a device that this makes: counters of other makers have other ones.
    first_counter: u64,
    /// Tracks of the counters of devices, by name.
    counters: FxHashMap<i64, FxHashMap<String, u64>>,
}

/// An event without its packet.
struct Pending {
    uuid: u64,
    start: i64,
    end: End,
}

/// What a slice ends with.
#[derive(Clone, Copy)]
enum End {
    /// It has no end: it is an instant.
    None,
    /// It ends at this time, and nothing begins on its track before.
    Next(i64),
    /// It ends at this time; slices of a track with this number may be inside of it.
    Later(i64, u32),
}

/// The number of a process, GPU or other device as a track.
fn device(process: i64) -> u64 {
    (process as u64) << 32
}

fn uuid(place: Place) -> u64 {
    device(place.process) | place.track as u64
}

/// Counters of a device are numbered from here on, where no tracks are: these have 31 bits.
const FIRST_COUNTER: u64 = 1 << 31;

impl Packets {
    /// Begins an event.
    fn begin(&mut self, uuid: u64, start: i64, end: End) -> Result<()> {
        self.flush()?;
        self.event.clear();
        let kind = if matches!(end, End::None) { event::INSTANT } else { event::BEGIN };
        number(&mut self.event, event::TYPE, kind);
        number(&mut self.event, event::TRACK_UUID, uuid);
        self.pending = Some(Pending { uuid, start, end });
        Ok(())
    }

    /// Writes the event that was made last.
    fn flush(&mut self) -> Result<()> {
        let Some(Pending { uuid, start, end }) = self.pending.take() else { return Ok(()) };
        self.sequence.event(self.elements.next()?, start, true, &self.event);
        match end {
            End::None => Ok(()),
            End::Next(end) => self.close(uuid, end),
            End::Later(end, _) if end == start => self.close(uuid, end),
            End::Later(end, subtrack) => {
                let subtrack = subtrack as usize;
                if self.open.len() <= subtrack {
                    self.open.resize_with(subtrack + 1, Default::default);
                }
                self.open[subtrack].0 = uuid;
                self.open[subtrack].1.push(end);
                Ok(())
            }
        }
    }

    fn close(&mut self, uuid: u64, end: i64) -> Result<()> {
        self.event.clear();
        number(&mut self.event, event::TYPE, event::END);
        number(&mut self.event, event::TRACK_UUID, uuid);
        self.sequence.event(self.elements.next()?, end, false, &self.event);
        Ok(())
    }

    /// Ends what is open on a track of the thread until `time`.
    fn close_until(&mut self, subtrack: usize, time: i64) -> Result<()> {
        while let Some((uuid, open)) = self.open.get_mut(subtrack)
            && let Some(end) = open.pop_if(|end| *end <= time)
        {
            let uuid = *uuid;
            self.close(uuid, end)?;
        }
        Ok(())
    }

    /// Ends what is open on all tracks of the thread.
    fn close_all(&mut self) -> Result<()> {
        self.flush()?;
        (0..self.open.len()).try_for_each(|subtrack| self.close_until(subtrack, i64::MAX))?;
        self.open.clear();
        Ok(())
    }

    fn describe(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.flush()?;
        self.sequence.other(self.elements.next()?, packet_field::TRACK_DESCRIPTOR, fill);
        Ok(())
    }

    /// The track of a counter, which is described if it is new.
    fn counter(&mut self, process: i64, name: &str) -> Result<u64> {
        let of_device = self.counters.entry(process).or_default();
        if let Some(uuid) = of_device.get(name) {
            return Ok(*uuid);
        }
        let counter = self.first_counter + of_device.len() as u64;
        let uuid = device(process) | counter;
        of_device.insert(name.to_string(), uuid);
        self.describe(|bytes| {
            number(bytes, track::UUID, uuid);
            content(bytes, track::NAME, name.as_bytes());
            number(bytes, track::PARENT_UUID, device(process));
            // Above the queues.
            number(bytes, track::SIBLING_ORDER_RANK, i64::from(i32::MIN) as u64 + (counter - FIRST_COUNTER));
            message(bytes, track::COUNTER, |bytes| {
                number(bytes, counter_field::UNIT, counter_field::COUNT);
            });
        })?;
        Ok(uuid)
    }
}

impl Events for Packets {
    fn process(&mut self, process: &Process<'_>) -> Result<()> {
        let Process { number: process, owner, name, order } = *process;
        self.describe(|bytes| {
            number(bytes, track::UUID, device(process));
            if owner == Owner::Process {
                message(bytes, track::PROCESS, |bytes| {
                    number(bytes, host::PID, process as u64);
                    number(bytes, host::SORT_INDEX, order as u64);
                    content(bytes, host::PROCESS_NAME, name.as_bytes());
                });
            } else {
                // Not a process to Perfetto: its number would be one among real ones.
                content(bytes, track::NAME, name.as_bytes());
                number(bytes, track::SIBLING_ORDER_RANK, order as u64);
            }
            number(bytes, track::CHILD_ORDERING, track::EXPLICIT_CHILDREN);
        })
    }

    fn track(&mut self, described: &Track<'_>) -> Result<()> {
        let Track { place, owner, name, order } = *described;
        self.describe(|bytes| {
            number(bytes, track::UUID, uuid(place));
            match owner {
                TrackOwner::Thread { .. } if place.subtrack == 0 => {
                    message(bytes, track::THREAD, |bytes| {
                        number(bytes, host::PID, place.process as u64);
                        number(bytes, host::TID, place.track as u64);
                        number(bytes, host::SORT_INDEX, order as u64);
                        content(bytes, host::THREAD_NAME, name.as_bytes());
                    });
                    number(bytes, track::CHILD_ORDERING, track::EXPLICIT_CHILDREN);
                    return;
                }
                TrackOwner::Thread { first } => {
                    content(bytes, track::NAME, described.own_name().as_bytes());
                    number(bytes, track::PARENT_UUID, device(place.process) | first as u64);
                }
                // Perfetto shows tracks of one name below each other as one, which a queue is.
                TrackOwner::Queue => {
                    content(bytes, track::NAME, name.as_bytes());
                    number(bytes, track::PARENT_UUID, device(place.process));
                }
            }
            number(bytes, track::SIBLING_ORDER_RANK, order as u64);
        })
    }

    fn call(&mut self, texts: &mut TraceTexts<'_>, call: &Call) -> Result<()> {
        self.flush()?;
        let (start, end) = call.times;
        let subtrack = call.place.subtrack;
        if subtrack == 0 && self.thread != uuid(call.place) {
            self.close_all()?;
            self.thread = uuid(call.place);
        }
        self.close_until(subtrack as usize, start)?;
        let end = if call.is_mark() { End::None } else { End::Later(end, subtrack) };
        self.begin(uuid(call.place), start, end)?;
        category(&mut self.event, call.sort.category());
        if call.sort == Sort::Marker {
            self.sequence.name(&mut self.event, EventName::Argument(call.arguments), call.shown(texts)?);
            return Ok(());
        }
        self.sequence.name(&mut self.event, EventName::Name(call.name), call.shown(texts)?);
        argument(&mut self.event, Key::CorrId, call.id);
        let arguments = texts.arguments(call.arguments)?;
        if !arguments.is_empty() {
            text(&mut self.event, Key::Desc, arguments);
        }
        Ok(())
    }

    fn departure(&mut self, link: i64, _: &Call) -> Result<()> {
        fixed(&mut self.event, event::FLOW_IDS, link as u64);
        Ok(())
    }

    fn op(&mut self, texts: &mut TraceTexts<'_>, op: &Op<'_>) -> Result<()> {
        let (start, end) = op.times;
        self.begin(uuid(op.place), start, End::Next(end))?;
        let name = op.shown(texts)?;
        category(&mut self.event, op.category());
        self.sequence.name(&mut self.event, EventName::Name(name), texts.name(name)?);
        self.sequence.known_text(&mut self.event, Key::Desc, op.op_type, texts.name(op.op_type)?);
        text(&mut self.event, Key::Agent, format!("GPU {}", op.queue.0).as_bytes());
        argument(&mut self.event, Key::Queue, op.queue.1);
        if let Some((call, (pid, tid))) = op.call {
            argument(&mut self.event, Key::CorrId, call);
            argument(&mut self.event, Key::Pid, pid);
            argument(&mut self.event, Key::Tid, tid);
        }
        details(&mut self.event, &op.details);
        Ok(())
    }

    fn arrival(&mut self, arrow: Arrow, _: Place, _: i64) -> Result<()> {
        fixed(&mut self.event, event::TERMINATING_FLOW_IDS, arrow.link as u64);
        Ok(())
    }

    fn frame(&mut self, texts: &mut TraceTexts<'_>, frame: &TimelineFrame) -> Result<()> {
        let (start, end) = frame.times;
        self.begin(uuid(frame.place), start, End::Next(end))?;
        let shown = texts.arguments(frame.text)?;
        if frame.is_graph {
            category(&mut self.event, "graph");
            let name = graph_handle(shown).map_or("Graph".to_string(), |handle| format!("Graph {handle}"));
            content(&mut self.event, event::NAME, name.as_bytes());
            argument(&mut self.event, Key::Kernels, frame.ops);
        } else {
            category(&mut self.event, "marker_frame");
            self.sequence.name(&mut self.event, EventName::Argument(frame.text), shown);
            argument(&mut self.event, Key::Ops, frame.ops);
        }
        Ok(())
    }

    fn value(&mut self, counter: &Counter<'_>) -> Result<()> {
        self.flush()?;
        let uuid = self.counter(counter.process, counter.name)?;
        self.event.clear();
        number(&mut self.event, event::TYPE, event::COUNTER);
        number(&mut self.event, event::TRACK_UUID, uuid);
        match counter.value {
            Value::Whole(value) => number(&mut self.event, event::COUNTER_VALUE, value as u64),
            Value::Real(value) => fixed(&mut self.event, event::DOUBLE_COUNTER_VALUE, value.to_bits()),
        }
        self.sequence.event(self.elements.next()?, counter.time_ns, false, &self.event);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.close_all()
    }
}

/// Appends how a kernel was launched and what was copied.
fn details(bytes: &mut Vec<u8>, details: &OpDetails<'_>) {
    let number = |bytes: &mut Vec<u8>, key, value: Option<i64>| {
        if let Some(value) = value {
            argument(bytes, key, value);
        }
    };
    if let Some(launch) = details.launch {
        if let Some((grid, workgroup)) = launch.sizes {
            dimensions(bytes, Key::Grid, grid);
            dimensions(bytes, Key::Workgroup, workgroup);
            // rocprofv3 counts work-items.
            let (grid_size, workgroup_size) = launch.work_items();
            number(bytes, Key::GridSize, grid_size);
            number(bytes, Key::WorkgroupSize, workgroup_size);
        }
        number(bytes, Key::Lds, launch.lds);
        number(bytes, Key::Scratch, launch.scratch);
        number(bytes, Key::Vgprs, launch.vgprs);
        number(bytes, Key::Sgprs, launch.sgprs);
    }
    if let Some((graph, node)) = details.graph_node {
        argument(bytes, Key::Graph, graph);
        argument(bytes, Key::GraphNode, node);
    }
    if let Some(cluster) = details.cluster {
        dimensions(bytes, Key::Cluster, cluster);
    }
    number(bytes, Key::CopyBytes, details.copy_bytes);
    if !details.stream.is_empty() {
        text(bytes, Key::Stream, details.stream.as_bytes());
        number(bytes, Key::StreamId, details.stream_number());
    }
}
