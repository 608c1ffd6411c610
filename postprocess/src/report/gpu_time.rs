//! The operations of each GPU in the order of time, whichever queue they ran on.

use std::collections::HashMap;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;
use crate::trace::Strings;
use crate::trace::barriers::barriers;

/// An operation; ordered by GPU, then by start, end and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct GpuOp {
    pub(super) gpu: i64,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Row of `rocpd_op`.
    pub(super) id: i64,
    pub(super) queue: i64,
    /// What it is called.
    pub(super) name: OpName,
}

/// Two ids of texts: description and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct OpName {
    description: i64,
    op_type: i64,
}

impl OpName {
    /// Ids of the description, and of the type.
    pub(crate) fn ids(self) -> (i64, i64) {
        (self.description, self.op_type)
    }
}

/// All operations of a trace, and what is none of a GPU's work.
pub(super) struct GpuOps {
    pub(super) ops: Sorted<GpuOp>,
    /// What was left out.
    pub(super) left_out: LeftOut,
}

/// Rows that reports about a GPU's time leave out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Operations with times that `rpd check` has as impossible, or far from nearly all others, or with a GPU or queue that is no number.
    pub impossible: u64,
    /// Barriers: a GPU that waits does no work.
    pub barriers: u64,
}

impl GpuOps {
    /// Reads and sorts those of a part of a trace, on disk where there are many.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(super) fn of(trace: &Connection, selected: &Selected) -> Result<GpuOps> {
        let mut sorter = Sorter::new();
        let left_out = each_op(trace, selected, "", |op| sorter.push(op))?;
        Ok(GpuOps { ops: sorter.sorted()?, left_out })
    }
}

/// Shows `visit` each selected operation that is a GPU's work, in the order of the file or as `order` (SQL) has it, and says what is none.
///
/// # Errors
/// When the trace cannot be read, and those of `visit`.
pub(super) fn each_op(
    trace: &Connection,
    selected: &Selected,
    order: &str,
    mut visit: impl FnMut(GpuOp) -> Result<()>,
) -> Result<LeftOut> {
    let mut outliers = Outliers::new();
    each_sound_op(
        trace,
        |id| selected.has_op(id),
        order,
        |op| {
            let is_outlier = outliers.is_outlier(trace, (op.start, op.end))?;
            if !is_outlier {
                visit(op)?;
            }
            Ok(!is_outlier)
        },
    )
}

/// The same of operations whose ids `is_asked` for, those far from all others included: `visit` tells if one counts.
///
/// # Errors
/// As [`each_op`].
pub(super) fn each_sound_op(
    trace: &Connection,
    is_asked: impl Fn(i64) -> bool,
    order: &str,
    mut visit: impl FnMut(GpuOp) -> Result<bool>,
) -> Result<LeftOut> {
    let barriers = barriers(trace)?;
    let mut left_out = LeftOut::default();
    // By itself, "end" is a text to SQLite where there is no such column.
    let mut rows = trace.prepare(&format!(
        r#"SELECT gpuId, start, rocpd_op."end", id, description_id, opType_id, queueId FROM rocpd_op {order}"#
    ))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let number = |column| row.get_ref(column).map(|value| value.as_i64().unwrap_or(-1));
        let id = number(3)?;
        if !is_asked(id) {
            continue;
        }
        if barriers.has(id) {
            left_out.barriers += 1;
            continue;
        }
        let (
            ValueRef::Integer(gpu),
            ValueRef::Integer(queue),
            ValueRef::Integer(start),
            ValueRef::Integer(end),
        ) = (row.get_ref(0)?, row.get_ref(6)?, row.get_ref(1)?, row.get_ref(2)?)
        else {
            left_out.impossible += 1;
            continue;
        };
        let name = OpName { description: number(4)?, op_type: number(5)? };
        let op = GpuOp { gpu, start, end, id, queue, name };
        if !are_sound((start, end)) || !visit(op)? {
            left_out.impossible += 1;
        }
    }
    Ok(left_out)
}

/// The texts of operations, each read once.
pub(super) struct OpTexts<'trace> {
    strings: Strings<'trace>,
    known: HashMap<i64, String>,
}

impl OpTexts<'_> {
    /// Those of a trace.
    ///
    /// # Errors
    /// When it has no table of texts.
    pub(super) fn of(trace: &Connection) -> rusqlite::Result<OpTexts<'_>> {
        Ok(OpTexts { strings: Strings::of(trace)?, known: HashMap::new() })
    }

    /// A text; empty where the file has none.
    pub(super) fn text(&mut self, id: i64) -> rusqlite::Result<&str> {
        if !self.known.contains_key(&id) {
            let text = self.strings.get(id)?.unwrap_or_default();
            self.known.insert(id, text);
        }
        Ok(self.known.get(&id).map_or("", String::as_str))
    }

    /// The description of an operation (a kernel's name), or its type where that is empty (copies).
    pub(super) fn name(&mut self, name: OpName) -> rusqlite::Result<String> {
        for id in [name.description, name.op_type] {
            let text = self.text(id)?;
            if !text.is_empty() {
                return Ok(text.to_string());
            }
        }
        Ok("(no name in the file)".to_string())
    }

    /// The description and the type of an operation.
    pub(super) fn description_and_type(&mut self, name: OpName) -> rusqlite::Result<(String, String)> {
        Ok((self.text(name.description)?.to_string(), self.text(name.op_type)?.to_string()))
    }
}
