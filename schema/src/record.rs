//! Rows as SQLite keeps them: a header of types, then the values (SQLite file format §2.1). Images and pages are made of these records;
//! [`image`](crate::image) and [`leaves`](crate::leaves) say how much time that saves.

use rusqlite::types::ValueRef;

/// The types of integers, by the bytes that the value takes.
const INTEGERS: [(u8, usize); 9] = [(1, 1), (1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (5, 6), (6, 8), (6, 8)];
/// What NULL, 0 and 1 are: types without a value.
const NULL: u8 = 0;
const ZERO: u8 = 8;
/// The type of an empty text; each byte adds 2.
const TEXT: u64 = 13;

/// A record that is written to the end of some bytes, value by value.
pub(crate) struct Record<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
    /// Where the next value's type goes.
    next: usize,
}

impl<'a> Record<'a> {
    /// A record of `columns` values, of which there are few enough for a header of 127 bytes.
    pub(crate) fn new(bytes: &'a mut Vec<u8>, columns: usize) -> Record<'a> {
        let start = bytes.len();
        // A type takes a byte, but for texts of more than 57.
        bytes.resize(start + 1 + columns, NULL);
        bytes[start] = columns as u8 + 1;
        Record { bytes, start, next: start + 1 }
    }

    /// No value: where the row's number stands for the column.
    pub(crate) fn null(&mut self) {
        self.next += 1;
    }

    pub(crate) fn integer(&mut self, value: i64) {
        let magnitude = value ^ (value >> 63);
        self.bytes[self.next] = if magnitude >> 1 == 0 && value >= 0 {
            ZERO + value as u8
        } else {
            let bits = 65 - magnitude.leading_zeros() as usize;
            let (kind, size) = INTEGERS[bits.div_ceil(8)];
            let end = self.bytes.len() + size;
            self.bytes.extend_from_slice(&(value << (64 - 8 * size)).to_be_bytes());
            self.bytes.truncate(end);
            kind
        };
        self.next += 1;
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        let kind = TEXT + 2 * text.len() as u64;
        if let Ok(byte @ ..0x80) = u8::try_from(kind) {
            self.bytes[self.next] = byte;
            self.next += 1;
        } else {
            let mut wide = vec![];
            varint(&mut wide, kind);
            self.bytes[self.start] += wide.len() as u8 - 1;
            self.bytes.splice(self.next..=self.next, wide.iter().copied());
            self.next += wide.len();
        }
        self.bytes.extend_from_slice(text);
    }
}

/// Appends a number as SQLite writes it: groups of 7 bits, but 8 bits in the last byte of nine (SQLite file format §1.6).
pub(crate) fn varint(bytes: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        return bytes.push(value as u8);
    }
    let length = varint_length(value);
    let last = if length == 9 { 8 } else { 7 };
    for place in (0..length - 1).rev() {
        bytes.push((value >> (last + 7 * place)) as u8 | 0x80);
    }
    bytes.push(if length == 9 { value as u8 } else { value as u8 & 0x7f });
}

/// How many bytes [`varint`] writes.
pub(crate) fn varint_length(value: u64) -> usize {
    (64 - (value | 1).leading_zeros()).div_ceil(7).min(9) as usize
}

/// The values of a record that [`Record`] wrote.
pub(crate) fn values(record: &[u8]) -> impl Iterator<Item = ValueRef<'_>> {
    let (mut header, mut body) = record.split_at(usize::from(record[0]));
    header = &header[1..];
    std::iter::from_fn(move || {
        let (kind, rest) = read_number(header)?;
        header = rest;
        Some(match kind {
            0 => ValueRef::Null,
            8 | 9 => ValueRef::Integer(kind as i64 - 8),
            1..=6 => {
                let size = INTEGERS.iter().find(|(code, _)| u64::from(*code) == kind)?.1;
                let (value, rest) = body.split_at(size);
                body = rest;
                let sign = if value[0] & 0x80 == 0 { 0 } else { -1 };
                ValueRef::Integer(value.iter().fold(sign, |sum, byte| sum << 8 | i64::from(*byte)))
            }
            _ => {
                let (value, rest) = body.split_at(((kind - TEXT) / 2) as usize);
                body = rest;
                ValueRef::Text(value)
            }
        })
    })
}

/// A number that [`varint`] wrote, and what follows it.
pub(crate) fn read_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(9).enumerate() {
        let (bits, more) = if place == 8 { (8, false) } else { (7, byte & 0x80 != 0) };
        value = value << bits | u64::from(byte & (0xff >> (8 - bits)));
        if !more {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Record<'_>), columns: usize) -> Vec<u8> {
        // Whatever is before a record is not its concern.
        let mut bytes = vec![0xee; 3];
        write(&mut Record::new(&mut bytes, columns));
        bytes.split_off(3)
    }

    #[test]
    fn records_are_those_of_the_file_format() {
        let bytes = written(
            |record| {
                record.null();
                for value in [0, 1, 2, -1, 128, -129, 1 << 23, 1 << 31, 1 << 40, i64::MIN] {
                    record.integer(value);
                }
                record.text(b"");
                record.text(b"abc");
            },
            13,
        );
        assert_eq!(bytes[..14], [14, 0, 8, 9, 1, 1, 2, 2, 4, 5, 5, 6, 13, 19]);
        let body = "02 ff 0080 ff7f 00800000 000080000000 010000000000 8000000000000000 616263";
        let hex: String = bytes[14..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, body.replace(' ', ""));
    }

    #[test]
    fn long_texts_widen_the_header() {
        for length in [57, 58, 8185, 8186, 100_000] {
            let text = vec![b'x'; length];
            let bytes = written(
                |record| {
                    record.integer(300);
                    record.text(&text);
                    record.text(&text);
                    record.integer(-7);
                },
                4,
            );
            let found: Vec<ValueRef<'_>> = values(&bytes).collect();
            let (text, first, last) = (ValueRef::Text(&text), ValueRef::Integer(300), ValueRef::Integer(-7));
            assert_eq!(found, [first, text, text, last], "{length}");
        }
    }

    #[test]
    fn numbers_are_as_long_as_they_say() {
        for value in (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            let mut bytes = vec![];
            varint(&mut bytes, value);
            assert_eq!(bytes.len(), varint_length(value), "{value:#x}");
            if value < 1 << 56 {
                assert_eq!(read_number(&bytes), Some((value, &[][..])));
            }
        }
        let mut bytes = vec![];
        varint(&mut bytes, u64::MAX - 1);
        assert_eq!(bytes, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
    }
}
