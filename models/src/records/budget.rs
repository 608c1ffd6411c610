//! As much memory as is asked for.

use super::chunk::Owned;

/// As the first chunk of a ring: each holds two records of the models.
pub const CHUNK: usize = 4 << 10;

pub struct Budget;

impl Budget {
    pub fn take(&self, size: usize) -> Option<Owned> {
        Some(Owned::new(size))
    }

    pub fn give_back(&self, chunk: Owned) {
        drop(chunk);
    }

    pub fn is_busy(&self) -> bool {
        false
    }

    pub fn fits(&self, _size: usize) -> bool {
        true
    }
}
