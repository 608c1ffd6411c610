//! `ext_launchattribute`: what else is known of how a kernel of CUDA was launched.

use super::{Cells, Row};
use crate::id::{Offset, OpId};
use rpd_sql::insert::{self, Insert};

/// A kernel that is a graph's node, or was launched in clusters of workgroups.
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttributeRow {
    /// The op.
    pub op: OpId,
    /// CUPTI's number of the graph; 0 for none.
    pub graph: u32,
    /// CUPTI's number of the graph's node; 0 for none.
    pub graph_node: u64,
    /// Workgroups of a cluster; 0 where there are no clusters.
    pub cluster: [u16; 3],
}

impl Row for LaunchAttributeRow {
    const INSERT: &'static Insert = &insert::EXT_LAUNCHATTRIBUTE;

    fn largest_id(&self) -> u64 {
        self.op.0
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.op(self.op)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(self.graph);
        // A number, whatever its highest bit is.
        cells.integer(self.graph_node.cast_signed());
        for extent in self.cluster {
            cells.integer(extent);
        }
    }
}
