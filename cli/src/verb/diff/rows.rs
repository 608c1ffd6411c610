//! The comparison for programs.

use anyhow::Result;
use rpd_escape::csv_field;
use rpd_postprocess::report::diff::{Diff, DiffRow};
use serde::Serialize;

use super::Shown;
use crate::output;

/// Everything.
#[derive(Serialize)]
struct Document<'a> {
    a: &'a [String],
    b: &'a [String],
    #[serde(flatten)]
    found: &'a Diff,
}

/// Writes one object.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn write_json(shown: &Shown<'_>) -> Result<()> {
    let [a, b] = &shown.files;
    output::write_json(&Document { a, b, found: shown.found })
}

/// Writes a line for each row.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn write_csv(shown: &Shown<'_>) -> Result<()> {
    output::write(|out| {
        output::write_csv_record(
            out,
            [
                "kind",
                "name",
                "replaced_by",
                "group",
                "result",
                "a_ns",
                "b_ns",
                "change_ns",
                "change_percent",
                "low_percent",
                "high_percent",
                "effect_ns",
                "share_percent",
                "delta",
                "p",
                "q",
                "centre",
                "a_samples",
                "b_samples",
                "a_calls",
                "b_calls",
                "a_total_ns",
                "b_total_ns",
            ],
        )?;
        shown
            .found
            .rows
            .iter()
            .take(shown.most)
            .try_for_each(|row| output::write_csv_record(out, record(row)))
    })
}

fn record(row: &DiffRow) -> Vec<String> {
    let number = |value: f64| format!("{value:.4}");
    let maybe = |value: Option<f64>| value.map(number).unwrap_or_default();
    let probability = |value: Option<f64>| value.map(|value| format!("{value:e}")).unwrap_or_default();
    vec![
        row.kind.name().to_string(),
        csv_field(&row.name).into_owned(),
        row.replaced_by.as_deref().map(|name| csv_field(name).into_owned()).unwrap_or_default(),
        row.group.clone(),
        row.result.name().to_string(),
        number(row.a_ns),
        number(row.b_ns),
        number(row.change_ns),
        maybe(row.change_percent),
        maybe(row.low_percent),
        maybe(row.high_percent),
        number(row.effect_ns),
        number(row.share_percent),
        maybe(row.delta),
        probability(row.p),
        probability(row.q),
        row.centre.to_string(),
        row.a_samples.to_string(),
        row.b_samples.to_string(),
        number(row.a_calls),
        number(row.b_calls),
        row.a_total_ns.to_string(),
        row.b_total_ns.to_string(),
    ]
}
