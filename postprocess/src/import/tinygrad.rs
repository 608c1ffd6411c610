//! The profile of a tinygrad program as a trace.
//!
//! A profile has ranges of tinygrad's own functions and of the user's, launches (`exec`, a time without an end), ranges of what devices ran, where
//! tinygrad times them, and buffers that come and go. In the trace, functions are markers, launches are calls, and what devices ran are
//! operations.
//!
//! | file | owns |
//! |---|---|
//! | `device.rs` | what names of devices and copies say, and the numbers that a trace has for devices |
//! | `linking.rs` | which launch an operation is of |

mod device;
mod linking;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result};
use rpd_schema::{ApiId, ApiRow, Appender, OpId, OpRow, Version, session_fact};
use serde::{Deserialize, Serialize};

use self::device::{Places, device_and_queue, ends_of_copy, op_type};
use self::linking::{Linked, linked};
use crate::notes::{Notes, SharedNotes, look};
use crate::rewrite::derive::{Announced, TracePlace, append, target};

/// Where a profile has what the program's thread did.
const THREAD: [&str; 3] = ["USER", "TINY", "GC"];

/// The process, and its thread: a profile does not say their numbers.
const PROCESS: u32 = 1;

/// An event of a profile. Times are ns of the host's clock.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// Something that took time, on a device or in the program.
    Range(Range),
    Graph(Graph),
    Exec(Launch),
    /// A buffer that comes.
    Alloc {
        device: String,
        buffer: i64,
        bytes: Option<u64>,
        at: u64,
    },
    /// A buffer that goes.
    Free {
        device: String,
        buffer: i64,
        at: u64,
    },
    Marker {
        name: String,
        at: u64,
    },
    /// Nothing that a trace has a place for.
    Other,
    /// The last one.
    End,
}

#[derive(Debug, Deserialize)]
struct Range {
    device: String,
    name: String,
    start: u64,
    end: u64,
}

/// What a graph ran.
#[derive(Debug, Deserialize)]
struct Graph {
    ops: Vec<Range>,
}

#[derive(Debug, Deserialize)]
struct Launch {
    device: String,
    name: String,
    at: u64,
}

/// A row of `rocpd_api`.
struct Call {
    start: u64,
    end: u64,
    name: &'static str,
    args: String,
}

/// The events of a profile, by what a trace has of them.
#[derive(Default)]
pub struct Profile {
    ranges: Vec<Range>,
    graphs: Vec<Graph>,
    launches: Vec<Launch>,
    /// Markers and buffers.
    others: Vec<Call>,
    markers: u64,
    /// Ranges that end before they start.
    impossible: u64,
    /// Events that are not as tinygrad writes them.
    unknown: u64,
    /// Whether the line of the end was there.
    pub is_whole: bool,
}

/// What was imported.
#[derive(Debug, Default, Serialize)]
pub struct Imported {
    /// Kernels and copies that devices ran.
    pub operations: u64,
    /// Launches.
    pub launches: u64,
    /// Functions and markers.
    pub markers: u64,
    /// Devices with launches of kernels of which tinygrad has no times, and how many.
    pub untimed: BTreeMap<String, u64>,
    /// Operations of which nobody knows the launch.
    pub unlinked: u64,
    /// Ranges that end before they start.
    pub impossible: u64,
    /// Events that are not as tinygrad writes them.
    pub unknown: u64,
}

/// Whether there is a place for the trace.
///
/// # Errors
/// Why there is none.
pub fn check_place(trace: &Path) -> Result<()> {
    target(TracePlace::New(trace)).map(drop)
}

impl Profile {
    /// Reads a JSON object for each event, a line each.
    ///
    /// # Errors
    /// When a line is no event.
    pub fn read(lines: impl BufRead) -> Result<Profile> {
        let mut profile = Profile::default();
        for (number, line) in lines.lines().enumerate() {
            let event = serde_json::from_str(&line?);
            profile.add(event.with_context(|| format!("event {} is none of tinygrad's", number + 1))?);
        }
        Ok(profile)
    }

    fn add(&mut self, event: Event) {
        let mut other = |at, name, args| self.others.push(Call { start: at, end: at, name, args });
        match event {
            Event::Range(range) if range.start > range.end => self.impossible += 1,
            Event::Range(Range { device, name, start, end }) if THREAD.contains(&&*device) => {
                self.markers += 1;
                self.others.push(Call { start, end, name: "UserMarker", args: name });
            }
            Event::Range(range) => self.ranges.push(range),
            // A part of a graph would be taken for another graph.
            Event::Graph(graph) if graph.ops.iter().any(|op| op.start > op.end) => {
                self.impossible += graph.ops.len() as u64;
            }
            Event::Graph(graph) => self.graphs.push(graph),
            Event::Exec(launch) => self.launches.push(launch),
            Event::Marker { name, at } => {
                self.markers += 1;
                other(at, "UserMarker", name);
            }
            Event::Alloc { device, buffer, bytes, at } => {
                let size = bytes.map(|bytes| format!(" | size={bytes}")).unwrap_or_default();
                other(at, "alloc", format!("device={device} | buffer={buffer}{size}"));
            }
            Event::Free { device, buffer, at } => {
                other(at, "free", format!("device={device} | buffer={buffer}"));
            }
            Event::Other => self.unknown += 1,
            Event::End => self.is_whole = true,
        }
    }

