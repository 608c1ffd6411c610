//! Memory that programs allocate on GPUs and pin on the host: over time, at its peak, and what is never freed.
//!
//! It is what calls of the program ask for, as their arguments say: what a framework keeps in a pool of its own counts as allocated, and
//! what the recorder did not see, because it began later, does not count. Memory of the live allocations only.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::text::text_of;
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::Serialize;

use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::library::arguments::address;
use crate::pass::sorted::Sorter;
use crate::region::Selected;
use crate::trace::ids::Ids;
use crate::trace::{Strings, arguments, has_table};

/// Parts of the run in the chart.
const PARTS: u64 = 20;
/// Allocations that are listed one by one.
const MOST_SHOWN: usize = 10;

/// Where memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryPlace {
    /// On a GPU.
    Device,
    /// On the host, pinned.
    Host,
}

/// What is allocated, by process and place, and what could not be counted.
#[derive(Debug)]
pub struct Memory {
    /// By process, then by place.
    pub processes: Vec<ProcessMemory>,
    /// Calls whose arguments say no address or no size, or with impossible times.
    pub unknown: u64,
}

/// Memory of one process in one place. What is allocated without what is freed is never freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessMemory {
    /// Process id.
    pub pid: i64,
    /// The first session of the process: ids alone may be equal.
    pub session: i64,
    /// Where.
    pub place: MemoryPlace,
    /// Allocations.
    pub allocations: u64,
    /// Their sizes together, bytes.
    pub allocated_bytes: u64,
    /// Those that were freed.
    pub freed: u64,
    /// Their sizes together, bytes.
    pub freed_bytes: u64,
    /// Addresses that were freed and of which no allocation is known.
    pub unmatched_frees: u64,
    /// Most that was allocated at once, bytes.
    pub peak_bytes: u64,
    /// When that was first so, on the trace's clock, ns.
    pub peak_ns: i64,
    /// Allocations that are never freed.
    pub left: u64,
    /// Their sizes together, bytes.
    pub left_bytes: u64,
    /// The largest of them.
    pub largest_left: Vec<Allocation>,
    /// Equal parts of the time from the first call to the last.
    pub over_time: Vec<MemoryPart>,
}

/// An allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Allocation {
    /// The function.
    pub function: String,
    /// Thread that called it.
    pub tid: i64,
    /// When the call ended, on the trace's clock, ns.
    pub time_ns: i64,
    /// Bytes.
    pub bytes: u64,
    /// Where it is.
    pub address: String,
}

/// One allocation from its begin to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Process id.
    pub pid: i64,
    /// The first session of the process.
    pub session: i64,
    /// Where.
    pub place: MemoryPlace,
    /// Row of `rocpd_api` of the call that allocated it.
    pub call: i64,
    /// When that call ended, on the trace's clock, ns.
    pub start_ns: i64,
    /// When the call that freed it began, or something else came to its address; none where it is never freed.
    pub end_ns: Option<i64>,
    /// Row of `rocpd_api` of the call that freed it.
    pub freed_by: Option<i64>,
    /// Bytes.
    pub bytes: u64,
    /// Its address.
    pub address: u64,
}

impl Life {
    /// Whether an address lies in it.
    pub fn covers(&self, address: u64) -> bool {
        address >= self.address && address - self.address < self.bytes
    }
}

/// Gives each allocation of a part of a trace, those that are freed in the order of that, then those that never are. What is allocated
/// at once by the lives that overlap is what [`Memory::of`] adds up.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read.
pub fn each_life(
    trace: (&Connection, Version),
    selected: &Selected,
    mut give: impl FnMut(Life),
) -> Result<()> {
    if !has_table(trace.0, "rocpd_api")? {
        return Ok(());
    }
    let (changes, _) = Memory { processes: Vec::new(), unknown: 0 }.changes(trace, selected)?;
    let mut changes = changes.sorted()?;
    let mut live: HashMap<(i64, i64, i64, u64), Change> = HashMap::new();
    let life = |begun: Change, end: Option<(i64, Option<i64>)>| Life {
        pid: begun.pid,
        session: begun.process,
        place: if begun.is_host == 1 { MemoryPlace::Host } else { MemoryPlace::Device },
        call: begun.id,
        start_ns: begun.time,
        end_ns: end.map(|(time, _)| time),
        freed_by: end.and_then(|(_, call)| call),
        bytes: begun.bytes,
        address: begun.address,
    };
    while let Some(change) = changes.next()? {
        let key = (change.process, change.pid, change.is_host, change.address);
        let before = match change.allocates {
            1 => live.insert(key, change),
            _ => live.remove(&key),
        };
        let freed_by = (change.allocates == 0).then_some(change.id);
        if let Some(before) = before {
            give(life(before, Some((change.time, freed_by))));
        }
    }
    let mut left: Vec<Change> = live.into_values().collect();
    left.sort_unstable();
    left.into_iter().for_each(|change| give(life(change, None)));
    Ok(())
}

