//! The rings of all threads, and the state that the writer carries from record to record: the open ranges, and in which parts of them
//! recording was on.

use std::time::{Duration, Instant};

use super::duration_log::LogFeed;
use super::file::Until;
use super::held::{Discarded, EndedCalls, Held, Operation};
use super::process_ranges::ProcessRanges;
use super::ranges::{RangePart, Ranges};
use super::sink::{Added, Sink};
use super::turn::GATE;
use crate::correlation;
use crate::recorder::Recorder;
use crate::records::ring::{Consumer, Entry};
use crate::records::{Call, Kind, LaunchAttributes};
use crate::switch::SwitchChange;

/// Changes of the switch to remember.
const CHANGES_REMEMBERED: usize = 64;
/// How long to wait for the thread that records operations, in any case.
const COLLECT: Duration = Duration::from_millis(500);
/// How long to wait for it where nobody waits for the drain: it may have no processor.
const COLLECT_AT_MOST: Duration = Duration::from_secs(10);

/// The records and open ranges of one thread.
struct ThreadInput {
    consumer: Consumer,
    ranges: Ranges,
    /// Records of operations came out of it, and of calls. By HIP's own times commands complete on the program's threads too; the
    /// completion thread makes no calls.
    operations: bool,
    calls: bool,
}

impl ThreadInput {
    fn new(consumer: Consumer) -> ThreadInput {
        ThreadInput { consumer, ranges: Ranges::default(), operations: false, calls: false }
    }

    fn has_operations_alone(&self) -> bool {
        self.operations && !self.calls
    }

    /// Drains the ring, and gives up what is in it but for the duration log's sake.
    fn discard(
        &mut self,
        shared: &mut SharedRanges,
        held: &mut Held,
        log: &mut Option<&mut LogFeed>,
    ) -> Discarded {
        let ThreadInput { consumer, ranges, .. } = self;
        let (tid, mut discarded) = (consumer.tid, Discarded::default());
        consumer.gone = consumer.drain(|entry| {
            discarded.records += 1;
            match entry.kind {
                Kind::Call => {
                    let call: Call = bytemuck::pod_read_unaligned(entry.body);
                    if call.correlation != correlation::NONE {
                        held.drained(call.correlation);
                    }
                    if let Some(log) = log {
                        log.call(&call);
                    }
                }
                Kind::Dispatch => {
                    let record = bytemuck::pod_read_unaligned(entry.body);
                    if let Some(log) = log {
                        log.dispatch(&record);
                    }
                    let operation = Operation::Dispatch(record, LaunchAttributes::default());
                    discarded.launches += u64::from(held.ends_committed_launch(&operation));
                }
                Kind::Copy | Kind::Launch | Kind::Analyzed | Kind::Sensor => {}
                // Which range the next pop ends must be known all the same.
                _ => shared.follow(tid, ranges, &entry, |_, _| {}),
            }
        });
        if consumer.gone {
            // It may have ended inside a call.
            held.lose(consumer.open_call());
        }
        discarded
    }
}

/// Ranges that any thread may end, and the changes of the switch that some range has not seen yet.
#[derive(Default)]
struct SharedRanges {
    ranges: ProcessRanges,
    changes: Vec<SwitchChange>,
}

impl SharedRanges {
    /// What the record of thread `tid` means to its ranges and to all threads'.
    fn follow(
        &mut self,
        tid: u32,
        ranges: &mut Ranges,
        entry: &Entry<'_>,
        mut emit: impl FnMut(u32, RangePart<'_>),
    ) {
        match entry.kind {
            Kind::Start | Kind::Stop => self.ranges.follow(tid, entry, &self.changes, emit),
            _ => ranges.follow(entry, &self.changes, |part| emit(tid, part)),
        }
    }
}

pub(super) struct Inputs {
    recorder: &'static Recorder,
    threads: Vec<ThreadInput>,
    shared: SharedRanges,
    /// The calls of the next transaction, and with them the records that are for it.
    calls: Option<EndedCalls>,
}

impl Inputs {
    /// Of all threads that record.
    pub(super) fn new(recorder: &'static Recorder) -> Inputs {
        Inputs { recorder, threads: Vec::new(), shared: SharedRanges::default(), calls: None }
    }

