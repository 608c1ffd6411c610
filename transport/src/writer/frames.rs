//! From the addresses of a call to the rows of its stack frames.
//!
//! Reading symbols may take long, and neither other writers of the file nor a fork should wait for it: frames whose names are not
//! known yet wait until the transaction that wrote their call is over, and go into the next one.

use std::sync::Arc;

use rpd_schema::{ApiId, Appender, Error, StringId};
use rustc_hash::FxHashMap;

use crate::stack::Stacks;
use crate::stack::symbol::Symbols;

/// Addresses whose ids are remembered: as many as have their names remembered.
const MOST_IDS: usize = 1 << 16;

/// The frames of a call, nearest first, until their names are known.
pub(super) struct UnnamedStack {
    call: ApiId,
    words: Box<[u64]>,
    /// The transaction that has the call's row.
    transaction: u64,
}

pub(super) struct Frames {
    stacks: &'static Stacks,
    symbols: Symbols,
    /// What is in this session's part of the file already.
    ids: FxHashMap<u64, Arc<[StringId]>>,
    /// When those were good, see [`Appender::doubts`].
    doubts: u32,
    waiting: Vec<UnnamedStack>,
    /// Number of the open transaction, or of the next.
    transaction: u64,
    /// Stacks that the open transaction has of calls in the file.
    belated: u64,
}

impl Frames {
    /// Of the process that `stacks` belongs to.
    pub(super) fn new(stacks: &'static Stacks) -> Frames {
        Frames {
            stacks,
            symbols: Symbols::default(),
            ids: FxHashMap::default(),
            doubts: 0,
            waiting: vec![],
            transaction: 0,
            belated: 0,
        }
    }

    /// The frames of a call that has just been given its row. How many calls got theirs into the file: 1 or, for now, 0.
    pub(super) fn add(
        &mut self,
        appender: &mut Appender,
        call: ApiId,
        words: Box<[u64]>,
    ) -> Result<u64, Error> {
        if !self.are_named(&words) {
            self.waiting.push(UnnamedStack { call, words, transaction: self.transaction });
            return Ok(0);
        }
        self.write(appender, call, &words)
    }

    /// The frames that wait.
    pub(super) fn take_waiting(&mut self) -> Vec<UnnamedStack> {
        std::mem::take(&mut self.waiting)
    }

    /// Writes some of those; as [`Frames::add`]. What cannot be written waits.
    pub(super) fn add_waiting(&mut self, appender: &mut Appender, stack: UnnamedStack) -> Result<u64, Error> {
        if !self.are_named(&stack.words) {
            self.waiting.push(stack);
            return Ok(0);
        }
        let result = self.write(appender, stack.call, &stack.words);
        match result {
            Ok(written) if stack.transaction < self.transaction => self.belated += written,
            Ok(_) => {}
            Err(_) => self.waiting.push(stack),
        }
        result
    }

    /// Some of those are not to be written now.
    pub(super) fn put_back(&mut self, stacks: impl Iterator<Item = UnnamedStack>) {
        self.waiting.extend(stacks);
    }

    fn are_named(&self, words: &[u64]) -> bool {
        words.iter().all(|word| self.symbols.get(*word).is_some())
    }

    fn write(&mut self, appender: &mut Appender, call: ApiId, words: &[u64]) -> Result<u64, Error> {
        let mut depth = 0;
        for word in words {
            for name in self.ids(appender, *word)?.iter() {
                appender.stack_frame(call, depth, *name)?;
                depth += 1;
            }
        }
        Ok(u64::from(depth > 0))
    }

