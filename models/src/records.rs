//! The byte ring.

pub mod budget;
pub mod chunk;
#[path = "../../transport/src/records/ring.rs"]
pub mod ring;

#[derive(Clone, Copy)]
pub enum Kind {
    Mark = 1,
}

impl Kind {
    pub fn from_byte(byte: u8) -> Option<Kind> {
        (byte == Kind::Mark as u8).then_some(Kind::Mark)
    }
}
