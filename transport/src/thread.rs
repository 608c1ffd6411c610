//! What a thread needs to record: its ring, its tid, the ranges it opened while recording was paused.
//!
//! Nothing here may panic or allocate on the usual path: a thread-local borrow, a copy into the ring, done. It has no cancellation point there;
//! whatever else is done is done inside [`cancellation::rarely`].

use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rpd_preload::cancellation;
use rpd_preload::clock;
use rpd_preload::lock::lock;
use rpd_preload::threads;

use crate::counters::Cause;
use crate::paused::Paused;
use crate::recorder::{Recorder, epoch};
use crate::records::Kind;
use crate::records::ring::{self, Producer};
use crate::{correlation, records};

/// Whether the calling thread may be made to wait when all buffers are full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// A thread of the application or of the recorder.
    Waits,
    /// A thread of the GPU runtime: others depend on it.
    Drops,
}

/// How long an ending thread waits for others that end: of those that have lost their processor too, on a busy machine.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(5);
/// Time between two tries.
const ORPHAN_PAUSE: Duration = Duration::from_micros(100);

/// A record on its way into a ring.
#[derive(Clone, Copy)]
struct NewRecord<'a> {
    kind: Kind,
    body: &'a [u8],
    text: [&'a [u8]; 2],
    patience: Patience,
}

impl NewRecord<'_> {
    fn length(&self) -> usize {
        self.body.len() + self.text.iter().map(|text| text.len()).sum::<usize>()
    }

    /// False: there is no room.
    #[inline]
    fn put(&self, producer: &mut Producer) -> bool {
        producer.push(self.kind, self.body, self.text)
    }
}

struct ThreadBuffer {
    /// Recorder that `producer` belongs to.
    epoch: u32,
    producer: Option<Producer>,
    paused: Paused,
}

