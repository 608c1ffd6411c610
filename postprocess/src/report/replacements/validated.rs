//! What candidates and the program's kernels left in copies of the same buffers.

use rpd_schema::text::{shown, text_of};
use rusqlite::Connection;
use serde::Serialize;

use crate::region::Selected;
use crate::trace::{Strings, has_table};

/// A buffer argument of a kernel after the candidate and after the program's kernel, in all dispatches of a trace that were compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValidatedBuffer {
    /// For two runs the one that compared: `A` or `B`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<char>,
    /// The kernel's name.
    pub kernel: String,
    /// The candidate's file.
    pub candidate: String,
    /// Place among the kernel's arguments, from 0; none where nothing could be compared.
    pub argument: Option<i64>,
    /// `bytes`, `f16`, `bf16`, `f32` or `f64`.
    pub compared: String,
    /// Dispatches.
    pub dispatches: i64,
    /// Elements that were compared, of all dispatches.
    pub elements: i64,
    /// How many of them the program's kernel changed.
    pub written: i64,
    /// How many differ.
    pub different: i64,
    /// Dispatches in which some differ.
    pub different_dispatches: i64,
    /// Place of the first that differs in the first such dispatch, in elements from the argument's address.
    pub first: Option<i64>,
    /// What the program's kernel left there.
    pub original_value: String,
    /// What the candidate left there.
    pub candidate_value: String,
    /// Why nothing could be compared.
    pub reason: String,
}

/// Those of a part of a trace, by kernel, candidate and argument.
///
/// # Errors
/// When the trace cannot be read.
pub(super) fn validated(
    (trace, selected): (&Connection, &Selected),
    run: Option<char>,
) -> rusqlite::Result<Vec<ValidatedBuffer>> {
    let mut found = Vec::new();
    if !has_table(trace, "ext_validation")? || !has_table(trace, "ext_replacement")? {
        return Ok(found);
    }
    // The values beside min() are those of the row that has it.
    let texts = ["compared", "original", "candidate", "reason"].map(|column| shown(&format!("V.{column}")));
    let [compared, original, candidate, reason] = texts;
    let path = shown("C.path");
    let mut rows = trace.prepare(&format!(
        "SELECT O.description_id, {path}, V.argument, {compared}, {reason}, count(DISTINCT V.op_id), sum(V.elements), sum(V.written),
             sum(V.different), count(DISTINCT CASE WHEN V.different > 0 THEN V.op_id END),
             min(CASE WHEN V.different > 0 THEN V.id END), V.first, {original}, {candidate}
         FROM ext_validation V JOIN rocpd_op O ON O.id = V.op_id
             LEFT JOIN ext_replacement R ON R.op_id = V.op_id LEFT JOIN ext_candidate C ON C.id = R.candidate_id
         WHERE {} GROUP BY 1, 2, 3, 4, 5 ORDER BY min(V.id)",
        selected.op_condition(trace, "V.op_id")?
    ))?;
    let mut rows = rows.query([])?;
    let mut strings = Strings::of(trace)?;
    while let Some(row) = rows.next()? {
        let number = |place: usize| Ok::<_, rusqlite::Error>(row.get_ref(place)?.as_i64().unwrap_or(0));
        let text = |place: usize| Ok::<_, rusqlite::Error>(text_of(row.get_ref(place)?).into_owned());
        let differs = row.get_ref(10)?.as_i64().is_ok();
        found.push(ValidatedBuffer {
            run,
            kernel: strings.get(number(0)?)?.unwrap_or_default(),
            candidate: text(1)?,
            argument: Some(number(2)?).filter(|argument| *argument >= 0),
            compared: text(3)?,
            reason: text(4)?,
            dispatches: number(5)?,
            elements: number(6)?,
            written: number(7)?,
            different: number(8)?,
            different_dispatches: number(9)?,
            first: if differs { Some(number(11)?) } else { None },
            original_value: if differs { text(12)? } else { String::new() },
            candidate_value: if differs { text(13)? } else { String::new() },
        });
    }
    Ok(found)
}
