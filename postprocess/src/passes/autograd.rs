//! PyTorch's operators: what emit_nvtx wrote into markers as columns of `ext_autogradapi`.
//!
//! The arguments of those markers are the bare name of the operator afterwards: the views of call stacks group by
//! operator, and the file shrinks by texts that no two calls share. The table has what was cut off.

pub(crate) mod marker;
mod operators;

use anyhow::Result;

use super::callstack::Callstack;
use super::kernel_views::add_kernel_views;
use crate::pass::apply::make;
use crate::pass::object::has_table;
use crate::pass::texts::remove_unused;
use crate::pass::{Change, Definition, Freshness, Making, Pass, PassReport, PassState};

/// The pass.
pub struct Autograd {
    /// Leave the arguments of markers as they are.
    pub keep_args: bool,
    /// Make no call stacks where there are none.
    pub skip_callstacks: bool,
}

impl Autograd {
    /// As it is without options.
    pub const PLAIN: Autograd = Autograd { keep_args: false, skip_callstacks: false };
}

/// Said of a trace that has none.
const NO_OPERATORS: &str = "no marker is one of PyTorch's operators: record the program with \
     `with torch.autograd.profiler.emit_nvtx(record_shapes=True):` around what is of interest";

/// What it is.
pub static DEFINITION: Definition = Definition {
    name: "autograd",
    about: "Work out which PyTorch operator launched what, from the markers of emit_nvtx",
    tag: "Autograd",
    reads: &["rocpd_api", "rocpd_kernelapi"],
    tables: &["ext_autogradapi"],
    views: &[
        "autograd",
        "autogradKernel",
        "_autogradKernel",
        "_callstack_autograd_kernel_exclusive",
        "_callstack_autograd_kernel",
    ],
    changes: Some("the arguments of calls"),
    making: Some(Making {
        help: "\
The fields of a marker NAME[, seq = S][, op_id = I][, sizes = [..]][, input_op_ids = [..]] become columns
of table ext_autogradapi, and the marker's arguments become the bare NAME, so that call stacks group by
operator and the file shrinks; --redo puts them back first. Markers that only look like that are counted
and left alone.
The call stacks are made too where they are missing.

Example:
  rpd autograd trace.rpd
  sqlite3 trace.rpd 'select * from autogradKernel order by total_gpu desc limit 10'
  rpd autograd --redo --keep-args trace.rpd",
        options: &[
            ("keep-args", "Leave the arguments of the markers as they are"),
            ("skip-callstacks", "Do not make the call stacks"),
        ],
        pass: |options| {
            let has = |option| options.contains(&option);
            Box::new(Autograd { keep_args: has("keep-args"), skip_callstacks: has("skip-callstacks") })
        },
    }),
};

impl Pass for Autograd {
    fn definition(&self) -> &'static Definition {
        &DEFINITION
    }

    fn run(&self, change: &Change<'_>) -> Result<PassReport> {
        change.trace.execute_batch(rpd_sql::ext::AUTOGRAD)?;
        let taken = operators::take(change, self.keep_args)?;
        // Before the call stacks are written, which take up the room.
        remove_unused(change, change.args_table(), taken.cut)?;
        let mut report = PassReport::default();
        report.rows.insert("ext_autogradapi", taken.operators);
        report.remark(
            "look-alikes",
            taken.look_alikes,
            format!(
                "have the beginning of an operator's field but are none, and are left as they are: {}",
                taken.examples.join(", ")
            ),
        );
        if taken.operators == 0 {
            report.advice = Some(NO_OPERATORS);
        }
        if !self.skip_callstacks && !has_callstacks(change)? {
            let stacks = make(change, &Callstack)?;
            report.rows.extend(stacks.rows);
            report.remarks.extend(stacks.remarks);
        }
        add_kernel_views(change)?;
        Ok(report)
    }

    fn put_back(&self, change: &Change<'_>) -> Result<()> {
        if has_table(change.trace, "ext_autogradapi")? { operators::put_back(change) } else { Ok(()) }
    }
}

fn has_callstacks(change: &Change<'_>) -> Result<bool> {
    let state = PassState::of(change.trace, Callstack.definition())?;
    Ok(matches!(state, PassState::Applied(Freshness::Current | Freshness::Unknown)))
}