thread_local! {
    static BUFFER: RefCell<ThreadBuffer> = const { RefCell::new(ThreadBuffer { epoch: 0, producer: None, paused: Paused::new() }) };
    /// (epoch, tid): gettid is a system call, and a fork changes the answer.
    static TID: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// The library is being loaded. A thread's first record registers a destructor with the C library, which looks a symbol up when it is asked
/// first: not on the small stack of a signal handler.
pub fn prepare() {
    let _ = BUFFER.try_with(|_| {});
}

/// The calling thread's id.
#[inline]
pub fn tid() -> u32 {
    let (known, tid) = TID.get();
    if known == epoch() && known != 0 {
        return tid;
    }
    let tid = threads::id() as u32;
    TID.set((epoch(), tid));
    tid
}

/// Pushes one record from the calling thread. False: it is lost, and counted.
#[inline]
pub fn push(
    recorder: &'static Recorder,
    kind: Kind,
    body: &[u8],
    text: [&[u8]; 2],
    patience: Patience,
) -> bool {
    let record = NewRecord { kind, body, text, patience };
    let pushed = BUFFER.try_with(|buffer| match buffer.try_borrow_mut() {
        Ok(mut buffer) => buffer.push(recorder, &record),
        // A signal handler interrupted a push of the same thread.
        Err(_) => {
            recorder.counters.lose(Cause::Reentered, 1);
            false
        }
    });
    pushed.unwrap_or_else(|_| push_orphan(recorder, &record))
}

/// A call of this thread begins: its id, by which operations refer to it. The writer sees that it is open, and keeps what refers to
/// it back until [`end_call`]. Nothing, and the call is counted as lost, when there is no room to record it, in a signal handler that
/// interrupted a push of the same thread, or when the thread is ending.
#[inline]
pub fn begin_call(recorder: &'static Recorder) -> Option<u64> {
    let begun = BUFFER.try_with(|buffer| match buffer.try_borrow_mut() {
        Ok(mut buffer) => buffer.begin_call(recorder),
        Err(_) => {
            recorder.counters.lose(Cause::Reentered, 1);
            None
        }
    });
    begun.unwrap_or_else(|_| {
        recorder.counters.lose(Cause::EndingThread, 1);
        None
    })
}

/// The call that this thread is in is over; its record, or that there is none.
#[inline]
pub fn end_call(recorder: &'static Recorder, call: &records::Call, text: [&[u8]; 2]) {
    let body = bytemuck::bytes_of(call);
    let record = NewRecord { kind: Kind::Call, body, text, patience: Patience::Waits };
    let _ = BUFFER.try_with(|buffer| {
        let Ok(mut buffer) = buffer.try_borrow_mut() else {
            return recorder.lost_calls.add(call.correlation);
        };
        if !buffer.push(recorder, &record) {
            recorder.lost_calls.add(call.correlation);
        }
        if let Some(producer) = &buffer.producer {
            producer.open_call(correlation::NONE);
        }
    });
}

/// Runs `act` on what this thread remembers of pauses; the default when the thread is ending.
pub fn with_paused<T: Default>(act: impl FnOnce(&mut Paused) -> T) -> T {
    let acted = BUFFER.try_with(|buffer| {
        let mut buffer = buffer.try_borrow_mut().ok()?;
        buffer.refresh();
        Some(act(&mut buffer.paused))
    });
    acted.ok().flatten().unwrap_or_default()
}

/// Whether this thread has put anything into its ring.
pub fn has_recorded() -> bool {
    BUFFER
        .try_with(|buffer| buffer.try_borrow().is_ok_and(|buffer| buffer.producer.is_some()))
        .unwrap_or(false)
}

/// Puts a marker record of this thread into its ring, after what it owes from a pause.
#[inline]
pub fn push_marker(recorder: &'static Recorder, kind: Kind, body: records::Marker, text: [&[u8]; 2]) {
    let record = NewRecord { kind, body: bytemuck::bytes_of(&body), text, patience: Patience::Waits };
    let pushed = BUFFER.try_with(|buffer| match buffer.try_borrow_mut() {
        Ok(mut buffer) => {
            if !buffer.paused.is_empty() {
                buffer.catch_up(recorder, kind);
            }
            buffer.push(recorder, &record);
        }
        Err(_) => recorder.counters.lose(Cause::Reentered, 1),
    });
    if pushed.is_err() {
        push_orphan(recorder, &record);
    }
}

impl ThreadBuffer {
    /// Forgets what belongs to another recorder (the parent's, after a fork).
    fn refresh(&mut self) {
        if self.epoch != epoch() {
            self.epoch = epoch();
            // The ring lives in memory shared with nobody any more; its consumer does not exist in this process.
            std::mem::forget(self.producer.take());
            self.paused = Paused::new();
        }
    }

    /// Ranges that were opened while recording was paused are open still.
    #[cold]
    fn catch_up(&mut self, recorder: &'static Recorder, kind: Kind) {
        self.refresh();
        if kind != Kind::Discard {
            let owed = std::mem::take(&mut self.paused);
            owed.replay(recorder.switch.resumed_at(), |kind, body, text| {
                let body = bytemuck::bytes_of(&body);
                self.push(recorder, &NewRecord { kind, body, text, patience: Patience::Waits });
            });
        }
    }

    #[inline]
    fn begin_call(&mut self, recorder: &'static Recorder) -> Option<u64> {
        if self.producer.is_none() || self.epoch != epoch() {
            self.refresh();
            self.producer = cancellation::rarely(|| recorder.add_ring(tid()));
        }
        let Some(producer) = &self.producer else {
            recorder.counters.lose(Cause::BufferFull, 1);
            return None;
        };
        Some(correlation::open(producer))
    }

    /// False: the record is lost.
    #[inline]
    fn push(&mut self, recorder: &'static Recorder, record: &NewRecord<'_>) -> bool {
        if let Some(producer) = &mut self.producer
            && self.epoch == epoch()
            && record.put(producer)
        {
            if producer.many {
                self.hurry(recorder);
            }
            return true;
        }
        self.push_slowly(recorder, record)
    }

    /// So much was recorded that the writer should not wait for its timer.
    #[cold]
    fn hurry(&mut self, recorder: &Recorder) {
        if self.producer.as_mut().is_some_and(|producer| std::mem::take(&mut producer.many)) {
            cancellation::rarely(|| recorder.requests.wake());
        }
    }

    #[cold]
    fn push_slowly(&mut self, recorder: &'static Recorder, record: &NewRecord<'_>) -> bool {
        self.refresh();
        let pushed = cancellation::rarely(|| {
            persist(recorder, record, || {
                if self.producer.is_none() {
                    self.producer = recorder.add_ring(tid());
                }
                self.producer.as_mut().is_some_and(|producer| record.put(producer))
            })
        });
        self.hurry(recorder);
        pushed
    }
}

/// Repeats `push` until it succeeds, hurrying the writer, for as long as the record's patience allows; then the record is lost and counted, and
/// this answers false. A writer that is stuck is waited for once, not by every record, and what can never fit is not waited for.
fn persist(recorder: &Recorder, record: &NewRecord<'_>, mut push: impl FnMut() -> bool) -> bool {
    if !ring::can_hold(&recorder.buffers.budget, record.length()) {
        recorder.counters.lose(Cause::BufferFull, 1);
        return false;
    }
    let begin = clock::monotonic();
    let waited = || clock::monotonic() - begin;
    let pushed = loop {
        if push() {
            break true;
        }
        recorder.requests.wake();
        let out_of_patience = waited() > recorder.config.buffers.wait.as_nanos() as u64;
        if out_of_patience {
            recorder.buffers.budget.mark_exhausted();
        }
        if out_of_patience || record.patience == Patience::Drops || recorder.buffers.budget.is_exhausted() {
            recorder.counters.lose(Cause::BufferFull, 1);
            break false;
        }
        std::thread::sleep(Duration::from_micros(200));
    };
    let waited = waited();
    if waited > 1_000_000 {
        recorder.counters.waited_ns.fetch_add(waited, Ordering::Relaxed);
    }
    pushed
}

/// What threads use that record after their thread-local storage was destroyed: one ring for all of them, taken over from the
/// last such thread, because a ring's records carry the thread it was made for.
#[derive(Default)]
pub struct Orphans {
    /// The thread that is at the ring, 0 for none: a signal handler may have interrupted this very thread there.
    holder: AtomicU32,
    ring: Mutex<Option<(u32, Producer)>>,
}

/// Why a thread cannot have the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// A signal handler has interrupted the thread while it was there.
    Reentered,
    /// Others are there for longer than may be waited.
    TooLong,
}

