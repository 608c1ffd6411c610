//! The profile of a tinygrad program as a trace.
//!
//! tinygrad keeps ranges of its own functions and of what it calls the user's, launches (`exec`, with a time and without an end), what devices
//! ran where it times them, and buffers that come and go. Functions become markers, launches calls, what devices ran operations.
//!
//! A launch says its device and name, and what ran does: the first range of that device and name behind a launch is of it. All operations of a
//! graph are of the launch of the graph. A copy is of the last launch of a copy, before it, from or to one of its two places.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::rows::{OpRow, Rows};
use crate::notes::{SharedNotes, look};
use crate::rewrite::derive::{NewTrace, TracePlace, make};

/// Where a profile has what the program's thread did.
const THREAD: [&str; 3] = ["USER", "TINY", "GC"];

/// Devices that are no GPUs: their numbers come last.
const NO_GPU: [&str; 5] = ["CPU", "DISK", "NPY", "PYTHON", "TINYFS"];

/// How tinygrad calls the host's memory where it says from and to where a copy goes.
const HOST: &str = "TINY";

/// An event of a profile. Times are ns of the host's clock.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// Something that took time, on a device or in the program.
    Range(Range),
    /// What a graph ran.
    Graph {
        ops: Vec<Range>,
    },
    /// A launch.
    Exec(Launch),
    Alloc {
        device: String,
        buffer: i64,
        bytes: Option<u64>,
        at: i64,
    },
    Free {
        device: String,
        buffer: i64,
        at: i64,
    },
    Marker {
        name: String,
        at: i64,
    },
    /// Nothing that a trace has a place for.
    Other,
}

#[derive(Debug, Deserialize)]
struct Range {
    device: String,
    name: String,
    start: i64,
    end: i64,
}

#[derive(Debug, Deserialize)]
struct Launch {
    device: String,
    name: String,
    at: i64,
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
    /// Ranges that end before they start.
    pub impossible: u64,
    /// Events of sorts that a trace has no place for.
    pub others: u64,
}

/// Makes a trace of a profile: a JSON object for each event, a line each. `read`, asked behind the last line, says whether that was all of it.
///
/// # Errors
/// When a line is no event, what `read` says, or the trace cannot be written; nothing is left of it then.
pub fn import(
    profile: impl BufRead,
    read: impl FnOnce() -> Result<()>,
    trace: &Path,
    notes: &SharedNotes,
) -> Result<Imported> {
    let encoding = || Ok("UTF-8".to_string());
    make(TracePlace::New(trace), encoding, notes, |making: &NewTrace<'_>| {
        let mut profile_of = Profile::default();
        for (number, line) in profile.lines().enumerate() {
            look(&**notes)?;
            let event = serde_json::from_str(&line?);
            profile_of.add(event.with_context(|| format!("event {} is none of tinygrad's", number + 1))?);
        }
        read()?;
        notes.show("writing the trace");
        let mut rows = Rows::begin(making.made)?;
        let imported = profile_of.write(&mut rows)?;
        Ok((imported, rows.end("tinygrad")?))
    })
}

/// What a device is called without its queue, and its queue: `AMD:1:SDMA:0` is the queue `SDMA:0` of `AMD:1`.
fn device_and_queue(name: &str) -> (&str, &str) {
    let kind = name.find(':').unwrap_or(name.len());
    let rest = name[kind..].strip_prefix(':').unwrap_or_default();
    let number = rest
        .split(':')
        .next()
        .filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let device = &name[..kind + number.map_or(0, |number| number.len() + 1)];
    (device, name[device.len()..].trim_start_matches(':'))
}

/// The kind of a device, and its number.
fn kind_and_number(device: &str) -> (&str, u64) {
    let (kind, number) = device.split_once(':').unwrap_or((device, "0"));
    (kind, number.parse().unwrap_or(u64::MAX))
}

/// From and to where something copies, by its name: `TINY -> AMD` is what ran, `copy 2.00 KB, AMD <- CPU` its launch. Nothing for kernels.
fn ends_of_copy(name: &str) -> Option<(&str, &str)> {
    if let Some((from, to)) = name.split_once(" -> ") {
        return Some((from.trim(), to.trim()));
    }
    let (to, from) = name.strip_prefix("copy ")?.rsplit_once(',')?.1.split_once("<-")?;
    Some((from.trim(), to.trim()))
}

fn is_gpu(device: &str) -> bool {
    let kind = kind_and_number(device).0;
    kind != HOST && !NO_GPU.contains(&kind)
}

fn op_type(name: &str) -> &'static str {
    match ends_of_copy(name).map(|(from, to)| (is_gpu(from), is_gpu(to))) {
        None => "KernelExecution",
        Some((true, true)) => "CopyDeviceToDevice",
        Some((true, false)) => "CopyDeviceToHost",
        Some((false, true)) => "CopyHostToDevice",
        Some((false, false)) => "CopyHostToHost",
    }
}

