//! The dispatches of a trace, by launch and by what ran: how long each took, and what was around it.
//!
//! The operations are read in the order of their ids beside the rows that say which of them were replaced, and then sorted by GPU and
//! time, on disk where there are many. For each build as many times are in memory as a sample has, so that memory does not grow with the
//! trace; medians and the like are of all, by a second sorting.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::{Processes, session_fact};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::TracePart;
use super::candidates::{CandidateFile, Candidates};
use super::interval::median;
use super::sample::{Sample, SampledDispatch};
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::notes::Notes;
use crate::pass::sorted::{Sorted, Sorter};
use crate::trace::ids::Ids;
use crate::trace::instrumented::{instrumented, is_instrumented};
use crate::trace::launch::{LaunchJoin, SIZES};
use crate::trace::op_kind::OpKind;
use crate::trace::replaced::NOT_IN_FILE;
use crate::trace::{Strings, TimedByHip, has_table};

/// What the program launched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct KernelLaunch {
    pub(super) kernel: String,
    /// None where those of all GPUs of a target count together.
    pub(super) gpu: Option<i64>,
    pub(super) target: String,
    /// None where the file does not say it.
    pub(super) geometry: Option<LaunchGeometry>,
}

/// The sizes of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LaunchGeometry {
    /// In workgroups.
    pub(super) grid: [i64; 3],
    /// In work-items.
    pub(super) workgroup: [i64; 3],
    /// Bytes of LDS of a workgroup that the launch adds to the kernel's own, which another build may have more or fewer of. All of
    /// them where the file does not say the kernel's own.
    pub(super) dynamic_lds: i64,
}

/// The dispatches of a launch that ran one build of the kernel.
#[derive(Debug)]
pub(super) struct Build {
    /// Path and SHA-256 of the candidate; none of the program's own kernel.
    pub(super) candidate: Option<(String, String)>,
    pub(super) calls: u64,
    pub(super) total_ns: u64,
    pub(super) median_ns: f64,
    pub(super) p10_ns: f64,
    pub(super) p90_ns: f64,
    /// Before so many of them its queue did something else than this kernel, or nothing yet.
    pub(super) after_other: u64,
    /// During so many of them the GPU did something else too.
    pub(super) overlapped: u64,
    /// As many of them as are kept, in order of time.
    pub(super) taken: Vec<SampledDispatch>,
}

impl Build {
    /// The median of how long the queue was idle before, ns; none where no dispatch was the second on its queue.
    pub(super) fn gap_ns(&self) -> Option<f64> {
        let mut gaps: Vec<u64> = self.taken.iter().filter_map(|taken| taken.gap).collect();
        gaps.sort_unstable();
        (!gaps.is_empty()).then(|| median(&gaps))
    }
}

/// What is known of a file.
#[derive(Debug)]
pub(super) struct Collected {
    /// By launch; the builds with the program's own kernel first, then by path.
    pub(super) launches: HashMap<KernelLaunch, Vec<Build>>,
    /// Kernels that were replaced in some dispatch.
    pub(super) replaced: HashSet<String>,
    pub(super) candidates: Vec<CandidateFile>,
    /// Dispatches left out because of their times.
    pub(super) impossible: u64,
    /// Dispatches left out because they ran instrumented kernels.
    pub(super) instrumented: u64,
}

/// What is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Kernels that were replaced in some dispatch, by GPU.
    Replaced,
    /// All kernels, those of all GPUs of a target together.
    All,
}

/// Collects the dispatches of a part of a trace.
///
/// # Errors
/// When the file, or a temporary one for sorting, cannot be read.
pub(super) fn collect(part: TracePart<'_>, scope: Scope, notes: &dyn Notes) -> Result<Collected> {
    notes.show("operations in order of time");
    let mut collecting = Collecting::of(part.0, scope)?;
    let in_time = collecting.operations(part, notes)?;
    let durations = collecting.walk(in_time, notes)?;
    collecting.quantiles(durations)?;
    Ok(collecting.finish())
}

/// An operation, ordered by GPU and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct OrderedOperation {
    gpu: i64,
    start: i64,
    end: i64,
    id: i64,
    queue: i64,
    /// Number of the kernel's name, or [`NONE`].
    name: u32,
    /// Number of the build, or [`NONE`].
    build: u32,
}

/// In place of a number.
const NONE: u32 = u32::MAX;

/// A duration of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Duration {
    build: u64,
    ns: u64,
}

/// A row of `ext_replacement`: operation and candidate.
type ReplacementIds = [i64; 2];

/// No row has this id: a candidate that is not known.
const UNKNOWN: i64 = i64::MIN;

