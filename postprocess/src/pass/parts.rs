//! Adding records up by key, of any number of keys: beyond what fits into memory, sums are sorted on disk and added up as they are read.

use std::collections::hash_map::Entry;

use anyhow::Result;
use bytemuck::Pod;
use rustc_hash::FxHashMap;

use super::sorted::{Sorted, Sorter};

/// What stands for a text, or for several: nobody who makes a trace knows its keys, so two of 128 bits that are equal are equal texts.
pub(crate) type Key = [u64; 2];

/// Keys whose sums are in memory.
pub(crate) const IN_MEMORY: usize = 1 << 16;

/// A sum, or a part of one; ordered by its key first.
pub(crate) trait Summand: Pod + Ord {
    fn key(&self) -> Key;

    /// Adds one of the same key.
    fn add(&mut self, more: &Self);
}

/// Parts that are being added up.
pub(crate) struct Parts<P> {
    recent: FxHashMap<Key, P>,
    sorter: Sorter<P>,
}

impl<P: Summand> Parts<P> {
    /// None yet.
    pub(crate) fn new() -> Parts<P> {
        Parts { recent: FxHashMap::default(), sorter: Sorter::new() }
    }

    /// Adds one.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub(crate) fn add(&mut self, part: P) -> Result<()> {
        if let Entry::Occupied(mut known) = self.recent.entry(part.key()) {
            known.get_mut().add(&part);
            return Ok(());
        }
        if self.recent.len() == IN_MEMORY {
            self.write()?;
        }
        self.recent.insert(part.key(), part);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.recent.drain().try_for_each(|(_, part)| self.sorter.push(part))
    }

    /// The sums, in the order of their keys.
    ///
    /// # Errors
    /// When a temporary file cannot be written or read.
    pub(crate) fn sums(mut self) -> Result<KeySums<P>> {
        self.write()?;
        drop(self.recent);
        let mut parts = self.sorter.sorted()?;
        Ok(KeySums { next: parts.next()?, parts })
    }
}

/// Sums in the order of their keys.
pub(crate) struct KeySums<P> {
    next: Option<P>,
    parts: Sorted<P>,
}

impl<P: Summand> KeySums<P> {
    /// The next one.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<P>> {
        let Some(mut sum) = self.next.take() else { return Ok(None) };
        self.next = self.parts.next()?;
        while let Some(part) = self.next.filter(|part| part.key() == sum.key()) {
            sum.add(&part);
            self.next = self.parts.next()?;
        }
        Ok(Some(sum))
    }

    /// The sum of a key, if there is one. Keys that are asked for become larger.
    ///
    /// # Errors
    /// As [`KeySums::next`].
    pub(crate) fn at(&mut self, key: Key) -> Result<Option<P>> {
        while self.next.is_some_and(|next| next.key() < key) {
            self.next()?;
        }
        if self.next.is_some_and(|next| next.key() == key) { self.next() } else { Ok(None) }
    }
}
