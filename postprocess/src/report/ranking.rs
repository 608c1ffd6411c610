//! Where time goes: the operations of a trace, or its calls or markers, grouped by name and ordered by total time.
//!
//! One scan of `rocpd_op` or `rocpd_api` in the order of the file, adding up per pair of string ids; only the distinct
//! pairs are kept and looked up, so memory does not grow with the number of rows. (SQL's GROUP BY
//! would sort all of them first.) Calls and markers nest: they are sorted, on disk where there are many, and go through the stack of
//! their thread.

mod nested;
mod place;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::Serialize;

use self::nested::{NameIds, NestedCall, NestedCalls};
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::pass::sorted::Sorter;
use crate::passes::autograd::marker::MarkerText;
use crate::region::Selected;
use crate::trace::Strings;
use crate::trace::ids::Ids;
use crate::trace::instrumented::{instrumented, is_instrumented};
use crate::trace::op_kind::KERNEL_TYPES;
use crate::trace::replaced::by_kernel;

/// What is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Everything that GPUs did.
    Operation,
    /// Kernels, by name.
    Kernel,
    /// Calls, by function.
    Api,
    /// Copies, by direction.
    Copy,
    /// Markers, by text.
    Marker,
    /// Operations, by the stream of the call that caused them.
    Stream,
    /// Operations, by queue.
    Queue,
    /// Operations, by GPU.
    Gpu,
    /// Operations, by the rank of the process that recorded them.
    Rank,
    /// Operations, by the session that recorded them.
    Session,
    /// Operations, by the thread that launched them.
    Thread,
}

impl By {
    /// One of them and several, for messages.
    pub fn noun(self) -> (&'static str, &'static str) {
        match self {
            By::Kernel => ("kernel", "kernels"),
            By::Api => ("call", "calls"),
            By::Copy => ("copy", "copies"),
            By::Marker => ("marker", "markers"),
            _ => ("operation", "GPU operations"),
        }
    }

    /// Whether one may be inside another, on the same thread.
    pub fn nests(self) -> bool {
        matches!(self, By::Api | By::Marker)
    }

    /// Whether instrumented kernels may be among them.
    fn has_instrumented(self) -> bool {
        !matches!(self, By::Api | By::Marker | By::Copy)
    }

    /// Whether operations are put together by where they ran or who launched them, not by name.
    pub fn is_place(self) -> bool {
        matches!(self, By::Stream | By::Queue | By::Gpu | By::Rank | By::Session | By::Thread)
    }

    /// Start, end and two ids of texts of each row for which `counts` (SQL) is true; the name is the first text that is not empty. Of
    /// what nests the id and the thread too, of others the id where it is asked for.
    pub(super) fn query(self, counts: &str, with_id: bool) -> String {
        let id = if with_id { ", id" } else { "" };
        let ops =
            format!(r#"SELECT start, "end", description_id, opType_id{id} FROM rocpd_op WHERE {counts}"#);
        let of_type =
            |which: &str| format!("{ops} AND opType_id IN (SELECT id FROM rocpd_string WHERE {which})");
        let user_marker = "apiName_id IN (SELECT id FROM rocpd_string WHERE string = 'UserMarker')";
        // Recorders of this format give markers ids of their own.
        let marker = format!("(id & 4294967295 >= 2147483648 OR {user_marker})");
        let calls = |text: &str, which: &str| {
            format!(
                r#"SELECT start, "end", {text}, apiName_id, id, pid, tid FROM rocpd_api WHERE {counts} AND {which}"#
            )
        };
        match self {
            By::Kernel => of_type(&format!("string IN ({KERNEL_TYPES})")),
            By::Copy => of_type("string LIKE 'Copy%'"),
            By::Api => calls("0", &format!("NOT {marker}")),
            By::Marker => calls(&format!("iif({user_marker}, args_id, 0)"), &marker),
            _ => ops,
        }
    }

    /// Where the first text is.
    pub(super) fn texts(self, version: Version) -> &'static str {
        if self == By::Marker && version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" }
    }
}

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
    /// Of calls and markers: sum of their durations without the ones directly inside them, ns.
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
    /// Of kernels: dispatches that ran another kernel in its place, but no instrumented one. Left out of JSON where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub replaced: u64,
    /// Share of the total time of all rows, in percent; of calls and markers the share of `self_ns`.
    pub percent: f64,
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
}

