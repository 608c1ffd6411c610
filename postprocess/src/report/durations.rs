//! Every dispatch of a trace in order of time: its kernel, when it was launched, when it ran.
//!
//! Operations and links are walked beside each other in the order of ids, and the answer is sorted by time, on disk where there is
//! much of it: memory does not grow with the trace.

use std::collections::HashMap;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::notes::{Notes, look};
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;
use crate::trace::op_kind::KERNEL_TYPES;
use crate::trace::{Strings, has_table};

/// A dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedDispatch<'a> {
    /// Name of its kernel.
    pub kernel: &'a str,
    /// When the call began that launched it; where no call did, when it began itself. Times in ns on the trace's clock.
    pub launched: i64,
    /// When it began.
    pub start: i64,
    /// When it ended.
    pub end: i64,
}

/// Hands the dispatches of a part of a trace to `each`. How many were left out because of their times.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when a signal came (`notes`), and those of `each`.
pub fn each(
    trace: &Connection,
    selected: &Selected,
    notes: &dyn Notes,
    mut each: impl FnMut(TimedDispatch<'_>) -> Result<()>,
) -> Result<u64> {
    let mut names = KernelNames { strings: Strings::of(trace)?, known: HashMap::new() };
    notes.show("dispatches in order of time");
    let (mut dispatches, impossible) = in_time(trace, selected, notes)?;
    notes.show("");
    while let Some(OrderedDispatch { launched, start, end, name, .. }) = dispatches.next()? {
        each(TimedDispatch { kernel: names.get(name)?, launched, start, end })?;
        look(notes)?;
    }
    Ok(impossible)
}

/// A dispatch with the id of its name, ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct OrderedDispatch {
    start: i64,
    end: i64,
    id: i64,
    launched: i64,
    name: i64,
}

fn in_time(
    trace: &Connection,
    selected: &Selected,
    notes: &dyn Notes,
) -> Result<(Sorted<OrderedDispatch>, u64)> {
    let mut links = links(trace)?;
    let mut link = links.next()?;
    let mut call = match has_table(trace, "rocpd_api")? {
        true => {
            Some(trace.prepare("SELECT start FROM rocpd_api WHERE id = ?1 AND typeof(start) = 'integer'")?)
        }
        false => None,
    };
    let mut stretching = Outliers::new();
    let (mut sorter, mut impossible) = (Sorter::new(), 0);
    let mut rows = trace.prepare(&format!(
        r#"SELECT id, start, "end", description_id FROM rocpd_op
           WHERE opType_id IN (SELECT id FROM rocpd_string WHERE string IN ({KERNEL_TYPES})) ORDER BY id"#
    ))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        notes.tick();
        look(notes)?;
        let (id, name) = (number(row, 0)?, number(row, 3)?);
        if !selected.has_op(id) {
            continue;
        }
        let times = match (row.get_ref(1)?, row.get_ref(2)?) {
            (ValueRef::Integer(start), ValueRef::Integer(end)) => Some((start, end)),
            _ => None,
        };
        let Some((start, end)) = times.filter(|times| are_sound(*times)) else {
            impossible += 1;
            continue;
        };
        if stretching.has(trace, (start, end))? {
            impossible += 1;
            continue;
        }
        let mut launched = None;
        while let Some([op, api]) = link.filter(|[op, _]| *op <= id) {
            if op == id
                && launched.is_none()
                && let Some(call) = &mut call
            {
                launched = call.query_row([api], |row| row.get(0)).optional()?;
            }
            link = links.next()?;
        }
        sorter.push(OrderedDispatch { start, end, id, launched: launched.unwrap_or(start), name })?;
    }
    Ok((sorter.sorted()?, impossible))
}

/// Operations and the calls that caused them, by operation.
fn links(trace: &Connection) -> Result<Sorted<[i64; 2]>> {
    let mut sorter = Sorter::new();
    if has_table(trace, "rocpd_api_ops")? {
        let mut rows = trace.prepare("SELECT op_id, api_id FROM rocpd_api_ops")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            if let (ValueRef::Integer(op), ValueRef::Integer(api)) = (row.get_ref(0)?, row.get_ref(1)?) {
                sorter.push([op, api])?;
            }
        }
    }
    sorter.sorted()
}

/// A number, -1 where there is something else.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    Ok(row.get_ref(column)?.as_i64().unwrap_or(-1))
}

/// Names that are remembered at once.
const REMEMBERED: usize = 4096;

/// The names of kernels by their ids.
struct KernelNames<'trace> {
    strings: Strings<'trace>,
    known: HashMap<i64, String>,
}

impl KernelNames<'_> {
    fn get(&mut self, id: i64) -> rusqlite::Result<&str> {
        if !self.known.contains_key(&id) {
            if self.known.len() == REMEMBERED {
                self.known.clear();
            }
            let name = self.strings.get(id)?.unwrap_or_default();
            self.known.insert(id, name);
        }
        Ok(self.known.get(&id).map_or("", String::as_str))
    }
}