/// A build while its dispatches are counted.
struct Counted {
    launch: KernelLaunch,
    candidate: Option<(String, String)>,
    calls: u64,
    total_ns: u64,
    after_other: u64,
    overlapped: u64,
    sample: Sample,
    /// p10, median and p90.
    quantiles: [f64; 3],
}

/// What tells a build: the kernel's name, the GPU or the target, the geometry, and the candidate.
type Key = (u32, GpuGroup, Option<LaunchGeometry>, Content);

/// Where dispatches ran.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum GpuGroup {
    Gpu(i64),
    /// By the first GPU of that target.
    Target(Option<i64>),
}

/// What ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Content {
    /// The program's own kernel.
    Original,
    /// A candidate that is not in the file.
    Unknown,
    /// A candidate's content, by number.
    Known(usize),
}

struct Collecting {
    scope: Scope,
    processes: Processes,
    names: KernelNames,
    candidates: Candidates,
    /// Numbers of the names of kernels that were replaced.
    replaced: HashSet<u32>,
    /// Target by GPU, and the first GPU that has it.
    targets: HashMap<i64, (i64, String)>,
    builds: Vec<Counted>,
    known: HashMap<Key, u32>,
    impossible: u64,
    /// The operations that ran instrumented kernels.
    instrumented: Ids,
    /// How many of them there are.
    left_out: u64,
}

impl Collecting {
    fn of(trace: &Connection, scope: Scope) -> Result<Collecting> {
        let mut names = KernelNames::default();
        let mut replaced = HashSet::new();
        if has_table(trace, "ext_replacement")? {
            let mut ids = trace.prepare(&format!(
                "SELECT DISTINCT O.description_id FROM ext_replacement R JOIN rocpd_op O ON O.id = R.op_id WHERE NOT {}",
                is_instrumented(trace, "O.id")?
            ))?;
            let mut ids = ids.query([])?;
            let mut strings = Strings::of(trace)?;
            while let Some(row) = ids.next()? {
                replaced.insert(names.number(&mut strings, number(row, 0)?)?);
            }
        }
        let mut targets: HashMap<i64, (i64, String)> = HashMap::new();
        for gpu in rpd_schema::gpus(trace)? {
            let (number, target) =
                (i64::from(gpu.gpu), gpu.get(session_fact::GPU_TARGET).unwrap_or_default());
            let first =
                targets.values().find(|(_, known)| known == target).map_or(number, |(first, _)| *first);
            targets.insert(number, (first, target.to_string()));
        }
        Ok(Collecting {
            scope,
            processes: Processes::of(trace)?,
            names,
            candidates: Candidates::of(trace)?,
            replaced,
            targets,
            builds: Vec::new(),
            known: HashMap::new(),
            impossible: 0,
            instrumented: instrumented(trace)?,
            left_out: 0,
        })
    }

