//! From CUPTI's records to the recorder's: calls get their ids, operations the id of their call.
//!
//! The record of a call may come behind those of what it caused: it is made when the call returns, and each thread of the program has a buffer
//! of its own. So operations wait for their call, for a while.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use rpd_transport::correlation;
use rpd_transport::counters::Cause;
use rpd_transport::recorder::Recorder;
use rpd_transport::records::{self, Kind, LaunchAttributes, NO_GPU, NO_KERNEL};
use rpd_transport::switch::{SwitchChange, was_on};
use rpd_transport::thread::{self, Patience};
use rustc_hash::FxHashMap;

use super::captures::Captures;
use super::detail::{Behind, Details};
use super::functions::{self, Capture, Functions};
use super::kernel::Kernels;
use super::queue::StreamQueues;
use super::record::{Activity, ApiCall, Fact, KernelRun, Operation, What};
use super::wall_clock::WallClock;
use super::{callback, device, facts};

/// For how many flushes an operation waits for its call: calls return soon after what they have submitted begins.
const PATIENCE: u32 = 10;
/// For how many flushes a call waits for what it allocated or waited for.
const DETAIL_PATIENCE: u32 = 1;
/// How far the times of operations may be off: CUPTI converts those of the GPU's clock (2 us were measured, after many starts).
const MOST_EARLY: u64 = 100_000;
/// For how many flushes calls come whose operations were lost.
const LOSS_PATIENCE: u32 = 2;
/// Launches remembered at most. One is forgotten when its kernel has come; of very many, the older half is.
const MOST_LAUNCHES: usize = 1 << 22;
/// Other calls remembered at most, the latest. Nothing says how many operations one has.
const MOST_OTHERS: usize = 1 << 18;

/// A call that is over: its id, `correlation::NONE` where it is not recorded because recording was off, and what is known of it. In one
/// number, because there may be millions; and when it began.
#[derive(Clone, Copy)]
struct Ended(u64, u64);

impl Ended {
    const LAUNCHES_KERNEL: u64 = 1;
    const LAUNCHES_GRAPH: u64 = 2;
    /// An operation of it has come.
    const HAS_OPERATION: u64 = 4;
    /// Its operation may have been lost.
    const MAY_HAVE_NONE: u64 = 8;
    const FLAGS: u32 = 4;

    fn new(id: u64, flags: u64, start: u64) -> Ended {
        Ended(id << Ended::FLAGS | flags, start)
    }

    fn id(self) -> u64 {
        self.0 >> Ended::FLAGS
    }

    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// It launches a kernel that has not come, and should.
    fn awaits_kernel(self) -> bool {
        let flags = Ended::LAUNCHES_KERNEL | Ended::HAS_OPERATION | Ended::MAY_HAVE_NONE;
        self.0 & flags == Ended::LAUNCHES_KERNEL
    }

    /// And that is to be recorded.
    fn is_outstanding(self) -> bool {
        self.id() != correlation::NONE && self.awaits_kernel()
    }
}

/// An operation's call.
#[derive(Clone, Copy)]
struct CausingCall {
    id: u64,
    /// What the call was asked for is known by this operation alone.
    is_described: bool,
    /// It launches one kernel, which this is.
    is_launch: bool,
}

impl CausingCall {
    /// None that is known.
    const NONE: CausingCall = CausingCall { id: correlation::NONE, is_described: false, is_launch: false };
}

pub(super) struct Decoder {
    recorder: &'static Recorder,
    functions: &'static Functions,
    kernels: Kernels,
    queues: StreamQueues,
    /// By CUPTI's numbers of them.
    calls: FxHashMap<u32, Ended>,
    /// Those that launch no kernel, in their order.
    others: VecDeque<u32>,
    /// Something was recorded that the writer has not been woken for.
    has_pushed: Cell<bool>,
    /// Operations whose call has not come, and for how many flushes.
    waiting: Vec<(u32, Operation)>,
    /// What is known of calls beside their records.
    details: Details,
    /// Calls of which a record of that should come, and for how many flushes.
    incomplete: Vec<(u32, ApiCall)>,
    /// Launches of one kernel that is to be recorded and has not come.
    pub(super) outstanding: u64,
    /// For how many flushes calls come of which something may be lost.
    losing: u32,
    captures: Captures,
    switched: Vec<SwitchChange>,
    /// Where CUPTI's times are on another clock than the recorder's.
    wall_clock: Option<WallClock>,
    tid: u32,
}

