//! Text to id, in bounded memory.
//!
//! A program may push millions of different marker texts, and its memory is not ours. Remembered texts are in two
//! generations: new ones and those found again go into the young one; when that is full the old one is forgotten and
//! the young one takes its place. Texts in steady use keep their one id, others are forgotten and, if they come back,
//! get another: a text may be in rocpd_string more than once.
//!
//! That freedom makes a generation cheap: texts lie one behind the other, found by their hash alone, and if two
//! have the same 64-bit hash, the later one is remembered.

use crate::id::{LOCAL_IDS, Offset, StringId};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// The local id of the empty text.
pub(crate) const EMPTY: u64 = 1;

/// Bytes of remembered text and its bookkeeping, unless told otherwise.
pub(crate) const BUDGET: usize = 32 << 20;

/// What one text costs beside its bytes: its map entry, in a map that has just doubled.
const OVERHEAD: usize = 64;

/// What became of a text.
pub(crate) enum Interned {
    /// It had an id.
    Known(StringId),
    /// It has one now, and a row must be written.
    New(StringId),
}

/// Where a remembered text stands, and its local id.
#[derive(Clone, Copy, Debug)]
struct KnownText {
    start: u32,
    length: u32,
    id: u32,
    /// When its row was last known to be in the file, see [`Interner::doubt`].
    seen: u32,
}

/// Some texts.
#[derive(Clone, Debug, Default)]
struct Generation {
    known: FxHashMap<u64, KnownText>,
    texts: String,
}

impl Generation {
    fn find(&self, hash: u64, text: &str) -> Option<KnownText> {
        let known = self.known.get(&hash)?;
        let there = &self.texts[known.start as usize..][..known.length as usize];
        (there == text).then_some(*known)
    }

    fn insert(&mut self, hash: u64, text: &str, id: u32, seen: u32) {
        let (start, length) = (self.texts.len() as u32, text.len() as u32);
        self.texts.push_str(text);
        self.known.insert(hash, KnownText { start, length, id, seen });
    }

    fn bytes(&self) -> usize {
        self.texts.len() + self.known.len() * OVERHEAD
    }

    /// Empty again; keeps its memory for the next texts if that is at most `most` bytes.
    fn clear(&mut self, most: usize) {
        if self.texts.capacity() / 2 + self.known.capacity() * OVERHEAD / 2 > most {
            *self = Generation::default();
        }
        self.known.clear();
        self.texts.clear();
    }
}

/// The texts of one session.
#[derive(Clone, Debug)]
pub(crate) struct Interner {
    offset: Offset,
    next: u64,
    young: Generation,
    old: Generation,
    budget: usize,
    /// Ids from here on belong to the open transaction.
    first_open: u64,
    /// How often others may have taken texts out of the file.
    doubts: u32,
}

impl Interner {
    pub(crate) fn new(session: u32, budget: usize) -> Interner {
        Interner {
            offset: Offset::of_session(session),
            next: EMPTY + 1,
            young: Generation::default(),
            old: Generation::default(),
            budget,
            first_open: EMPTY + 1,
            doubts: 0,
        }
    }

    /// Others have written the file: whoever owns it may have deleted texts, so each is looked up before its id is given out again.
    pub(crate) fn doubt(&mut self) {
        self.doubts = self.doubts.wrapping_add(1);
    }

    /// Changes with each [`Interner::doubt`].
    pub(crate) fn doubts(&self) -> u32 {
        self.doubts
    }

    /// The id of the empty text.
    pub(crate) fn empty(&self) -> StringId {
        StringId(self.offset.local(EMPTY))
    }

    /// The id of `text`; None when the session has no ids left. `is_there` says whether a text that was committed still is in the file.
    pub(crate) fn intern<E>(
        &mut self,
        text: &str,
        is_there: impl FnOnce(StringId) -> Result<bool, E>,
    ) -> Result<Option<Interned>, E> {
        if text.is_empty() {
            return Ok(Some(Interned::Known(self.empty())));
        }
        let hash = FxBuildHasher.hash_one(text);
        let young = self.young.find(hash, text);
        if let Some(known) = young.or_else(|| self.old.find(hash, text)) {
            let id = StringId(self.offset.local(u64::from(known.id)));
            let in_doubt = known.seen != self.doubts && u64::from(known.id) < self.first_open;
            if !in_doubt || is_there(id)? {
                match self.young.known.get_mut(&hash).filter(|_| young.is_some()) {
                    Some(known) => known.seen = self.doubts,
                    None => self.remember(hash, text, known.id),
                }
                return Ok(Some(Interned::Known(id)));
            }
        }
        if self.next >= LOCAL_IDS {
            return Ok(None);
        }
        let id = self.next as u32;
        self.next += 1;
        self.remember(hash, text, id);
        Ok(Some(Interned::New(StringId(self.offset.local(u64::from(id))))))
    }

    fn remember(&mut self, hash: u64, text: &str, id: u32) {
        let bytes = text.len() + OVERHEAD;
        // Places of texts are 32-bit numbers.
        let half = (self.budget / 2).min(u32::MAX as usize);
        // One giant text must not push out all others.
        if bytes > half / 4 {
            return;
        }
        if self.young.bytes() + bytes > half {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear(half);
        }
        self.young.insert(hash, text, id, self.doubts);
    }

