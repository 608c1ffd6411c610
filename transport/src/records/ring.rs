//! A byte queue from one producing thread to the writer, in chunks that come from one budget.
//!
//! The producer copies a record into its chunk and publishes it with one release store; it takes a lock only when a chunk
//! is full (64 KiB, some 500 dispatches). Memory follows the load: an idle thread holds one small chunk, a burst takes what
//! the budget allows, and the consumer gives chunks back as it empties them.

use std::ptr;
use std::sync::Arc;

use crate::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::records::Kind;
use crate::records::budget::{Budget, CHUNK};
use crate::records::chunk::{Chunk, Owned};

/// Bytes of a thread's first chunk: most threads record little.
const FIRST_CHUNK: usize = 4 << 10;
/// Mappings are whole pages.
const PAGE: usize = 4 << 10;
/// Records are padded to this, so that each header lies aligned.
const ALIGN: usize = 8;
/// Header: total length (u32), body length (u16), kind (u8), unused (u8).
const HEADER: usize = 8;

/// What both ends know.
struct Shared {
    budget: Arc<Budget>,
    /// The producer is gone; what is in the ring is all there will be.
    closed: AtomicBool,
    /// The call that the thread is in, see [`Producer::open_call`].
    call: AtomicU64,
    /// How many records have been pushed.
    pushed: AtomicU64,
}

/// How many records one ring has been given, for whoever asks while its consumer cannot answer.
pub struct Tally(Arc<Shared>);

impl Tally {
    /// So far.
    pub fn pushed(&self) -> u64 {
        self.0.pushed.load(Ordering::Relaxed)
    }

    /// Both ends are gone.
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// The end that a recording thread holds.
pub struct Producer {
    shared: Arc<Shared>,
    /// Chunk being filled; owned by the consumer once `next` is set.
    chunk: *mut Chunk,
    used: usize,
    pushed: u64,
    /// A chunk was taken after so many others that the writer should come by.
    pub many: bool,
}

// SAFETY: the producer may move to another thread as a whole; the chunk it points to is written by nobody else.
unsafe impl Send for Producer {}

/// The end that the writer holds.
pub struct Consumer {
    shared: Arc<Shared>,
    chunk: *mut Chunk,
    read: usize,
    /// Thread that records into this ring.
    pub tid: u32,
    /// The producer was gone and the ring empty at the last drain.
    pub gone: bool,
    /// Where the next drain ends, if that was noted.
    noted: Option<DrainEnd>,
}

/// The end of what a ring held at some time.
#[derive(Clone, Copy)]
struct DrainEnd {
    /// The last chunk, and how far it was written.
    last: *const Chunk,
    written: usize,
    /// The producer was gone.
    closed: bool,
}

// SAFETY: as for the producer; chunks before `chunk` are no longer known to anybody.
unsafe impl Send for Consumer {}

/// Size of a chunk for a record of `need` bytes: a marker's text may be longer than a chunk, it gets one of its own size.
fn chunk_for(need: usize) -> usize {
    (need + Chunk::HEADER).max(CHUNK).next_multiple_of(PAGE)
}

/// Whether `budget` can ever have room for a record with so many bytes.
pub fn can_hold(budget: &Budget, bytes: usize) -> bool {
    budget.fits(chunk_for(HEADER + bytes))
}

/// A new ring for thread `tid`, or nothing when the budget is used up.
pub fn ring(budget: &Arc<Budget>, tid: u32) -> Option<(Producer, Consumer)> {
    let chunk = budget.take(FIRST_CHUNK)?.into_raw();
    let shared = Arc::new(Shared {
        budget: budget.clone(),
        closed: AtomicBool::new(false),
        call: AtomicU64::new(0),
        pushed: AtomicU64::new(0),
    });
    Some((
        Producer { shared: shared.clone(), chunk, used: 0, pushed: 0, many: budget.is_busy() },
        Consumer { shared, chunk, read: 0, tid, gone: false, noted: None },
    ))
}

impl Producer {
    /// Appends a record. False: there is no room and no budget for more; nothing was written.
    #[inline]
    pub fn push(&mut self, kind: Kind, body: &[u8], text: [&[u8]; 2]) -> bool {
        let Ok(length) = u32::try_from(HEADER + body.len() + text[0].len() + text[1].len()) else {
            return false;
        };
        let total = (length as usize).next_multiple_of(ALIGN);
        // SAFETY: `chunk` is live: the consumer frees a chunk only after it has seen `next`, which only we set.
        let capacity = unsafe { &*self.chunk }.size() - Chunk::HEADER;
        if self.used + total > capacity && !self.next_chunk(total) {
            return false;
        }
        let header = [length, body.len() as u32 | (kind as u32) << 16];
        // SAFETY: `used + total <= capacity` of a live chunk, and the consumer reads only below `written`, so these bytes
        // are ours alone.
        unsafe {
            let mut to = Chunk::space(self.chunk, self.used, total);
            for part in [bytemuck::bytes_of(&header), body, text[0], text[1]] {
                ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
            self.used += total;
            (*self.chunk).written.store(self.used, Ordering::Release);
        }
        self.pushed += 1;
        self.shared.pushed.store(self.pushed, Ordering::Relaxed);
        true
    }

    /// Publishes which call the thread is in, 0 for none: its record is in the ring before this says that it is over.
    #[inline]
    pub fn open_call(&self, call: u64) {
        self.shared.call.store(call, Ordering::Release);
    }

    #[cold]
    fn next_chunk(&mut self, need: usize) -> bool {
        let size = chunk_for(need);
        let Some(fresh) = self.shared.budget.take(size) else { return false };
        let fresh = fresh.into_raw();
        // SAFETY: the current chunk is live until the consumer sees `next`; after this store we never touch it again.
        unsafe { (*self.chunk).next.store(fresh, Ordering::Release) };
        self.chunk = fresh;
        self.used = 0;
        self.many = self.shared.budget.is_busy();
        true
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
    }
}

/// One record as the consumer sees it.
pub struct Entry<'a> {
    /// What it is.
    pub kind: Kind,
    /// The body's bytes.
    pub body: &'a [u8],
    /// The text behind it.
    pub text: &'a [u8],
}

impl Consumer {
    /// Whether a drain would find something: a record, or that the producer is gone.
    pub fn has_records(&self) -> bool {
        // SAFETY: `chunk` is live until this consumer frees it.
        let chunk = unsafe { &*self.chunk };
        let more = chunk.written.load(Ordering::Acquire) > self.read
            || !chunk.next.load(Ordering::Acquire).is_null();
        more || self.shared.closed.load(Ordering::Acquire)
    }

