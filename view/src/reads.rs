//! The rows of threads or queues as the file has them, packed, by id.

use crate::packed::{Packed, PackedRows};

/// A row of a queue or thread as the file has it; times are absolute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    pub(crate) id: i64,
    pub(crate) start: i64,
    pub(crate) duration: u64,
    /// Which of the threads or queues.
    pub(crate) track: u32,
    pub(crate) name: u32,
}

/// Columns of the table.
const ID: usize = 0;
const START: usize = 1;
const DURATION: usize = 2;
const TRACK: usize = 3;
const NAME: usize = 4;

/// Rows by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reads {
    rows: PackedRows<5>,
    /// Whether a row came behind one with a greater id.
    is_mixed: bool,
    /// Rows that were set aside, in descending order of their ids.
    held: Vec<Read>,
}

impl Reads {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a row, and in front of it those that were set aside and belong there.
    pub(crate) fn push(&mut self, read: Read) {
        while let Some(held) = self.held.pop_if(|held| held.id <= read.id) {
            self.add(held);
        }
        self.add(read);
    }

    fn add(&mut self, read: Read) {
        let Read { id, start, duration, track, name } = read;
        self.is_mixed |= self.len().checked_sub(1).is_some_and(|last| self.id(last) > id);
        self.rows.push([id.cast_unsigned(), start.cast_unsigned(), duration, track.into(), name.into()]);
    }

    /// Sets aside the rows that there are, which are the few of a rough picture. The rest comes in the order of the ids, and they are put
    /// between its rows then.
    pub(crate) fn hold(&mut self) {
        self.sort();
        self.held = (0..self.len()).rev().map(|place| self.get(place)).collect();
        self.rows = PackedRows::default();
    }

    /// Puts all rows in the order of their ids.
    pub(crate) fn sort(&mut self) {
        while let Some(held) = self.held.pop() {
            self.add(held);
        }
        if self.is_mixed {
            // Those that were read before are in order, and so are those behind them.
            let mut places: Vec<usize> = (0..self.len()).collect();
            places.sort_by_key(|place| self.id(*place));
            self.rows = places.into_iter().map(|place| self.rows.get(place)).collect();
            self.is_mixed = false;
        }
    }

    /// Keeps the rows that are wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(Read) -> bool) {
        let wanted = (0..self.len()).filter(|place| is_wanted(self.get(*place)));
        self.rows = wanted.map(|place| self.rows.get(place)).collect();
    }

    fn get(&self, place: usize) -> Read {
        let [id, start, duration, track, name] = self.rows.get(place);
        Read {
            id: id.cast_signed(),
            start: start.cast_signed(),
            duration,
            track: track as u32,
            name: name as u32,
        }
    }

    /// The ids, which are signed.
    pub(crate) fn into_ids(self) -> Packed {
        self.rows.into_column(ID)
    }

    pub(crate) fn id(&self, place: usize) -> i64 {
        self.rows.column(ID).get(place).cast_signed()
    }

    pub(crate) fn start(&self, place: usize) -> i64 {
        self.rows.column(START).get(place).cast_signed()
    }

    pub(crate) fn duration(&self, place: usize) -> u64 {
        self.rows.column(DURATION).get(place)
    }

    pub(crate) fn track(&self, place: usize) -> u32 {
        self.rows.column(TRACK).get(place) as u32
    }

    pub(crate) fn name(&self, place: usize) -> u32 {
        self.rows.column(NAME).get(place) as u32
    }

    /// Starts, in the order of the ids.
    pub(crate) fn starts(&self) -> impl Iterator<Item = i64> + '_ {
        self.rows.column(START).iter().map(u64::cast_signed)
    }

    /// Starts and ends, in the order of the ids.
    pub(crate) fn times(&self) -> impl Iterator<Item = (i64, i64)> + Clone + '_ {
        let durations = self.rows.column(DURATION).iter();
        let times = self.rows.column(START).iter().map(u64::cast_signed).zip(durations);
        times.map(|(start, duration)| (start, start.saturating_add_unsigned(duration)))
    }
}

impl Read {
    pub(crate) fn times(&self) -> (i64, i64) {
        (self.start, self.start.saturating_add_unsigned(self.duration))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pushed(ids: &[i64], reads: &mut Reads) {
        for id in ids {
            reads.push(Read { id: *id, start: -*id, duration: 5, track: 1, name: 2 });
        }
    }

    fn ids(reads: &Reads) -> Vec<i64> {
        assert!((0..reads.len()).all(|place| reads.start(place) == -reads.id(place)));
        (0..reads.len()).map(|place| reads.id(place)).collect()
    }

    proptest! {
        #[test]
        fn rows_are_in_the_order_of_their_ids(
            early in prop::collection::vec(-900i64..900, 0..300),
            mut late in prop::collection::vec(-900i64..900, 0..900),
            is_held: bool,
        ) {
            let mut reads = Reads::default();
            pushed(&early, &mut reads);
            if is_held {
                reads.hold();
                late.sort_unstable();
            }
            pushed(&late, &mut reads);
            prop_assert!(!is_held || !reads.is_mixed);
            reads.sort();
            let mut expected = [early, late].concat();
            expected.sort_unstable();
            prop_assert_eq!(ids(&reads), expected.clone());
            reads.retain(|read| read.id % 3 == 0);
            expected.retain(|id| id % 3 == 0);
            prop_assert_eq!(ids(&reads), expected);
        }
    }
}
