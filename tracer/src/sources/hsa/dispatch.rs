//! What happens to the packets of a queue on their way to the hardware.
//!
//! Runs on the thread that rang the doorbell, under the queue's lock, inside the runtime: it may not wait, lock or call the
//! runtime on its usual path. Cost: one copy of each packet, one ring push per dispatch, and two clock readings unless the dispatches are of the call that the
//! thread is in. A dispatch with a signal of
//! the application takes a lock that it shares with a 64th of all such signals, and memory for the times, see [`super::app_signal`]. For a
//! copy kernel it asks the runtime whose memory the kernel copies.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rpd_preload::clock;
use rpd_transport::correlation;
use rpd_transport::counters::Cause;
use rpd_transport::records;
use rpd_transport::thread;

use super::app_signal::{Claim, OperationKind};
use super::functions;
use super::in_flight::{InFlight, InFlightSender, TimesFrom, in_flight_queue};
use super::queue::{Ends, HwQueue};
use super::signal;
use super::state::Hsa;
use crate::call::{self, CausingCall};
use crate::gpu::kernels::{self, KernelOrigin};
use crate::guard::guard;
use crate::hsa_runtime::abi::*;
use crate::intercept;
use crate::intercept::packet::Replacer;

/// How long one packet may be held back at most.
const HELD_BACK: Duration = Duration::from_millis(100);

/// What the interceptor keeps for one queue.
pub(super) struct QueueInterceptor {
    /// Packets as they go to the hardware.
    batch: Vec<Packet>,
    /// Their dispatches, until the hardware has them.
    timed: Vec<InFlight>,
    in_flight: InFlightSender,
    spare: rtrb::Consumer<Signal>,
    kernels: kernels::Cache,
    replacer: Replacer,
    /// The call whose one kernel was the last to be dispatched.
    launched: u64,
}

impl QueueInterceptor {
    /// With rings for `capacity` dispatches, and the ends of the completion thread.
    pub(super) fn new(capacity: usize) -> (QueueInterceptor, Ends) {
        let (to_completion, in_flight) = in_flight_queue(capacity);
        let (spare, signals) = rtrb::RingBuffer::new(capacity);
        let interceptor = QueueInterceptor {
            batch: Vec::with_capacity(64),
            timed: Vec::with_capacity(64),
            in_flight: to_completion,
            spare: signals,
            kernels: kernels::Cache::new(),
            replacer: Replacer::new(),
            launched: correlation::NONE,
        };
        (interceptor, Ends::new(in_flight, spare))
    }

    /// A signal for one dispatch, and where its times will be.
    fn timing(&mut self, hsa: &'static Hsa, own: Signal) -> Option<(Signal, TimesFrom)> {
        if own.0 == 0 {
            return self.signal(hsa).map(|signal| (signal, TimesFrom::Own(signal)));
        }
        match hsa.app_signals.claim(hsa, own, OperationKind::Dispatch) {
            Claim::InPlace(times) => Some((own, TimesFrom::Application(times))),
            Claim::Shared => self.signal(hsa).map(|signal| (signal, TimesFrom::Own(signal))),
        }
    }

    fn signal(&mut self, hsa: &Hsa) -> Option<Signal> {
        self.spare.pop().ok().or_else(|| signal::create(&hsa.originals))
    }

    /// Gives unused signals back to the runtime.
    pub(super) fn retire(&mut self, hsa: &Hsa) {
        while let Ok(signal) = self.spare.pop() {
            // SAFETY: a spare signal is in no packet.
            unsafe { signal::destroy(&hsa.originals, signal) };
        }
    }

