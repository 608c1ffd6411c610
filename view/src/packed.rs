//! Numbers in few bits, for what a trace has millions of.
//!
//! Numbers lie in blocks. A block has a first number, a slope and a width: each of its numbers is the first, as many slopes as its place in
//! the block, and an offset of so many bits. Times that come in order, ids that count up and names that are few take a bit or two bytes each
//! so, and one of them is found by a multiplication and a load. Arithmetic wraps, so all numbers of 64 bits can be kept, signed ones also.

use std::ops::Range;

/// Numbers of a block.
const BLOCK: usize = 256;

/// Offsets of more bits would lie in nine bytes; those take whole words.
const MOST_BITS: u8 = 56;

/// Bytes that are loaded for an offset.
const LOAD: usize = size_of::<u64>();

/// Bytes of the offsets of a block for each bit of their width.
const BYTES_OF_BIT: usize = BLOCK / 8;

#[derive(Debug, Clone, Copy)]
struct Block {
    base: u64,
    slope: u64,
    /// Where its offsets begin: the sum of the widths in front of it.
    at: u32,
    width: u8,
}

impl Block {
    /// The narrowest for these numbers.
    fn of(numbers: &[u64], at: u32) -> Block {
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        let slope = last.wrapping_sub(first).cast_signed() / (BLOCK as i64 - 1);
        let (flat, sloping) = (spread(numbers, 0), spread(numbers, slope.cast_unsigned()));
        let (slope, (least, most)) = match width(sloping) < width(flat) {
            true => (slope.cast_unsigned(), sloping),
            false => (0, flat),
        };
        Block { base: first.wrapping_add_signed(least), slope, at, width: width((least, most)) }
    }

    /// What the number at a place would be without an offset.
    fn expected(&self, place: u64) -> u64 {
        self.base.wrapping_add(self.slope.wrapping_mul(place))
    }
}

/// The least and the greatest distance from the first number, each without so many slopes as its place says.
fn spread(numbers: &[u64], slope: u64) -> (i64, i64) {
    let first = numbers[0];
    numbers.iter().zip(0..).fold((0, 0), |(least, most), (number, place)| {
        let distance = number.wrapping_sub(slope.wrapping_mul(place)).wrapping_sub(first).cast_signed();
        (distance.min(least), distance.max(most))
    })
}

/// Bits of offsets between these distances.
fn width((least, most): (i64, i64)) -> u8 {
    let bits = (u64::BITS - most.abs_diff(least).leading_zeros()) as u8;
    if bits > MOST_BITS { u64::BITS as u8 } else { bits }
}

/// Numbers, each found by its place.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    blocks: Vec<Block>,
    /// The offsets of all blocks, and behind them the bytes that a load of the last reaches into.
    bytes: Vec<u8>,
    /// What fills no block yet.
    tail: Vec<u64>,
}

impl Packed {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.tail.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much memory they take, bytes.
    pub fn bytes(&self) -> usize {
        let numbers = self.tail.capacity() * size_of::<u64>();
        self.blocks.capacity() * size_of::<Block>() + self.bytes.capacity() + numbers
    }

    /// Adds one behind the others.
    pub fn push(&mut self, number: u64) {
        self.tail.push(number);
        if self.tail.len() == BLOCK {
            self.close();
        }
    }

    /// Makes a block of the tail.
    fn close(&mut self) {
        let at = self.blocks.last().map_or(0, |block| block.at + u32::from(block.width));
        let block = Block::of(&self.tail, at);
        if block.width > 0 {
            self.bytes.truncate(at as usize * BYTES_OF_BIT);
            let width = u32::from(block.width);
            let (mut word, mut filled) = (0, 0);
            for (number, place) in self.tail.iter().zip(0..) {
                let offset = number.wrapping_sub(block.expected(place));
                word |= offset << filled;
                filled += width;
                if filled >= u64::BITS {
                    self.bytes.extend_from_slice(&word.to_le_bytes());
                    filled -= u64::BITS;
                    word = if filled == 0 { 0 } else { offset >> (width - filled) };
                }
            }
            self.bytes.extend_from_slice(&[0; LOAD]);
        }
        self.blocks.push(block);
        self.tail.clear();
    }

    /// The one at a place.
    pub fn get(&self, place: usize) -> u64 {
        let within = place % BLOCK;
        match self.blocks.get(place / BLOCK) {
            Some(block) => self.of_block(block, within),
            None => self.tail[within],
        }
    }

    fn of_block(&self, block: &Block, within: usize) -> u64 {
        let bit = within * usize::from(block.width);
        let byte = block.at as usize * BYTES_OF_BIT + bit / 8;
        let word = self.bytes[byte..].first_chunk::<LOAD>().map_or(0, |word| u64::from_le_bytes(*word));
        let mask = u64::MAX.checked_shr(u64::BITS - u32::from(block.width)).unwrap_or(0);
        block.expected(within as u64).wrapping_add(word >> (bit % 8) & mask)
    }

    /// Those at these places.
    pub fn range(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = u64> + Clone + '_ {
        let mut block = self.blocks.get(places.start / BLOCK).copied();
        places.map(move |place| {
            let within = place % BLOCK;
            if within == 0 {
                block = self.blocks.get(place / BLOCK).copied();
            }
            block.map_or_else(|| self.tail[within], |block| self.of_block(&block, within))
        })
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + Clone + '_ {
        self.range(0..self.len())
    }

