//! Every call of a file with its GPU time, thread after thread in order of start: two scans and a merge.

use anyhow::Result;
use rpd_schema::Processes;
use rusqlite::Connection;

use super::stack::StackCall;
use crate::pass::Change;
use crate::pass::sorted::{Sorted, Sorter};

/// Rows between two lines of progress.
const ROWS_PER_STEP: u64 = 1 << 17;

/// No operation takes longer, ns: 104 days. Sums of what can be are in range then.
const LONGEST_OP: i64 = 1 << 53;

/// The calls, and what could not be one of them.
pub(crate) struct Calls {
    /// In the order in which a stack takes them.
    pub(crate) sorted: Sorted<StackCall>,
    pub(crate) count: u64,
    /// Calls whose times, process or thread cannot be.
    pub(crate) impossible_calls: u64,
    /// Ops whose times cannot be.
    pub(crate) impossible_ops: u64,
    /// Links to a call or an op that is not there.
    pub(crate) dangling: u64,
}

impl Calls {
    /// Reads them.
    ///
    /// # Errors
    /// When the file or a temporary file fails.
    pub(crate) fn of(change: &Change<'_>) -> Result<Calls> {
        let (impossible_ops, mut dangling, mut gpu_times) = gpu_times(change)?;
        let processes = Processes::of(change.trace)?;
        let mut select =
            change.trace.prepare("SELECT id, pid, tid, start, \"end\" FROM rocpd_api ORDER BY id")?;
        let mut rows = select.query([])?;
        let mut calls = Sorter::new();
        let (mut count, mut impossible_calls) = (0, 0);
        let mut next = gpu_times.next()?;
        while let Some(row) = rows.next()? {
            if (count + impossible_calls) % ROWS_PER_STEP == 0 {
                change.show(&format!("call stacks: {} calls read", count + impossible_calls));
                change.check()?;
            }
            let id = row.get_ref(0)?.as_i64().ok();
            let mut gpu_time = 0_i64;
            while let Some([api, duration]) = next.filter(|[api, _]| id.is_some_and(|id| *api <= id)) {
                if id == Some(api) {
                    gpu_time = gpu_time.saturating_add(duration);
                } else {
                    dangling += 1;
                }
                next = gpu_times.next()?;
            }
            let number = |column| row.get_ref(column).ok().and_then(|value| value.as_i64().ok());
            let call = (|| {
                let thread = [processes.of_row(id?), number(1)?, number(2)?];
                StackCall::new(id?, thread, (number(3)?, number(4)?), gpu_time)
            })();
            match call {
                Some(call) => calls.push(call)?,
                None => impossible_calls += 1,
            }
            count += u64::from(call.is_some());
        }
        while next.is_some() {
            dangling += 1;
            next = gpu_times.next()?;
        }
        change.show("call stacks: sorting");
        Ok(Calls { sorted: calls.sorted()?, count, impossible_calls, impossible_ops, dangling })
    }
}

/// How many ops have impossible times, how many links lead nowhere, and `[call, duration]` of all others, by call.
fn gpu_times(change: &Change<'_>) -> Result<(u64, u64, Sorted<[i64; 2]>)> {
    let mut sorter = Sorter::new();
    let (mut impossible, mut dangling, mut count) = (0, 0, 0);
    let mut select = links(change.trace)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if count % ROWS_PER_STEP == 0 {
            change.show(&format!("call stacks: {count} operations read"));
            change.check()?;
        }
        count += 1;
        let number = |column| row.get_ref(column).ok().and_then(|value| value.as_i64().ok());
        let (Some(api), Some(_)) = (number(0), number(1)) else {
            dangling += 1;
            continue;
        };
        let duration = number(2).zip(number(3)).and_then(|(start, end)| end.checked_sub(start));
        match duration.filter(|duration| (0..=LONGEST_OP).contains(duration)) {
            Some(duration) => sorter.push([api, duration])?,
            None => impossible += 1,
        }
    }
    Ok((impossible, dangling, sorter.sorted()?))
}

fn links(trace: &Connection) -> rusqlite::Result<rusqlite::Statement<'_>> {
    trace.prepare(
        "SELECT L.api_id, O.id, O.start, O.\"end\" FROM rocpd_api_ops L LEFT JOIN rocpd_op O ON O.id = L.op_id",
    )
}
