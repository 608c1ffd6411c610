//! Every row of a table looked at once, by all rules of the table together, some rows at a time.
//!
//! Between these steps nothing is locked: a recorder that is at work waits for one of them at most. Memory does
//! not depend on the number of rows.

use rusqlite::{Connection, OptionalExtension};

use super::finding::{CheckFinding, EXAMPLES, Example};
use super::rule::{Rule, has_sound_times};
use crate::trace::layout::{TableLayout, quote};

/// Rows of a step: a fraction of a second.
const ROWS_PER_STEP: i64 = 200_000;

/// What a scan of one table found.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// By rule, in the order of the rules; those that nothing was found for are left out.
    pub(crate) findings: Vec<CheckFinding>,
    /// First start and last end of rows with sound times, ns.
    pub(crate) span: Option<(i64, i64)>,
}

/// Applies rules to a table, leaving out the rows of the sessions in `running`. Calls `progress` with how many
/// rows have been read.
///
/// # Errors
/// When the table cannot be read.
pub(crate) fn scan(
    trace: &Connection,
    table: &TableLayout,
    rules: &[Rule],
    running: &[u32],
    mut progress: impl FnMut(u64),
) -> rusqlite::Result<Scanned> {
    let from =
        format!("FROM {} AS t WHERE t.rowid BETWEEN ?1 AND ?2{}", quote(&table.name), judged(table, running));
    let mut bound = trace.prepare(&format!(
        "SELECT rowid FROM {} WHERE rowid >= ?1 ORDER BY rowid LIMIT 1 OFFSET {}",
        quote(&table.name),
        ROWS_PER_STEP - 1
    ))?;
    let mut count = trace.prepare(&format!("SELECT {} {from}", counts(table, rules)))?;
    let mut totals = vec![0_u64; rules.len()];
    let mut examples: Vec<Vec<i64>> = vec![Vec::new(); rules.len()];
    let mut scanned = Scanned::default();
    let mut steps = 0;
    let mut first = Some(i64::MIN);
    while let Some(start) = first {
        let end = bound.query_row([start], |row| row.get::<_, i64>(0)).optional()?.unwrap_or(i64::MAX);
        let (counts, span) = count.query_row([start, end], |row| {
            let counts: Vec<i64> =
                (0..rules.len()).map(|rule| row.get(rule)).collect::<rusqlite::Result<_>>()?;
            let times: (Option<i64>, Option<i64>) = (row.get(rules.len())?, row.get(rules.len() + 1)?);
            Ok((counts, times.0.zip(times.1)))
        })?;
        for (rule, found) in
            counts.into_iter().map(i64::unsigned_abs).enumerate().filter(|(_, found)| *found > 0)
        {
            totals[rule] += found;
            let wanted = EXAMPLES.saturating_sub(examples[rule].len());
            if wanted > 0 {
                let query = format!(
                    "SELECT t.{} {from} AND ({}) ORDER BY t.rowid LIMIT {wanted}",
                    table.id(),
                    rules[rule].condition
                );
                let mut ids = trace.prepare(&query)?;
                let ids = ids.query_map([start, end], |row| Ok(row.get_ref(0)?.as_i64().unwrap_or(-1)))?;
                examples[rule].extend(ids.collect::<rusqlite::Result<Vec<_>>>()?);
            }
        }
        scanned.span = join(scanned.span, span);
        steps += 1;
        progress(steps * ROWS_PER_STEP.unsigned_abs());
        first = end.checked_add(1);
    }
    for ((rule, total), examples) in
        rules.iter().zip(totals).zip(examples).filter(|((_, total), _)| *total > 0)
    {
        let finding = CheckFinding::new(rule.kind, rule.place.clone(), total);
        scanned.findings.push(CheckFinding {
            detail: rule.detail.clone(),
            ..finding.examples(examples.into_iter().map(Example::Id))
        });
    }
    Ok(scanned)
}

/// The span around two spans.
pub(crate) fn join(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// The condition, led by AND, that leaves out rows of sessions that are being recorded: what they refer to
/// may come later.
pub(crate) fn judged(table: &TableLayout, running: &[u32]) -> String {
    if running.is_empty() {
        return String::new();
    }
    let sessions: Vec<String> = running.iter().map(u32::to_string).collect();
    format!(" AND t.{} >> 32 NOT IN ({})", table.id(), sessions.join(", "))
}

fn counts(table: &TableLayout, rules: &[Rule]) -> String {
    let mut columns: Vec<String> =
        rules.iter().map(|rule| format!("count(*) FILTER (WHERE {})", rule.condition)).collect();
    if table.is_timed() {
        let sound = has_sound_times();
        columns.push(format!("min(t.start) FILTER (WHERE {sound})"));
        columns.push(format!("max(t.\"end\") FILTER (WHERE {sound})"));
    } else {
        columns.extend(["NULL".to_string(), "NULL".to_string()]);
    }
    columns.join(", ")
}