impl Orphans {
    /// Runs `act` on the ring, as thread `mine`.
    fn with<T>(
        &self,
        mine: u32,
        patience: Duration,
        act: impl FnOnce(&mut Option<(u32, Producer)>) -> T,
    ) -> Result<T, Refused> {
        let begin = clock::monotonic();
        while let Err(other) = self.holder.compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed) {
            if other == mine {
                return Err(Refused::Reentered);
            }
            if clock::monotonic() - begin > patience.as_nanos() as u64 {
                return Err(Refused::TooLong);
            }
            std::thread::sleep(ORPHAN_PAUSE);
        }
        // Given back also where `act` panics.
        struct Holding<'a>(&'a AtomicU32);
        impl Drop for Holding<'_> {
            fn drop(&mut self) {
                self.0.store(0, Ordering::Release);
            }
        }
        let _held = Holding(&self.holder);
        // Nobody waits here: who holds it has said so above.
        Ok(act(&mut lock(&self.ring)))
    }
}

/// See [`Orphans`]. False: the record is lost.
#[cold]
fn push_orphan(recorder: &'static Recorder, record: &NewRecord<'_>) -> bool {
    let mine = tid();
    let mut refused = None;
    let mut push = || {
        let pushed = recorder.orphans.with(mine, ORPHAN_PATIENCE, |ring| {
            if ring.as_ref().is_none_or(|(tid, _)| *tid != mine) {
                *ring = recorder.add_ring(mine).map(|producer| (mine, producer));
            }
            ring.as_mut().is_some_and(|(_, producer)| record.put(producer))
        });
        refused = pushed.err();
        // It is not tried again.
        pushed.unwrap_or(true)
    };
    let pushed = cancellation::rarely(|| persist(recorder, record, &mut push));
    match refused {
        None => return pushed,
        Some(Refused::Reentered) => recorder.counters.lose(Cause::Reentered, 1),
        Some(Refused::TooLong) => recorder.counters.lose(Cause::EndingThread, 1),
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_for_one_that_has_lost_its_processor_and_never_for_itself() {
        let orphans = Orphans::default();
        let (held, slow) = (std::sync::Barrier::new(2), Duration::from_millis(300));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let nested = orphans.with(1, ORPHAN_PATIENCE, |_| {
                    held.wait();
                    std::thread::sleep(slow);
                    orphans.with(1, ORPHAN_PATIENCE, |_| ())
                });
                assert_eq!(nested, Ok(Err(Refused::Reentered)));
            });
            held.wait();
            assert_eq!(orphans.with(2, Duration::from_millis(1), |_| ()), Err(Refused::TooLong));
            assert_eq!(orphans.with(2, ORPHAN_PATIENCE, |_| ()), Ok(()));
        });
    }
}
