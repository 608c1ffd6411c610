//! Rules about what a row must not be: one SQL condition each, counted by the scan and used again by the repair.
//!
//! A condition sees its row as `t`. It may look other rows up by their keys, never search for them.

use super::kind::FindingKind;
use super::structure::own_id;
use crate::trace::layout::{Column, Layout, Reference, TableLayout, quote, same};
use crate::trace::op_kind::KERNEL_TYPES;

/// Something wrong with rows of one table.
#[derive(Debug)]
pub(crate) struct Rule {
    /// What it is.
    pub(crate) kind: FindingKind,
    /// Table, or table and column.
    pub(crate) place: String,
    /// True for the rows in question.
    pub(crate) condition: String,
    /// What is known beyond the kind's meaning.
    pub(crate) detail: Option<String>,
    /// What `--repair` does to them.
    pub(crate) mend: Option<Mend>,
}

/// What can be done without inventing anything.
#[derive(Debug)]
pub(crate) enum Mend {
    /// A missing row is better than a wrong number.
    Remove,
    /// A reference to a text becomes one to the empty text.
    EmptyText {
        /// The column.
        column: String,
        /// The table of texts.
        texts: String,
        /// Its key.
        key: String,
    },
    /// A reference becomes 0, which stands for "not known".
    Zero {
        /// The column.
        column: String,
    },
}

/// Times at or beyond this, in ns, are 146 years after a host's boot or after 1970.
pub(crate) const END_OF_TIME: i64 = 1 << 62;

/// The rules for a table.
pub(crate) fn rules(layout: &Layout, table: &TableLayout) -> Vec<Rule> {
    let mut rules: Vec<Rule> = table.references.iter().map(|reference| dangling(table, reference)).collect();
    if table.is_timed() {
        rules.extend(times(table));
    }
    let is_number = |column: &&Column| {
        column.is_integer || is_time(table, &column.name) || own_id(table) == Some(column.name.as_str())
    };
    for column in table.columns.iter().filter(is_number) {
        rules.extend(numbers(table, &column.name));
    }
    if table.is("rocpd_op") && layout.table("rocpd_string").is_some() {
        rules.extend(unnamed(table));
    }
    rules
}

/// The condition that both times are possible and in order.
pub(crate) fn has_sound_times() -> String {
    format!("{ARE_INTEGERS} AND t.start > 0 AND t.\"end\" >= t.start AND t.\"end\" < {END_OF_TIME}")
}

/// The condition that neither time is one that cannot be; what is no integer is no time.
pub(crate) fn has_possible_times() -> String {
    let is_possible =
        |column| format!("(typeof({column}) <> 'integer' OR {column} > 0 AND {column} < {END_OF_TIME})");
    format!("{} AND {}", is_possible("t.start"), is_possible("t.\"end\""))
}

/// Whether a time, ns, can be, as the rules of `rpd check` have it.
pub(crate) fn is_possible_time(time: i64) -> bool {
    time > 0 && time < END_OF_TIME
}

/// Whether two times are possible and in order, as the rules of `rpd check` have it.
pub fn are_sound((start, end): (i64, i64)) -> bool {
    start > 0 && end >= start && end < END_OF_TIME
}

/// The condition that both times are integers.
const ARE_INTEGERS: &str = "typeof(t.start) = 'integer' AND typeof(t.\"end\") = 'integer'";

/// Tables of the format in which every number and every reference says something: without it tools leave the row out.
const CORE: [&str; 3] = ["rocpd_api", "rocpd_op", "rocpd_api_ops"];

fn is_core(table: &TableLayout) -> bool {
    CORE.iter().any(|core| table.is(core))
}

fn is_time(table: &TableLayout, column: &str) -> bool {
    table.is_timed() && (same(column, "start") || same(column, "end"))
}

fn dangling(table: &TableLayout, reference: &Reference) -> Rule {
    let Reference { column, table: to, key } = reference;
    let quoted = quote(column);
    let is_there = if is_core(table) { String::new() } else { format!("t.{quoted} IS NOT NULL AND ") };
    let mut condition = format!(
        "{is_there}NOT EXISTS (SELECT 1 FROM {} AS x WHERE x.{} = t.{quoted})",
        quote(to),
        quote(key)
    );
    let is_text = same(to, "rocpd_string") || same(to, "rocpd_ustring");
    let mend = if is_text {
        Mend::EmptyText { column: column.clone(), texts: to.clone(), key: key.clone() }
    } else if may_be_unknown(table, column) {
        condition.push_str(&format!(" AND t.{quoted} IS NOT 0 AND t.{quoted} IS NOT ''"));
        Mend::Zero { column: column.clone() }
    } else {
        Mend::Remove
    };
    Rule {
        kind: FindingKind::DanglingId,
        place: format!("{}.{column}", table.name),
        condition,
        detail: Some(format!("no such row in {to}")),
        mend: Some(mend),
    }
}

/// Whether 0 in this reference means that it is not known; other recorders leave it empty. Without its row a dispatch would be one
/// that was not replaced.
fn may_be_unknown(table: &TableLayout, column: &str) -> bool {
    same(column, "codeObject_id") || (table.is("ext_replacement") && !same(column, "op_id"))
}

fn times(table: &TableLayout) -> [Rule; 2] {
    let rule = |kind, condition: String| Rule {
        kind,
        place: table.name.clone(),
        condition,
        detail: None,
        mend: Some(Mend::Remove),
    };
    let possible = has_possible_times();
    [
        rule(FindingKind::ImpossibleTime, format!("{ARE_INTEGERS} AND NOT ({possible})")),
        rule(FindingKind::NegativeDuration, format!("{ARE_INTEGERS} AND {possible} AND t.\"end\" < t.start")),
    ]
}

fn numbers(table: &TableLayout, column: &str) -> Vec<Rule> {
    let quoted = quote(column);
    let is_reference = table.references.iter().any(|reference| same(&reference.column, column));
    let rule = |kind, condition: String| Rule {
        kind,
        place: format!("{}.{column}", table.name),
        condition,
        detail: None,
        mend: None,
    };
    // The type first: it decides for nearly every row, and is all that is looked at then.
    let is_empty = format!("typeof(t.{quoted}) = 'text' AND t.{quoted} = ''");
    let is_other = match is_time(table, column) || is_core(table) {
        true => format!("typeof(t.{quoted}) <> 'integer'"),
        false => format!("typeof(t.{quoted}) <> 'integer' AND t.{quoted} IS NOT NULL"),
    };
    if is_reference {
        // What is no id is dangling, unless empty stands for "not known".
        return if may_be_unknown(table, column) {
            vec![rule(FindingKind::EmptyNumber, is_empty)]
        } else {
            Vec::new()
        };
    }
    if is_time(table, column) {
        return vec![rule(FindingKind::NotANumber, is_other)];
    }
    vec![
        rule(FindingKind::NotANumber, format!("{is_other} AND t.{quoted} IS NOT ''")),
        rule(FindingKind::EmptyNumber, is_empty),
    ]
}

fn unnamed(table: &TableLayout) -> Option<Rule> {
    if !table.has("description_id") || !table.has("opType_id") {
        return None;
    }
    let empty = "t.description_id IN (SELECT id FROM rocpd_string WHERE string = '')";
    let types = format!("t.opType_id IN (SELECT id FROM rocpd_string WHERE string IN ('', {KERNEL_TYPES}))");
    Some(Rule {
        kind: FindingKind::UnnamedOp,
        place: table.name.clone(),
        condition: format!("{empty} AND {types}"),
        detail: None,
        mend: None,
    })
}
