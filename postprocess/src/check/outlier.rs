//! Times far from all others: one such row spans the span of a trace from seconds to weeks.
//!
//! A day is far. Traces that were merged from hosts with different clocks have several spans with many rows
//! each; those are none of our business, so only a span with less than a hundredth of the rows counts, or one row by itself. Where many
//! spans are that small, none of them is far from the others.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension};

use super::finding::{CheckFinding, EXAMPLES, Example};
use super::kind::FindingKind;
use super::rule::has_sound_times;
use super::scan::judged;
use crate::trace::has_table;
use crate::trace::layout::{Layout, TableLayout, quote};

/// ns of a day.
pub(crate) const DAY: i64 = 86_400_000_000_000;
/// The tables whose rows reports and exports are made of.
const ROWS: [&str; 2] = ["rocpd_api", "rocpd_op"];
/// A span with fewer than one in this many rows is far from the others, rather than the others from it.
const SHARE: u64 = 100;
/// Times of one row, its start and its end.
const ONE_ROW: u64 = 2;
/// A row that is alone in its span is far from this many times or more.
const OTHERS: u64 = 20;
/// Rows that are alone are far if all other times are at least so many times as many as theirs.
const MORE: u64 = 10;

/// Whether a span is so long that outliers are worth looking for.
pub(crate) fn is_possible(span: Option<(i64, i64)>) -> bool {
    span.is_some_and(|(start, end)| end - start > DAY)
}

/// The rows of a trace that stretch it: begun or ended far from nearly all others.
#[derive(Debug, Default)]
pub struct Outliers {
    /// The days of outliers; looked for when they are asked for.
    days: Option<BTreeSet<i64>>,
}

impl Outliers {
    /// Nothing is known yet.
    pub fn new() -> Outliers {
        Outliers::default()
    }

    /// Those of a trace that is going to be read whole: they are looked for now.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn of(trace: &Connection) -> rusqlite::Result<Outliers> {
        let mut outliers = Outliers::new();
        for table in ROWS {
            if has_table(trace, table)? {
                let query = format!("SELECT t.start FROM {table} AS t WHERE {} LIMIT 1", has_sound_times());
                if let Some(time) = trace.query_row(&query, [], |row| row.get(0)).optional()? {
                    outliers.is_outlier(trace, (time, time))?;
                    break;
                }
            }
        }
        outliers.days.get_or_insert_default();
        Ok(outliers)
    }

    /// Those among rows with these sound times.
    pub fn among(times: impl Iterator<Item = (i64, i64)> + Clone) -> Outliers {
        let (first, last) = times
            .clone()
            .fold((i64::MAX, i64::MIN), |(first, last), (start, end)| (first.min(start), last.max(end)));
        let mut days: BTreeMap<i64, u64> = BTreeMap::new();
        // Counting the rows of each day takes longer, and nearly always in vain.
        if first <= last && is_possible(Some((first, last))) {
            for time in times.flat_map(|(start, end)| [start, end]) {
                *days.entry(time / DAY).or_default() += 1;
            }
        }
        Outliers { days: Some(outlying_days(&days)) }
    }

    /// The condition, in SQL, that a row with sound times is none of them, as far as is known.
    pub(crate) fn others(&self) -> String {
        let days = self.days.iter().flatten();
        format!("NOT ({})", is_on_days(days, ""))
    }

    /// Whether there are none, as far as is known.
    pub fn is_empty(&self) -> bool {
        self.days.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Whether a row with these sound times begins or ends on a day of outliers that are known.
    pub fn are_known(&self, (start, end): (i64, i64)) -> bool {
        self.days.as_ref().is_some_and(|days| days.contains(&(start / DAY)) || days.contains(&(end / DAY)))
    }

    /// Whether a row with these sound times is one and longer than a day.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn has(&mut self, trace: &Connection, (start, end): (i64, i64)) -> rusqlite::Result<bool> {
        if end - start <= DAY {
            return Ok(false);
        }
        self.are_outliers(trace, (start, end))
    }

    /// Whether a row with these sound times, however long, begins or ends far from nearly all others: a span that has it in would be
    /// days too long.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn is_outlier(&mut self, trace: &Connection, times: (i64, i64)) -> rusqlite::Result<bool> {
        // Counting the rows of each day takes longer, and nearly always in vain.
        if self.days.is_none() && !is_any_far(trace, times.0)? {
            self.days = Some(BTreeSet::new());
        }
        self.are_outliers(trace, times)
    }

    fn are_outliers(&mut self, trace: &Connection, (start, end): (i64, i64)) -> rusqlite::Result<bool> {
        let days = match &mut self.days {
            Some(days) => days,
            none => {
                let layout = Layout::of(trace)?;
                let is_of_rows = |table: &&TableLayout| table.is_timed() && ROWS.contains(&&*table.name);
                let timed: Vec<&TableLayout> = layout.tables.iter().filter(is_of_rows).collect();
                none.insert(outlier_days(trace, &timed, &[])?)
            }
        };
        Ok(!days.is_empty() && (days.contains(&(start / DAY)) || days.contains(&(end / DAY))))
    }
}

