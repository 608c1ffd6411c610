//! Ops and the calls that caused them, compared in one ordered pass.
//!
//! `rocpd_api_ops` has no index, so its rows are sorted by op (SQLite does it, on disk when there are many) and
//! walked beside the ops.

use rusqlite::Connection;

use super::finding::{CheckFinding, EXAMPLES, Example};
use super::kind::FindingKind;
use crate::trace::barriers::BARRIER;
use crate::trace::layout::Layout;
use crate::trace::op_kind::KERNEL_TYPES;

/// Ops with no call, with several, links that are there more than once, and kernels of which neither `ext_dispatch` nor the row of their
/// call says how they were launched. `running`: sessions whose ops are not judged; `described`: those in which others say it.
///
/// # Errors
/// When one of the tables cannot be read.
pub(crate) fn compare(
    trace: &Connection,
    layout: &Layout,
    running: &[u32],
    described: &[i64],
) -> rusqlite::Result<Vec<CheckFinding>> {
    let [mut unlinked, mut shared, mut doubled, mut undescribed] = [const { FirstRows::new() }; 4];
    if !["rocpd_op", "rocpd_api_ops"]
        .iter()
        .all(|name| layout.table(name).is_some_and(|table| table.key.is_some()))
    {
        return Ok(Vec::new());
    }
    // Barriers are linked to no call, so that they do not show as kernels.
    let barriers = layout.table("rocpd_barrierop").is_some_and(|table| table.key.is_some());
    let but_barriers = "AND NOT EXISTS (SELECT 1 FROM rocpd_barrierop AS b WHERE b.op_ptr_id = rocpd_op.id)";
    let types = layout.table("rocpd_op").is_some_and(|table| table.has("opType_id"))
        && layout.table("rocpd_string").is_some_and(|table| table.has("id") && table.has("string"));
    let but_their_type =
        format!("AND (opType_id IN (SELECT id FROM rocpd_string WHERE string = '{BARRIER}')) IS NOT TRUE");
    let undescribed_op = match described {
        [] => "0".to_string(),
        sessions => {
            let sessions: Vec<String> = sessions.iter().map(i64::to_string).collect();
            format!(
                "opType_id IN (SELECT id FROM rocpd_string WHERE string IN ({KERNEL_TYPES})) AND id >> 32 IN ({})
                 AND NOT EXISTS (SELECT 1 FROM ext_dispatch AS x WHERE x.op_id = rocpd_op.id)",
                sessions.join(", ")
            )
        }
    };
    let described_call = match layout.table("rocpd_kernelapi").is_some_and(|table| table.key.is_some()) {
        true if !described.is_empty() => {
            "EXISTS (SELECT 1 FROM rocpd_kernelapi AS k WHERE k.api_ptr_id = rocpd_api_ops.api_id)"
        }
        _ => "0",
    };
    let mut ops = trace.prepare(&format!(
        "SELECT id, {undescribed_op} FROM rocpd_op WHERE typeof(id) = 'integer' {} {} ORDER BY id",
        if barriers { but_barriers } else { "" },
        if types { &but_their_type } else { "" }
    ))?;
    let mut ops = ops.query([])?;
    let mut links = trace.prepare(&format!(
        "SELECT op_id, api_id, id, {described_call} FROM rocpd_api_ops
         WHERE typeof(op_id) = 'integer' AND typeof(api_id) = 'integer' ORDER BY op_id, api_id, id",
    ))?;
    let mut links = links.query([])?;
    let mut link = next_link(&mut links)?;
    while let Some(row) = ops.next()? {
        let (op, mut is_undescribed): (i64, bool) = (row.get(0)?, row.get(1)?);
        while link.is_some_and(|link| link.op < op) {
            link = next_link(&mut links)?;
        }
        let mut calls = 0_u64;
        let mut last_call = None;
        while let Some(found) = link.filter(|link| link.op == op) {
            if last_call == Some(found.call) {
                doubled.add(found.id, running);
            } else {
                calls += 1;
            }
            last_call = Some(found.call);
            is_undescribed &= !found.is_described;
            link = next_link(&mut links)?;
        }
        if is_undescribed {
            undescribed.add(op, running);
        }
        match calls {
            0 => unlinked.add(op, running),
            1 => {}
            _ => shared.add(op, running),
        }
    }
    let found = [
        doubled.finding(FindingKind::DuplicateLink, "rocpd_api_ops"),
        unlinked.finding(FindingKind::UnlinkedOp, "rocpd_op"),
        shared.finding(FindingKind::SharedOp, "rocpd_op"),
        undescribed.finding(FindingKind::MissingDispatch, "rocpd_op"),
    ];
    Ok(found.into_iter().flatten().collect())
}

#[derive(Clone, Copy)]
struct LinkRow {
    op: i64,
    call: i64,
    id: i64,
    /// Whether the call's row says how a kernel was launched.
    is_described: bool,
}

fn next_link(links: &mut rusqlite::Rows<'_>) -> rusqlite::Result<Option<LinkRow>> {
    let link = |row: &rusqlite::Row<'_>| {
        Ok(LinkRow { op: row.get(0)?, call: row.get(1)?, id: row.get(2)?, is_described: row.get(3)? })
    };
    links.next()?.map(link).transpose()
}

/// How many, and the first few.
struct FirstRows {
    count: u64,
    first: Vec<i64>,
}

impl FirstRows {
    const fn new() -> FirstRows {
        FirstRows { count: 0, first: Vec::new() }
    }

    fn add(&mut self, id: i64, running: &[u32]) {
        if running.iter().any(|&session| i64::from(session) == id >> 32) {
            return;
        }
        self.count += 1;
        if self.first.len() < EXAMPLES {
            self.first.push(id);
        }
    }

    fn finding(self, kind: FindingKind, place: &str) -> Option<CheckFinding> {
        let examples = self.first.into_iter().map(Example::Id);
        (self.count > 0).then(|| CheckFinding::new(kind, place, self.count).examples(examples))
    }
}