impl Decoder {
    /// On the thread that decodes.
    pub(super) fn new(
        recorder: &'static Recorder,
        functions: &'static Functions,
        is_on_wall_clock: bool,
    ) -> Decoder {
        Decoder {
            recorder,
            functions,
            kernels: Kernels::default(),
            queues: StreamQueues::default(),
            calls: FxHashMap::default(),
            others: VecDeque::new(),
            has_pushed: Cell::new(false),
            waiting: Vec::new(),
            details: Details::default(),
            incomplete: Vec::new(),
            outstanding: 0,
            losing: 0,
            captures: Captures::default(),
            switched: recorder.switch.history(),
            wall_clock: is_on_wall_clock.then(WallClock::new),
            tid: thread::tid(),
        }
    }

    /// More records come: of when recording was on, as it is known now. The arguments of their calls have come before them.
    pub(super) fn begin(&mut self) {
        self.switched = self.recorder.switch.history();
        if let Some(wall_clock) = &mut self.wall_clock {
            wall_clock.read();
        }
        callback::take(|call, behind| self.details.add(call, behind));
    }

    /// One of CUPTI's records.
    ///
    /// # Safety
    /// `activity` is as CUPTI has filled it in.
    pub(super) unsafe fn add(&mut self, activity: Activity) {
        let activity = match &self.wall_clock {
            Some(wall_clock) => wall_clock.converted(activity),
            None => activity,
        };
        match activity {
            Activity::Call(call) => {
                self.capture(&call);
                self.call(&call, 0);
            }
            Activity::Detail(call, detail) => self.details.add(call, Behind::detail(&detail)),
            Activity::Fact(fact) => {
                if let Fact::Context { context, device } = fact {
                    self.queues.learn(context, device::index(device));
                }
                facts::add(&fact);
            }
            Activity::Operation(operation) => {
                // SAFETY: the caller's promise.
                if !unsafe { self.operation(&operation) } {
                    self.waiting.push((0, operation));
                }
            }
        }
    }

    /// All records that were ready have come, and the writer hears of it. `is_last`: no others will.
    pub(super) fn end(&mut self, is_last: bool) {
        for (flushes, call) in std::mem::take(&mut self.incomplete) {
            self.call(&call, if is_last { DETAIL_PATIENCE } else { flushes + 1 });
        }
        if self.losing > 0 {
            self.losing -= 1;
            self.forget_outstanding();
        }
        self.details.flushed();
        for (flushes, operation) in std::mem::take(&mut self.waiting) {
            let gives_up = is_last || !self.functions.has_any() || flushes >= PATIENCE;
            // SAFETY: as they came.
            unsafe {
                if !self.operation(&operation) {
                    if gives_up {
                        self.emit(&operation, CausingCall::NONE);
                    } else {
                        self.waiting.push((flushes + 1, operation));
                    }
                }
            }
        }
        if self.has_pushed.take() {
            self.recorder.requests.wake();
        }
    }

    /// Records were lost: nobody knows whether those of kernels that have not come are among them, and what was captured.
    pub(super) fn has_lost(&mut self) {
        self.losing = LOSS_PATIENCE;
        self.captures = Captures::default();
    }

    /// Kernels that have not come may never do so.
    fn forget_outstanding(&mut self) {
        for call in self.calls.values_mut().filter(|call| call.is_outstanding()) {
            call.0 |= Ended::MAY_HAVE_NONE;
        }
        self.outstanding = 0;
    }

    /// What a call has to do with the capture of launches. Those that came before it and were captured launch nothing.
    fn capture(&mut self, call: &ApiCall) {
        let function = self.functions.get(call.is_driver, call.cbid);
        let Some(capture) = function.and_then(|function| function.capture) else { return };
        if matches!(capture, Capture::Begins) && call.returned != 0 {
            return;
        }
        let Some((begin, end)) = self.captures.note(capture, call.tid, (call.start, call.end)) else {
            return;
        };
        let is_captured = |call: &Ended| call.awaits_kernel() && (begin..=end).contains(&call.1);
        for (number, call) in self.calls.iter_mut().filter(|(_, call)| is_captured(call)) {
            self.outstanding -= u64::from(call.is_outstanding());
            call.0 &= !Ended::LAUNCHES_KERNEL;
            self.others.push_back(*number);
            if call.id() != correlation::NONE {
                self.recorder.lost_launches.add(call.id());
            }
        }
    }

