//! Where time goes: the operations of a trace, or its calls or markers, grouped by name and ordered by total time.
//!
//! One scan of `rocpd_op` or `rocpd_api` in the order of the file, adding up per pair of string ids; only the distinct
//! pairs are kept and looked up, so memory does not grow with the number of rows. (SQL's GROUP BY
//! would sort all of them first.) Calls and markers nest: they are sorted, on disk where there are many, and go through the stack of
//! their thread.

mod nested;

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
use crate::trace::Strings;
use crate::trace::instrumented::is_instrumented;
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
}

impl By {
    /// One of them and several, for messages.
    pub fn noun(self) -> (&'static str, &'static str) {
        match self {
            By::Operation => ("operation", "GPU operations"),
            By::Kernel => ("kernel", "kernels"),
            By::Api => ("call", "calls"),
            By::Copy => ("copy", "copies"),
            By::Marker => ("marker", "markers"),
        }
    }

    /// Whether one may be inside another, on the same thread.
    pub fn nests(self) -> bool {
        matches!(self, By::Api | By::Marker)
    }

    /// Whether instrumented kernels may be among them.
    fn has_instrumented(self) -> bool {
        matches!(self, By::Operation | By::Kernel)
    }

    /// Start, end and two ids of texts of each row for which `counts` (SQL) is true; the name is the first text that is not empty. Of
    /// what nests the id and the thread too.
    fn query(self, counts: &str) -> String {
        let ops = format!(r#"SELECT start, "end", description_id, opType_id FROM rocpd_op WHERE {counts}"#);
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
            By::Operation => ops,
            By::Kernel => of_type(&format!("string IN ({KERNEL_TYPES})")),
            By::Copy => of_type("string LIKE 'Copy%'"),
            By::Api => calls("0", &format!("NOT {marker}")),
            By::Marker => calls(&format!("iif({user_marker}, args_id, 0)"), &marker),
        }
    }

    /// Where the first text is.
    fn texts(self, version: Version) -> &'static str {
        if self == By::Marker && version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" }
    }
}

/// Rows of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NameGroup {
    /// The ops' description (a kernel's name), or their type where that is empty (copies); the calls' function; the markers' text.
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
    /// Of kernels: dispatches that ran another kernel in its place, but no instrumented one. Left out of JSON where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub replaced: u64,
    /// Share of the total time of all rows, in percent; of calls and markers the share of `self_ns`.
    pub percent: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's way
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// All groups, longest total first, and what could not be counted.
#[derive(Debug, Default)]
pub struct Ranking {
    /// Ordered by total time (by self time where there is one), then by name.
    pub groups: Vec<NameGroup>,
    /// Rows left out because of their times: those that `rpd check` has as impossible, negative or missing, and those that stretch
    /// the trace to times far from all others.
    pub impossible: u64,
    /// Rows counted under a placeholder because their strings are not in the file.
    pub nameless: u64,
    /// Dispatches of instrumented kernels that were left out.
    pub instrumented: u64,
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

impl Ranking {
    /// Reads the rows of any schema version, dispatches of instrumented kernels only where they are asked for.
    ///
    /// # Errors
    /// When the file, or a temporary one for sorting, cannot be read.
    pub fn of(trace: &Connection, version: Version, by: By, with_instrumented: bool) -> Result<Ranking> {
        let mut ranking = Ranking::default();
        let counts = if by.has_instrumented() && !with_instrumented {
            let left_out = is_instrumented(trace, "id")?;
            let count = format!("SELECT count(*) FROM rocpd_op WHERE {left_out}");
            ranking.instrumented = trace.query_row(&count, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
            format!("NOT {left_out}")
        } else {
            "1".to_string()
        };
        let by_ids = ranking.scan(trace, by, &counts)?;
        let (mut strings, mut texts) = (Strings::of(trace)?, Strings::in_table(trace, by.texts(version))?);
        let mut by_name: HashMap<String, RunningSums> = HashMap::new();
        for ((first, second), sums) in by_ids {
            let name = match texts.get(first)?.filter(|text| !text.is_empty()) {
                Some(name) => Some(name),
                None => strings.get(second)?,
            };
            let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
                ranking.nameless += sums.calls;
                "(no name in the file)".to_string()
            });
            by_name.entry(name).or_insert(RunningSums::NONE).add(sums);
        }
        // Of operations the two are the same.
        let all: f64 = by_name.values().map(|sums| sums.self_ns as f64).sum();
        let mut groups: Vec<(RunningSums, String)> =
            by_name.into_iter().map(|(name, sums)| (sums, name)).collect();
        groups.sort_by(|(a, name), (b, other)| (Reverse(a.self_ns), name).cmp(&(Reverse(b.self_ns), other)));
        let replaced = match by {
            By::Operation | By::Kernel => by_kernel(trace)?,
            By::Api | By::Copy | By::Marker => BTreeMap::new(),
        };
        let group = |(sums, name): (RunningSums, String)| NameGroup {
            replaced: replaced.get(&name).copied().unwrap_or(0),
            name,
            calls: sums.calls,
            total_ns: sums.total_ns,
            self_ns: by.nests().then_some(sums.self_ns),
            average_ns: sums.all_ns as f64 / sums.calls as f64,
            min_ns: sums.min_ns,
            max_ns: sums.max_ns,
            percent: if all > 0.0 { 100.0 * sums.self_ns as f64 / all } else { 0.0 },
        };
        ranking.groups = groups.into_iter().map(group).collect();
        Ok(ranking)
    }

