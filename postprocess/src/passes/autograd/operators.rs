//! From the texts of markers to `ext_autogradapi`, and back.

use anyhow::Result;
use roaring::RoaringTreemap;
use rpd_schema::text::arguments;
use rpd_sql::insert::Insert;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row};

use super::marker::{MarkerText, Operator};
use crate::pass::Change;
use crate::pass::batch::InsertBatch;
use crate::pass::texts::Texts;
use crate::text;

/// Its table.
const AUTOGRADAPI: Insert = Insert {
    table: "ext_autogradapi",
    columns: &["api_ptr_id", "autogradName_id", "seq", "op_id", "sizes", "input_op_ids"],
};

/// Calls that are read before what they change is written: SQLite does not change a table well that it is reading.
const ROWS_PER_STEP: usize = 1 << 14;

/// Look-alikes that are named.
const EXAMPLES: usize = 3;

/// Columns of a terminal for one of them.
const EXAMPLE_WIDTH: usize = 60;

/// What became of the markers of a file.
#[derive(Default)]
pub(crate) struct TakenMarkers {
    /// Rows of `ext_autogradapi`.
    pub(crate) operators: u64,
    /// Markers that have the beginning of a field but are no operators.
    pub(crate) look_alikes: u64,
    /// The first of them, harmless and short.
    pub(crate) examples: Vec<String>,
    /// Ids of texts that calls had as arguments before those were cut.
    pub(crate) cut: RoaringTreemap,
}

/// A marker whose arguments are cut: its row, and what they are then.
struct CutMarker {
    row: i64,
    name: i64,
}

/// Fills `ext_autogradapi` from the markers and, unless `keep_args`, leaves of their arguments the operator's name.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn take(change: &Change<'_>, keep_args: bool) -> Result<TakenMarkers> {
    let trace = change.trace;
    let texts = change.args_table();
    let mut select = trace.prepare(&format!(
        "SELECT A.rowid, A.id, A.args_id, {} FROM rocpd_api A JOIN {texts} T ON T.id = A.args_id
         WHERE A.rowid > ?1 AND A.apiName_id IN (SELECT id FROM rocpd_string WHERE string = 'UserMarker')
         ORDER BY A.rowid LIMIT {ROWS_PER_STEP}",
        arguments("T.string")
    ))?;
    let mut names = Texts::of(trace, "rocpd_string")?;
    let mut args = (texts != "rocpd_string").then(|| Texts::of(trace, texts)).transpose()?;
    let mut operators = InsertBatch::new(trace, &AUTOGRADAPI)?;
    let mut update = trace.prepare("UPDATE rocpd_api SET args_id = ?2 WHERE rowid = ?1")?;
    let mut taken = TakenMarkers::default();
    let (mut after, mut done) = (i64::MIN, 0);
    let mut cuts = Vec::new();
    loop {
        change.show(&format!("autograd: {done} markers"));
        change.check()?;
        let mut rows = select.query([after])?;
        let mut read = 0;
        while let Some(row) = rows.next()? {
            read += 1;
            after = row.get(0)?;
            let text = match row.get_ref(3)? {
                // No text, or one that is too long for a marker of PyTorch's.
                ValueRef::Null => continue,
                text => text_of(text),
            };
            let operator = match text.as_deref().map_or(MarkerText::LookAlike, MarkerText::of) {
                MarkerText::Plain => continue,
                MarkerText::Operator(operator) => operator,
                MarkerText::LookAlike => {
                    taken.look_alike(row)?;
                    continue;
                }
            };
            let name = names.id(operator.name)?;
            operators.push(cells(row.get(1)?, name, &operator))?;
            if !keep_args {
                let name = args.as_mut().map_or(Ok(name), |args| args.id(operator.name))?;
                cuts.push(CutMarker { row: after, name });
                if let Ok(id) = row.get_ref(2)?.as_i64() {
                    taken.cut.insert(id.cast_unsigned());
                }
            }
        }
        drop(rows);
        for CutMarker { row, name } in cuts.drain(..) {
            update.execute([row, name])?;
        }
        done += read;
        if read < ROWS_PER_STEP {
            taken.operators = operators.finish()?;
            return Ok(taken);
        }
    }
}