    /// The next local id.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Changes the memory budget; takes hold as texts come.
    pub(crate) fn set_budget(&mut self, bytes: usize) {
        self.budget = bytes;
    }

    /// The budget.
    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// The texts interned so far are in the file.
    pub(crate) fn commit(&mut self) {
        self.first_open = self.next;
    }

    /// The texts interned since the last commit are not in the file. Their ids are not given out again: a caller may
    /// still hold one, and it must not come to mean another text.
    pub(crate) fn rollback(&mut self) {
        for generation in [&mut self.young, &mut self.old] {
            generation.known.retain(|_, known| u64::from(known.id) < self.first_open);
        }
        self.first_open = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Interner {
        /// Of a file from which nobody deletes.
        fn plain(&mut self, text: &str) -> Option<Interned> {
            self.intern(text, |_| Ok::<_, ()>(true)).unwrap()
        }
    }

    fn id(interned: Option<Interned>) -> (bool, i64) {
        match interned {
            Some(Interned::New(id)) => (true, id.0),
            Some(Interned::Known(id)) => (false, id.0),
            None => panic!("the session is full"),
        }
    }

    /// Bytes that the texts and the maps really take, by the maps' own account of their room. Room behind a generation's texts
    /// is only an address.
    fn bytes(interner: &Interner) -> usize {
        let entry = size_of::<(u64, KnownText)>() + 1;
        let of =
            |generation: &Generation| generation.texts.len() + generation.known.capacity() * entry * 8 / 7;
        of(&interner.young) + of(&interner.old)
    }

    #[test]
    fn memory_stays_within_the_budget_however_many_texts_come() {
        let budget = 1 << 20;
        let mut interner = Interner::new(0, budget);
        let kernel = id(interner.plain("a kernel that is launched again and again")).1;
        let mut most = 0;
        for number in 0..300_000 {
            assert!(id(interner.plain(&format!("step {number}"))).0);
            if number % 1000 == 0 {
                assert_eq!(id(interner.plain("a kernel that is launched again and again")), (false, kernel));
                most = most.max(bytes(&interner));
            }
        }
        assert!(most <= budget, "{most} of {budget}");
        assert!(most > budget / 3, "what may be remembered is: {most} of {budget}");
        assert!(id(interner.plain("step 0")).0, "a forgotten text gets another id");
        assert!(!id(interner.plain("step 299999")).0, "a recent one does not");
    }

    #[test]
    fn a_giant_text_pushes_out_no_other() {
        let mut interner = Interner::new(0, 1 << 20);
        let small = id(interner.plain("small")).1;
        let giant = "x".repeat(1 << 20);
        assert!(id(interner.plain(&giant)).0);
        assert!(id(interner.plain(&giant)).0, "too large to remember");
        assert_eq!(id(interner.plain("small")), (false, small));
    }

    #[test]
    fn a_smaller_budget_takes_hold() {
        let mut interner = Interner::new(0, 1 << 24);
        for number in 0..50_000 {
            assert!(interner.plain(&format!("step {number}")).is_some());
        }
        interner.set_budget(1 << 16);
        for number in 0..5_000 {
            assert!(interner.plain(&format!("pace {number}")).is_some());
        }
        assert!(bytes(&interner) <= 1 << 16);
    }

    #[test]
    fn the_last_id_of_a_session_is_given_out_and_none_after_it() {
        let mut interner = Interner::new(3, BUDGET);
        interner.next = LOCAL_IDS - 1;
        interner.commit();
        assert_eq!(id(interner.plain("last")), (true, (4 << 32) - 1));
        assert!(interner.plain("one too many").is_none());
        assert_eq!(id(interner.plain("last")), (false, (4 << 32) - 1));
        assert_eq!(id(interner.plain("")), (false, (3 << 32) + 1));
        interner.rollback();
        assert!(interner.plain("last").is_none(), "it went with its transaction");
    }

    #[test]
    fn texts_with_one_hash_are_not_taken_for_each_other() {
        let mut generation = Generation::default();
        generation.insert(7, "first", 2, 0);
        assert!(generation.find(7, "second").is_none());
        generation.insert(7, "second", 3, 0);
        assert_eq!(generation.find(7, "second").unwrap().id, 3);
        assert!(generation.find(7, "first").is_none(), "forgotten, which is allowed");
        assert!(generation.find(7, "").is_none());
    }

    #[test]
    fn a_text_in_doubt_is_looked_up_once() {
        let mut interner = Interner::new(0, BUDGET);
        let a = id(interner.plain("a")).1;
        interner.commit();
        interner.doubt();
        let mut looked = vec![];
        let mut intern = |interner: &mut Interner, there: bool| {
            let interned = interner.intern("a", |id| {
                looked.push(id.0);
                Ok::<_, ()>(there)
            });
            id(interned.unwrap())
        };
        assert_eq!(intern(&mut interner, true), (false, a));
        assert_eq!(intern(&mut interner, false), (false, a), "known to be there");
        interner.doubt();
        let (new, b) = intern(&mut interner, false);
        assert!(new && b > a);
        assert_eq!(intern(&mut interner, false), (false, b), "it comes with this transaction");
        assert_eq!(looked, [a, a]);
    }
}