    /// The operations that kept a GPU busy, by GPU and time; those of the part have the number of their build.
    fn operations(
        &mut self,
        (trace, selected): TracePart<'_>,
        notes: &dyn Notes,
    ) -> Result<Sorted<OrderedOperation>> {
        let mut replacements = replacements(trace)?;
        let mut replacement = replacements.next()?;
        let mut strings = Strings::of(trace)?;
        let mut kinds: HashMap<i64, OpKind> = HashMap::new();
        let mut stretching = Outliers::new();
        let mut in_time = Sorter::new();
        let launch = LaunchJoin::of(trace)?;
        let own_lds = has_table(trace, "ext_kernelcodeobject")?;
        let by_hip = TimedByHip::of(trace)?;
        let mut rows = trace.prepare(&query(launch.as_ref(), own_lds))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            notes.tick();
            let ValueRef::Integer(id) = row.get_ref(0)? else { continue };
            let mut candidate = None;
            while let Some([op, of]) = replacement.filter(|[op, _]| *op <= id) {
                if op == id && candidate.is_none() {
                    candidate = Some(of);
                }
                replacement = replacements.next()?;
            }
            let op_type = number(row, 6)?;
            let kind = match kinds.get(&op_type) {
                Some(kind) => *kind,
                None => {
                    *kinds.entry(op_type).or_insert(OpKind::of(&strings.get(op_type)?.unwrap_or_default()))
                }
            };
            if kind == OpKind::Other {
                continue;
            }
            let is_kernel = kind == OpKind::Kernel;
            let name = if is_kernel { self.names.number(&mut strings, number(row, 5)?)? } else { NONE };
            let is_in = is_kernel && selected.has_op(id);
            let is_instrumented = is_in && self.instrumented.has(id);
            if is_instrumented {
                self.left_out += 1;
                candidate.and_then(|candidate| self.candidates.ran(candidate));
            }
            let is_wanted =
                is_in && !is_instrumented && (self.scope == Scope::All || self.replaced.contains(&name));
            let times = match (row.get_ref(1)?, row.get_ref(2)?) {
                (ValueRef::Integer(start), ValueRef::Integer(end)) => Some((start, end)),
                _ => None,
            };
            let Some((start, end)) = times.filter(|times| are_sound(*times)) else {
                self.impossible += u64::from(is_wanted);
                continue;
            };
            if stretching.has(trace, (start, end))? {
                self.impossible += u64::from(is_wanted);
                continue;
            }
            let (gpu, queue) = (number(row, 3)?, number(row, 4)?);
            let build = match is_wanted {
                true => {
                    let is_by_hip = by_hip.has(id >> 32, gpu);
                    let geometry = if launch.is_some() { geometry(row, is_by_hip)? } else { None };
                    self.build(name, gpu, geometry, candidate)
                }
                false => NONE,
            };
            in_time.push(OrderedOperation { gpu, start, end, id, queue, name, build })?;
        }
        in_time.sorted()
    }

    /// The number of the build that a dispatch ran.
    fn build(
        &mut self,
        name: u32,
        gpu: i64,
        geometry: Option<LaunchGeometry>,
        candidate: Option<i64>,
    ) -> u32 {
        let content = match candidate.map(|candidate| self.candidates.ran(candidate)) {
            None => Content::Original,
            Some(None) => Content::Unknown,
            Some(Some(content)) => Content::Known(content),
        };
        let target = self.targets.get(&gpu);
        let place = match self.scope {
            Scope::Replaced => GpuGroup::Gpu(gpu),
            Scope::All => GpuGroup::Target(target.map(|(first, _)| *first)),
        };
        let builds = &mut self.builds;
        *self.known.entry((name, place, geometry, content)).or_insert_with(|| {
            builds.push(Counted {
                launch: KernelLaunch {
                    kernel: self.names.text(name).to_string(),
                    gpu: (self.scope == Scope::Replaced).then_some(gpu),
                    target: target.map(|(_, target)| target.clone()).unwrap_or_default(),
                    geometry,
                },
                candidate: match content {
                    Content::Original => None,
                    Content::Unknown => Some((NOT_IN_FILE.to_string(), String::new())),
                    Content::Known(content) => Some(self.candidates.content(content).clone()),
                },
                calls: 0,
                total_ns: 0,
                after_other: 0,
                overlapped: 0,
                sample: Sample::new(),
                quantiles: [0.0; 3],
            });
            builds.len() as u32 - 1
        })
    }

    /// Looks at the operations in order of time: what was before each, and what at the same time.
    fn walk(&mut self, mut in_time: Sorted<OrderedOperation>, notes: &dyn Notes) -> Result<Sorted<Duration>> {
        let mut durations = Sorter::new();
        // What each queue did last: its kernel, and until when.
        let mut queues: HashMap<(i64, i64, i64), (u32, i64)> = HashMap::new();
        // For the GPU that is looked at: until when anything ran so far, and the last dispatch, if nothing has overlapped it yet.
        let (mut gpu, mut busy_until, mut alone) = (None, i64::MIN, None);
        while let Some(operation) = in_time.next()? {
            notes.tick();
            let OrderedOperation { start, end, name, build, .. } = operation;
            if gpu != Some(operation.gpu) {
                (gpu, busy_until, alone) = (Some(operation.gpu), i64::MIN, None);
            }
            let takes_time = end > start;
            if let Some((build, until)) = alone.take_if(|(_, until)| takes_time || start >= *until)
                && start < until
            {
                let build: &mut Counted = &mut self.builds[build as usize];
                build.overlapped += 1;
            }
            let queue = (self.processes.of_row(operation.id), operation.gpu, operation.queue);
            let before = queues.get(&queue).copied();
            let until = before.map_or(end, |(_, until)| until.max(end));
            queues.insert(queue, (name, until));
            if build != NONE {
                let counted = &mut self.builds[build as usize];
                let ns = end.abs_diff(start);
                counted.calls += 1;
                counted.total_ns = counted.total_ns.saturating_add(ns);
                counted.after_other += u64::from(before.is_none_or(|(kernel, _)| kernel != name));
                let gap = before.map(|(_, until)| start.saturating_sub(until).max(0).unsigned_abs());
                counted.sample.offer(SampledDispatch { start, duration: ns, gap });
                durations.push(Duration { build: build.into(), ns })?;
                if busy_until > start {
                    counted.overlapped += 1;
                } else {
                    alone = Some((build, end));
                }
            }
            if takes_time {
                busy_until = busy_until.max(end);
            }
        }
        durations.sorted()
    }

    /// Reads the quantiles off the sorted durations, each between two of them by its distance from both (numpy's default).
    fn quantiles(&mut self, mut durations: Sorted<Duration>) -> Result<()> {
        let (mut build, mut number) = (u64::MAX, 0);
        while let Some(duration) = durations.next()? {
            if duration.build != build {
                (build, number) = (duration.build, 0);
            }
            let counted = &mut self.builds[build as usize];
            for (quantile, share) in counted.quantiles.iter_mut().zip([0.1, 0.5, 0.9]) {
                let distance = number as f64 - (counted.calls - 1) as f64 * share;
                *quantile += (1.0 - distance.abs()).max(0.0) * duration.ns as f64;
            }
            number += 1_u64;
        }
        Ok(())
    }

    fn finish(self) -> Collected {
        let mut launches: HashMap<KernelLaunch, Vec<Build>> = HashMap::new();
        for counted in self.builds {
            let [p10_ns, median_ns, p90_ns] = counted.quantiles;
            launches.entry(counted.launch).or_default().push(Build {
                candidate: counted.candidate,
                calls: counted.calls,
                total_ns: counted.total_ns,
                median_ns,
                p10_ns,
                p90_ns,
                after_other: counted.after_other,
                overlapped: counted.overlapped,
                taken: counted.sample.into_taken(),
            });
        }
        launches.values_mut().for_each(|builds| builds.sort_by(|a, b| a.candidate.cmp(&b.candidate)));
        Collected {
            launches,
            replaced: self.replaced.iter().map(|name| self.names.text(*name).to_string()).collect(),
            candidates: self.candidates.into_sorted(),
            impossible: self.impossible,
            instrumented: self.left_out,
        }
    }
}

