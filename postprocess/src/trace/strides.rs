//! How far apart the numbers of a merged trace's nodes are.

use rusqlite::Connection;

use super::layout::{Layout, metadata};

/// What `rpd merge` adds to numbers once for each number of a node: a number divided by its stride is the node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strides {
    /// To processes and threads.
    pub(crate) pid: i64,
    /// To GPUs and queues.
    pub(crate) gpu: i64,
}

impl Strides {
    /// Those of the trace; none where it was not merged.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn of(trace: &Connection, layout: &Layout) -> rusqlite::Result<Option<Strides>> {
        let stride = |tag| -> rusqlite::Result<Option<i64>> {
            let value = metadata(trace, layout, tag)?.and_then(|value| value.trim().parse().ok());
            Ok(value.filter(|stride| *stride > 0))
        };
        Ok(stride("pid_stride")?.zip(stride("gpu_stride")?).map(|(pid, gpu)| Strides { pid, gpu }))
    }
}
