//! What the rows of calls say of kernels, until these have completed: of those that HIP times, and of those that were told of while they ran. Where
//! the row of the operation would say the same, there is none in `ext_dispatch`.

use std::collections::BTreeMap;

use rpd_schema::KernelApiRow;

/// Launches remembered at most: some kernels never complete. Of others the file says twice how they were launched.
const MOST: usize = 1 << 16;

#[derive(Default)]
pub(super) struct DescribedLaunches(BTreeMap<u64, KernelApiRow>);

impl DescribedLaunches {
    /// The call of that correlation id has this row, and its kernel is to come.
    pub(super) fn add(&mut self, correlation: u64, row: KernelApiRow) {
        if self.0.len() >= MOST {
            self.0.pop_first();
        }
        self.0.insert(correlation, row);
    }

    /// The row of the call whose kernel has come.
    pub(super) fn take(&mut self, correlation: u64) -> Option<KernelApiRow> {
        self.0.remove(&correlation)
    }

    /// Rows of these calls are not in the session, or may not be.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
