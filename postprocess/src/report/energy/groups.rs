//! The operations of a trace, grouped by the rows of the report.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::Version;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::sweep::Share;
use super::{EnergyBy, SampledTime};
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;
use crate::report::gpu_time::{GpuOp, GpuOps, LeftOut, OpTexts};
use crate::report::markers::Markers;

/// The group of operations that were not selected.
const NONE: i64 = -1;

/// An operation; ordered by GPU, then by start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct GroupedOp {
    pub(super) gpu: i64,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) group: i64,
}

/// A row of the report.
pub(super) struct EnergyGroup {
    pub(super) name: String,
    /// The group that it is a part of, before it among all.
    pub(super) parent: Option<usize>,
    pub(super) ranges: Option<u64>,
    /// How many operations, and what they got of the steps.
    pub(super) operations: u64,
    pub(super) own: Share,
    /// With those of its parts.
    pub(super) all_operations: u64,
    pub(super) all: Share,
    pub(super) sampled: SampledTime,
}

impl EnergyGroup {
    fn new(name: String, parent: Option<usize>, ranges: Option<u64>) -> EnergyGroup {
        let (own, all, sampled) = (Share::default(), Share::default(), SampledTime::default());
        EnergyGroup { name, parent, ranges, operations: 0, own, all_operations: 0, all, sampled }
    }
}

/// The groups, and the operations in order, to be read twice.
pub(super) struct Groups {
    pub(super) groups: Vec<EnergyGroup>,
    pub(super) ops: (Sorted<GroupedOp>, Sorted<GroupedOp>),
    pub(super) left_out: LeftOut,
}

impl Groups {
    /// Those of all operations of a trace; the ones that were not selected are in no group.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(super) fn of(trace: (&Connection, Version), selected: &Selected, by: EnergyBy) -> Result<Groups> {
        match by {
            EnergyBy::Marker => Groups::by_marker(trace, selected),
            EnergyBy::Kernel => {
                let mut texts = OpTexts::of(trace.0)?;
                Groups::by_key(trace.0, selected, |op| op.name, |name| texts.name(*name))
            }
            EnergyBy::Gpu => Groups::by_key(trace.0, selected, |op| op.gpu, |gpu| Ok(format!("GPU {gpu}"))),
            EnergyBy::Rank => {
                let sessions = rpd_schema::sessions(trace.0)?;
                let rank = |session: &i64| {
                    let of = sessions.iter().find(|of| i64::from(of.session) == *session);
                    let rank = of.and_then(|session| session.rank());
                    Ok(rank.map_or_else(|| "(no rank)".to_string(), |rank| format!("rank {rank}")))
                };
                Groups::by_key(trace.0, selected, |op| op.id >> 32, rank)
            }
        }
    }

    /// Groups of the operations whose keys have the same name.
    fn by_key<K: Eq + Hash>(
        trace: &Connection,
        selected: &Selected,
        key: impl Fn(&GpuOp) -> K,
        mut name: impl FnMut(&K) -> rusqlite::Result<String>,
    ) -> Result<Groups> {
        let (mut groups, mut places, mut named) = (Vec::<EnergyGroup>::new(), HashMap::new(), HashMap::new());
        let GpuOps { mut ops, left_out } = GpuOps::of(trace, &Selected::everything())?;
        let mut sorter = Sorter::new();
        while let Some(op) = ops.next()? {
            let mut group = NONE;
            if selected.has_op(op.id) {
                let place = match places.entry(key(&op)) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        let place = *named.entry(name(new.key())?).or_insert_with_key(|name: &String| {
                            groups.push(EnergyGroup::new(name.clone(), None, None));
                            groups.len() - 1
                        });
                        *new.insert(place)
                    }
                };
                groups[place].operations += 1;
                group = place as i64;
            }
            sorter.push(GroupedOp { gpu: op.gpu, start: op.start, end: op.end, group })?;
        }
        Ok(Groups { groups, ops: sorter.sorted_twice()?, left_out })
    }

    fn by_marker(trace: (&Connection, Version), selected: &Selected) -> Result<Groups> {
        // By their ids, the operations find the paths that they were launched in.
        let mut launches = Sorter::new();
        let markers = Markers::with_launches(trace, selected, false, |op, [first, second]| {
            launches.push([op, first.cast_signed(), second.cast_signed()])
        })?;
        let left_out = markers.left_out;
        let (mut groups, mut places) = (Vec::new(), FxHashMap::default());
        for node in markers.nodes.with_paths() {
            let (path, node) = node?;
            places.insert(path.map(u64::cast_signed), groups.len());
            let ranges = node.name.is_some().then_some(node.ranges);
            let name = node.name.as_deref().unwrap_or("(in no marker)").to_string();
            groups.push(EnergyGroup::new(name, node.parent, ranges));
        }
        let mut by_id = Sorter::new();
        let GpuOps { mut ops, .. } = GpuOps::of(trace.0, &Selected::everything())?;
        while let Some(op) = ops.next()? {
            by_id.push([op.id, op.gpu, op.start, op.end])?;
        }
        let (mut by_id, mut launches, mut sorter) = (by_id.sorted()?, launches.sorted()?, Sorter::new());
        let mut launch = launches.next()?;
        while let Some([id, gpu, start, end]) = by_id.next()? {
            while launch.is_some_and(|[op, ..]| op < id) {
                launch = launches.next()?;
            }
            let of = launch.filter(|[op, ..]| *op == id);
            let place = of.and_then(|[_, first, second]| places.get(&[first, second]).copied());
            let mut group = NONE;
            if let Some(place) = place {
                groups[place].operations += 1;
                group = place as i64;
            }
            sorter.push(GroupedOp { gpu, start, end, group })?;
        }
        Ok(Groups { groups, ops: sorter.sorted_twice()?, left_out })
    }
}