    /// The first of these places, which are in order, that `is_before` does not hold for.
    pub fn partition_point(&self, places: Range<usize>, is_before: impl Fn(u64) -> bool) -> usize {
        partition_point(places, |place| is_before(self.get(place)))
    }
}

impl Extend<u64> for Packed {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, numbers: I) {
        numbers.into_iter().for_each(|number| self.push(number));
    }
}

impl FromIterator<u64> for Packed {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Packed {
        let mut packed = Packed::default();
        packed.extend(numbers);
        packed
    }
}

/// The first of these places that `is_before` does not hold for: it holds for all in front of it.
pub fn partition_point(places: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = places;
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Rows of a few numbers each, a column for each of them.
#[derive(Debug, Clone)]
pub struct PackedRows<const N: usize> {
    columns: [Packed; N],
}

impl<const N: usize> Default for PackedRows<N> {
    fn default() -> PackedRows<N> {
        PackedRows { columns: std::array::from_fn(|_| Packed::default()) }
    }
}

impl<const N: usize> PackedRows<N> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns[0].is_empty()
    }

    /// Adds a row behind the others.
    pub fn push(&mut self, row: [u64; N]) {
        self.columns.iter_mut().zip(row).for_each(|(column, number)| column.push(number));
    }

    /// The row at a place.
    pub fn get(&self, place: usize) -> [u64; N] {
        std::array::from_fn(|column| self.columns[column].get(place))
    }

    /// How much memory they take, bytes.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Packed::bytes).sum()
    }

    /// A column alone.
    pub fn into_column(self, number: usize) -> Packed {
        let mut columns = self.columns;
        std::mem::take(&mut columns[number])
    }

    /// A column.
    pub fn column(&self, number: usize) -> &Packed {
        &self.columns[number]
    }
}

impl<const N: usize> FromIterator<[u64; N]> for PackedRows<N> {
    fn from_iter<I: IntoIterator<Item = [u64; N]>>(rows: I) -> PackedRows<N> {
        let mut table = PackedRows::default();
        rows.into_iter().for_each(|row| table.push(row));
        table
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_kept(numbers: &[u64]) {
        let packed: Packed = numbers.iter().copied().collect();
        assert_eq!((packed.len(), packed.is_empty()), (numbers.len(), numbers.is_empty()));
        for (place, number) in numbers.iter().enumerate() {
            assert_eq!(packed.get(place), *number, "{place}");
        }
        assert!(packed.iter().eq(numbers.iter().copied()));
    }

    /// Numbers of any width, ascending ones, and such that are far from the others.
    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let one = prop_oneof![
            8 => (any::<u64>(), 0u32..64).prop_map(|(number, bits)| number >> bits),
            1 => Just(i64::MIN.cast_unsigned()),
            1 => Just(i64::MAX.cast_unsigned()),
            1 => Just(u64::MAX),
        ];
        let mixed = prop::collection::vec(one, 0..3 * BLOCK);
        let bounded = (0u32..64, prop::collection::vec(any::<u64>(), 0..3 * BLOCK))
            .prop_map(|(bits, numbers)| numbers.into_iter().map(|number| number >> bits).collect());
        let ascending =
            (any::<u64>(), any::<u64>(), 0u32..64, prop::collection::vec(any::<u64>(), 0..3 * BLOCK));
        let ascending = ascending.prop_map(|(first, step, bits, numbers)| {
            let at = |(place, number): (u64, u64)| {
                first.wrapping_add(step.wrapping_mul(place)).wrapping_add(number >> bits)
            };
            (0..).zip(numbers).map(at).collect()
        });
        prop_oneof![mixed, bounded, ascending]
    }

    proptest! {
        #[test]
        fn all_numbers_come_back(numbers in numbers()) {
            is_kept(&numbers);
        }

        #[test]
        fn a_place_is_found_among_numbers_in_order(mut numbers in numbers(), number: u64) {
            numbers.sort_unstable();
            let packed: Packed = numbers.iter().copied().collect();
            let expected = numbers.partition_point(|one| *one < number);
            prop_assert_eq!(packed.partition_point(0..numbers.len(), |one| one < number), expected);
        }
    }

    #[test]
    fn borders_of_blocks_are_no_borders() {
        for count in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1] {
            let ends = [i64::MIN, -1, 0, i64::MAX].map(i64::cast_unsigned);
            is_kept(&(0..count).map(|place| ends[place % ends.len()]).collect::<Vec<_>>());
            is_kept(&(0..count as u64).map(|place| place * 9000 + place % 7).collect::<Vec<_>>());
            is_kept(&vec![u64::MAX; count]);
        }
    }

    #[test]
    fn what_counts_up_takes_no_bits_and_bounded_offsets_take_theirs() {
        let count = 1000 * BLOCK as u64;
        let ids: Packed = (0..count).map(|id| (id * 8).wrapping_sub(count)).collect();
        assert!(ids.blocks.iter().all(|block| block.width == 0));
        let starts: Packed = (0..count).map(|at| at * 9000 + at * at % 3001).collect();
        assert!(starts.blocks.iter().all(|block| block.width <= 13));
    }

    #[test]
    fn rows_of_a_table_come_back() {
        let rows: Vec<[u64; 3]> = (0..1000).map(|at| [at, at * at, u64::MAX - at]).collect();
        let table: PackedRows<3> = rows.iter().copied().collect();
        assert_eq!((table.len(), table.is_empty()), (1000, false));
        assert!(rows.iter().enumerate().all(|(place, row)| table.get(place) == *row));
        assert!(table.column(1).iter().eq(rows.iter().map(|row| row[1])));
    }
}
