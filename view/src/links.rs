//! The links from calls to the operations that they caused.

use std::ops::Range;

use crate::packed::PackedRows;

/// Links between events, by both of their ends.
#[derive(Debug, Default)]
pub struct Links {
    by_call: PackedRows<2>,
    by_op: PackedRows<2>,
}

impl Links {
    /// Those of (call, operation) pairs.
    pub fn of(mut pairs: Vec<(u32, u32)>) -> Links {
        pairs.sort_unstable();
        pairs.dedup();
        let packed =
            |pairs: &[(u32, u32)]| pairs.iter().map(|(one, other)| [*one, *other].map(u64::from)).collect();
        let by_call = packed(&pairs);
        pairs.iter_mut().for_each(|(call, op)| std::mem::swap(call, op));
        pairs.sort_unstable();
        Links { by_call, by_op: packed(&pairs) }
    }

    /// The operations of a call.
    pub fn ops(&self, call: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        other_ends(&self.by_call, call)
    }

    /// The calls of an operation: one, as a rule.
    pub fn calls(&self, op: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        other_ends(&self.by_op, op)
    }

    /// Those of calls whose numbers are behind each other: call and operation.
    pub fn of_calls(&self, calls: Range<u32>) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.at(first(&self.by_call, calls.start)..first(&self.by_call, calls.end))
    }

    /// All of them: call and operation.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.at(0..self.len())
    }

    fn at(&self, places: Range<usize>) -> impl Iterator<Item = (u32, u32)> + '_ {
        let [calls, ops] = [0, 1].map(|column| self.by_call.column(column).range(places.clone()));
        calls.zip(ops).map(|(call, op)| (call as u32, op as u32))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_call.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_call.is_empty()
    }
}

/// The first pair of an event, or of one behind it.
fn first(pairs: &PackedRows<2>, event: u32) -> usize {
    pairs.column(0).partition_point(0..pairs.len(), |one| one < u64::from(event))
}

fn other_ends(pairs: &PackedRows<2>, event: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
    let first = first(pairs, event);
    let end = pairs.column(0).partition_point(first..pairs.len(), |one| one == u64::from(event));
    pairs.column(1).range(first..end).map(|other| other as u32)
}