/// The events of a profile, by what a trace has of them.
#[derive(Default)]
struct Profile {
    ranges: Vec<Range>,
    graphs: Vec<Vec<Range>>,
    launches: Vec<Launch>,
    markers: Vec<(i64, i64, String)>,
    /// Buffers that come and go: the time, what happened, and to which.
    buffers: Vec<(i64, &'static str, String)>,
    impossible: u64,
    others: u64,
}

impl Profile {
    fn add(&mut self, event: Event) {
        let mut possible = |range: &Range| {
            let is_possible = range.start <= range.end;
            self.impossible += u64::from(!is_possible);
            is_possible
        };
        match event {
            Event::Range(range) if !possible(&range) => {}
            Event::Range(range) if THREAD.contains(&&*range.device) => {
                self.markers.push((range.start, range.end, range.name));
            }
            Event::Range(range) => self.ranges.push(range),
            Event::Graph { mut ops } => {
                ops.retain(possible);
                self.graphs.push(ops);
            }
            Event::Exec(launch) => self.launches.push(launch),
            Event::Marker { name, at } => self.markers.push((at, at, name)),
            Event::Alloc { device, buffer, bytes, at } => {
                let bytes = bytes.map(|bytes| format!(" | size={bytes}")).unwrap_or_default();
                self.buffers.push((at, "alloc", format!("device={device} | buffer={buffer}{bytes}")));
            }
            Event::Free { device, buffer, at } => {
                self.buffers.push((at, "free", format!("device={device} | buffer={buffer}")));
            }
            Event::Other => self.others += 1,
        }
    }

    /// Writes it, in the order of time.
    fn write(mut self, rows: &mut Rows<'_>) -> Result<Imported> {
        self.launches.sort_by_key(|launch| launch.at);
        self.ranges.sort_by_key(|range| range.start);
        self.graphs.sort_by_key(|ops| ops.iter().map(|op| op.start).min());
        self.markers.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
        self.buffers.sort_by_key(|(at, ..)| *at);
        let mut imported = Imported {
            launches: self.launches.len() as u64,
            markers: self.markers.len() as u64,
            impossible: self.impossible,
            others: self.others,
            ..Imported::default()
        };
        for (start, end, name) in &self.markers {
            rows.call((*start, *end), "UserMarker", name)?;
        }
        for (at, name, args) in &self.buffers {
            rows.call((*at, *at), name, args)?;
        }
        let mut calls = Vec::with_capacity(self.launches.len());
        for Launch { device, name, at } in &self.launches {
            calls.push(rows.call((*at, *at), "exec", &format!("device={device} | name={name}"))?);
        }
        let mut causes = Causes::of(&self.launches);
        let mut ops: Vec<(&Range, Option<usize>)> = Vec::new();
        for range in &self.ranges {
            ops.push((range, causes.of_range(range)));
        }
        for graph in &self.graphs {
            let cause = graph.first().and_then(|first| causes.of_graph(&first.device));
            ops.extend(graph.iter().map(|op| (op, cause)));
        }
        ops.sort_by_key(|(op, _)| (op.start, op.end));
        imported.operations = ops.len() as u64;
        imported.untimed = self.untimed(&ops);
        let places = Places::of(ops.iter().map(|(op, _)| &*op.device));
        for (gpu, device) in places.devices.iter().enumerate() {
            rows.gpu(gpu, device)?;
        }
        let mut sequences: HashMap<(usize, usize), usize> = HashMap::new();
        for (op, cause) in ops {
            let (gpu, queue) = places.of_device(&op.device);
            let sequence = sequences.entry((gpu, queue)).or_default();
            let op_type = op_type(&op.name);
            let kernel = if op_type == "KernelExecution" { &*op.name } else { "" };
            let row =
                OpRow { gpu, queue, sequence: *sequence, start: op.start, end: op.end, kernel, op_type };
            rows.op(&row, cause.map(|cause| calls[cause]))?;
            *sequence += 1;
        }
        Ok(imported)
    }

