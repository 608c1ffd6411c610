//! Cells made of values: integers clamped to what SQLite holds, handles as hexadecimal text.

use crate::id::StringId;
use crate::record::Record;

/// Scope of a packet's memory fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fence {
    /// Not known: the empty text.
    #[default]
    Unknown,
    /// No fence.
    None,
    /// Visible to the GPU itself.
    Agent,
    /// Visible to the host and to other GPUs as well.
    System,
}

impl Fence {
    /// The text in the file: at most 8 characters.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Fence::Unknown => "",
            Fence::None => "none",
            Fence::Agent => "agent",
            Fence::System => "system",
        }
    }
}

/// The cells of one row, written from the first to the last.
pub(crate) struct Cells<'a>(Record<'a>);

impl<'a> Cells<'a> {
    /// A row of `columns` cells at the end of `bytes`.
    pub(crate) fn new(bytes: &'a mut Vec<u8>, columns: usize) -> Cells<'a> {
        Cells(Record::new(bytes, columns))
    }

    /// The primary key, which is the row's number.
    pub(crate) fn key(&mut self) {
        self.0.null();
    }

    /// An integer as it is.
    pub(crate) fn integer(&mut self, value: impl Into<i64>) {
        self.0.integer(value.into());
    }

    /// A size, count or time.
    pub(crate) fn unsigned(&mut self, value: u64) {
        self.0.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A reference to a text.
    pub(crate) fn string_id(&mut self, id: StringId) {
        self.0.integer(id.0);
    }

    /// A text.
    pub(crate) fn text(&mut self, text: &str) {
        self.0.text(text.as_bytes());
    }

    /// A handle or pointer, as `0x` and hexadecimal digits.
    pub(crate) fn handle(&mut self, handle: u64) {
        self.0.text(hexadecimal(handle, &mut [0; 18]));
    }
}

/// Writes `0x` and the digits of `value` into the end of `room`: no allocation for each cell.
fn hexadecimal(value: u64, room: &mut [u8; 18]) -> &[u8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut rest = value;
    let mut at = room.len();
    loop {
        at -= 1;
        room[at] = DIGITS[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    room[at - 2] = b'0';
    room[at - 1] = b'x';
    &room[at - 2..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_read_as_printf_writes_pointers() {
        for value in [0, 1, 15, 16, 0x7f40_43dc_6040, u64::MAX] {
            assert_eq!(hexadecimal(value, &mut [0; 18]), format!("{value:#x}").as_bytes());
        }
    }
}
