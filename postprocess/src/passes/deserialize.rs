//! Calls and ops that a program wrote as markers become rows of calls and ops.
//!
//! A marker whose text has `s_api = NAME` becomes a call of that name, with the marker's id, thread, times and text. One with
//! `s_op = TYPE` becomes an op of that type, whose `gpuId`, `queueId`, `sequenceId`, `completionSignal`, `start` and `end` may
//! be in the text (else 0, empty, and the marker's times) and whose description is the text; the marker goes, unless it
//! is a call too, which the op is linked to then. What cannot be such a row stays a marker, and is counted.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use rpd_schema::{Version, text};
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::pass::texts::Texts;
use crate::pass::{Change, Definition};
use crate::trace::arguments;
use crate::trace::ids::Ids;
use crate::trace::layout::{Layout, quote, same};

/// As `rpd deserialize` makes it.
pub static DEFINITION: Definition = Definition {
    name: "deserialize",
    about: "Make rows of calls and operations that a program wrote as markers",
    tag: "Deserialize",
    reads: &["rocpd_api"],
    tables: &[],
    views: &[],
    changes: None,
    making: None,
};

/// Rows between two lines of progress.
const ROWS_PER_STEP: u64 = 1 << 16;

/// What became of the markers.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Deserialized {
    /// Markers that are calls now.
    pub calls: u64,
    /// Ops that were added.
    pub ops: u64,
    /// Markers whose numbers or times are none.
    pub wrong: u64,
}

/// A serialised op.
#[derive(Debug, PartialEq, Eq)]
struct Op<'a> {
    gpu: i64,
    queue: i64,
    sequence: i64,
    completion_signal: &'a str,
    start: i64,
    end: i64,
}

