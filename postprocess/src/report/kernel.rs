//! One kernel: how its durations are distributed, with which geometry it runs, who launches it, and whether it changes over the run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use regex::Regex;
use rpd_schema::Version;
use rusqlite::Connection;
use rusqlite::types::Value;
use serde::Serialize;

use super::by_id::{ById, integer};
use super::caused::{CausedOp, CausedOps, CausingCall};
use super::gpu_time::{GpuOps, LeftOut, OpName, OpTexts};
use super::ranking::Percentiles;
use crate::pass::sorted::Sorter;
use crate::region::Selected;
use crate::trace::ids::Ids;
use crate::trace::instrumented::instrumented;
use crate::trace::launch::LAUNCH_COLUMNS;
use crate::trace::layout::Layout;
use crate::trace::op_kind::OpKind;
use crate::trace::{Strings, has_table};

/// Steps of the histogram below the longest of 99 percent.
const STEPS: u64 = 16;
/// Parts of the run in the trend.
const PARTS: u64 = 12;

/// A kernel, and what could not be counted.
#[derive(Debug)]
pub struct FoundKernel {
    /// None where no kernel has such a name.
    pub kernel: Option<KernelReport>,
    /// Dispatches of instrumented kernels that were left out.
    pub instrumented: u64,
    /// How many other kernels have names that match.
    pub others: u64,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// One kernel. Its bins, geometries, launchers and parts add up to `calls` and, but for the bins, to `total_ns`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Dispatches.
    pub calls: u64,
    /// Sum of their durations, ns.
    pub total_ns: u64,
    /// Mean, ns.
    pub average_ns: f64,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Durations that so many percent do not exceed.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// Of steps of one width up to what 99 percent do not exceed; the last one is all that is longer.
    pub histogram: Vec<DurationBin>,
    /// By grid, workgroup, memory and registers, most time first.
    pub geometries: Vec<Geometry>,
    /// By function and thread, most time first.
    pub launchers: Vec<Launcher>,
    /// Of equal parts of the time from its first start to its last.
    pub trend: Vec<TrendPart>,
}

/// Durations of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DurationBin {
    /// The shortest that counts, ns.
    pub from_ns: u64,
    /// The shortest that does not count any more, ns; none of the last bin.
    pub to_ns: Option<u64>,
    /// How many.
    pub calls: u64,
}

/// Dispatches of one geometry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// Workgroups by dimension; none where the trace does not say it, so with all that follow.
    pub grid: Option<[i64; 3]>,
    /// Work-items of a workgroup by dimension.
    pub workgroup: Option<[i64; 3]>,
    /// LDS of a workgroup, bytes.
    pub lds_bytes: Option<i64>,
    /// Scratch of a work-item, bytes.
    pub scratch_bytes: Option<i64>,
    /// Vector registers of a work-item.
    pub vgprs: Option<i64>,
    /// Scalar registers of a wave.
    pub sgprs: Option<i64>,
    /// All of them.
    #[serde(flatten)]
    pub sums: KernelSums,
}

/// Dispatches that a function launched on a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Launcher {
    /// The function; none where no call in the file launched them, so with the ids.
    pub function: Option<String>,
    /// The first session of the process: ids alone may be equal.
    pub session: Option<i64>,
    /// Process id.
    pub pid: Option<i64>,
    /// Thread id.
    pub tid: Option<i64>,
    /// All of them.
    #[serde(flatten)]
    pub sums: KernelSums,
}

/// A part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TrendPart {
    /// When it begins, on the trace's clock, ns.
    pub start_ns: i64,
    /// The dispatches that start in it.
    #[serde(flatten)]
    pub sums: KernelSums,
}

/// Dispatches added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KernelSums {
    /// How many.
    pub calls: u64,
    /// Sum of their durations, ns.
    pub total_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

impl KernelSums {
    fn add(&mut self, ns: u64) {
        self.calls += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }
}

/// Grid, workgroup, LDS and scratch, and the code object.
type Launch = ([Option<i64>; 8], Option<i64>);