    /// Passes packets on, dispatches with signals that time them.
    fn pass(&mut self, queue: &HwQueue, packets: &[Packet], index: u64, is_on: bool, passage: &mut Passage) {
        let end = index + packets.len() as u64;
        if queue.is_ahead(end) {
            hold_back(queue, end);
        }
        self.batch.clear();
        self.timed.clear();
        for (place, packet) in packets.iter().enumerate() {
            self.prepare(queue, packet, index + place as u64, is_on);
        }
        let of_call = self.begin_of_call();
        let now = || of_call.unwrap_or_else(clock::monotonic);
        let start = now();
        // SAFETY: only `intercept` calls this, inside its callback; the batch has every packet given.
        unsafe { passage.take(&self.batch) };
        if self.timed.is_empty() {
            return;
        }
        let end = now();
        queue.submitted.fetch_add(self.timed.len() as u64, Ordering::Release);
        for mut dispatch in self.timed.drain(..) {
            dispatch.record.submit_start = start;
            dispatch.record.submit_end = end;
            // `prepare` has made sure of the room.
            self.in_flight.push(dispatch);
        }
        queue.hsa.completion.notice(self.in_flight.is_pressed());
    }

    /// When the call began that all of these packets are of, if it is the one that this thread is in. Its record has the times of the
    /// submission, and the clock need not be read.
    fn begin_of_call(&self) -> Option<u64> {
        let (first, others) = self.timed.split_first()?;
        let call = first.record.correlation;
        let is_of_it = |dispatch: &InFlight| dispatch.record.correlation == call;
        call::began(call).filter(|_| call != correlation::NONE && others.iter().all(is_of_it))
    }

    /// Puts one packet into the batch, a dispatch with a signal that times it.
    fn prepare(&mut self, queue: &HwQueue, packet: &Packet, index: u64, is_on: bool) {
        let (hsa, recorder) = (queue.hsa, queue.hsa.recorder);
        let (cause, is_handed_over) = cause(queue, index);
        // A call that began before a stop has a row, and so has what it launches behind the stop.
        let recorded = is_on || cause.call != correlation::NONE;
        let mut packet = *packet;
        if packet.header & 0xff != packet_type::KERNEL_DISPATCH {
            // Whatever a packet of an unknown kind holds there is only looked up.
            hsa.app_signals.release(hsa, packet.completion);
            self.batch.push(packet);
            return;
        }
        // A place is sure before a signal is given away: a signal must never be lost track of.
        if self.in_flight.slots() <= self.timed.len() {
            recorder.counters.lose(Cause::BufferFull, recorded.into());
            hsa.app_signals.release(hsa, packet.completion);
            self.batch.push(packet);
            return;
        }
        let application = packet.completion;
        match self.timing(hsa, application) {
            Some((signal, timing)) => {
                packet.completion = signal;
                let (kernel, origin) = self.kernels.find(packet.kernel_object);
                let mut record = describe(&packet, application, index, queue, kernel);
                if recorded && origin == KernelOrigin::RuntimeCopies && packet.kernarg != 0 {
                    // SAFETY: the runtime has made the arguments of its own kernel, two addresses at least, and keeps them until it has run.
                    let [src, dst] = unsafe { (packet.kernarg as *const [u64; 2]).read_unaligned() };
                    // SAFETY: the runtime is submitting a packet.
                    let ends = unsafe { hsa.memory.ends(&hsa.known.gpus, queue.gpu, dst, src) };
                    (record.dst_gpu, record.src_gpu) = ends;
                }
                let replaced = match intercept::is_on() {
                    // SAFETY: a packet of the application's, which has just submitted it.
                    true => unsafe {
                        let place = (queue.gpu.index, queue.number, index);
                        self.replacer.replace(&mut packet, place, queue.facts(), recorded)
                    },
                    false => None,
                };
                let mut in_use = None;
                if let Some((kernel, used)) = replaced {
                    self.batch.extend(used.gate().into_iter().flatten());
                    (record.kernel, in_use) = (kernel.unwrap_or(record.kernel), Some(Box::new(used)));
                }
                (record.correlation, record.stream) = (cause.call, cause.stream);
                if origin == KernelOrigin::Application && cause.launches && self.launched != cause.call {
                    (record.launch, self.launched) = (1, cause.call);
                    if is_handed_over {
                        call::submits();
                    }
                }
                self.timed.push(InFlight { record, timing, recorded, in_use });
            }
            None => recorder.counters.lose(Cause::NoSignal, recorded.into()),
        }
        let own = packet.completion;
        self.batch.push(packet);
        if own != application && application.0 != 0 {
            self.batch.push(Packet::barrier(application));
        }
    }
}

