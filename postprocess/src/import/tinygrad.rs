//! The profile of a tinygrad program as a trace.
//!
//! tinygrad keeps ranges of its own functions and of what it calls the user's, launches (`exec`, with a time and without an end), what devices
//! ran where it times them, and buffers that come and go. Functions become markers, launches calls, what devices ran operations.
//!
//! A launch says its device and name, and what ran does: the n-th launch of a kernel on a device is of the n-th range of the same. What a graph
//! ran is of a launch of a graph with as many operations. A copy is of a launch of a copy between the same places. Where there are more of the
//! ones than of the others, nobody knows which are of which: such operations have no launch, and are counted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::rows::{OpRow, Rows};
use crate::notes::{Notes, SharedNotes, look};
use crate::rewrite::derive::{NewTrace, TracePlace, make, target};

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
    /// The last one.
    End,
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
    /// Operations of which nobody knows the launch.
    pub unlinked: u64,
    /// Ranges that end before they start.
    pub impossible: u64,
    /// Events that are not as tinygrad writes them.
    pub others: u64,
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

    /// Makes a trace of it.
    ///
    /// # Errors
    /// When the trace cannot be written; nothing is left of it then.
    pub fn import(self, trace: &Path, notes: &SharedNotes) -> Result<Imported> {
        let encoding = || Ok("UTF-8".to_string());
        make(TracePlace::New(trace), encoding, notes, |making: &NewTrace<'_>| {
            notes.show("writing the trace");
            let mut rows = Rows::begin(making.made)?;
            let imported = self.write(&mut rows, &**notes)?;
            Ok((imported, rows.end("tinygrad")?))
        })
    }
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
    let (to, from) = name.strip_prefix("copy ")?.split_once("<-")?;
    Some((from.trim(), to.rsplit_once(',')?.1.trim()))
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
pub struct Profile {
    ranges: Vec<Range>,
    graphs: Vec<Vec<Range>>,
    launches: Vec<Launch>,
    markers: Vec<(i64, i64, String)>,
    /// Buffers that come and go: the time, what happened, and to which.
    buffers: Vec<(i64, &'static str, String)>,
    impossible: u64,
    others: u64,
    /// Whether the line of the end was there.
    pub is_whole: bool,
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
            Event::End => self.is_whole = true,
        }
    }

    /// Writes it, in the order of time.
    fn write(mut self, rows: &mut Rows<'_>, notes: &dyn Notes) -> Result<Imported> {
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
            look(notes)?;
            rows.call((*start, *end), "UserMarker", name)?;
        }
        for (at, name, args) in &self.buffers {
            look(notes)?;
            rows.call((*at, *at), name, args)?;
        }
        let mut calls = Vec::with_capacity(self.launches.len());
        for Launch { device, name, at } in &self.launches {
            look(notes)?;
            calls.push(rows.call((*at, *at), "exec", &format!("device={device} | name={name}"))?);
        }
        let mut ops = linked(&self.launches, &self.ranges, &self.graphs);
        ops.sort_by_key(|(op, _)| (op.start, op.end));
        imported.operations = ops.len() as u64;
        imported.unlinked = ops.iter().filter(|(_, cause)| cause.is_none()).count() as u64;
        imported.untimed = self.untimed(&ops);
        let places = Places::of(ops.iter().map(|(op, _)| &*op.device));
        for (gpu, device) in places.devices.iter().enumerate() {
            rows.gpu(gpu, device)?;
        }
        let mut sequences: HashMap<(usize, usize), usize> = HashMap::new();
        for (op, cause) in ops {
            look(notes)?;
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

/// An operation, and the number of its launch.
type Linked<'a> = (&'a Range, Option<usize>);