/// The text of a cell, where it is one.
fn text_of(value: ValueRef<'_>) -> Option<String> {
    value.as_str().ok().map(ToString::to_string)
}

fn cells(api: i64, name: i64, operator: &Operator<'_>) -> [Value; 6] {
    let number = |number: Option<i64>| number.map_or_else(|| Value::Text(String::new()), Value::Integer);
    let list = |list: Option<&str>| Value::Text(list.unwrap_or_default().to_string());
    [
        Value::Integer(api),
        Value::Integer(name),
        number(operator.seq),
        number(operator.op_id),
        list(operator.sizes),
        list(operator.input_op_ids),
    ]
}

impl TakenMarkers {
    fn look_alike(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.look_alikes += 1;
        if self.examples.len() < EXAMPLES {
            let text = rpd_schema::text::text_of(row.get_ref(3)?);
            self.examples.push(format!("{:?}", text::shorten(&text::escape(&text), EXAMPLE_WIDTH)));
        }
        Ok(())
    }
}

/// Gives markers whose arguments were cut what they had before, out of `ext_autogradapi`. A marker's arguments were
/// cut if they are the operator's name.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn put_back(change: &Change<'_>) -> Result<()> {
    let trace = change.trace;
    let texts = change.args_table();
    let indexes = indexes(trace, texts)?;
    for (name, _) in &indexes {
        trace.execute_batch(&format!("DROP INDEX {}", crate::trace::layout::quote(name)))?;
    }
    let mut select = trace.prepare(&format!(
        "SELECT E.rowid, A.rowid, N.string, E.seq, E.op_id, E.sizes, E.input_op_ids
         FROM ext_autogradapi E
             JOIN rocpd_api A ON A.id = E.api_ptr_id
             JOIN rocpd_string N ON N.id = E.autogradName_id
             JOIN {texts} T ON T.id = A.args_id AND T.string = N.string
         WHERE E.rowid > ?1 ORDER BY E.rowid LIMIT {ROWS_PER_STEP}"
    ))?;
    let mut args = Texts::of(trace, texts)?;
    let mut update = trace.prepare("UPDATE rocpd_api SET args_id = ?2 WHERE rowid = ?1")?;
    let (mut after, mut done) = (i64::MIN, 0);
    let mut uncut = Vec::new();
    loop {
        change.show(&format!("autograd: arguments of {done} markers put back"));
        change.check()?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            let (sizes, input_op_ids) = (text_of(row.get_ref(5)?), text_of(row.get_ref(6)?));
            let operator = Operator {
                name: row.get_ref(2)?.as_str().unwrap_or_default(),
                seq: row.get_ref(3)?.as_i64().ok(),
                op_id: row.get_ref(4)?.as_i64().ok(),
                sizes: sizes.as_deref().filter(|list| !list.is_empty()),
                input_op_ids: input_op_ids.as_deref().filter(|list| !list.is_empty()),
            };
            uncut.push((row.get::<_, i64>(1)?, operator.to_string()));
        }
        drop(rows);
        let read = uncut.len();
        for (row, text) in uncut.drain(..) {
            update.execute([row, args.id(&text)?])?;
        }
        done += read;
        if read < ROWS_PER_STEP {
            break;
        }
    }
    indexes.iter().try_for_each(|(_, sql)| Ok(trace.execute_batch(sql)?))
}

/// Name and statement of the indexes of a table that statements made.
fn indexes(trace: &Connection, table: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut select = trace.prepare(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND lower(tbl_name) = ?1 AND sql IS NOT NULL",
    )?;
    let indexes = select.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
    indexes.collect()
}