    /// Takes the rings and the changes of the switch that have come since this was last done. True: the switch has changed.
    pub(super) fn take_new(&mut self) -> bool {
        self.forget_changes();
        self.take_new_rings();
        // What cannot be written for long does not pile up here.
        if self.shared.changes.len() >= 2 * CHANGES_REMEMBERED {
            return false;
        }
        let changes = self.recorder.switch.take_changes();
        let changed = !changes.is_empty();
        self.shared.changes.extend(changes);
        changed
    }

    /// Changes of the switch that every range has seen, but for the latest: a record may come in late.
    fn forget_changes(&mut self) {
        let SharedRanges { ranges, changes } = &mut self.shared;
        let applied = self.threads.iter().map(|thread| thread.ranges.applied()).min().unwrap_or(usize::MAX);
        let old = applied.min(ranges.applied()).min(changes.len().saturating_sub(CHANGES_REMEMBERED));
        changes.drain(..old);
        self.threads.iter_mut().for_each(|thread| thread.ranges.forget(old));
        ranges.forget(old);
    }

    /// Takes the rings that have come since this was last done.
    pub(super) fn take_new_rings(&mut self) {
        let new = self.recorder.buffers.take_new_rings();
        self.threads.extend(new.into_iter().map(ThreadInput::new));
    }

    /// Whether no thread records.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether a drain would find something.
    pub(super) fn has_records(&self) -> bool {
        self.threads.iter().any(|thread| thread.consumer.has_records())
    }

    /// How many records wait for a drain.
    pub(super) fn waiting(&self) -> u64 {
        self.threads.iter().map(|thread| thread.consumer.waiting()).sum()
    }

    /// Notes which calls are for the next transaction, and has what completed before those ended recorded: a call that waited for an
    /// operation is in the file with it, unless the operation's record takes longer than [`COLLECT_AT_MOST`], or than [`COLLECT`] where threads want
    /// room or the process ends.
    pub(super) fn collect_operations(&mut self) {
        self.calls = Some(self.note_calls());
        let sources = self.recorder.setup.sources;
        let of_calls = |thread: &&mut ThreadInput| {
            !sources.iter().any(|source| source.is_own_thread(thread.consumer.tid))
        };
        self.threads.iter_mut().filter(of_calls).for_each(|thread| thread.consumer.note_end());
        let before = self.threads.len();
        let begin = Instant::now();
        for source in sources.iter().filter(|source| !source.keeps_order()) {
            while !source.collect(COLLECT) && begin.elapsed() < COLLECT_AT_MOST && !self.is_urgent() {
                GATE.let_pass();
            }
        }
        // That thread may have made its ring only now. Other new ones are for the next transaction.
        self.take_new_rings();
        self.threads[before..].iter_mut().filter(of_calls).for_each(|thread| thread.consumer.note_nothing());
    }

    /// Whether somebody waits for the drain.
    fn is_urgent(&self) -> bool {
        self.recorder.buffers.budget.pressed() || self.recorder.requests.exit_wait.has_begun()
    }

    /// Which calls are open, before it is said where the rings are drained to (see [`super::links`]).
    fn note_calls(&mut self) -> EndedCalls {
        let watermark = correlation::watermark();
        self.take_new_rings();
        let open = self.threads.iter().map(|thread| thread.consumer.open_call());
        let open = open.filter(|call| *call != correlation::NONE).collect();
        self.threads.iter_mut().for_each(|thread| thread.consumer.forget_end());
        EndedCalls { watermark, open }
    }