    /// Launches of kernels on devices that have no times of any.
    fn untimed(&self, ops: &[(&Range, Option<usize>)]) -> BTreeMap<String, u64> {
        let kernels = ops.iter().filter(|(op, _)| ends_of_copy(&op.name).is_none());
        let timed: HashSet<&str> = kernels.map(|(op, _)| device_and_queue(&op.device).0).collect();
        let mut untimed = BTreeMap::new();
        for launch in self.launches.iter().filter(|launch| ends_of_copy(&launch.name).is_none()) {
            let device = device_and_queue(&launch.device).0;
            if !timed.contains(device) {
                *untimed.entry(device.to_string()).or_default() += 1;
            }
        }
        untimed
    }
}

/// Launches that operations are looked up by.
struct Causes<'a> {
    launches: &'a [Launch],
    /// Those of kernels by device and name that have no operation yet, the first one first.
    kernels: HashMap<(&'a str, &'a str), VecDeque<usize>>,
    /// Those of graphs by the kind of device.
    graphs: HashMap<&'a str, VecDeque<usize>>,
    /// Those of copies by each of their two places.
    copies: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Causes<'a> {
    fn of(launches: &'a [Launch]) -> Causes<'a> {
        let mut causes =
            Causes { launches, kernels: HashMap::new(), graphs: HashMap::new(), copies: HashMap::new() };
        for (number, launch) in launches.iter().enumerate() {
            let device = device_and_queue(&launch.device).0;
            if let Some((from, to)) = ends_of_copy(&launch.name) {
                causes.copies.entry(from).or_default().push(number);
                causes.copies.entry(to).or_default().push(number);
            } else if launch.name.starts_with("batched ") {
                causes.graphs.entry(kind_and_number(device).0).or_default().push_back(number);
            } else {
                causes.kernels.entry((device, &launch.name)).or_default().push_back(number);
            }
        }
        causes
    }

    /// The launch of what a device ran.
    fn of_range(&mut self, range: &'a Range) -> Option<usize> {
        let Some(ends) = ends_of_copy(&range.name) else {
            let of_name = self.kernels.get_mut(&(device_and_queue(&range.device).0, &*range.name))?;
            let first = of_name.front().filter(|launch| self.launches[**launch].at <= range.start)?;
            let first = *first;
            of_name.pop_front();
            return Some(first);
        };
        let places = [ends.0, ends.1].into_iter().filter(|place| *place != HOST);
        let before = places.filter_map(|place| {
            let copies = self.copies.get(place)?;
            let behind = copies.partition_point(|launch| self.launches[*launch].at <= range.start);
            Some(*copies.get(behind.checked_sub(1)?)?)
        });
        before.max()
    }

    fn of_graph(&mut self, device: &'a str) -> Option<usize> {
        self.graphs.get_mut(kind_and_number(device_and_queue(device).0).0)?.pop_front()
    }
}

/// The numbers of devices, and of the queues of each.
struct Places<'a> {
    devices: Vec<&'a str>,
    queues: HashMap<(&'a str, &'a str), (usize, usize)>,
}

impl<'a> Places<'a> {
    fn of(names: impl Iterator<Item = &'a str>) -> Places<'a> {
        let mut found: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
        for name in names {
            let (device, queue) = device_and_queue(name);
            // What has no name is where kernels run, and the first of its device.
            found.entry((!is_gpu(device), kind_and_number(device), device)).or_default().insert(queue);
        }
        let mut places = Places { devices: Vec::new(), queues: HashMap::new() };
        for (gpu, ((.., device), queues)) in found.into_iter().enumerate() {
            let numbered = queues.into_iter().enumerate();
            places.queues.extend(numbered.map(|(number, queue)| ((device, queue), (gpu, number))));
            places.devices.push(device);
        }
        places
    }

    /// The GPU and queue of a device.
    fn of_device(&self, name: &str) -> (usize, usize) {
        self.queues.get(&device_and_queue(name)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_have_a_number_and_a_queue() {
        for (name, expected) in [
            ("AMD", ("AMD", "")),
            ("AMD:1", ("AMD:1", "")),
            ("AMD:1:SDMA:0", ("AMD:1", "SDMA:0")),
            ("NULL:SDMA:0", ("NULL", "SDMA:0")),
            ("PYTHON:COPY", ("PYTHON", "COPY")),
            ("", ("", "")),
            (":", ("", "")),
            ("A::1", ("A", "1")),
        ] {
            assert_eq!(device_and_queue(name), expected, "{name}");
        }
    }

    #[test]
    fn copies_have_two_ends() {
        assert_eq!(ends_of_copy("TINY -> AMD"), Some(("TINY", "AMD")));
        assert_eq!(ends_of_copy("copy    2.00 KB,    NULL <- PYTHON"), Some(("PYTHON", "NULL")));
        assert_eq!(ends_of_copy("copy  128 B, AMD:1 <- AMD"), Some(("AMD", "AMD:1")));
        assert_eq!(ends_of_copy("r_64_32_16"), None);
        assert_eq!(ends_of_copy("copy_kernel"), None);
        assert_eq!(op_type("AMD -> AMD:1"), "CopyDeviceToDevice");
        assert_eq!(op_type("DISK -> NV"), "CopyHostToDevice");
    }
}