/// Number of a group, and a duration of it, ns.
type NamedDuration = (usize, u64);

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's way
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// All groups, longest total first, and what could not be counted.
#[derive(Debug, Default)]
pub struct Ranking {
    /// Ordered by total time (by self time where there is one), then by name.
    pub groups: Vec<NameGroup>,
    /// Rows left out because of their times: those that `rpd check` has as impossible, negative or missing, and those that are far
    /// from nearly all others.
    pub impossible: u64,
    /// Rows counted under a placeholder because their strings are not in the file.
    pub nameless: u64,
    /// Dispatches of instrumented kernels that were left out.
    pub instrumented: u64,
    /// Barriers that were left out: by where they ran, they are no work.
    pub barriers: u64,
}

/// Running sums of one pair of string ids, then of one name.
#[derive(Clone, Copy)]
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
    const NONE: RunningSums =
        RunningSums { calls: 0, all_ns: 0, total_ns: 0, self_ns: 0, min_ns: u64::MAX, max_ns: 0 };

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

/// The texts that name rows, each pair of ids looked up once.
pub(super) struct Names<'trace> {
    strings: Strings<'trace>,
    texts: Strings<'trace>,
    known: HashMap<NameIds, usize>,
    /// Numbers of the names, which several pairs may have.
    numbers: HashMap<String, usize>,
    nameless: Option<usize>,
    /// Whether PyTorch's operators are named without their numbers and sizes.
    by_operator: bool,
}

impl Names<'_> {
    /// No names yet; their first texts are in the table `texts`.
    ///
    /// # Errors
    /// When there is no such table.
    pub(super) fn of<'trace>(trace: &'trace Connection, texts: &str) -> rusqlite::Result<Names<'trace>> {
        Ok(Names {
            strings: Strings::of(trace)?,
            texts: Strings::in_table(trace, texts)?,
            known: HashMap::new(),
            numbers: HashMap::new(),
            nameless: None,
            by_operator: false,
        })
    }

    /// The same with PyTorch's operators (`aten::mm, op_id = 7`) by their names alone.
    pub(super) fn by_operator(self) -> Self {
        Names { by_operator: true, ..self }
    }

    /// The number of a name: the first text that is not empty.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn number(&mut self, ids: NameIds) -> rusqlite::Result<usize> {
        if let Some(number) = self.known.get(&ids) {
            return Ok(*number);
        }
        let name = match self.texts.get(ids.0)?.filter(|text| !text.is_empty()) {
            Some(name) => Some(name),
            None => self.strings.get(ids.1)?.filter(|name| !name.is_empty()),
        };
        let name = name.map(|name| match MarkerText::of(&name) {
            MarkerText::Operator(operator) if self.by_operator => operator.name.to_string(),
            _ => name,
        });
        let next = self.numbers.len();
        let is_nameless = name.is_none();
        let number = *self.numbers.entry(name.unwrap_or_else(|| NAMELESS.to_string())).or_insert(next);
        if is_nameless {
            self.nameless = Some(number);
        }
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        self.known.insert(ids, number);
        Ok(number)
    }

    /// The names by their numbers.
    pub(super) fn into_names(self) -> Vec<String> {
        let mut names: Vec<(usize, String)> =
            self.numbers.into_iter().map(|(name, number)| (number, name)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }
}

/// Pairs of ids that are remembered at once.
const REMEMBERED: usize = 1 << 16;

/// The name of rows whose names are not in the file.
const NAMELESS: &str = "(no name in the file)";

/// The sums of each group, and what percentiles are taken from.
struct Sums {
    groups: Vec<RunningSums>,
    /// Group and duration, where percentiles are asked for.
    durations: Option<Sorter<[u64; 2]>>,
}

impl Sums {
    fn group(&mut self, number: usize) -> &mut RunningSums {
        if self.groups.len() <= number {
            self.groups.resize(number + 1, RunningSums::NONE);
        }
        &mut self.groups[number]
    }

