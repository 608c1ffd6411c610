//! The links from calls to the operations that they caused.

/// Links between events, by both of their ends.
#[derive(Debug, Default)]
pub struct Links {
    by_call: Vec<(u32, u32)>,
    by_op: Vec<(u32, u32)>,
}

impl Links {
    /// Those of (call, operation) pairs.
    pub fn of(mut pairs: Vec<(u32, u32)>) -> Links {
        pairs.sort_unstable();
        pairs.dedup();
        let mut by_op: Vec<_> = pairs.iter().map(|(call, op)| (*op, *call)).collect();
        by_op.sort_unstable();
        Links { by_call: pairs, by_op }
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
    pub fn of_calls(&self, calls: std::ops::Range<u32>) -> &[(u32, u32)] {
        let place = |call: u32| self.by_call.partition_point(|(one, _)| *one < call);
        &self.by_call[place(calls.start)..place(calls.end)]
    }

    /// All of them: call and operation.
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.by_call
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

fn other_ends(pairs: &[(u32, u32)], event: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
    let first = pairs.partition_point(|(one, _)| *one < event);
    let end = pairs.partition_point(|(one, _)| *one <= event);
    pairs[first..end].iter().map(|(_, other)| *other)
}
