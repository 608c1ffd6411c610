//! Who called whom: `ext_callstack`, one row for each call and each call on its stack.
//!
//! One scan of the links, one of the calls, a sort on disk, and one walk with a stack.

mod calls;
mod stack;

use anyhow::{Result, bail};
use rpd_sql::insert::Insert;

use super::kernel_views::add_kernel_views;
use crate::pass::batch::InsertBatch;
use crate::pass::{Change, Definition, Making, Pass, PassReport};
use calls::Calls;
pub(crate) use stack::DEEPEST;
use stack::OpenCalls;

/// The pass.
pub struct Callstack;

/// What it is.
pub static DEFINITION: Definition = Definition {
    name: "callstack",
    about: "Work out who called whom: CPU and GPU time with and without what was called",
    tag: "Callstack",
    reads: &["rocpd_api", "rocpd_api_ops", "rocpd_op"],
    tables: &["ext_callstack"],
    views: &[
        "callStack_inclusive",
        "callStack_exclusive",
        "callStack_inclusive_name",
        "callStack_exclusive_name",
    ],
    changes: None,
    making: Some(Making {
        help: "\
For each call and each call on its stack, itself included, table ext_callstack has a row. Calls that
overlap without nesting are counted; each is below the innermost call that contains all of it.

Example:
  rpd callstack trace.rpd
  sqlite3 trace.rpd 'select * from callStack_inclusive_name order by gpu_time desc limit 10'",
        options: &[],
        pass: |_| Box::new(Callstack),
    }),
};

/// Its table; the ids are SQLite's own.
const CALLSTACK: Insert =
    Insert { table: "ext_callstack", columns: &["parent_id", "child_id", "depth", "cpu_time", "gpu_time"] };

/// Calls between two lines of progress.
const ROWS_PER_STEP: u64 = 1 << 16;

impl Pass for Callstack {
    fn definition(&self) -> &'static Definition {
        &DEFINITION
    }

    fn run(&self, change: &Change<'_>) -> Result<PassReport> {
        let mut calls = Calls::of(change)?;
        change.trace.execute_batch(&change.of_its_schema(rpd_sql::ext::CALLSTACK))?;
        let mut rows = InsertBatch::new(change.trace, &CALLSTACK)?;
        let mut stack = OpenCalls::default();
        let mut done = 0;
        while let Some(call) = calls.sorted.next()? {
            if done % ROWS_PER_STEP == 0 {
                change.show(&format!("call stacks: {done} of {} calls", calls.count));
                change.check()?;
            }
            done += 1;
            stack.call(call, |row| rows.push(row))?;
            if stack.deepest > DEEPEST {
                bail!(
                    "the calls of thread {} nest more than {DEEPEST} deep: ranges that are pushed and never popped? \
                     Cut them off with: rpd trim",
                    call.tid
                );
            }
        }
        stack.finish(|row| rows.push(row))?;
        add_kernel_views(change)?;
        let mut report = PassReport::default();
        report.rows.insert("ext_callstack", rows.finish()?);
        report.remark(
            "overlapping-calls",
            stack.overlapping,
            "overlap another call of their thread without nesting: each is below the innermost call that contains all of it",
        );
        report.remark(
            "impossible-calls",
            calls.impossible_calls,
            "have no possible times or thread and are left out",
        );
        report.remark(
            "impossible-ops",
            calls.impossible_ops,
            "have no possible times and count as no GPU time",
        );
        report.remark("dangling-links", calls.dangling, "lead to a call or an operation that is not there");
        Ok(report)
    }
}