    fn duration(&mut self, (number, ns): NamedDuration) -> Result<()> {
        self.durations.as_mut().map_or(Ok(()), |durations| durations.push([number as u64, ns]))
    }

    /// The percentiles of each group.
    fn percentiles(&mut self) -> Result<Vec<Option<Percentiles>>> {
        let mut found = vec![None; self.groups.len()];
        let Some(durations) = self.durations.take() else { return Ok(found) };
        let mut durations = durations.sorted()?;
        for (group, found) in self.groups.iter().zip(&mut found) {
            // The n-th of them, counted from 1, is the first that so many percent do not exceed.
            let rank = |percent: u64| (u128::from(group.calls) * u128::from(percent)).div_ceil(100) as u64;
            let ranks = [50, 90, 99].map(rank);
            let mut at = [0; 3];
            for nth in 1..=group.calls {
                let Some([_, ns]) = durations.next()? else { break };
                for (rank, at) in ranks.iter().zip(&mut at) {
                    if *rank == nth {
                        *at = ns;
                    }
                }
            }
            let [p50_ns, p90_ns, p99_ns] = at;
            *found = Some(Percentiles { p50_ns, p90_ns, p99_ns });
        }
        Ok(found)
    }
}

impl Ranking {
    /// Reads the rows of a part of a trace of any schema version.
    ///
    /// # Errors
    /// When the file, or a temporary one for sorting, cannot be read.
    pub fn of(
        (trace, version): (&Connection, Version),
        by: By,
        selected: &Selected,
        counted: Counted,
    ) -> Result<Ranking> {
        let mut ranking = Ranking::default();
        let is_left_out = by.has_instrumented() && !counted.instrumented;
        if is_left_out {
            ranking.instrumented = match selected.is_everything() {
                true => {
                    let left_out = is_instrumented(trace, "id")?;
                    let count = format!("SELECT count(*) FROM rocpd_op WHERE {left_out}");
                    trace.query_row(&count, [], |row| row.get::<_, i64>(0))?.unsigned_abs()
                }
                false => {
                    let mut ops = Ids::default();
                    let there = Ids::of(trace, "SELECT id FROM rocpd_op", [])?;
                    let is_here = |id: &i64| there.has(*id) && selected.has_op(*id);
                    let ids = instrumented(trace)?.into_inner();
                    ids.into_iter().map(u64::cast_signed).filter(is_here).for_each(|id| ops.add(id));
                    ops.len()
                }
            };
        }
        let durations = counted.percentiles.then(Sorter::new);
        let mut sums = Sums { groups: Vec::new(), durations };
        let names = if by.is_place() {
            let left = if is_left_out { instrumented(trace)? } else { Ids::default() };
            let (labels, left_out) =
                place::each((trace, version), by, selected, &left, &mut |(number, ns)| {
                    sums.group(number).add(RunningSums::of(ns));
                    sums.duration((number, ns))
                })?;
            ranking.impossible = left_out.impossible;
            ranking.barriers = left_out.barriers;
            labels
        } else {
            ranking.scan((trace, version), by, (selected, is_left_out), &mut sums)?
        };
        let percentiles = sums.percentiles()?;
        ranking.groups = groups((trace, selected), by, (names, sums.groups, percentiles))?;
        Ok(ranking)
    }

