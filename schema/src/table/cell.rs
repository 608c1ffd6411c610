//! How values become cells: integers clamped to what SQLite holds, handles as hexadecimal text.

use crate::id::StringId;
use rusqlite::Statement;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

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

/// The parameters of one statement, bound from the first to the last.
pub(crate) struct Cells<'statement, 'connection> {
    statement: &'statement mut Statement<'connection>,
    next: usize,
}

impl<'statement, 'connection> Cells<'statement, 'connection> {
    /// Starts at the first parameter.
    pub(crate) fn new(statement: &'statement mut Statement<'connection>) -> Self {
        Cells { statement, next: 1 }
    }

    fn bind<T: ToSql>(&mut self, value: T) -> rusqlite::Result<()> {
        self.statement.raw_bind_parameter(self.next, value)?;
        self.next += 1;
        Ok(())
    }

    /// An integer as it is.
    pub(crate) fn integer(&mut self, value: impl Into<i64>) -> rusqlite::Result<()> {
        self.bind(value.into())
    }

    /// A size, count or time.
    pub(crate) fn unsigned(&mut self, value: u64) -> rusqlite::Result<()> {
        self.bind(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// A reference to a text.
    pub(crate) fn string_id(&mut self, id: StringId) -> rusqlite::Result<()> {
        self.bind(id.0)
    }

    /// A text.
    pub(crate) fn text(&mut self, text: &str) -> rusqlite::Result<()> {
        self.bind(text)
    }

    /// A handle or pointer, as `0x` and hexadecimal digits.
    pub(crate) fn handle(&mut self, handle: u64) -> rusqlite::Result<()> {
        let mut room = [0; 18];
        self.bind(ToSqlOutput::Borrowed(ValueRef::Text(hexadecimal(handle, &mut room))))
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