/// The call that packet `index` is of, and whether it is the one that hands the packet over.
fn cause(queue: &HwQueue, index: u64) -> (CausingCall, bool) {
    let reserved = queue.reservations.cause(index);
    if reserved.call == correlation::NONE { (call::handover(), true) } else { (reserved, false) }
}

fn describe(
    packet: &Packet,
    application: Signal,
    index: u64,
    queue: &HwQueue,
    kernel: u32,
) -> records::Dispatch {
    records::Dispatch {
        submit_start: 0,
        submit_end: 0,
        start: 0,
        end: 0,
        start_tick: 0,
        end_tick: 0,
        kernarg: packet.kernarg,
        completion: application.0,
        sequence: index,
        correlation: correlation::NONE,
        stream: 0,
        kernel,
        gpu: queue.gpu.index,
        queue: queue.number,
        tid: thread::tid(),
        dst_gpu: queue.gpu.index,
        src_gpu: queue.gpu.index,
        grid: packet.grid,
        group_segment: packet.group_segment,
        private_segment: packet.private_segment,
        workgroup: packet.workgroup,
        header: packet.header,
        launch: 0,
        source: functions::SOURCE,
        function: functions::DISPATCH,
    }
}

/// The way on to the hardware, which must be taken exactly once per callback: packets that are not passed on never run, and a
/// second batch could overtake the first when the ring is full.
struct Passage {
    writer: PacketWriter,
    taken: bool,
}

impl Passage {
    /// # Safety
    /// Inside the runtime's callback that gave the writer; with every packet given.
    unsafe fn take(&mut self, packets: &[Packet]) {
        self.taken = true;
        // SAFETY: the caller's promise.
        unsafe { (self.writer)(packets.as_ptr(), packets.len() as u64) };
    }
}

/// Called by the runtime with packets that the application submitted (hsa_amd_queue_intercept_handler).
pub(super) unsafe extern "C-unwind" fn intercept(
    packets: *const Packet,
    count: u64,
    index: u64,
    queue: *mut c_void,
    writer: PacketWriter,
) {
    // SAFETY: the queue given at registration; never freed.
    let queue = unsafe { &*queue.cast_const().cast::<HwQueue>() };
    // SAFETY: the runtime's packets, valid during the callback.
    let packets = unsafe { std::slice::from_raw_parts(packets, count as usize) };
    let mut passage = Passage { writer, taken: false };
    guard((), || {
        let is_on = queue.hsa.recorder.switch.is_on();
        // Where submission must be held back, completion is watched also while recording is paused; kernels are replaced then as well.
        let watched = queue.hsa.usable() && queue.hsa.completion.works();
        let of_calls = || (index..index + count).any(|index| cause(queue, index).0.call != correlation::NONE);
        if watched && (is_on || queue.run_ahead.is_some() || intercept::is_on() || of_calls()) {
            queue
                .with_interceptor(|interceptor| interceptor.pass(queue, packets, index, is_on, &mut passage));
        }
    });
    if !passage.taken {
        guard((), || release(queue, packets));
        // SAFETY: inside the callback, the packets given.
        unsafe { passage.take(packets) };
    }
}

/// Packets go on untimed: times still expected in an application's signal must be read before it is used again.
fn release(queue: &HwQueue, packets: &[Packet]) {
    if queue.hsa.usable() {
        for packet in packets {
            queue.hsa.app_signals.release(queue.hsa, packet.completion);
        }
    }
}

/// Waits until packets up to `end` are near enough to what has been executed, see [`super::queue::RunAhead`].
#[cold]
fn hold_back(queue: &HwQueue, end: u64) {
    // Others depend on the runtime's own thread, and a kernel that never ends must not hold the application for ever.
    if queue.hsa.event_thread.load(Ordering::Relaxed) == thread::tid() {
        return;
    }
    let begin = Instant::now();
    while queue.is_ahead(end) {
        if begin.elapsed() > HELD_BACK {
            if let Some(run_ahead) = &queue.run_ahead {
                run_ahead.stuck.store(queue.frontier.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            return;
        }
        queue.hsa.completion.notice(true);
        std::thread::sleep(Duration::from_micros(50));
    }
}