    /// A call, whose detail has not come for so many flushes.
    fn call(&mut self, call: &ApiCall, flushes: u32) {
        let Some(function) = self.functions.get(call.is_driver, call.cbid) else { return };
        if !function.is_recorded || call.tid == self.tid {
            return;
        }
        let number = functions::index(call.is_driver, call.cbid);
        let mut behind = self.details.take(call.correlation, number);
        if behind.is_none() && function.has_detail && call.returned == 0 && flushes < DETAIL_PATIENCE {
            self.incomplete.push((flushes, *call));
            return;
        }
        if let Some(behind) = &mut behind {
            behind.number_stream(|context, stream| self.queues.waited_for(context, stream));
        }
        let behind = behind.as_ref().map_or(&[][..], Behind::bytes);
        let is_recorded = was_on(&self.switched, call.start);
        let id = if is_recorded { correlation::next() } else { correlation::NONE };
        let launches = function.launches_kernel && call.returned == 0 && !self.captures.has(call.start);
        let graph = if function.launches_graph { Ended::LAUNCHES_GRAPH } else { 0 };
        let ended = Ended::new(id, if launches { Ended::LAUNCHES_KERNEL } else { graph }, call.start);
        self.remember(call.correlation, ended);
        if !is_recorded {
            return;
        }
        let record = records::Call {
            start: call.start,
            end: call.end.max(call.start),
            correlation: id,
            arguments: behind.len() as u32,
            function: number,
            source: functions::SOURCE,
            reserved: 0,
            kernel: NO_KERNEL,
            submitted: launches.into(),
            dst_gpu: NO_GPU,
            src_gpu: NO_GPU,
            pinned: 0,
            commanded: 0,
            tid: call.tid,
        };
        if !self.push_with(Kind::Call, bytemuck::bytes_of(&record), behind) {
            self.recorder.lost_calls.add(id);
        }
    }

    /// Operations may come of that call.
    fn remember(&mut self, number: u32, call: Ended) {
        if call.has(Ended::LAUNCHES_KERNEL) {
            self.outstanding += u64::from(call.is_outstanding());
            if self.calls.len() - self.others.len().min(self.calls.len()) >= MOST_LAUNCHES {
                let mut ids: Vec<u64> = self.calls.values().map(|call| call.id()).collect();
                let place = ids.len() / 2;
                let (_, middle, _) = ids.select_nth_unstable(place);
                let middle = *middle;
                self.calls.retain(|_, call| !call.has(Ended::LAUNCHES_KERNEL) || call.id() > middle);
                let outstanding = self.calls.values().filter(|call| call.is_outstanding()).count();
                self.outstanding = outstanding as u64 + u64::from(call.is_outstanding());
            }
        } else {
            if self.others.len() >= MOST_OTHERS
                && let Some(oldest) = self.others.pop_front()
            {
                self.calls.remove(&oldest);
            }
            self.others.push_back(number);
        }
        self.calls.insert(number, call);
    }

    /// An operation whose call is known. False: it is not.
    ///
    /// # Safety
    /// As CUPTI has filled it in.
    unsafe fn operation(&mut self, operation: &Operation) -> bool {
        let Some(call) = self.calls.get_mut(&operation.correlation) else { return false };
        let known = *call;
        call.0 |= Ended::HAS_OPERATION;
        let is_first = !known.has(Ended::HAS_OPERATION);
        let is_single = is_first && !known.has(Ended::LAUNCHES_GRAPH) && !operation.is_of_graph;
        if known.has(Ended::LAUNCHES_KERNEL) {
            self.outstanding -= u64::from(known.is_outstanding());
            self.calls.remove(&operation.correlation);
        }
        let is_launch = is_single && known.has(Ended::LAUNCHES_KERNEL);
        let cause = CausingCall { id: known.id(), is_described: is_single, is_launch };
        if cause.id != correlation::NONE {
            // SAFETY: the caller's promise.
            unsafe { self.emit(&self.not_before(known.1, operation), cause) };
        }
        true
    }

    /// The operation, which did not begin before its call: where CUPTI says so, it begins with the call. Its end stays, where the next operation of
    /// the stream may begin.
    fn not_before(&self, call: u64, operation: &Operation) -> Operation {
        let early = call.saturating_sub(operation.start);
        if operation.start == 0 || !(1..=MOST_EARLY).contains(&early) {
            return *operation;
        }
        self.recorder.counters.clamped.fetch_add(1, Ordering::Relaxed);
        Operation { start: call, end: operation.end.max(call), ..*operation }
    }