/// The rows of `ext_replacement`, by operation.
fn replacements(trace: &Connection) -> Result<Sorted<ReplacementIds>> {
    let mut sorter = Sorter::new();
    if has_table(trace, "ext_replacement")? {
        let mut rows = trace.prepare("SELECT op_id, candidate_id FROM ext_replacement")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            if let ValueRef::Integer(op) = row.get_ref(0)? {
                sorter.push([op, row.get_ref(1)?.as_i64().unwrap_or(UNKNOWN)])?;
            }
        }
    }
    sorter.sorted()
}

/// The operations in the order of their ids, with their geometry if the file has one.
fn query(launch: Option<&LaunchJoin>, own_lds: bool) -> String {
    let (mut columns, mut join) = (String::new(), String::new());
    if let Some(launch) = launch {
        let sizes = launch.columns(&SIZES);
        let lds = launch.column("groupSegmentSize");
        let (own, own_join) = match own_lds {
            true => (
                "E.groupSegmentSize",
                format!("LEFT JOIN ext_kernelcodeobject E ON E.id = {}", launch.column("codeObject_id")),
            ),
            false => ("NULL", String::new()),
        };
        columns = format!(", {sizes}, {lds}, {own}");
        join = format!("{} {own_join}", launch.join());
    }
    format!(
        r#"SELECT O.id, O.start, O."end", O.gpuId, O.queueId, O.description_id, O.opType_id{columns} FROM rocpd_op O {join} ORDER BY O.id"#
    )
}

/// The geometry of a row, if all of it is there.
fn geometry(row: &Row<'_>, is_by_hip: bool) -> rusqlite::Result<Option<LaunchGeometry>> {
    let mut sizes = [0; 7];
    for (place, size) in sizes.iter_mut().enumerate() {
        let ValueRef::Integer(found) = row.get_ref(7 + place)? else { return Ok(None) };
        *size = found;
    }
    let [grid_x, grid_y, grid_z, workgroup_x, workgroup_y, workgroup_z, lds] = sizes;
    let own = if is_by_hip { 0 } else { number(row, 14)?.max(0) };
    Ok(Some(LaunchGeometry {
        grid: [grid_x, grid_y, grid_z],
        workgroup: [workgroup_x, workgroup_y, workgroup_z],
        dynamic_lds: lds.saturating_sub(own).max(0),
    }))
}

/// A number, -1 where there is something else.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    Ok(row.get_ref(column)?.as_i64().unwrap_or(-1))
}

/// Names of kernels: several ids may have one text.
#[derive(Default)]
struct KernelNames {
    texts: Vec<String>,
    by_text: HashMap<String, u32>,
    by_id: HashMap<i64, u32>,
}

impl KernelNames {
    /// The number of the text with that id.
    fn number(&mut self, strings: &mut Strings<'_>, id: i64) -> rusqlite::Result<u32> {
        if let Some(number) = self.by_id.get(&id) {
            return Ok(*number);
        }
        let text = strings.get(id)?.filter(|text| !text.is_empty());
        let text = text.unwrap_or_else(|| "(no name in the file)".to_string());
        let texts = &mut self.texts;
        let number = *self.by_text.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            texts.len() as u32 - 1
        });
        self.by_id.insert(id, number);
        Ok(number)
    }

    fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }
}