/// A part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryPart {
    /// When it begins, on the trace's clock, ns.
    pub start_ns: i64,
    /// Most that is allocated at once in it, bytes.
    pub most_bytes: u64,
}

/// What a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Does {
    allocates: bool,
    place: MemoryPlace,
}

/// The functions of HIP, and CUDA's of the same names.
fn function(name: &str) -> Option<Does> {
    let plain = name.strip_prefix("hip").or_else(|| name.strip_prefix("cuda"));
    // The driver's: cuMemAlloc_v2.
    let plain = plain.or_else(|| name.strip_prefix("cu"))?;
    let plain = ["_ptsz", "_v2"].iter().fold(plain, |name, end| name.strip_suffix(end).unwrap_or(name));
    let (allocates, place) = match plain {
        "Malloc"
        | "MallocAsync"
        | "MallocFromPoolAsync"
        | "MallocManaged"
        | "MallocPitch"
        | "ExtMallocWithFlags"
        | "MemAlloc"
        | "MemAllocAsync"
        | "MemAllocManaged"
        | "MemAllocPitch" => (true, MemoryPlace::Device),
        "Free" | "FreeAsync" | "MemFree" | "MemFreeAsync" => (false, MemoryPlace::Device),
        "HostMalloc" | "HostAlloc" | "MallocHost" | "MemAllocHost" | "MemHostAlloc" => {
            (true, MemoryPlace::Host)
        }
        "HostFree" | "FreeHost" | "MemFreeHost" => (false, MemoryPlace::Host),
        _ => return None,
    };
    Some(Does { allocates, place })
}

/// The first of these arguments that is a number.
fn argument(text: &str, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| arguments::value(text, key).and_then(address))
}

/// The bytes that a call asks for.
fn bytes(text: &str) -> Option<u64> {
    argument(text, &["size", "sizeBytes", "byte_count", "dev_size", "sizebytes", "bytesize"])
        .or_else(|| argument(text, &["pitch", "*pitch"])?.checked_mul(argument(text, &["height"])?))
}

/// A change of what is allocated; ordered by process and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Change {
    process: i64,
    pid: i64,
    time: i64,
    /// 0: freed, before what is allocated at the same time.
    allocates: i64,
    id: i64,
    is_host: i64,
    address: u64,
    bytes: u64,
    tid: i64,
    name: i64,
}

/// A process while its changes are read.
struct Running {
    found: ProcessMemory,
    bytes: u64,
    live: HashMap<u64, (u64, Change)>,
}