/// Those of a table, in SQL: of those that it lacks nothing is known.
fn launch_columns(layout: &Layout, table: &str) -> String {
    let has = |column: &str| layout.table(table).is_some_and(|table| table.has(column));
    LAUNCH_COLUMNS.map(|column| if has(column) { column } else { "NULL" }).join(", ")
}

fn launch(values: &[Value]) -> Launch {
    (std::array::from_fn(|column| integer(values, column)), integer(values, 8))
}

/// Process, its id and thread, and what the function is called.
type LaunchedBy<N> = ((i64, i64, i64), N);

/// What is added up of one kernel.
#[derive(Default)]
struct Adding {
    geometries: HashMap<Launch, KernelSums>,
    launchers: HashMap<Option<LaunchedBy<i64>>, KernelSums>,
    total: KernelSums,
    first: Option<i64>,
    last: i64,
}

impl FoundKernel {
    /// The kernel of that name, without dispatches of instrumented kernels unless they are asked for, in a part of a trace; where none has it, the one with the most time of those in whose names `pattern` is found.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of(
        (trace, version): (&Connection, Version),
        (name, pattern): (&str, &Regex),
        selected: &Selected,
        with_instrumented: bool,
    ) -> Result<FoundKernel> {
        let (chosen, others) = choose(trace, (name, pattern), selected)?;
        let ops = CausedOps::of(trace, selected)?;
        let left_out = ops.left_out;
        let Some(name) = chosen else {
            return Ok(FoundKernel { kernel: None, instrumented: 0, others: 0, left_out });
        };
        let left = if with_instrumented { Ids::default() } else { instrumented(trace)? };
        let mut instrumented = 0;
        let mut texts = OpTexts::of(trace)?;
        let mut is_it: HashMap<OpName, bool> = HashMap::new();
        let (mut starts, mut found) = (Sorter::new(), Sorter::new());
        let mut by_op: Sorter<[i64; 3]> = Sorter::new();
        // The launches that calls say, each with its place.
        let mut places: HashMap<Launch, i64> = HashMap::new();
        let mut adding = Adding::default();
        let layout = Layout::of(trace)?;
        let mut launches = match version {
            Version::V1 => ById::none(),
            _ => {
                let columns = launch_columns(&layout, "rocpd_kernelapi");
                ById::of(trace, "rocpd_kernelapi", "api_ptr_id", &columns)?
            }
        };
        let mut launches = launches.rows()?;
        let dispatches = has_table(trace, "ext_dispatch")?;
        ops.each(|op: &CausedOp, call: Option<CausingCall>| {
            let is_this = match is_it.get(&op.name) {
                Some(is_this) => *is_this,
                None => {
                    let is_this = is_kernel(&mut texts, op.name)? && texts.name(op.name)? == name;
                    is_it.insert(op.name, is_this);
                    is_this
                }
            };
            if !is_this {
                return Ok(());
            }
            if left.has(op.id) {
                instrumented += 1;
                return Ok(());
            }
            let ns = op.duration();
            adding.total.add(ns);
            adding.first = Some(adding.first.map_or(op.start, |first| first.min(op.start)));
            adding.last = adding.last.max(op.start);
            adding.launchers.entry(call.map(|call| (call.thread, call.name))).or_default().add(ns);
            let of_call = match call {
                Some(call) => launches.at(call.id)?.map(launch),
                None => None,
            };
            let launch = of_call.unwrap_or_default();
            match dispatches {
                true => {
                    let next = places.len() as i64;
                    by_op.push([op.id, ns.cast_signed(), *places.entry(launch).or_insert(next)])?;
                }
                false => adding.geometries.entry(launch).or_default().add(ns),
            }
            starts.push([op.start.cast_unsigned(), ns])?;
            found.push([ns])
        })?;
        // What the recorder says of the kernel itself goes before what the call says, which may have launched several.
        let mut of_calls: Vec<Launch> = vec![Launch::default(); places.len()];
        places.into_iter().for_each(|(launch, place)| of_calls[place as usize] = launch);
        let mut by_op = by_op.sorted()?;
        let mut of_ops = ById::of(trace, "ext_dispatch", "op_id", &launch_columns(&layout, "ext_dispatch"))?;
        let mut of_ops = of_ops.rows()?;
        while let Some([op, ns, place]) = by_op.next()? {
            let launch = of_ops.at(op)?.map_or(of_calls[place as usize], launch);
            adding.geometries.entry(launch).or_default().add(ns.cast_unsigned());
        }
        let kernel = adding.finished(trace, name, (starts, found))?;
        Ok(FoundKernel { kernel, instrumented, others, left_out })
    }
}