    /// # Safety
    /// As CUPTI has filled it in.
    unsafe fn emit(&mut self, operation: &Operation, cause: CausingCall) {
        if cause.id == correlation::NONE && !was_on(&self.switched, operation.start) {
            return;
        }
        if operation.start == 0 || operation.end < operation.start {
            self.recorder.counters.lose(Cause::NoTimes, 1);
            return self.lose_launch(cause);
        }
        let gpu = device::index(operation.device);
        match &operation.what {
            What::Kernel(run) => {
                // SAFETY: the caller's promise.
                let kernel = unsafe { self.kernels.of(run, gpu) };
                self.dispatch(operation, cause, kernel, gpu, run);
            }
            What::Graph(_) | What::Fill => {
                let kernel = match &operation.what {
                    What::Graph(graph) => self.kernels.graph(*graph, gpu),
                    _ => self.kernels.fill(gpu),
                };
                let cause = CausingCall { is_described: false, ..cause };
                self.dispatch(operation, cause, kernel, gpu, &KernelRun::NONE);
            }
            What::Copy { source, destination, bytes, is_pinned } => {
                let side = |ordinal: &Option<u32>| ordinal.map_or(NO_GPU, device::index);
                let copy = records::Copy {
                    submit_start: operation.start,
                    submit_end: operation.start,
                    start: operation.start,
                    end: operation.end,
                    dst: 0,
                    src: 0,
                    size: *bytes,
                    width: 0,
                    height: 0,
                    sequence: operation.correlation.into(),
                    completion: 0,
                    correlation: cause.id,
                    gpu,
                    dst_gpu: side(destination),
                    src_gpu: side(source),
                    tid: self.recorder.pid,
                    queue: self.queues.number(gpu, operation.context, operation.stream),
                    function: functions::OPERATION,
                    source: functions::SOURCE,
                    describes_call: if cause.is_described { 1 + u8::from(*is_pinned) } else { 0 },
                };
                self.push(Kind::Copy, bytemuck::bytes_of(&copy));
            }
        }
    }

    fn dispatch(
        &mut self,
        operation: &Operation,
        cause: CausingCall,
        kernel: records::KernelId,
        gpu: u32,
        run: &KernelRun,
    ) {
        let queue = self.queues.number(gpu, operation.context, operation.stream);
        let dispatch = records::Dispatch {
            submit_start: operation.start,
            submit_end: operation.start,
            start: operation.start,
            end: operation.end,
            start_tick: 0,
            end_tick: 0,
            kernarg: 0,
            completion: 0,
            sequence: run.grid_id,
            correlation: cause.id,
            stream: queue.into(),
            kernel,
            gpu,
            queue,
            tid: self.recorder.pid,
            dst_gpu: gpu,
            src_gpu: gpu,
            grid: run.grid,
            group_segment: run.static_shared.saturating_add(run.dynamic_shared),
            private_segment: run.local,
            // CUDA has 1,024 threads in a block at most.
            workgroup: run.block.map(|threads| threads as u16),
            header: records::NO_PACKET,
            launch: match (cause.is_described, cause.is_launch) {
                (true, true) => 1,
                (true, false) => 3,
                (false, _) => 0,
            },
            source: functions::SOURCE,
            function: functions::OPERATION,
        };
        let attributes = run.attributes();
        let behind =
            if attributes == LaunchAttributes::default() { &[] } else { bytemuck::bytes_of(&attributes) };
        if !self.push_with(Kind::Dispatch, bytemuck::bytes_of(&dispatch), behind) {
            self.lose_launch(cause);
        }
    }

    /// The operation of that call is lost, and counted.
    fn lose_launch(&self, cause: CausingCall) {
        if cause.is_launch {
            self.recorder.lost_launches.add(cause.id);
        }
    }

    /// False: the record is lost, and counted.
    fn push(&self, kind: Kind, body: &[u8]) -> bool {
        self.push_with(kind, body, &[])
    }

    fn push_with(&self, kind: Kind, body: &[u8], behind: &[u8]) -> bool {
        self.has_pushed.set(true);
        thread::push(self.recorder, kind, body, [behind, &[]], Patience::Waits)
    }
}