impl<'a> Op<'a> {
    /// The op in the text of a marker with these times. None where a number is none, or it ends before it starts.
    fn of(text: &'a str, start: i64, end: i64) -> Option<Op<'a>> {
        let mut op = Op { gpu: 0, queue: 0, sequence: 0, completion_signal: "", start, end };
        for (key, value) in arguments::pairs(text) {
            let place = match key {
                "gpuId" => &mut op.gpu,
                "queueId" => &mut op.queue,
                "sequenceId" => &mut op.sequence,
                "start" => &mut op.start,
                "end" => &mut op.end,
                "completionSignal" => {
                    op.completion_signal = value;
                    continue;
                }
                _ => continue,
            };
            *place = value.parse().ok()?;
        }
        (op.start <= op.end).then_some(op)
    }
}

/// Makes rows of all serialised markers, which are the calls with these names.
///
/// # Errors
/// When the file cannot be read or written, or a session has no ids left.
pub(super) fn make_rows(change: &Change<'_>, names: &[String]) -> Result<Deserialized> {
    let trace = change.trace;
    let args = if change.version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
    // Kept apart, so that nothing is read that was just written.
    let create = format!(
        "CREATE TEMP TABLE serialised AS
             SELECT A.id, A.start, A.\"end\", {text} AS text FROM rocpd_api A JOIN {args} T ON T.id = A.args_id
             WHERE A.apiName_id IN (SELECT id FROM rocpd_string WHERE string IN (SELECT value FROM json_each(?1)))
                 AND (instr({text}, 's_api') OR instr({text}, 's_op'))
                 AND typeof(A.start) = 'integer' AND typeof(A.\"end\") = 'integer'
             ORDER BY A.id",
        text = text::arguments("T.string")
    );
    trace.execute(&create, [serde_json::to_string(names)?])?;
    let mut made = Deserialized::default();
    let mut gone = Ids::default();
    {
        let mut rows = MadeRows::of(change)?;
        let mut markers =
            trace.prepare("SELECT id, start, \"end\", text FROM temp.serialised ORDER BY rowid")?;
        let mut markers = markers.query([])?;
        let mut done = 0_u64;
        while let Some(marker) = markers.next()? {
            if done.is_multiple_of(ROWS_PER_STEP) {
                change.show(&format!("markers: {done}"));
                change.check()?;
            }
            done += 1;
            let text = text::text_of(marker.get_ref(3)?);
            let (id, start, end) = (marker.get(0)?, marker.get(1)?, marker.get(2)?);
            let named = |key| arguments::value(&text, key).filter(|name| !name.is_empty());
            let (call, op) = (named("s_api"), named("s_op"));
            let op = match op.map(|op_type| (op_type, Op::of(&text, start, end))) {
                Some((_, None)) => {
                    made.wrong += 1;
                    continue;
                }
                Some((op_type, Some(op))) => Some((op_type, op)),
                None => None,
            };
            if let Some(name) = call {
                rows.call(id, name)?;
                made.calls += 1;
            }
            if let Some((op_type, op)) = op {
                let op_id = rows.op(id >> 32, op_type, &text, &op)?;
                made.ops += 1;
                match call {
                    Some(_) => rows.link(id, op_id)?,
                    None => gone.add(id),
                }
            }
        }
    }
    remove(trace, gone)?;
    trace.execute_batch("DROP TABLE temp.serialised")?;
    Ok(made)
}

/// Removes these calls and the rows that hang off them.
fn remove(trace: &Connection, calls: Ids) -> Result<()> {
    if calls.is_empty() {
        return Ok(());
    }
    Arc::new(calls).name(trace, "is_gone")?;
    for table in &Layout::everything(trace)?.tables {
        for reference in table.references.iter().filter(|reference| same(&reference.table, "rocpd_api")) {
            let (name, column) = (quote(&table.name), quote(&reference.column));
            trace.execute(&format!("DELETE FROM {name} WHERE is_gone({column})"), [])?;
        }
    }
    trace.execute("DELETE FROM rocpd_api WHERE is_gone(id)", [])?;
    Ok(())
}

/// The rows that come of markers.
struct MadeRows<'a> {
    trace: &'a Connection,
    version: Version,
    texts: Texts<'a>,
    /// By session, the last id that an op has.
    last_op: HashMap<i64, i64>,
}

impl<'a> MadeRows<'a> {
    fn of(change: &Change<'a>) -> rusqlite::Result<MadeRows<'a>> {
        let texts = Texts::of(change.trace, "rocpd_string")?;
        Ok(MadeRows { trace: change.trace, version: change.version, texts, last_op: HashMap::new() })
    }

    fn call(&mut self, id: i64, name: &str) -> Result<()> {
        let name = self.texts.id(name)?;
        self.trace
            .prepare_cached("UPDATE rocpd_api SET apiName_id = ?2 WHERE id = ?1")?
            .execute([id, name])?;
        Ok(())
    }

    fn op(&mut self, session: i64, op_type: &str, text: &str, op: &Op<'_>) -> Result<i64> {
        let id = self.next_op(session)?;
        let (description, op_type) = (self.texts.id(text)?, self.texts.id(op_type)?);
        let numbers = [id, op.gpu, op.queue, op.sequence, op.start, op.end, description, op_type];
        let columns = "id, gpuId, queueId, sequenceId, start, \"end\", description_id, opType_id";
        let places = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8";
        if self.version == Version::V3 {
            let insert = format!("INSERT INTO rocpd_op ({columns}) VALUES ({places})");
            self.trace.prepare_cached(&insert)?.execute(numbers)?;
        } else {
            let insert = format!("INSERT INTO rocpd_op ({columns}, completionSignal) VALUES ({places}, ?9)");
            let mut insert = self.trace.prepare_cached(&insert)?;
            let [id, gpu, queue, sequence, start, end, description, op_type] = numbers;
            insert.execute(params![
                id,
                gpu,
                queue,
                sequence,
                start,
                end,
                description,
                op_type,
                op.completion_signal
            ])?;
        }
        Ok(id)
    }

    fn next_op(&mut self, session: i64) -> Result<i64> {
        let end = (session + 1) << 32;
        let last = match self.last_op.get(&session) {
            Some(last) => *last,
            None => {
                let last: Option<i64> = self.trace.query_row(
                    "SELECT max(id) FROM rocpd_op WHERE id >= ?1 AND id < ?2",
                    [session << 32, end],
                    |row| row.get(0),
                )?;
                last.unwrap_or(session << 32)
            }
        };
        if last + 1 >= end {
            bail!("session {session} has no ids left for ops");
        }
        self.last_op.insert(session, last + 1);
        Ok(last + 1)
    }

    fn link(&self, call: i64, op: i64) -> Result<()> {
        self.trace
            .prepare_cached("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (?1, ?2)")?
            .execute([call, op])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Op;

    #[test]
    fn numbers_are_numbers_and_times_in_order() {
        let op = Op::of("s_op = x | gpuId = 2 | end=9 | start=-3 | completionSignal=0x1", 1, 5);
        assert_eq!(
            op,
            Some(Op { gpu: 2, queue: 0, sequence: 0, completion_signal: "0x1", start: -3, end: 9 })
        );
        assert_eq!(Op::of("s_op=x", 1, 5).map(|op| (op.start, op.end)), Some((1, 5)));
        for text in ["gpuId=two", "start=6", "end=", "queueId=9223372036854775808", "sequenceId=0x1"] {
            assert_eq!(Op::of(text, 1, 5), None, "{text}");
        }
    }
}