fn is_kernel(texts: &mut OpTexts<'_>, name: OpName) -> rusqlite::Result<bool> {
    let (description, kind) = texts.description_and_type(name)?;
    Ok(OpKind::of(&kind) == OpKind::Kernel && !description.is_empty())
}

/// The name that is meant, and how many others match too.
fn choose(
    trace: &Connection,
    (name, pattern): (&str, &Regex),
    selected: &Selected,
) -> Result<(Option<String>, u64)> {
    let GpuOps { mut ops, .. } = GpuOps::of(trace, selected)?;
    let mut by_id: HashMap<OpName, u64> = HashMap::new();
    while let Some(op) = ops.next()? {
        let total = by_id.entry(op.name).or_default();
        *total = total.saturating_add(op.end.abs_diff(op.start));
    }
    let mut texts = OpTexts::of(trace)?;
    let mut matching: BTreeMap<String, u64> = BTreeMap::new();
    for (id, total) in by_id {
        if is_kernel(&mut texts, id)? {
            let text = texts.name(id)?;
            if text == name || pattern.is_match(&text) {
                let all = matching.entry(text).or_default();
                *all = all.saturating_add(total);
            }
        }
    }
    if matching.contains_key(name) {
        return Ok((Some(name.to_string()), 0));
    }
    let others = (matching.len() as u64).saturating_sub(1);
    let most = matching.into_iter().max_by_key(|(name, total)| (*total, Reverse(name.clone())));
    Ok((most.map(|(name, _)| name), others))
}

impl Adding {
    fn finished(
        self,
        trace: &Connection,
        name: String,
        (starts, found): (Sorter<[u64; 2]>, Sorter<[u64; 1]>),
    ) -> Result<Option<KernelReport>> {
        let Some(first) = self.first else { return Ok(None) };
        let calls = self.total.calls;
        let rank = |percent: u64| (u128::from(calls) * u128::from(percent)).div_ceil(100) as u64;
        let (mut sorted, mut again) = (found.sorted()?, Sorter::new());
        let (mut nth, mut min_ns, mut at) = (0, 0, [0; 3]);
        while let Some([ns]) = sorted.next()? {
            nth += 1;
            if nth == 1 {
                min_ns = ns;
            }
            for (at, percent) in at.iter_mut().zip([50, 90, 99]) {
                if nth == rank(percent) {
                    *at = ns;
                }
            }
            again.push([ns])?;
        }
        let [p50_ns, p90_ns, p99_ns] = at;
        let step = ((p99_ns - min_ns) / STEPS + 1).max(1);
        let mut bins = [0; STEPS as usize + 1];
        let mut again = again.sorted()?;
        while let Some([ns]) = again.next()? {
            bins[((ns - min_ns) / step).min(STEPS) as usize] += 1;
        }
        let last = bins.iter().rposition(|count| *count > 0).unwrap_or(0);
        let bin = |at: usize| DurationBin {
            from_ns: min_ns + step * at as u64,
            to_ns: (at < STEPS as usize).then(|| min_ns + step * (at as u64 + 1)),
            calls: bins[at],
        };
        Ok(Some(KernelReport {
            name,
            calls,
            total_ns: self.total.total_ns,
            average_ns: self.total.total_ns as f64 / calls as f64,
            min_ns,
            max_ns: self.total.max_ns,
            percentiles: Percentiles { p50_ns, p90_ns, p99_ns },
            histogram: (0..=last).map(bin).collect(),
            trend: trend(starts, (first, self.last))?,
            geometries: geometries(trace, self.geometries)?,
            launchers: launchers(trace, self.launchers)?,
        }))
    }
}

