//! From CUPTI's records to the recorder's: calls get their ids, operations the id of their call.
//!
//! The record of a call may come behind those of what it caused: it is made when the call returns, and each thread of the program has a buffer
//! of its own. So operations wait for their call, for a while.

use rpd_transport::correlation;
use rpd_transport::counters::Cause;
use rpd_transport::recorder::Recorder;
use rpd_transport::records::{self, Kind, NO_GPU, NO_KERNEL};
use rpd_transport::switch::{SwitchChange, was_on};
use rpd_transport::thread::{self, Patience};
use rustc_hash::FxHashMap;

use super::device;
use super::functions::{self, Functions};
use super::kernel::Kernels;
use super::record::{Activity, ApiCall, KernelRun, Operation, What};

/// For how many flushes an operation waits for its call: calls return soon after what they have submitted begins.
const PATIENCE: u32 = 10;
/// Calls remembered at most. A launch is forgotten when its kernel has come; of very many others, the older half is.
const MOST_CALLS: usize = 1 << 22;

/// A call that is over.
#[derive(Clone, Copy)]
struct Ended {
    /// Its id; `correlation::NONE` where it is not recorded, because recording was off.
    id: u64,
    launches_kernel: bool,
    launches_graph: bool,
    /// An operation of it has come.
    has_operation: bool,
    /// How many calls came before.
    number: u64,
}

/// See the module.
pub(super) struct Decoder {
    recorder: &'static Recorder,
    functions: &'static Functions,
    kernels: Kernels,
    calls: FxHashMap<u32, Ended>,
    /// How many came so far.
    numbered: u64,
    /// Operations whose call has not come, and for how many flushes.
    waiting: Vec<(u32, Operation)>,
    /// Launches of one kernel that has not come.
    pub(super) outstanding: u64,
    switched: Vec<SwitchChange>,
    tid: u32,
}

impl Decoder {
    /// On the thread that decodes.
    pub(super) fn new(recorder: &'static Recorder, functions: &'static Functions) -> Decoder {
        Decoder {
            recorder,
            functions,
            kernels: Kernels::default(),
            calls: FxHashMap::default(),
            numbered: 0,
            waiting: Vec::new(),
            outstanding: 0,
            switched: recorder.switch.history(),
            tid: thread::tid(),
        }
    }

    /// More records come: of when recording was on, as it is known now.
    pub(super) fn begin(&mut self) {
        self.switched = self.recorder.switch.history();
    }

    /// One of CUPTI's records.
    ///
    /// # Safety
    /// `activity` is as CUPTI has filled it in.
    pub(super) unsafe fn add(&mut self, activity: Activity) {
        match activity {
            Activity::Call(call) => self.call(&call),
            Activity::Operation(operation) => {
                // SAFETY: the caller's promise.
                if !unsafe { self.operation(&operation) } {
                    self.waiting.push((0, operation));
                }
            }
        }
    }

    /// All records that were ready have come. `is_last`: no others will.
    pub(super) fn end(&mut self, is_last: bool) {
        for (flushes, operation) in std::mem::take(&mut self.waiting) {
            let gives_up = is_last || !self.functions.has_any() || flushes >= PATIENCE;
            // SAFETY: as they came.
            unsafe {
                if !self.operation(&operation) {
                    if gives_up {
                        self.emit(&operation, correlation::NONE, false);
                    } else {
                        self.waiting.push((flushes + 1, operation));
                    }
                }
            }
        }
    }

