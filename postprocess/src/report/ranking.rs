//! Where time goes: the operations of a trace, or its calls or markers, grouped by name and ordered by total time.
//!
//! One scan of `rocpd_op` or `rocpd_api` in the order of the file, adding up per name. Memory grows neither with the number of rows nor
//! with that of names: what does not fit is sorted on disk. (SQL's GROUP BY would sort all rows first.) Calls and markers nest: they are
//! sorted too, and go through the stack of their thread.

mod nested;
mod place;
mod sums;

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::vec;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::Serialize;

use self::nested::{NestedCall, NestedCalls};
use self::sums::{NameKeys, RankedName, Sums};
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;
use crate::report::gpu_time::LeftOut;
use crate::report::markers::{GpuTimes, MarkerGpuTime};
use crate::report::named::{NAMELESS, NameTexts};
use crate::report::rank_by::RankBy;
use crate::trace::barriers::barriers;
use crate::trace::ids::Ids;
use crate::trace::instrumented::{instrumented, is_instrumented};
use crate::trace::replaced::by_kernel;

/// Rows of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NameGroup {
    /// The ops' description (a kernel's name), or their type where that is empty (copies); the calls' function; the markers' text; where
    /// they ran or who launched them.
    pub name: String,
    /// How many there are.
    pub calls: u64,
    /// Sum of their durations, ns; of calls and markers without those that are inside one of the same name.
    pub total_ns: u64,
    /// For calls and markers: sum of their durations without the ones directly inside them, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_ns: Option<u64>,
    /// Mean duration, ns.
    pub average_ns: f64,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Where they were asked for.
    #[serde(flatten)]
    pub percentiles: Option<Percentiles>,
    /// For kernels: dispatches that ran another kernel in its place, but no instrumented one. Left out of JSON where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub replaced: u64,
    /// Share of the total time of all rows, in percent; of calls and markers the share of `self_ns`.
    pub percent: f64,
    /// Of markers, where it was asked for.
    #[serde(flatten)]
    pub gpu: Option<MarkerGpuTime>,
}

/// Durations that so many percent of a group do not exceed: each is one of them, the shortest that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// The median, ns.
    pub p50_ns: u64,
    /// Of 90 %, ns.
    pub p90_ns: u64,
    /// Of 99 %, ns.
    pub p99_ns: u64,
}

/// What a ranking counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    /// Dispatches of instrumented kernels too.
    pub instrumented: bool,
    /// Percentiles too: all durations are sorted for them.
    pub percentiles: bool,
    /// Of markers the time of what was launched in them too: all operations are sorted for it.
    pub gpu_times: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's way
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// All groups, those with the longest total (of what nests: self) time first, and what could not be counted. Groups of the same time are
/// in the order of their names, unless there are very many.
pub struct Ranking<'trace> {
    groups: Sorted<RankedName>,
    /// The first group that is not in `ready`.
    next: Option<RankedName>,
    /// Groups of the same time, in their order.
    ready: vec::IntoIter<NameGroup>,
    names: Names<'trace>,
    nests: bool,
    has_gpu_times: bool,
    replaced: BTreeMap<String, u64>,
    /// Of all groups.
    self_ns: f64,
    /// How many groups there are.
    pub count: u64,
    /// Rows left out because of their times: those that `rpd check` has as impossible, negative or missing, and those that are far
    /// from nearly all others. By places also operations whose GPU or queue is no number.
    pub impossible: u64,
    /// Rows counted under a placeholder because their strings are not in the file.
    pub nameless: u64,
    /// Dispatches of instrumented kernels that were left out.
    pub instrumented: u64,
    /// Barriers that were left out: they are no work.
    pub barriers: u64,
    /// Operations that are in no marker's GPU time, where these are asked for.
    pub left_out_of_gpu: LeftOut,
}

/// Where the names of groups are.
enum Names<'trace> {
    /// In the trace.
    Texts(NameTexts<'trace>),
    /// Here: the second id of a group is the place of its name.
    Labels(Vec<String>),
}