impl Memory {
    /// Reads the calls of a part of a trace that allocate and free.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of((trace, version): (&Connection, Version), selected: &Selected) -> Result<Memory> {
        let mut memory = Memory { processes: Vec::new(), unknown: 0 };
        if !has_table(trace, "rocpd_api")? {
            return Ok(memory);
        }
        let (changes, (first, last)) = memory.changes((trace, version), selected)?;
        let width = (last.abs_diff(first) / PARTS + 1).max(1);
        let mut changes = changes.sorted()?;
        let mut strings = Strings::of(trace)?;
        let mut running: BTreeMap<MemoryPlace, Running> = BTreeMap::new();
        let mut current = None;
        while let Some(change) = changes.next()? {
            if current.is_some_and(|process| process != (change.process, change.pid)) {
                memory.finish(&mut running, &mut strings)?;
            }
            current = Some((change.process, change.pid));
            let place = if change.is_host == 1 { MemoryPlace::Host } else { MemoryPlace::Device };
            let of =
                running.entry(place).or_insert_with(|| Running::new(&change, place, (first, last, width)));
            of.change(change, (first, width));
        }
        memory.finish(&mut running, &mut strings)?;
        Ok(memory)
    }

    /// The changes, and the first and the last time of one.
    fn changes(
        &mut self,
        (trace, version): (&Connection, Version),
        selected: &Selected,
    ) -> Result<(Sorter<Change>, (i64, i64))> {
        let mut strings = Strings::of(trace)?;
        let mut functions: HashMap<i64, Does> = HashMap::new();
        let candidates = "SELECT id FROM rocpd_string WHERE string GLOB '*Malloc*' OR string GLOB '*Alloc*' OR string GLOB '*Free*'";
        for id in Ids::of(trace, candidates, [])?.into_inner() {
            let id = id.cast_signed();
            if let Some(does) = function(&strings.get(id)?.unwrap_or_default()) {
                functions.insert(id, does);
            }
        }
        let mut sorter = Sorter::new();
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        if functions.is_empty() {
            return Ok((sorter, (0, 0)));
        }
        let processes = Processes::of(trace)?;
        let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
        let ids: Vec<String> = functions.keys().map(ToString::to_string).collect();
        let mut rows = trace.prepare(&format!(
            "SELECT A.id, A.pid, A.tid, A.start, A.\"end\", A.apiName_id, {} FROM rocpd_api A
             LEFT JOIN {texts} G ON G.id = A.args_id WHERE A.apiName_id IN ({})",
            rpd_schema::text::arguments("G.string"),
            ids.join(", ")
        ))?;
        let mut rows = rows.query([])?;
        let mut outliers = Outliers::new();
        while let Some(row) = rows.next()? {
            let number = |column| row.get_ref(column).map(|value| value.as_i64().unwrap_or(-1));
            let (id, name) = (number(0)?, number(5)?);
            let Some(does) = functions.get(&name).copied().filter(|_| selected.has_call(id)) else {
                continue;
            };
            let times = match (row.get_ref(3)?, row.get_ref(4)?) {
                (ValueRef::Integer(start), ValueRef::Integer(end)) => Some((start, end)),
                _ => None,
            };
            let text = text_of(row.get_ref(6)?).into_owned();
            let address =
                argument(&text, &["ptr", "*ptr", "devPtr", "dev_ptr", "hostPtr", "pHost", "dptr", "pp", "p"]);
            let size = if does.allocates { bytes(&text) } else { Some(0) };
            let (Some((start, end)), Some(address), Some(bytes)) =
                (times.filter(|times| are_sound(*times)), address, size)
            else {
                self.unknown += 1;
                continue;
            };
            if outliers.is_outlier(trace, (start, end))? {
                self.unknown += 1;
                continue;
            }
            if address == 0 {
                // free(NULL), or an allocation that failed.
                continue;
            }
            // Allocated is what the call has returned; freed is what the call is asked to free.
            let time = if does.allocates { end } else { start };
            (first, last) = (first.min(time), last.max(time));
            sorter.push(Change {
                process: processes.of_row(id),
                pid: number(1)?,
                time,
                allocates: i64::from(does.allocates),
                id,
                is_host: i64::from(does.place == MemoryPlace::Host),
                address,
                bytes,
                tid: number(2)?,
                name,
            })?;
        }
        Ok((sorter, (first, last)))
    }

    fn finish(
        &mut self,
        running: &mut BTreeMap<MemoryPlace, Running>,
        strings: &mut Strings<'_>,
    ) -> Result<()> {
        for (_, running) in std::mem::take(running) {
            self.processes.push(running.finished(strings)?);
        }
        Ok(())
    }
}