/// Whether any call or operation, one with impossible times included, may begin or end more than a day from `time`. Where none does, all
/// are of one span.
fn is_any_far(trace: &Connection, time: i64) -> rusqlite::Result<bool> {
    for table in ROWS {
        let query =
            format!(r#"SELECT EXISTS (SELECT 1 FROM {table} WHERE start < ?1 OR {table}."end" > ?2)"#);
        let is_far = |trace: &Connection| {
            trace.query_row(&query, [time.saturating_sub(DAY), time.saturating_add(DAY)], |row| row.get(0))
        };
        if has_table(trace, table)? && is_far(trace)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The days on which the timed tables have few of all times, but for those of the sessions in `running`. Needs a scan of each; memory
/// for a number a day.
fn outlier_days(
    trace: &Connection,
    tables: &[&TableLayout],
    running: &[u32],
) -> rusqlite::Result<BTreeSet<i64>> {
    let mut days: BTreeMap<i64, u64> = BTreeMap::new();
    for table in tables {
        for column in ["start", "end"] {
            let query = format!(
                "SELECT t.\"{column}\" / {DAY}, count(*) FROM {} AS t WHERE {}{} GROUP BY 1",
                quote(&table.name),
                has_sound_times(),
                judged(table, running)
            );
            let mut counted = trace.prepare(&query)?;
            let counted =
                counted.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
            for day in counted {
                let (day, count): (i64, u64) = day?;
                *days.entry(day).or_default() += count;
            }
        }
    }
    Ok(outlying_days(&days))
}

/// Rows of the timed tables that are far from nearly all others, but for those of the sessions in `running`.
///
/// # Errors
/// When a table cannot be read.
pub(crate) fn times(
    trace: &Connection,
    tables: &[&TableLayout],
    running: &[u32],
) -> rusqlite::Result<Vec<CheckFinding>> {
    let days = outlier_days(trace, tables, running)?;
    if days.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for table in tables {
        let query = format!(
            "SELECT count(*) OVER (), t.{} FROM {} AS t WHERE {}{} AND ({}) ORDER BY 2 LIMIT {EXAMPLES}",
            table.id(),
            quote(&table.name),
            has_sound_times(),
            judged(table, running),
            is_on_days(days.iter(), "t.")
        );
        let mut rows = trace.prepare(&query)?;
        let rows = rows.query_map([], |row| {
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), Example::Id(row.get_ref(1)?.as_i64().unwrap_or(-1))))
        })?;
        let (counts, ids): (Vec<u64>, Vec<Example>) =
            rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().unzip();
        if let Some(&count) = counts.first() {
            found.push(CheckFinding::new(FindingKind::FarTime, table.name.clone(), count).examples(ids));
        }
    }
    Ok(found)
}

/// The condition, in SQL, that a row begins or ends on one of these days; `row` is "" or its alias with the point.
fn is_on_days<'a>(days: impl Iterator<Item = &'a i64>, row: &str) -> String {
    let days = days.map(i64::to_string).collect::<Vec<_>>().join(", ");
    format!(r#"{row}start / {DAY} IN ({days}) OR {row}"end" / {DAY} IN ({days})"#)
}

/// The days of the spans that have few of all rows. Days in a row are one span, as is a day's gap.
fn outlying_days(days: &BTreeMap<i64, u64>) -> BTreeSet<i64> {
    let total: u64 = days.values().sum();
    let mut spans: Vec<(u64, Vec<i64>)> = Vec::new();
    for (&day, &count) in days {
        match spans.last_mut() {
            Some((rows, members)) if members.last().is_some_and(|last| day - last <= 1) => {
                *rows += count;
                members.push(day);
            }
            _ => spans.push((count, vec![day])),
        }
    }
    let is_small = |rows: u64| rows * SHARE < total;
    let is_alone = |rows: u64| rows <= ONE_ROW && total - rows >= OTHERS;
    let sum = |is_in: &dyn Fn(u64) -> bool| -> u64 {
        spans.iter().map(|(rows, _)| *rows).filter(|rows| is_in(*rows)).sum()
    };
    // Many of them are no exception.
    let are_small_ones_few = is_small(sum(&is_small));
    let alone = sum(&is_alone);
    let are_alone_ones_few = total - alone >= MORE * alone;
    spans
        .into_iter()
        .filter(|(rows, _)| are_small_ones_few && is_small(*rows) || are_alone_ones_few && is_alone(*rows))
        .flat_map(|(_, members)| members)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rows_elsewhere_are_outliers_but_not_another_host() {
        let none: [i64; 0] = [];
        let far = |days: &[(i64, u64)]| {
            outlying_days(&days.iter().copied().collect()).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(far(&[(10, 5000), (11, 400), (300, 3)]), [300]);
        assert_eq!(far(&[(10, 5000), (11, 4)]), none, "midnight");
        assert_eq!(far(&[(10, 5000), (700, 100)]), none, "another host");
        assert_eq!(far(&[(0, 1), (90, 5000), (300, 2), (301, 2)]), [0, 300, 301]);
        assert_eq!(far(&[]), none);
        assert_eq!((far(&[(10, 20), (90, 2)]), far(&[(10, 18), (90, 2)])), (vec![90], none.to_vec()));
        assert_eq!(far(&[(10, 40), (90, 3)]), none, "more than one row");
        let apart =
            |count: i64, rows: u64| -> Vec<(i64, u64)> { (0..count).map(|at| (3 * at, rows)).collect() };
        assert_eq!(far(&apart(110, 200)), none, "many small spans");
        assert_eq!(far(&apart(15, 2)), none, "rows that are all alone");
        let with_many = [apart(30, 2), vec![(900, 6100)]].concat();
        assert_eq!(far(&with_many).len(), 30, "all of them together are few");
    }
}