impl Names<'_> {
    fn get(&mut self, ids: [i64; 2]) -> rusqlite::Result<String> {
        let name = match self {
            Names::Texts(texts) => texts.get(ids.into())?,
            Names::Labels(labels) => usize::try_from(ids[1]).ok().and_then(|at| labels.get(at).cloned()),
        };
        Ok(name.unwrap_or_else(|| NAMELESS.to_string()))
    }
}

/// Groups of the same time that are put in the order of their names at once.
const ALIKE: usize = 1 << 16;

impl<'trace> Ranking<'trace> {
    /// Reads the rows of a part of a trace of any schema version.
    ///
    /// # Errors
    /// When the file, or a temporary one for sorting, cannot be read.
    pub fn of(
        (trace, version): (&'trace Connection, Version),
        by: RankBy,
        selected: &Selected,
        counted: Counted,
    ) -> Result<Ranking<'trace>> {
        let is_left_out = by.has_instrumented() && !counted.instrumented;
        let instrumented_ops = match is_left_out {
            true => count_instrumented(trace, selected)?,
            false => 0,
        };
        let hasher = RandomState::new();
        let has_gpu_times = counted.gpu_times && by == RankBy::Marker;
        let (gpu_times, left_out_of_gpu) =
            has_gpu_times.then(|| GpuTimes::of((trace, version), selected, &hasher)).transpose()?.unzip();
        let mut sums = Sums::new(counted.percentiles);
        let (names, scanned) = if by.is_place() {
            let left = if is_left_out { instrumented(trace)? } else { Ids::default() };
            let (labels, left_out) = place::each((trace, version), by, selected, &left, &mut |place, ns| {
                sums.of_place(place, ns)
            })?;
            let LeftOut { impossible, barriers } = left_out;
            (Names::Labels(labels), Scanned { impossible, nameless: 0, barriers })
        } else {
            let scanned = scan((trace, version), by, (selected, is_left_out), hasher, &mut sums)?;
            (Names::Texts(NameTexts::of(trace, by.texts(version))?), scanned)
        };
        let Scanned { impossible, nameless, barriers } = scanned;
        let replaced = match by {
            RankBy::Operation | RankBy::Kernel => by_kernel(trace, &|op| selected.has_op(op))?,
            _ => BTreeMap::new(),
        };
        let (mut count, mut self_ns) = (0, 0);
        let mut groups = Sorter::new();
        sums.each(gpu_times, |added| {
            count += 1;
            self_ns += u128::from(added.self_ns());
            groups.push(added)
        })?;
        let mut groups = groups.sorted()?;
        let next = groups.next()?;
        Ok(Ranking {
            groups,
            next,
            ready: Vec::new().into_iter(),
            names,
            nests: by.nests(),
            has_gpu_times,
            replaced,
            self_ns: self_ns as f64,
            count,
            impossible,
            nameless,
            instrumented: instrumented_ops,
            barriers,
            left_out_of_gpu: left_out_of_gpu.unwrap_or_default(),
        })
    }

    /// Puts the groups of the next time in their order.
    fn prepare(&mut self) -> Result<()> {
        let Some(first) = self.next else { return Ok(()) };
        let is_alike = |next: &RankedName| next.self_ns() == first.self_ns();
        let mut alike = Vec::new();
        for added in self.groups.group(&mut self.next, ALIKE, is_alike)? {
            let name = self.names.get(added.name())?;
            alike.push(self.group(name, &added));
        }
        alike.sort_by(|a, b| a.name.cmp(&b.name));
        self.ready = alike.into_iter();
        Ok(())
    }