impl Running {
    fn new(change: &Change, place: MemoryPlace, (first, last, width): (i64, i64, u64)) -> Running {
        let part =
            |at: u64| MemoryPart { start_ns: first.saturating_add_unsigned(at * width), most_bytes: 0 };
        let found = ProcessMemory {
            pid: change.pid,
            session: change.process,
            place,
            allocations: 0,
            allocated_bytes: 0,
            freed: 0,
            freed_bytes: 0,
            unmatched_frees: 0,
            peak_bytes: 0,
            peak_ns: change.time,
            left: 0,
            left_bytes: 0,
            largest_left: Vec::new(),
            over_time: (0..=last.abs_diff(first) / width).map(part).collect(),
        };
        Running { found, bytes: 0, live: HashMap::new() }
    }

    fn change(&mut self, change: Change, (first, width): (i64, u64)) {
        // What was allocated until now is so in all parts up to this time.
        let at = (change.time.abs_diff(first) / width) as usize;
        self.fill(at);
        let found = &mut self.found;
        if change.allocates == 1 {
            found.allocations += 1;
            found.allocated_bytes = found.allocated_bytes.saturating_add(change.bytes);
            self.bytes = self.bytes.saturating_add(change.bytes);
            // One at the same address takes the place of one whose end was not seen.
            if let Some((bytes, _)) = self.live.insert(change.address, (change.bytes, change)) {
                self.bytes = self.bytes.saturating_sub(bytes);
                found.freed += 1;
                found.freed_bytes = found.freed_bytes.saturating_add(bytes);
            }
            if self.bytes > found.peak_bytes {
                found.peak_bytes = self.bytes;
                found.peak_ns = change.time;
            }
        } else if let Some((bytes, _)) = self.live.remove(&change.address) {
            self.bytes = self.bytes.saturating_sub(bytes);
            found.freed += 1;
            found.freed_bytes = found.freed_bytes.saturating_add(bytes);
        } else {
            found.unmatched_frees += 1;
        }
        if let Some(part) = self.found.over_time.get_mut(at) {
            part.most_bytes = part.most_bytes.max(self.bytes);
        }
    }

    /// Parts up to this one have at least what is allocated now.
    fn fill(&mut self, until: usize) {
        for part in self.found.over_time.iter_mut().take(until + 1).rev() {
            // Further back it was counted by the changes there.
            if part.most_bytes > 0 {
                part.most_bytes = part.most_bytes.max(self.bytes);
                break;
            }
            part.most_bytes = self.bytes;
        }
    }

    fn finished(mut self, strings: &mut Strings<'_>) -> Result<ProcessMemory> {
        self.fill(self.found.over_time.len());
        let mut left: Vec<(u64, Change)> = self.live.into_values().collect();
        left.sort_by_key(|(bytes, change)| (Reverse(*bytes), change.time, change.id));
        self.found.left = left.len() as u64;
        self.found.left_bytes = self.bytes;
        for (bytes, change) in left.into_iter().take(MOST_SHOWN) {
            self.found.largest_left.push(Allocation {
                function: strings.get(change.name)?.unwrap_or_default(),
                tid: change.tid,
                time_ns: change.time,
                bytes,
                address: format!("{:#x}", change.address),
            });
        }
        Ok(self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_recorders_write_them() {
        assert_eq!(bytes("ptr=0x7f3ebca00000 | size=0x77400000"), Some(0x7740_0000));
        assert_eq!(bytes("ptr = 0x1 | sizeBytes = 64"), Some(64));
        assert_eq!(bytes("ptr=0x1 | pitch=512 | width=500 | height=3"), Some(1536));
        assert_eq!((bytes("ptr=0x1"), bytes("size=much"), bytes("")), (None, None, None));
        assert_eq!(argument("ptr=0x10", &["ptr"]), Some(16));
    }

    #[test]
    fn functions_are_known_by_name() {
        let does = |name| function(name).map(|does| (does.allocates, does.place));
        assert_eq!(does("hipMalloc"), Some((true, MemoryPlace::Device)));
        assert_eq!(does("cudaFreeHost"), Some((false, MemoryPlace::Host)));
        assert_eq!(does("cuMemAlloc_v2"), Some((true, MemoryPlace::Device)));
        assert_eq!(does("cuMemFreeHost"), Some((false, MemoryPlace::Host)));
        assert_eq!((does("Malloc"), does("hipMemcpy"), does("hipFreeArray")), (None, None, None));
    }
}