    /// Makes a trace of it.
    ///
    /// # Errors
    /// When the trace cannot be written; nothing is left of it then.
    pub fn import(mut self, trace: &Path, notes: &SharedNotes) -> Result<Imported> {
        notes.show("writing the trace");
        self.launches.sort_by_key(|launch| launch.at);
        self.ranges.sort_by_key(|range| range.start);
        self.graphs.sort_by_key(|graph| graph.ops.iter().map(|op| op.start).min());
        // What is around others comes before them.
        self.others.sort_by_key(|call| (call.start, Reverse(call.end)));
        let mut ops = linked(&self.launches, &self.ranges, &self.graphs);
        ops.sort_by_key(|(op, _)| (op.start, op.end));
        append(TracePlace::New(trace), notes, |made| {
            made.session_fact(session_fact::SOURCES, "tinygrad")?;
            let calls = self.write_calls(made, &**notes)?;
            write_ops(made, &ops, &**notes)?;
            let imported = Imported {
                operations: ops.len() as u64,
                launches: self.launches.len() as u64,
                markers: self.markers,
                untimed: untimed(&self.launches, &ops),
                unlinked: ops.iter().filter(|(_, launch)| launch.is_none()).count() as u64,
                impossible: self.impossible,
                unknown: self.unknown,
            };
            let links = imported.operations - imported.unlinked;
            let rows = [("rocpd_api", calls), ("rocpd_op", imported.operations), ("rocpd_api_ops", links)];
            let rows = rows.map(|(table, rows)| (table.to_string(), rows)).into();
            Ok((imported, Announced { version: Version::V2, rows }))
        })
    }

    /// Writes launches, whose ids are their numbers from 1 on, and then the others. Returns how many there are.
    fn write_calls(&self, made: &mut Appender, notes: &dyn Notes) -> Result<u64> {
        let launches = self.launches.iter().map(|Launch { device, name, at }| {
            let args = format!("device={device} | name={name}");
            Call { start: *at, end: *at, name: "exec", args }
        });
        let mut written = 0;
        let mut write = |call: &Call| -> Result<()> {
            look(notes)?;
            written += 1;
            let (name, args) = (made.intern(call.name)?, made.intern(&call.args)?);
            let (id, pid, tid) = (ApiId::call(written), PROCESS, PROCESS);
            Ok(made.api(&ApiRow { id, pid, tid, start: call.start, end: call.end, name, args })?)
        };
        launches.into_iter().try_for_each(|call| write(&call))?;
        self.others.iter().try_for_each(&mut write)?;
        Ok(written)
    }
}

/// Writes operations, with links to their launches, and what the GPUs are called.
fn write_ops(made: &mut Appender, ops: &[Linked<'_>], notes: &dyn Notes) -> Result<()> {
    let places = Places::of(ops.iter().map(|(op, _)| &*op.device));
    for (gpu, device) in (0..).zip(&places.devices) {
        made.gpu_fact(gpu, session_fact::GPU_NAME, device)?;
    }
    let mut sequences: HashMap<(u32, u32), u64> = HashMap::new();
    for (number, (op, launch)) in (1..).zip(ops) {
        look(notes)?;
        let (gpu, queue) = places.of_device(&op.device);
        let sequence = sequences.entry((gpu, queue)).or_default();
        // Copies have no name in a trace.
        let name = if ends_of_copy(&op.name).is_none() { &*op.name } else { "" };
        let (description, op_type) = (made.intern(name)?, made.intern(op_type(&op.name))?);
        let id = OpId(number);
        made.op(&OpRow {
            id,
            gpu,
            queue,
            sequence: *sequence,
            completion_signal: 0,
            start: op.start,
            end: op.end,
            description,
            op_type,
        })?;
        *sequence += 1;
        if let Some(launch) = launch {
            made.api_op(ApiId::call(*launch as u64 + 1), id)?;
        }
    }
    Ok(())
}

/// By device, how many kernels were launched on one that has no times of any.
fn untimed(launches: &[Launch], ops: &[Linked<'_>]) -> BTreeMap<String, u64> {
    let kernels = ops.iter().filter(|(op, _)| ends_of_copy(&op.name).is_none());
    let timed: HashSet<&str> = kernels.map(|(op, _)| device_and_queue(&op.device).0).collect();
    let mut untimed = BTreeMap::new();
    for launch in launches.iter().filter(|launch| ends_of_copy(&launch.name).is_none()) {
        let device = device_and_queue(&launch.device).0;
        if !timed.contains(device) {
            *untimed.entry(device.to_string()).or_default() += 1;
        }
    }
    untimed
}