fn trend(starts: Sorter<[u64; 2]>, (first, last): (i64, i64)) -> Result<Vec<TrendPart>> {
    let width = (last.abs_diff(first) / PARTS + 1).max(1);
    let part = |at: u64| TrendPart {
        start_ns: first.saturating_add_unsigned(at * width),
        sums: KernelSums::default(),
    };
    let mut parts: Vec<TrendPart> = (0..=last.abs_diff(first) / width).map(part).collect();
    let mut starts = starts.sorted()?;
    while let Some([start, ns]) = starts.next()? {
        let at = start.cast_signed().abs_diff(first) / width;
        if let Some(part) = parts.get_mut(at as usize) {
            part.sums.add(ns);
        }
    }
    Ok(parts)
}

fn geometries(trace: &Connection, found: HashMap<Launch, KernelSums>) -> Result<Vec<Geometry>> {
    let mut objects: BTreeMap<i64, (Option<i64>, Option<i64>)> = BTreeMap::new();
    let wanted: BTreeMap<i64, ()> = found.keys().filter_map(|(_, object)| Some(((*object)?, ()))).collect();
    let mut registers = ById::of(trace, "rocpd_kernelcodeobject", "id", "vgpr, sgpr")?;
    let mut registers = registers.rows()?;
    for object in wanted.into_keys() {
        if let Some(values) = registers.at(object)? {
            objects.insert(object, (integer(values, 0), integer(values, 1)));
        }
    }
    // Sessions have code objects of their own: those that need the same are one.
    type Key = ([Option<i64>; 8], (Option<i64>, Option<i64>));
    let mut merged: BTreeMap<Key, KernelSums> = BTreeMap::new();
    for ((launch, object), sums) in found {
        let registers = object.and_then(|object| objects.get(&object).copied()).unwrap_or_default();
        let all = merged.entry((launch, registers)).or_default();
        all.calls += sums.calls;
        all.total_ns = all.total_ns.saturating_add(sums.total_ns);
        all.max_ns = all.max_ns.max(sums.max_ns);
    }
    let size = |sizes: &[Option<i64>]| match sizes {
        [Some(x), Some(y), Some(z)] => Some([*x, *y, *z]),
        _ => None,
    };
    let geometry = |((launch, (vgprs, sgprs)), sums): (Key, KernelSums)| Geometry {
        grid: size(&launch[..3]),
        workgroup: size(&launch[3..6]),
        lds_bytes: launch[6],
        scratch_bytes: launch[7],
        vgprs,
        sgprs,
        sums,
    };
    let mut found: Vec<Geometry> = merged.into_iter().map(geometry).collect();
    found.sort_by_key(|geometry| Reverse(geometry.sums.total_ns));
    Ok(found)
}

fn launchers(
    trace: &Connection,
    found: HashMap<Option<LaunchedBy<i64>>, KernelSums>,
) -> Result<Vec<Launcher>> {
    let mut strings = Strings::of(trace)?;
    // Texts of several sessions may be equal; threads of several processes are kept apart.
    let mut merged: BTreeMap<Option<LaunchedBy<String>>, KernelSums> = BTreeMap::new();
    for (launcher, sums) in found {
        let key = match launcher {
            None => None,
            Some((thread, name)) => Some((thread, strings.get(name)?.unwrap_or_default())),
        };
        let all = merged.entry(key).or_default();
        all.calls += sums.calls;
        all.total_ns = all.total_ns.saturating_add(sums.total_ns);
        all.max_ns = all.max_ns.max(sums.max_ns);
    }
    let launcher = |(key, sums): (Option<LaunchedBy<String>>, KernelSums)| match key {
        None => Launcher { function: None, session: None, pid: None, tid: None, sums },
        Some(((session, pid, tid), function)) => Launcher {
            function: Some(function),
            session: Some(session),
            pid: Some(pid),
            tid: Some(tid),
            sums,
        },
    };
    let mut found: Vec<Launcher> = merged.into_iter().map(launcher).collect();
    found.sort_by_key(|launcher| Reverse(launcher.sums.total_ns));
    Ok(found)
}
