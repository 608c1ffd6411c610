//! The rows of one trace on their way into the merged one.

use anyhow::{Error, Result, anyhow};
use rusqlite::ErrorCode;

use super::gpu::GPU_STRIDE;
use super::node::Moved;
use super::plan::MergePlan;
use crate::check::rule::has_possible_times;
use crate::rewrite::derive::{NewTrace, SOURCE};
use crate::rewrite::duplicate_texts;
use crate::text;
use crate::trace::layout::{Reference, TableLayout, quote, same};

/// Added to process and thread ids for each node.
pub(super) const PID_STRIDE: i64 = 10_000_000;

/// Numbers beyond this are not moved: the sum would be no integer any more.
const MOVABLE: i64 = 1 << 61;

/// Copies the rows of `table` of trace `input`, which is attached, into `target`, which has that name and may have other
/// columns.
///
/// # Errors
/// When the trace cannot be read or the new one not be written.
pub(super) fn rows(
    making: &NewTrace<'_>,
    plan: &MergePlan<'_>,
    input: usize,
    table: &TableLayout,
    target: &TableLayout,
) -> Result<()> {
    making.show(&format!("{}: {}", plan.inputs[input].path.display(), table.name));
    let change = ColumnChange { plan, input, table };
    let values: Vec<String> = target.columns.iter().map(|column| change.value(&column.name)).collect();
    let quoted: Vec<String> = target.columns.iter().map(|column| quote(&column.name)).collect();
    let name = quote(&table.name);
    let which = if table.is("rocpd_string") {
        format!("WHERE NOT is_duplicate({})", change.own_id())
    } else {
        String::new()
    };
    let copy = format!(
        "INSERT INTO main.{name} ({}) SELECT {} FROM {SOURCE}.{name} AS t {which}",
        quoted.join(", "),
        values.join(", ")
    );
    making.made.execute(&copy, []).map_err(|error| damaged(error, plan, input, table))?;
    Ok(())
}

/// Says which table of which trace has rows that the result cannot have; other errors are of the result.
pub(super) fn damaged(
    error: rusqlite::Error,
    plan: &MergePlan<'_>,
    input: usize,
    table: &TableLayout,
) -> Error {
    let shown = text::escape_path(&plan.inputs[input].path);
    let name = text::escape(&table.name);
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => anyhow!(
            "{name} of {shown} has rows that no trace can have ({error}); see what is wrong with: rpd check {shown}"
        ),
        Some(ErrorCode::DatabaseCorrupt) => {
            anyhow!("{name} of {shown} is damaged; see what is wrong with: rpd check {shown}")
        }
        _ => Error::from(error).context(format!("cannot copy {name} of {shown}")),
    }
}

/// The query for the texts of trace `input`, which is attached, that may stand for others, with their ids in the result. Local id 1
/// of each session stays the empty text.
pub(super) fn texts(plan: &MergePlan<'_>, input: usize, table: &TableLayout) -> String {
    let id = ColumnChange { plan, input, table }.own_id();
    let key = table.key.as_deref().map_or_else(|| "rowid".to_string(), quote);
    format!(
        "SELECT t.string AS string, {id} AS id FROM {SOURCE}.rocpd_string AS t WHERE NOT (t.{key} & 0xffffffff = 1 AND t.string = '')"
    )
}

/// What becomes of the columns of a table.
struct ColumnChange<'a> {
    plan: &'a MergePlan<'a>,
    input: usize,
    table: &'a TableLayout,
}