    /// Adds up what has names, and says those.
    fn scan(
        &mut self,
        (trace, version): (&Connection, Version),
        by: By,
        (selected, is_left_out): (&Selected, bool),
        sums: &mut Sums,
    ) -> Result<Vec<String>> {
        let mut names = Names::of(trace, by.texts(version))?;
        let counts = match is_left_out {
            true => format!("NOT {}", is_instrumented(trace, "id")?),
            false => "1".to_string(),
        };
        let processes = Processes::of(trace)?;
        let mut nested = Sorter::new();
        let mut outliers = Outliers::new();
        let with_id = !selected.is_everything();
        let mut rows = trace.prepare(&by.query(&counts, with_id))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let id = |column| row.get_ref(column).map(|id| id.as_i64().unwrap_or(0));
            let is_here = |id| if by.nests() { selected.has_call(id) } else { selected.has_op(id) };
            if with_id && !is_here(id(4)?) {
                continue;
            }
            let (ValueRef::Integer(start), ValueRef::Integer(end)) = (row.get_ref(0)?, row.get_ref(1)?)
            else {
                self.impossible += 1;
                continue;
            };
            if !are_sound((start, end)) || outliers.is_far(trace, (start, end))? {
                self.impossible += 1;
                continue;
            }
            let (name, duration) = ((id(2)?, id(3)?), end.abs_diff(start));
            let number = names.number(name)?;
            sums.duration((number, duration))?;
            if by.nests() {
                let thread = [processes.of_row(id(4)?), id(5)?, id(6)?];
                nested.push(NestedCall::new(thread, (start, end), id(4)?, name))?;
            } else {
                sums.group(number).add(RunningSums::of(duration));
            }
        }
        let mut nested = nested.sorted()?;
        let mut by_ids = HashMap::new();
        let mut stack = NestedCalls::default();
        while let Some(range) = nested.next()? {
            stack.enter(range, &mut by_ids);
        }
        stack.leave_all(&mut by_ids);
        for (ids, running) in by_ids {
            sums.group(names.number(ids)?).add(running);
        }
        self.nameless =
            names.nameless.and_then(|number| sums.groups.get(number)).map_or(0, |sums| sums.calls);
        Ok(names.into_names())
    }
}

/// The groups in their order; those of one label are one.
fn groups(
    (trace, selected): (&Connection, &Selected),
    by: By,
    (names, sums, percentiles): (Vec<String>, Vec<RunningSums>, Vec<Option<Percentiles>>),
) -> Result<Vec<NameGroup>> {
    // Of operations self time and total time are the same.
    let all: f64 = sums.iter().map(|sums| sums.self_ns as f64).sum();
    let replaced = match by {
        By::Operation | By::Kernel => by_kernel(trace, &|op| selected.has_op(op))?,
        _ => BTreeMap::new(),
    };
    let group = |((name, sums), percentiles): ((String, RunningSums), Option<Percentiles>)| NameGroup {
        replaced: replaced.get(&name).copied().unwrap_or(0),
        name,
        calls: sums.calls,
        total_ns: sums.total_ns,
        self_ns: by.nests().then_some(sums.self_ns),
        average_ns: sums.all_ns as f64 / sums.calls as f64,
        min_ns: sums.min_ns,
        max_ns: sums.max_ns,
        percentiles,
        percent: if all > 0.0 { 100.0 * sums.self_ns as f64 / all } else { 0.0 },
    };
    let mut groups: Vec<NameGroup> =
        names.into_iter().zip(sums).zip(percentiles).map(group).filter(|group| group.calls > 0).collect();
    let own = |group: &NameGroup| group.self_ns.unwrap_or(group.total_ns);
    groups.sort_by(|a, b| (Reverse(own(a)), &a.name).cmp(&(Reverse(own(b)), &b.name)));
    Ok(groups)
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

    fn ranked(trace: &Connection) -> Ranking {
        let everything = Selected::everything();
        Ranking::of((trace, Version::V2), By::Operation, &everything, Counted::default()).unwrap()
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
        };
        assert_eq!(ranking.groups[1], gemm);
        assert_eq!(ranking.groups[0].name, "CopyHostToDevice");
    }

    #[test]
    fn what_cannot_be_is_counted_apart() {
        let trace = trace(
            "(10,5,2,3), ('x',5,2,3), (NULL,1,2,3), (-9223372036854775807,9223372036854775807,2,3), \
             (1,2,99,98), (1,1,2,3)",
        );
        let ranking = ranked(&trace);
        assert_eq!((ranking.impossible, ranking.nameless), (4, 1));
        assert_eq!(ranking.groups.len(), 2);
        assert_eq!(ranking.groups[0].name, "(no name in the file)");
        assert_eq!((ranking.groups[1].min_ns, ranking.groups[1].percent), (0, 0.0));
    }
}