    fn scan(&mut self, trace: &Connection, by: By, counts: &str) -> Result<HashMap<NameIds, RunningSums>> {
        let mut sums: HashMap<NameIds, RunningSums> = HashMap::new();
        let processes = Processes::of(trace)?;
        let mut nested = Sorter::new();
        let mut outliers = Outliers::new();
        let mut rows = trace.prepare(&by.query(counts))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (ValueRef::Integer(start), ValueRef::Integer(end)) = (row.get_ref(0)?, row.get_ref(1)?)
            else {
                self.impossible += 1;
                continue;
            };
            if !are_sound((start, end)) || outliers.has(trace, (start, end))? {
                self.impossible += 1;
                continue;
            }
            let duration = end.abs_diff(start);
            let id = |column| row.get_ref(column).map(|id| id.as_i64().unwrap_or(0));
            let name = (id(2)?, id(3)?);
            if by.nests() {
                let thread = [processes.of_row(id(4)?), id(5)?, id(6)?];
                nested.push(NestedCall::new(thread, (start, end), id(4)?, name))?;
            } else {
                sums.entry(name).or_insert(RunningSums::NONE).add(RunningSums::of(duration));
            }
        }
        let mut nested = nested.sorted()?;
        let mut stack = NestedCalls::default();
        while let Some(range) = nested.next()? {
            stack.enter(range, &mut sums);
        }
        stack.leave_all(&mut sums);
        Ok(sums)
    }
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

    #[test]
    fn sessions_with_their_own_strings_fall_together() {
        let ranking = Ranking::of(
            &trace("(1,31,2,3), (5,15,5,3), (5,15,5,3), (1,51,1,4)"),
            Version::V2,
            By::Operation,
            false,
        )
        .unwrap();
        let gemm = NameGroup {
            name: "gemm".into(),
            calls: 3,
            total_ns: 50,
            self_ns: None,
            average_ns: 50.0 / 3.0,
            min_ns: 10,
            max_ns: 30,
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
        let ranking = Ranking::of(&trace, Version::V2, By::Operation, false).unwrap();
        assert_eq!((ranking.impossible, ranking.nameless), (4, 1));
        assert_eq!(ranking.groups.len(), 2);
        assert_eq!(ranking.groups[0].name, "(no name in the file)");
        assert_eq!((ranking.groups[1].min_ns, ranking.groups[1].percent), (0, 0.0));
    }
}