impl ColumnChange<'_> {
    /// The value of a column in the result, as an SQL expression.
    fn value(&self, column: &str) -> String {
        let value = format!("t.{}", quote(column));
        let table = self.table;
        if !table.has(column) {
            // What an older file lacks is not known.
            return "''".to_string();
        }
        if let Some(reference) = table.references.iter().find(|reference| same(&reference.column, column)) {
            return self.reference(reference, &value);
        }
        if table.key.as_deref().is_some_and(|key| same(key, column) && table.is_integer(key)) {
            return format!("{value} + {}", self.offset());
        }
        let shift = |moved: Moved| self.plan.shift(self.input, moved);
        let is = |tables: &[&str], columns: &[&str]| {
            tables.iter().any(|name| table.is(name)) && columns.iter().any(|name| same(name, column))
        };
        if is(&["rocpd_api"], &["pid", "tid"]) {
            return self.strided(&value, PID_STRIDE);
        }
        if is(&["rocpd_op", "ext_instrumentation"], &["queueId"]) {
            return self.strided(&value, GPU_STRIDE);
        }
        if is(&["rocpd_op", "ext_instrumentation"], &["gpuId"]) || is(&["rocpd_monitor"], &["deviceId"]) {
            return self.gpu(&value);
        }
        if is(&["rocpd_copyapi"], &["dstDevice", "srcDevice"]) {
            // A negative one is the host's memory.
            return format!("CASE WHEN {value} < 0 THEN {value} ELSE {} END", self.gpu(&value));
        }
        if table.is_timed() && (same(column, "start") || same(column, "end")) {
            return match self.by_session(shift) {
                delta if delta == "0" => value,
                // Moved, a time that cannot be would look like one that can.
                delta => {
                    format!(
                        "CASE WHEN {} THEN {} ELSE {value} END",
                        has_possible_times(),
                        plus(&value, &delta)
                    )
                }
            };
        }
        if is(&["ext_candidate"], &["loaded"]) {
            // 0 is never.
            return format!(
                "CASE WHEN {value} = 0 THEN 0 ELSE {} END",
                plus(&value, &self.by_session(shift))
            );
        }
        value
    }

    fn offset(&self) -> i64 {
        self.plan.offsets[self.input]
    }

    /// The id of a row in the result.
    fn own_id(&self) -> String {
        let key = self.table.key.as_deref().map_or_else(|| "rowid".to_string(), quote);
        format!("t.{key} + {}", self.offset())
    }

    fn by_session(&self, of: impl Fn(Moved) -> i64) -> String {
        let key = self.table.key.as_deref().map_or_else(|| "rowid".to_string(), quote);
        self.plan.nodes.by_session(self.input, &format!("t.{key}"), of)
    }

    fn gpu(&self, value: &str) -> String {
        let moved = self.strided(value, GPU_STRIDE);
        self.plan.gpus.expression(self.input, value, &moved)
    }

    fn strided(&self, value: &str, stride: i64) -> String {
        plus(value, &self.by_session(|moved| (moved.to - moved.from) * stride))
    }

    /// An id of a row elsewhere. One that no row of this trace can have must not become another trace's.
    fn reference(&self, reference: &Reference, value: &str) -> String {
        let offset = self.offset();
        let limit = self.plan.inputs[self.input].session_span << 32;
        // 0 is a code object or candidate that is not known.
        let has_unknown = ["rocpd_kernelcodeobject", "ext_candidate"];
        let first = i64::from(has_unknown.iter().any(|table| same(&reference.table, table)));
        let moved = format!(
            "CASE WHEN {value} BETWEEN {first} AND {} THEN {value} + {offset}
                 WHEN typeof({value}) IN ('integer', 'real') AND {value} <> 0 THEN -1 ELSE {value} END",
            limit - 1
        );
        if !same(&reference.table, "rocpd_string") {
            return moved;
        }
        let id = format!("CASE WHEN {value} BETWEEN 0 AND {} THEN {value} + {offset} END", limit - 1);
        duplicate_texts::first_of(&id, &moved)
    }
}

/// A number plus another; what is no number, or too large, stays.
fn plus(value: &str, delta: &str) -> String {
    if delta == "0" {
        return value.to_string();
    }
    format!(
        "CASE WHEN typeof({value}) = 'integer' AND {value} BETWEEN {} AND {MOVABLE} THEN {value} + {delta} ELSE {value} END",
        -MOVABLE
    )
}
