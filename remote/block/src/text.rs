//! A text in memory that somebody else may be writing.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// At most `N` bytes.
#[repr(C)]
pub struct SharedText<const N: usize> {
    length: AtomicU32,
    bytes: [AtomicU8; N],
}

impl<const N: usize> SharedText<N> {
    /// Puts `text` in, as far as there is room.
    pub fn set(&self, text: &[u8]) {
        let text = &text[..text.len().min(N)];
        for (place, byte) in self.bytes.iter().zip(text) {
            place.store(*byte, Ordering::Relaxed);
        }
        self.length.store(text.len() as u32, Ordering::Relaxed);
    }

    /// What it holds; a mixture where it is being written.
    pub fn get(&self) -> Vec<u8> {
        let length = (self.length.load(Ordering::Relaxed) as usize).min(N);
        self.bytes[..length].iter().map(|byte| byte.load(Ordering::Relaxed)).collect()
    }
}