    /// The rings are drained next: `as_noted` by [`Inputs::collect_operations`], or all that they have by now. Which calls have ended.
    pub(super) fn begin(&mut self, as_noted: bool) -> EndedCalls {
        let noted = self.calls.take().filter(|_| as_noted);
        noted.unwrap_or_else(|| self.note_calls())
    }

    /// Hands all records to `sink`, and the parts of ranges that have ended by `now`.
    pub(super) fn drain(&mut self, sink: &mut Sink<'_>, now: u64, until: Until) {
        let Inputs { recorder, threads, shared, .. } = self;
        for begun in recorder.waiting.take() {
            shared.ranges.start(begun, &shared.changes, |tid, part| sink.range(tid, &part));
        }
        // Calls before the operations that they caused.
        threads.sort_by_key(ThreadInput::has_operations_alone);
        for thread in threads.iter_mut() {
            if thread.has_operations_alone() {
                sink.all_calls_drained();
            }
            let ThreadInput { consumer, ranges, operations, calls } = thread;
            let tid = consumer.tid;
            let gone = consumer.drain(|entry| match sink.add(tid, &entry) {
                Added::Operation => *operations = true,
                Added::Call => *calls = true,
                Added::Held | Added::Sensor => {}
                Added::Marker => {
                    shared.follow(tid, ranges, &entry, |tid, part| sink.range(tid, &part));
                    if entry.kind == Kind::Mark {
                        sink.mark(tid, &entry);
                    }
                }
            });
            consumer.gone = gone;
            if gone {
                // It may have ended inside a call.
                sink.lose(consumer.open_call());
            }
            ranges.apply(&shared.changes, now, |part| sink.range(tid, &part));
            if gone || until == Until::ProcessEnds {
                ranges.end(now, |part| sink.range(tid, &part));
            }
        }
        sink.all_calls_drained();
        shared.ranges.drained(now, &shared.changes, |tid, part| sink.range(tid, &part));
        if until == Until::ProcessEnds {
            shared.ranges.end(now, |tid, part| sink.range(tid, &part));
        }
        threads.retain(|thread| !thread.consumer.gone);
    }

    /// Drains the rings of what cannot be written at `now`, and gives it up.
    pub(super) fn discard(&mut self, held: &mut Held, mut log: Option<&mut LogFeed>, now: u64) -> Discarded {
        let Inputs { threads, shared, .. } = self;
        let mut discarded = held.discard(|operation| {
            if let (Some(log), Operation::Dispatch(record, _)) = (&mut log, operation) {
                log.dispatch(record);
            }
        });
        // Calls before the operations that they caused.
        threads.sort_by_key(ThreadInput::has_operations_alone);
        for thread in threads.iter_mut() {
            let of_thread = thread.discard(shared, held, &mut log);
            discarded.records += of_thread.records;
            discarded.launches += of_thread.launches;
        }
        shared.ranges.drained(now, &shared.changes, |_, _| {});
        threads.retain(|thread| !thread.consumer.gone);
        discarded
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::records::Copy;
    use crate::records::budget::Budget;
    use crate::records::ring::ring;

    #[test]
    fn a_call_in_which_a_thread_ended_is_linked_to_nothing_when_its_ring_was_given_up() {
        let (producer, consumer) = ring(&Arc::new(Budget::new(1 << 20)), 1).unwrap();
        producer.open_call(5);
        drop(producer);
        let mut held = Held::default();
        held.begin(EndedCalls { watermark: 10, open: vec![5] }, vec![], false);
        let mut thread = ThreadInput::new(consumer);
        assert_eq!(thread.discard(&mut SharedRanges::default(), &mut held, &mut None).records, 0);
        held.forget_calls();

        held.begin(EndedCalls { watermark: 20, open: vec![] }, vec![], false);
        let copy = Copy { correlation: 5, ..bytemuck::Zeroable::zeroed() };
        let passed = held.pass_or_hold(Operation::Copy(copy), false);
        assert_eq!(passed.map(|(_, linked)| linked), Some(false), "that call has no row");
    }
}
