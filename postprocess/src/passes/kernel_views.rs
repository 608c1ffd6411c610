//! The views of the kernels of operators: the pass that comes second, of call stacks and operators, adds them.

use anyhow::Result;

use crate::pass::Change;
use crate::pass::object::has_table;

/// Adds the views of the kernels of operators, where there are both operators and call stacks.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn add_kernel_views(change: &Change<'_>) -> Result<()> {
    let trace = change.trace;
    if has_table(trace, "ext_autogradapi")? && has_table(trace, "ext_callstack")? {
        trace.execute_batch(rpd_sql::ext::AUTOGRAD_KERNEL)?;
    }
    Ok(())
}