/// Operations with their launches; all are in the order of time.
fn linked<'a>(launches: &'a [Launch], ranges: &'a [Range], graphs: &'a [Vec<Range>]) -> Vec<Linked<'a>> {
    let mut kernels: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    let mut of_graphs: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut copies: Vec<(usize, (&str, &str))> = Vec::new();
    for (number, launch) in launches.iter().enumerate() {
        let count = launch.name.strip_prefix("batched ").and_then(|count| count.parse().ok());
        if let Some(ends) = ends_of_copy(&launch.name) {
            copies.push((number, ends));
        } else if let Some(count) = count {
            of_graphs.entry(count).or_default().push(number);
        } else {
            let device = device_and_queue(&launch.device).0;
            kernels.entry((device, &launch.name)).or_default().push(number);
        }
    }
    let mut ops: Vec<Linked<'a>> = Vec::new();
    // Where no graph of this size was launched, its kernels were, one by one.
    let (graphs, lone): (Vec<_>, Vec<_>) = graphs.iter().partition(|ops| of_graphs.contains_key(&ops.len()));
    let mut ran: BTreeMap<usize, Vec<&Vec<Range>>> = BTreeMap::new();
    graphs.into_iter().for_each(|graph| ran.entry(graph.len()).or_default().push(graph));
    for (count, graphs) in ran {
        let launches = &of_graphs[&count];
        let names = |graph: &Vec<Range>| -> Vec<String> { graph.iter().map(|op| op.name.clone()).collect() };
        // tinygrad reads the times of a graph when it is launched the next time, so that those of the last one may be missing.
        let is_one_graph = graphs.windows(2).all(|pair| names(pair[0]) == names(pair[1]));
        let are_known = launches.len() == graphs.len() || (is_one_graph && launches.len() > graphs.len());
        for (place, graph) in graphs.into_iter().enumerate() {
            let cause = launches.get(place).copied().filter(|_| are_known);
            ops.extend(graph.iter().map(|op| (op, cause)));
        }
    }
    let mut of_copies: HashMap<(&str, &str), Vec<&Range>> = HashMap::new();
    let mut of_kernels: HashMap<(&str, &str), Vec<&Range>> = HashMap::new();
    let mut lone: Vec<&Range> = ranges.iter().chain(lone.into_iter().flatten()).collect();
    lone.sort_by_key(|range| range.start);
    for range in lone {
        match ends_of_copy(&range.name) {
            Some(ends) => of_copies.entry(ends).or_default().push(range),
            None => {
                let device = device_and_queue(&range.device).0;
                of_kernels.entry((device, &range.name)).or_default().push(range);
            }
        }
    }
    let mut pair = |ranges: Vec<&'a Range>, launches: &[usize]| {
        let are_known = ranges.len() == launches.len();
        let causes = (0..ranges.len()).map(|place| launches.get(place).copied().filter(|_| are_known));
        ops.extend(ranges.into_iter().zip(causes.collect::<Vec<_>>()));
    };
    for (key, ranges) in of_kernels {
        pair(ranges, kernels.get(&key).map_or(&[], Vec::as_slice));
    }
    for (ends, ranges) in of_copies {
        let between = |is_host: fn(&str) -> bool| -> Vec<usize> {
            let of_range = copies.iter().filter(|(_, launched)| is_copy_of(ends, *launched, is_host));
            of_range.map(|(number, _)| *number).collect()
        };
        // Between two devices a copy may go through the host's memory.
        let from_or_to_host = between(|place| !is_gpu(place));
        pair(ranges, if from_or_to_host.is_empty() { between(|_| true) } else { from_or_to_host }.as_slice());
    }
    ops
}

/// Whether what ran between two places may be of a launch of a copy, which names both, cut to seven characters. `is_host`: whether the host's
/// memory may stand for a place.
fn is_copy_of(ran: (&str, &str), launched: (&str, &str), is_host: fn(&str) -> bool) -> bool {
    const CUT: usize = 7;
    let may_be = |ran: &str, launched: &str| match ran {
        HOST => is_host(launched),
        ran => ran == launched || (launched.len() == CUT && ran.starts_with(launched)),
    };
    (ran.0 != HOST || ran.1 != HOST) && may_be(ran.0, launched.0) && may_be(ran.1, launched.1)
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
        assert_eq!(ends_of_copy("copy  4 B, AMD <- AMD, AMD:1"), Some(("AMD, AMD:1", "AMD")));
        assert_eq!(ends_of_copy("r_64_32_16"), None);
        assert_eq!(ends_of_copy("copy_kernel"), None);
        assert_eq!(op_type("AMD -> AMD:1"), "CopyDeviceToDevice");
        assert_eq!(op_type("DISK -> NV"), "CopyHostToDevice");
    }
}