    fn call(&mut self, call: &ApiCall) {
        let Some(function) = self.functions.get(call.is_driver, call.cbid) else { return };
        if !function.is_recorded || call.tid == self.tid {
            return;
        }
        let succeeded = call.returned == 0;
        let is_recorded = was_on(&self.switched, call.start);
        let id = if is_recorded { correlation::next() } else { correlation::NONE };
        let ended = Ended {
            id,
            launches_kernel: function.launches_kernel && succeeded,
            launches_graph: function.launches_graph,
            has_operation: false,
            number: self.numbered,
        };
        self.numbered += 1;
        self.outstanding += u64::from(ended.launches_kernel);
        if self.calls.len() >= MOST_CALLS {
            let mut numbers: Vec<u64> = self.calls.values().map(|call| call.number).collect();
            let (_, middle, _) = numbers.select_nth_unstable(MOST_CALLS / 2);
            let middle = *middle;
            self.calls.retain(|_, call| call.number >= middle);
            let waits = |call: &&Ended| call.launches_kernel && !call.has_operation;
            self.outstanding =
                self.calls.values().filter(waits).count() as u64 + u64::from(ended.launches_kernel);
        }
        self.calls.insert(call.correlation, ended);
        if !is_recorded {
            return;
        }
        let record = records::Call {
            start: call.start,
            end: call.end.max(call.start),
            correlation: id,
            arguments: 0,
            function: functions::index(call.is_driver, call.cbid),
            source: functions::SOURCE,
            reserved: 0,
            kernel: NO_KERNEL,
            submitted: 0,
            dst_gpu: NO_GPU,
            src_gpu: NO_GPU,
            pinned: 0,
            commanded: 0,
            tid: call.tid,
        };
        if !self.push(Kind::Call, bytemuck::bytes_of(&record)) {
            self.recorder.lost_calls.add(id);
        }
    }

    /// An operation whose call is known. False: it is not.
    ///
    /// # Safety
    /// As CUPTI has filled it in.
    unsafe fn operation(&mut self, operation: &Operation) -> bool {
        let Some(call) = self.calls.get_mut(&operation.correlation) else { return false };
        let is_first = !std::mem::replace(&mut call.has_operation, true);
        self.outstanding -= u64::from(is_first && call.launches_kernel);
        let (id, is_single) = (call.id, is_first && !call.launches_graph && !operation.is_of_graph);
        if call.launches_kernel {
            self.calls.remove(&operation.correlation);
        }
        if id != correlation::NONE {
            // SAFETY: the caller's promise.
            unsafe { self.emit(operation, id, is_single) };
        }
        true
    }

    /// `describes_call`: what the call was asked for is known by this alone.
    ///
    /// # Safety
    /// As CUPTI has filled it in.
    unsafe fn emit(&mut self, operation: &Operation, call: u64, describes_call: bool) {
        if call == correlation::NONE && !was_on(&self.switched, operation.start) {
            return;
        }
        if operation.start == 0 || operation.end < operation.start {
            return self.recorder.counters.lose(Cause::NoTimes, 1);
        }
        let gpu = device::index(operation.device);
        match &operation.what {
            What::Kernel(run) => {
                // SAFETY: the caller's promise.
                let kernel = unsafe { self.kernels.of(run, gpu) };
                self.dispatch(operation, call, describes_call, kernel, gpu, run);
            }
            What::Fill => {
                let kernel = self.kernels.fill(gpu);
                self.dispatch(operation, call, false, kernel, gpu, &KernelRun::NONE);
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
                    correlation: call,
                    gpu,
                    dst_gpu: side(destination),
                    src_gpu: side(source),
                    tid: self.recorder.pid,
                    queue: operation.stream,
                    function: functions::OPERATION,
                    source: functions::SOURCE,
                    describes_call: if describes_call { 1 + u8::from(*is_pinned) } else { 0 },
                };
                self.push(Kind::Copy, bytemuck::bytes_of(&copy));
            }
        }
    }

    fn dispatch(
        &self,
        operation: &Operation,
        call: u64,
        describes_call: bool,
        kernel: records::KernelId,
        gpu: u32,
        run: &KernelRun,
    ) {
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
            correlation: call,
            stream: operation.stream.into(),
            kernel,
            gpu,
            queue: operation.stream,
            tid: self.recorder.pid,
            dst_gpu: gpu,
            src_gpu: gpu,
            grid: run.grid,
            group_segment: run.static_shared.saturating_add(run.dynamic_shared),
            private_segment: run.local,
            // CUDA has 1,024 threads in a block at most.
            workgroup: run.block.map(|threads| threads as u16),
            header: records::NO_PACKET,
            launch: describes_call.into(),
            source: functions::SOURCE,
            function: functions::OPERATION,
        };
        self.push(Kind::Dispatch, bytemuck::bytes_of(&dispatch));
    }

    /// False: the record is lost, and counted.
    fn push(&self, kind: Kind, body: &[u8]) -> bool {
        thread::push(self.recorder, kind, body, [&[], &[]], Patience::Waits)
    }
}