    fn group(&self, name: String, added: &RankedName) -> NameGroup {
        let sums = added.sums();
        NameGroup {
            replaced: self.replaced.get(&name).copied().unwrap_or(0),
            name,
            calls: sums.calls,
            total_ns: sums.total_ns,
            self_ns: self.nests.then_some(sums.self_ns),
            average_ns: sums.all_ns as f64 / sums.calls as f64,
            min_ns: sums.min_ns,
            max_ns: sums.max_ns,
            percentiles: added.percentiles(),
            percent: if self.self_ns > 0.0 { 100.0 * sums.self_ns as f64 / self.self_ns } else { 0.0 },
            gpu: self.has_gpu_times.then(|| added.gpu()),
        }
    }
}

impl Iterator for Ranking<'_> {
    type Item = Result<NameGroup>;

    fn next(&mut self) -> Option<Result<NameGroup>> {
        if self.ready.as_slice().is_empty()
            && let Err(error) = self.prepare()
        {
            self.next = None;
            return Some(Err(error));
        }
        self.ready.next().map(Ok)
    }
}

/// Dispatches of instrumented kernels in a part of a trace.
fn count_instrumented(trace: &Connection, selected: &Selected) -> Result<u64> {
    if selected.is_everything() {
        let left_out = is_instrumented(trace, "id")?;
        let count = format!("SELECT count(*) FROM rocpd_op WHERE {left_out}");
        return Ok(trace.query_row(&count, [], |row| row.get::<_, i64>(0))?.unsigned_abs());
    }
    let there = Ids::of(trace, "SELECT id FROM rocpd_op", [])?;
    let ids = instrumented(trace)?.into_inner();
    let is_here = |id: &i64| there.has(*id) && selected.has_op(*id);
    Ok(ids.into_iter().map(u64::cast_signed).filter(is_here).count() as u64)
}