    /// Whether frames wait for the next transaction.
    pub(super) fn has_waiting(&self) -> bool {
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

    /// The open transaction is in the file.
    pub(super) fn commit(&mut self) {
        self.transaction += 1;
        self.belated = 0;
    }

    /// The open transaction is not in the file, and neither are the ids that came with it, and its calls.
    pub(super) fn roll_back(&mut self) {
        let open = self.transaction;
        self.waiting.retain(|stack| stack.transaction < open);
        self.stacks.count_without(std::mem::take(&mut self.belated));
        self.forget();
    }

    /// A new session began, which has no ids yet, and none of the calls that wait.
    pub(super) fn forget(&mut self) {
        self.ids.clear();
        self.lose_waiting();
    }

    /// The calls that wait will not get their frames.
    pub(super) fn lose_waiting(&mut self) {
        self.stacks.count_without(self.waiting.len() as u64);
        self.waiting.clear();
    }

    fn ids(&mut self, appender: &mut Appender, word: u64) -> Result<Arc<[StringId]>, Error> {
        if self.doubts != appender.doubts() {
            (self.doubts, self.ids) = (appender.doubts(), FxHashMap::default());
        }
        if let Some(ids) = self.ids.get(&word) {
            return Ok(ids.clone());
        }
        if self.ids.len() >= MOST_IDS {
            self.ids.clear();
        }
        let names = self.symbols.get(word).cloned().unwrap_or_default();
        let ids = names.iter().map(|name| appender.intern(name)).collect::<Result<Arc<[_]>, _>>()?;
        self.ids.insert(word, ids.clone());
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of no module, which its address is the name of.
    fn code(address: u64) -> Box<[u64]> {
        Box::new([address])
    }

    #[test]
    fn code_that_is_made_again_and_again_takes_no_more_memory() {
        let directory = tempfile::tempdir().unwrap();
        let mut appender = Appender::open(&directory.path().join("t.rpd")).unwrap();
        let mut frames = Frames::new(Box::leak(Box::new(Stacks::new(rpd_codeobject::demangle))));
        appender.begin().unwrap();
        for round in 0..3 {
            for call in 1..=40_000 {
                frames.add(&mut appender, ApiId::call(call), code(call + round * 40_000)).unwrap();
            }
            assert!(frames.name());
            for stack in frames.take_waiting() {
                assert_eq!(frames.add_waiting(&mut appender, stack).unwrap(), 1);
            }
        }
        appender.commit().unwrap();
        assert!(frames.ids.len() <= MOST_IDS, "{}", frames.ids.len());
    }

    #[test]
    fn calls_in_the_file_have_their_frames_or_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let mut appender = Appender::open(&directory.path().join("t.rpd")).unwrap();
        let mut frames = Frames::new(Box::leak(Box::new(Stacks::new(rpd_codeobject::demangle))));

        // Three calls are in the file when one more comes, of a transaction that is not: nobody misses its frames.
        appender.begin().unwrap();
        for call in 1..=3 {
            assert_eq!(frames.add(&mut appender, ApiId::call(call), code(call)).unwrap(), 0);
        }
        appender.commit().unwrap();
        frames.commit();
        assert!(frames.name());
        appender.begin().unwrap();
        let mut stacks = frames.take_waiting().into_iter();
        let written = frames.add_waiting(&mut appender, stacks.next().unwrap()).unwrap();
        frames.put_back(stacks);
        assert_eq!(frames.add(&mut appender, ApiId::call(4), code(4)).unwrap(), 0);
        assert_eq!(frames.add(&mut appender, ApiId::call(5), code(1)).unwrap(), 1);
        assert_eq!((written, frames.stacks.without()), (1, 0));
        appender.rollback();
        frames.roll_back();
        assert_eq!(frames.stacks.without(), 3);
        assert!(!frames.has_waiting());

        // What is written and committed is not missed, what cannot be written is.
        appender.begin().unwrap();
        for call in 6..=7 {
            frames.add(&mut appender, ApiId::call(call), code(call)).unwrap();
        }
        appender.commit().unwrap();
        frames.commit();
        assert!(frames.name());
        appender.begin().unwrap();
        let mut stacks = frames.take_waiting().into_iter();
        assert_eq!(frames.add_waiting(&mut appender, stacks.next().unwrap()).unwrap(), 1);
        appender.commit().unwrap();
        frames.commit();
        assert!(frames.add_waiting(&mut appender, stacks.next().unwrap()).is_err(), "between transactions");
        frames.roll_back();
        assert_eq!(frames.stacks.without(), 4);
    }
}
