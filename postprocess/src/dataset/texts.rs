//! Rows by their ids, many at a time: ids that are near each other are read in one go.

use anyhow::Result;
use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, Row, Statement};

use crate::trace::barriers::BARRIER;
use crate::trace::layout::Layout;

/// Bytes of the texts of a block of rows that are kept in memory. A block with more is cut in two.
pub(super) const ROOM: usize = 16 << 20;

/// Ids that are not asked for between two that are, and are read over: stepping over a row costs less than finding the next.
const GAP: i64 = 16;

/// TextsById that are longer stand in the rows of calls only: streams and addresses have 18 characters.
const WORD: usize = 256;

/// The id of the text [`BARRIER`], which the trace may not have.
pub(super) const BARRIER_TYPE: i64 = i64::MIN;

/// Calls `each` with the ids of the runs in `ids`, which are sorted: from and to.
///
/// # Errors
/// The first of `each`.
pub(super) fn runs(ids: &[i64], mut each: impl FnMut(i64, i64) -> Result<bool>) -> Result<bool> {
    let mut at = 0;
    while let Some(first) = ids.get(at).copied() {
        let mut last = first;
        while let Some(next) = ids.get(at).copied().filter(|next| next.saturating_sub(last) <= GAP) {
            last = next;
            at += 1;
        }
        if !each(first, last)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A text in a row of the trace (SQL): a long one is cut, and says so.
pub(super) fn word(column: &str) -> String {
    format!(
        "CASE WHEN octet_length({column}) <= {WORD} THEN {column}
         ELSE substr({column}, 1, {}) || '… [' || octet_length({column}) || ' bytes]' END",
        WORD / 4
    )
}

/// The texts of a trace by their ids.
pub(super) struct TextsById<'trace>(Option<Statement<'trace>>);

impl TextsById<'_> {
    /// Those of `table`; none where the trace does not have it.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of_table<'trace>(
        trace: &'trace Connection,
        layout: &Layout,
        table: &str,
    ) -> Result<TextsById<'trace>> {
        if layout.table(table).is_none() {
            return Ok(TextsById(None));
        }
        let query =
            format!("SELECT id, {} FROM {table} WHERE id BETWEEN ?1 AND ?2 ORDER BY id", shown("string"));
        Ok(TextsById(Some(trace.prepare(&query)?)))
    }

    /// The texts with these ids, in their order; none where they have more bytes than [`ROOM`] and are several.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of(&mut self, ids: &[i64]) -> Result<Option<Vec<Option<Box<str>>>>> {
        let mut found: Vec<Option<Box<str>>> = vec![None; ids.len()];
        if let Some(place) = ids.iter().position(|id| *id == BARRIER_TYPE) {
            found[place] = Some(BARRIER.into());
        }
        let Some(statement) = &mut self.0 else { return Ok(Some(found)) };
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_unstable_by_key(|place| ids[*place]);
        let sorted: Vec<i64> = order.iter().map(|place| ids[*place]).collect();
        let (mut at, mut bytes) = (0, 0);
        let is_whole = runs(&sorted, |first, last| {
            let mut rows = statement.query([first, last])?;
            while let Some(row) = rows.next()? {
                let Some(id) = id(row) else { continue };
                while sorted.get(at).is_some_and(|wanted| *wanted < id) {
                    at += 1;
                }
                if sorted.get(at) == Some(&id) {
                    let text: Box<str> = text_of(row.get_ref(1)?).into();
                    bytes += text.len();
                    found[order[at]] = Some(text);
                    if bytes > ROOM && ids.len() > 1 {
                        return Ok(false);
                    }
                }
            }
            Ok(true)
        })?;
        Ok(is_whole.then_some(found))
    }
}

/// The id of a row, which is its first column.
pub(super) fn id(row: &Row<'_>) -> Option<i64> {
    row.get_ref(0).ok()?.as_i64().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_near_are_one_run() {
        let mut found = Vec::new();
        let ids = [i64::MIN, 1, 2, 3, 19, 40, i64::MAX];
        runs(&ids, |first, last| {
            found.push((first, last));
            Ok(true)
        })
        .unwrap();
        assert_eq!(found, [(i64::MIN, i64::MIN), (1, 19), (40, 40), (i64::MAX, i64::MAX)]);
    }
}