/// Running sums of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct RunningSums {
    calls: u64,
    /// Of all durations.
    all_ns: u64,
    /// Of those that are not inside one of the same name.
    total_ns: u64,
    self_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl RunningSums {
    /// One row that contains none and is inside none.
    fn of(ns: u64) -> RunningSums {
        RunningSums { calls: 1, all_ns: ns, total_ns: ns, self_ns: ns, min_ns: ns, max_ns: ns }
    }

    fn add(&mut self, other: RunningSums) {
        self.calls += other.calls;
        self.all_ns = self.all_ns.saturating_add(other.all_ns);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.self_ns = self.self_ns.saturating_add(other.self_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// Rows that could not be counted, or not with their names.
#[derive(Default)]
struct Scanned {
    impossible: u64,
    nameless: u64,
    barriers: u64,
}

/// Adds up what has names.
fn scan(
    (trace, version): (&Connection, Version),
    by: RankBy,
    (selected, is_left_out): (&Selected, bool),
    hasher: RandomState,
    sums: &mut Sums,
) -> Result<Scanned> {
    let mut scanned = Scanned::default();
    let mut keys = NameKeys::of(NameTexts::of(trace, by.texts(version))?, hasher);
    let counts = match is_left_out {
        true => format!("NOT {}", is_instrumented(trace, "id")?),
        false => "1".to_string(),
    };
    let processes = Processes::of(trace)?;
    let mut nested = Sorter::new();
    let mut outliers = Outliers::new();
    let barriers = if by.nests() { Ids::default() } else { barriers(trace)? };
    let with_id = !selected.is_everything() || !barriers.is_empty();
    let mut rows = trace.prepare(&by.query(&counts, with_id))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let id = |column| row.get_ref(column).map(|id| id.as_i64().unwrap_or(0));
        let is_here = |id| if by.nests() { selected.has_call(id) } else { selected.has_op(id) };
        if with_id && !is_here(id(4)?) {
            continue;
        }
        if !barriers.is_empty() && barriers.has(id(4)?) {
            scanned.barriers += 1;
            continue;
        }
        let (ValueRef::Integer(start), ValueRef::Integer(end)) = (row.get_ref(0)?, row.get_ref(1)?) else {
            scanned.impossible += 1;
            continue;
        };
        if !are_sound((start, end)) || outliers.is_outlier(trace, (start, end))? {
            scanned.impossible += 1;
            continue;
        }
        let (name, is_nameless) = keys.named((id(2)?, id(3)?))?;
        scanned.nameless += u64::from(is_nameless);
        let duration = end.abs_diff(start);
        sums.duration(&name, duration)?;
        if by.nests() {
            let thread = [processes.of_row(id(4)?), id(5)?, id(6)?];
            nested.push(NestedCall::new(thread, (start, end), id(4)?, name))?;
        } else {
            sums.add(name, RunningSums::of(duration))?;
        }
    }
    let mut nested = nested.sorted()?;
    let mut stack = NestedCalls::default();
    while let Some(range) = nested.next()? {
        stack.enter(range, sums)?;
    }
    stack.leave_all(sums)?;
    Ok(scanned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in memory with the strings 1 = "", 2 = gemm, 3 = KernelExecution, 4 = CopyHostToDevice and,
    /// as another session has them, 5 = gemm.
    fn trace(ops: &str) -> Connection {
        let trace = Connection::open_in_memory().unwrap();
        trace
            .execute_batch(&format!(
                r#"CREATE TABLE rocpd_string (id integer primary key, string varchar(4096));
                   INSERT INTO rocpd_string VALUES
                       (1, ''), (2, 'gemm'), (3, 'KernelExecution'), (4, 'CopyHostToDevice'), (5, 'gemm');
                   CREATE TABLE rocpd_op (start integer, "end" integer, description_id integer, opType_id integer);
                   INSERT INTO rocpd_op VALUES {ops};"#
            ))
            .unwrap();
        trace
    }

    fn ranked(trace: &Connection) -> Ranking<'_> {
        let everything = Selected::everything();
        Ranking::of((trace, Version::V2), RankBy::Operation, &everything, Counted::default()).unwrap()
    }

    #[test]
    fn sessions_with_their_own_strings_fall_together() {
        let trace = trace("(1,31,2,3), (5,15,5,3), (5,15,5,3), (1,51,1,4)");
        let ranking = ranked(&trace);
        let gemm = NameGroup {
            name: "gemm".into(),
            calls: 3,
            total_ns: 50,
            self_ns: None,
            average_ns: 50.0 / 3.0,
            min_ns: 10,
            max_ns: 30,
            percentiles: None,
            replaced: 0,
            percent: 50.0,
            gpu: None,
        };
        let groups: Vec<NameGroup> = ranking.map(Result::unwrap).collect();
        assert_eq!(groups[1], gemm);
        assert_eq!(groups[0].name, "CopyHostToDevice");
    }

    #[test]
    fn groups_of_one_time_are_in_the_order_of_their_names() {
        let trace = trace("(1,11,4,3), (1,11,2,3), (20,31,1,3), (50,60,1,4), (50,60,5,3)");
        let names: Vec<String> = ranked(&trace).map(|group| group.unwrap().name).collect();
        assert_eq!(names, ["CopyHostToDevice", "gemm", "KernelExecution"]);
        trace.execute_batch("UPDATE rocpd_op SET \"end\" = start").unwrap();
        let names: Vec<String> = ranked(&trace).map(|group| group.unwrap().name).collect();
        assert_eq!(names, ["CopyHostToDevice", "KernelExecution", "gemm"]);
    }

    #[test]
    fn what_cannot_be_is_counted_apart() {
        let trace = trace(
            "(10,5,2,3), ('x',5,2,3), (NULL,1,2,3), (-9223372036854775807,9223372036854775807,2,3), \
             (1,2,99,98), (1,1,2,3)",
        );
        let ranking = ranked(&trace);
        assert_eq!((ranking.impossible, ranking.nameless, ranking.count), (4, 1, 2));
        let groups: Vec<NameGroup> = ranking.map(Result::unwrap).collect();
        assert_eq!(groups[0].name, "(no name in the file)");
        assert_eq!((groups[1].min_ns, groups[1].percent), (0, 0.0));
    }
}
