//! From the addresses of a call to the rows of its stack frames.
//!
//! Reading symbols may take long, and neither other writers of the file nor a fork should wait for it: frames whose names are not
//! known yet wait until the transaction that wrote their call is over, and go into the next one.

use std::sync::Arc;

use rpd_schema::{ApiId, Appender, Error, StringId};
use rustc_hash::FxHashMap;

use crate::stack::Stacks;
use crate::stack::symbol::Symbols;

/// The frames of a call, nearest first, until their names are known.
pub(super) struct Waiting {
    call: ApiId,
    words: Box<[u64]>,
}

/// See the module.
pub(super) struct Frames {
    stacks: &'static Stacks,
    symbols: Symbols,
    /// What is in this session's part of the file already.
    ids: FxHashMap<u64, Arc<[StringId]>>,
    waiting: Vec<Waiting>,
}

impl Frames {
    /// Of the process that `stacks` belongs to.
    pub(super) fn new(stacks: &'static Stacks) -> Frames {
        Frames { stacks, symbols: Symbols::default(), ids: FxHashMap::default(), waiting: vec![] }
    }

    /// The frames of a call that has just been given its row. How many calls got theirs into the file: 1 or, for now, 0.
    pub(super) fn add(
        &mut self,
        appender: &mut Appender,
        call: ApiId,
        words: Box<[u64]>,
    ) -> Result<u64, Error> {
        if words.iter().any(|word| self.symbols.get(*word).is_none()) {
            self.waiting.push(Waiting { call, words });
            return Ok(0);
        }
        let mut depth = 0;
        for word in &words {
            for name in self.ids(appender, *word)?.iter() {
                appender.stack_frame(call, depth, *name)?;
                depth += 1;
            }
        }
        Ok(u64::from(depth > 0))
    }

    /// Frames that waited for their names, which are known now.
    pub(super) fn take_named(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Writes some of those; as [`Frames::add`].
    pub(super) fn add_named(&mut self, appender: &mut Appender, stack: Waiting) -> Result<u64, Error> {
        self.add(appender, stack.call, stack.words)
    }

    /// So many stacks of calls in the file were not written.
    pub(super) fn lose(&self, stacks: usize) {
        self.stacks.count_without(stacks as u64);
    }

    /// Whether frames wait for the next transaction.
    pub(super) fn has_named(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Works out the names that are missing. True: there are frames to be written now.
    pub(super) fn name(&mut self) -> bool {
        if self.waiting.is_empty() {
            self.symbols.rest();
            return false;
        }
        let words = self.waiting.iter().flat_map(|stack| stack.words.iter().copied()).collect();
        self.symbols.name(self.stacks, words);
        true
    }

    /// Ids are no longer in the file: a transaction was rolled back or a new session began. So are the calls that wait.
    pub(super) fn forget_ids(&mut self) {
        self.ids.clear();
        self.lose(self.waiting.len());
        self.waiting.clear();
    }

    fn ids(&mut self, appender: &mut Appender, word: u64) -> Result<Arc<[StringId]>, Error> {
        if let Some(ids) = self.ids.get(&word) {
            return Ok(ids.clone());
        }
        let names = self.symbols.get(word).cloned().unwrap_or_default();
        let ids = names.iter().map(|name| appender.intern(name)).collect::<Result<Arc<[_]>, _>>()?;
        self.ids.insert(word, ids.clone());
        Ok(ids)
    }
}