    /// What counts the records of this ring.
    pub fn tally(&self) -> Tally {
        Tally(self.shared.clone())
    }

    /// The call that the thread is in.
    pub fn open_call(&self) -> u64 {
        self.shared.call.load(Ordering::Acquire)
    }

    /// What is pushed from now on is not for the next drain.
    pub fn note_end(&mut self) {
        self.noted = Some(self.end());
    }

    /// Nothing is for the next drain.
    pub fn note_nothing(&mut self) {
        self.noted = Some(DrainEnd { last: self.chunk, written: self.read, closed: false });
    }

    /// Everything is for the next drain.
    pub fn forget_end(&mut self) {
        self.noted = None;
    }

    /// Hands every record pushed before the call, or before [`Consumer::note_end`], to `each`, oldest first. True: the producer is
    /// gone and the ring is empty.
    ///
    /// What is pushed meanwhile waits for the next drain: one that chased a busy producer would never end.
    pub fn drain(&mut self, mut each: impl FnMut(Entry<'_>)) -> bool {
        let DrainEnd { last, written: until, closed } = self.noted.take().unwrap_or_else(|| self.end());
        loop {
            // SAFETY: `chunk` is live until this consumer frees it below.
            let chunk = unsafe { &*self.chunk };
            let is_last = ptr::eq(chunk, last);
            // A chunk with a successor does not grow any more.
            let written = if is_last { until } else { chunk.written.load(Ordering::Acquire) };
            // SAFETY: the producer published the bytes below `written` with release and never changes them again.
            let bytes = unsafe { Chunk::filled(self.chunk, written) };
            while self.read < written {
                let at = &bytes[self.read..];
                let header: [u32; 2] = bytemuck::pod_read_unaligned(&at[..HEADER]);
                let (total, body) = (header[0] as usize, (header[1] & 0xffff) as usize);
                if let Some(kind) = Kind::from_byte((header[1] >> 16) as u8) {
                    each(Entry { kind, body: &at[HEADER..HEADER + body], text: &at[HEADER + body..total] });
                }
                self.read += total.next_multiple_of(ALIGN);
            }
            if is_last {
                return closed;
            }
            let next = chunk.next.load(Ordering::Acquire);
            // SAFETY: the producer set `next` and left this chunk; nobody else knows it.
            let done = unsafe { Owned::from_raw(self.chunk) };
            self.chunk = next;
            self.read = 0;
            self.shared.budget.give_back(done);
        }
    }

    /// How many records wait for a drain.
    pub fn waiting(&self) -> u64 {
        let DrainEnd { last, written: until, .. } = self.end();
        let (mut at, mut read, mut count) = (self.chunk.cast_const(), self.read, 0);
        loop {
            // SAFETY: chunks from `chunk` on are live: only this consumer frees them.
            let chunk = unsafe { &*at };
            let is_last = ptr::eq(at, last);
            let written = if is_last { until } else { chunk.written.load(Ordering::Acquire) };
            // SAFETY: the producer published the bytes below `written` with release and never changes them again.
            let bytes = unsafe { Chunk::filled(at, written) };
            while read < written {
                let total: u32 = bytemuck::pod_read_unaligned(&bytes[read..read + 4]);
                read += (total as usize).next_multiple_of(ALIGN);
                count += 1;
            }
            if is_last {
                return count;
            }
            (at, read) = (chunk.next.load(Ordering::Acquire), 0);
        }
    }

    fn end(&self) -> DrainEnd {
        // Asked first: a producer that is gone pushes nothing more.
        let closed = self.shared.closed.load(Ordering::Acquire);
        let mut at = self.chunk;
        loop {
            // SAFETY: chunks from `chunk` on are live: only this consumer frees them.
            let chunk = unsafe { &*at };
            let next = chunk.next.load(Ordering::Acquire);
            if next.is_null() {
                return DrainEnd { last: at, written: chunk.written.load(Ordering::Acquire), closed };
            }
            at = next;
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // A live producer still points into the last chunk: it is left to it, unused, rather than freed under it.
        if self.shared.closed.load(Ordering::Acquire) {
            self.noted = None;
            self.drain(|_| {});
            // SAFETY: the producer is gone and this is the last chunk.
            self.shared.budget.give_back(unsafe { Owned::from_raw(self.chunk) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::budget::ENOUGH;

    fn texts(consumer: &mut Consumer) -> (Vec<Vec<u8>>, bool) {
        let mut out = Vec::new();
        let done = consumer.drain(|e| out.push(e.text.to_vec()));
        (out, done)
    }

    #[test]
    fn records_come_out_in_order_across_chunks() {
        let budget = Arc::new(Budget::new(8 << 20));
        let (mut producer, mut consumer) = ring(&budget, 1).unwrap();
        let sent: Vec<Vec<u8>> = (0..20_000u32).map(|i| vec![i as u8; (i % 97) as usize]).collect();
        for text in &sent {
            assert!(producer.push(Kind::Mark, &[7; 16], [text, &[]]));
        }
        assert_eq!(consumer.waiting(), 20_000);
        drop(producer);
        assert_eq!(texts(&mut consumer), (sent, true));
        assert_eq!(consumer.waiting(), 0);
        drop(consumer);
        assert!(budget.take(8 << 20).is_some(), "every chunk came back");
    }

    #[test]
    fn what_can_never_fit_is_known_and_hope_returns_with_room() {
        let budget = Arc::new(Budget::new(1 << 20));
        assert!(can_hold(&budget, 100_000) && !can_hold(&budget, 1 << 20));
        budget.mark_exhausted();
        assert!(budget.is_exhausted());
        assert!(ring(&budget, 1).is_some());
        assert!(!budget.is_exhausted(), "there is room after all");
    }

    #[test]
    fn a_full_budget_refuses_and_recovers() {
        let budget = Arc::new(Budget::new(FIRST_CHUNK + 2 * CHUNK));
        let (mut producer, mut consumer) = ring(&budget, 1).unwrap();
        let mut pushed = 0;
        while producer.push(Kind::Mark, &[0; 16], [&[1; 1000], &[]]) {
            pushed += 1;
        }
        assert!(pushed > 100, "{pushed}");
        assert_eq!(texts(&mut consumer).0.len(), pushed);
        assert!(producer.push(Kind::Mark, &[0; 16], [&[2; 1000], &[]]), "drained chunks are free again");
        assert_eq!(texts(&mut consumer).0, [vec![2; 1000]]);
    }

    #[test]
    fn a_producer_says_when_it_has_taken_much() {
        let budget = Arc::new(Budget::new(64 << 20));
        let (mut producer, mut consumer) = ring(&budget, 1).unwrap();
        let mut push = || {
            let records = (1..).find(|_| {
                assert!(producer.push(Kind::Mark, &[0; 16], [&[1; 1000], &[]]));
                std::mem::take(&mut producer.many)
            });
            records.unwrap() * (HEADER + 16 + 1000)
        };
        let about = ENOUGH / 10 * 9..ENOUGH / 10 * 11;
        assert!(about.contains(&push()));
        budget.visited();
        texts(&mut consumer);
        assert!(about.contains(&push()), "not again until as much has come");
    }

    #[test]
    fn a_text_longer_than_a_chunk_survives() {
        let budget = Arc::new(Budget::new(8 << 20));
        let (mut producer, mut consumer) = ring(&budget, 1).unwrap();
        let long = vec![3; 5 << 20];
        assert!(producer.push(Kind::Mark, &[0; 16], [&[1], &[2]]));
        assert!(producer.push(Kind::Mark, &[0; 16], [&long, &[4]]));
        assert!(!producer.push(Kind::Mark, &[0; 16], [&long, &[]]), "more than the budget");
        assert_eq!(texts(&mut consumer).0, [vec![1, 2], [long, vec![4]].concat()]);
    }

    #[test]
    fn a_drain_ends_while_the_producer_goes_on() {
        let budget = Arc::new(Budget::new(8 << 20));
        let (mut producer, mut consumer) = ring(&budget, 1).unwrap();
        let text = [9; 3000];
        for _ in 0..10 {
            assert!(producer.push(Kind::Mark, &[0; 16], [&text, &[]]));
        }
        for round in [10, 20, 40] {
            let mut seen = 0;
            consumer.drain(|_| {
                seen += 1;
                assert!(
                    producer.push(Kind::Mark, &[0; 16], [&text, &[]])
                        && producer.push(Kind::Mark, &[0; 16], [&text, &[]])
                );
            });
            assert_eq!(seen, round, "what was there when it began");
        }
    }

    #[test]
    fn a_drain_ends_where_that_was_noted() {
        let budget = Arc::new(Budget::new(8 << 20));
        let (mut producer, mut consumer) = ring(&budget, 1).unwrap();
        let mut push = |number: u8| assert!(producer.push(Kind::Mark, &[0; 16], [&[number; 3000], &[]]));
        let numbers = |consumer: &mut Consumer| {
            let (texts, gone) = texts(consumer);
            (texts.iter().map(|text| text[0]).collect::<Vec<_>>(), gone)
        };
        push(0);
        consumer.note_end();
        // Into other chunks too.
        (1..100).for_each(&mut push);
        assert_eq!(numbers(&mut consumer), (vec![0], false));
        consumer.note_end();
        drop(producer);
        assert_eq!(
            numbers(&mut consumer),
            ((1..100).collect(), false),
            "it was there when the end was noted"
        );
        consumer.note_end();
        consumer.forget_end();
        assert_eq!(numbers(&mut consumer), (vec![], true));
    }

    #[test]
    fn two_threads() {
        let budget = Arc::new(Budget::new(1 << 20));
        let (mut producer, mut consumer) = ring(&budget, 1).unwrap();
        let total = if cfg!(miri) { 300 } else { 300_000u64 };
        let thread = std::thread::spawn(move || {
            for i in 0..total {
                while !producer.push(Kind::Pop, &i.to_le_bytes(), [&i.to_le_bytes()[..(i % 9) as usize], &[]])
                {
                    std::thread::yield_now();
                }
            }
        });
        let mut next = 0u64;
        loop {
            let done = consumer.drain(|e| {
                assert_eq!(e.body, next.to_le_bytes(), "nothing lost, nothing twice");
                assert_eq!(e.text.len(), (next % 9) as usize);
                next += 1;
            });
            if done {
                break;
            }
        }
        assert_eq!(next, total);
        thread.join().unwrap();
    }
}
