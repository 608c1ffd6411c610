//! Commands of HIP - kernels, copies, fills - as HIP itself times them, where queues are not intercepted.
//!
//! A command is created inside a call and completes at any time on any thread. What the call knows waits here in between, in a
//! table that never blocks; a command that never completes leaves its place to a later one.

use std::cell::UnsafeCell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rpd_transport::counters::Cause;
use rpd_transport::recorder::Recorder;
use rpd_transport::records::KernelId;
use rpd_transport::records::{self, Kind, NO_GPU, NO_KERNEL};
use rpd_transport::thread::{self, Patience};

use super::functions;
use crate::gpu::kernels;
use crate::hsa_runtime::known;

/// Commands that may be in flight; HIP's queues hold 16384 packets each.
const PLACES: usize = 1 << 16;

// Kinds of commands (HIP 5.2 hip_activity.cpp, ROCclr cl.h).
const KERNEL: u32 = 0x11f0;
/// Kernels of a graph, where HIP accumulates them.
const TASK: u32 = 0x11f1;
const DEVICE_TO_HOST: u32 = 0x11f3;
const HOST_TO_DEVICE: u32 = 0x11f4;
const DEVICE_TO_DEVICE: u32 = 0x11f5;
const DEVICE_TO_HOST_RECT: u32 = 0x1201;
const HOST_TO_DEVICE_RECT: u32 = 0x1202;
const DEVICE_TO_DEVICE_RECT: u32 = 0x1203;
const FILL: u32 = 0x1207;

/// What the call knows of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Created {
    /// The call, `correlation::NONE` for none that is recorded.
    pub(super) call: u64,
    /// The stream it names.
    pub(super) stream: u64,
    /// When the command was created, ns of CLOCK_MONOTONIC.
    pub(super) time: u64,
    /// On which thread.
    pub(super) tid: u32,
    /// The call launches one kernel.
    pub(super) launch: bool,
    /// For a launch of one kernel: that kernel, or `NO_KERNEL`.
    pub(super) kernel: KernelId,
    /// Workgroups.
    pub(super) grid: [u32; 3],
    /// Work-items of a workgroup.
    pub(super) workgroup: [u32; 3],
    /// Dynamic LDS, bytes.
    pub(super) shared: u32,
    /// For a copy: GPUs of destination and source.
    pub(super) ends: Option<(u32, u32)>,
}

impl Created {
    /// By `call`, of which nothing else is known than that it was not after `time`.
    pub(super) fn by(call: u64, time: u64) -> Created {
        Created {
            call,
            stream: 0,
            time,
            tid: thread::tid(),
            launch: false,
            kernel: NO_KERNEL,
            grid: [0; 3],
            workgroup: [0; 3],
            shared: 0,
            ends: None,
        }
    }
}

/// A command that has completed, as HIP tells it.
pub(super) struct Completed {
    /// See the constants above.
    pub(super) kind: u32,
    /// Index of the GPU, `NO_GPU` where it is not known.
    pub(super) gpu: u32,
    /// HIP's number of the queue, from 0.
    pub(super) queue: u32,
    /// When it began and ended, on the runtime's system clock.
    pub(super) times: (u64, u64),
    /// Bytes of a copy.
    pub(super) bytes: u64,
    /// Its place in HIP's order of commands, or of those of this kind.
    pub(super) sequence: u64,
    /// The kernel, where HIP says it.
    pub(super) kernel: Option<KernelId>,
}

struct CommandSlot {
    /// 0: free; `BUSY`; otherwise key + 1.
    state: AtomicU64,
    created: UnsafeCell<Option<Created>>,
}

const BUSY: u64 = u64::MAX;
/// How often to try a place that another thread is at, which takes it some ns; it may have lost its processor.
const TRIES: u32 = 1000;

impl CommandSlot {
    /// Takes the place, if it is in such a state as `wanted` says.
    fn take(&self, wanted: impl Fn(u64) -> bool) -> bool {
        for _ in 0..TRIES {
            let state = self.state.load(Ordering::Relaxed);
            if state == BUSY {
                std::hint::spin_loop();
            } else if !wanted(state) {
                return false;
            } else if self.state.compare_exchange(state, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
        false
    }
}

struct Places(Box<[CommandSlot]>);

// SAFETY: `created` is touched only by whoever set `state` to BUSY.
unsafe impl Sync for Places {}

static TABLE: LazyLock<Places> = LazyLock::new(|| {
    let place = || CommandSlot { state: AtomicU64::new(0), created: UnsafeCell::new(None) };
    Places(std::iter::repeat_with(place).take(PLACES).collect())
});

/// Remembers `created` for the command numbered `key`, in the place of one that never completed if need be.
pub(super) fn remember(key: u64, created: Created) {
    let place = &TABLE.0[key as usize % PLACES];
    if !place.take(|_| true) {
        return;
    }
    // SAFETY: `state` is BUSY by us.
    unsafe { *place.created.get() = Some(created) };
    place.state.store(key + 1, Ordering::Release);
}

/// What was remembered under `key`; it stays.
pub(super) fn look_up(key: u64) -> Option<Created> {
    read(key, key + 1)
}

/// What was remembered for the command numbered `key`, once.
pub(super) fn recall(key: u64) -> Option<Created> {
    read(key, 0)
}

/// What was remembered under `key`, whose place is in state `then` afterwards.
fn read(key: u64, then: u64) -> Option<Created> {
    let place = &TABLE.0[key as usize % PLACES];
    if !place.take(|state| state == key + 1) {
        return None;
    }
    // SAFETY: `state` is BUSY by us.
    let created = unsafe { *place.created.get() };
    place.state.store(then, Ordering::Release);
    created
}

/// Puts a completed command into this thread's ring. HIP calls this on its own threads: it may not wait.
pub(super) fn record(recorder: &'static Recorder, command: &Completed, created: Created) {
    let (start, end) = times(recorder, command.times);
    let kernel = match command.kind {
        KERNEL | TASK => {
            let known = Some(created.kernel).filter(|kernel| *kernel != NO_KERNEL);
            command.kernel.or(known).unwrap_or_else(kernels::unnamed)
        }
        FILL => kernels::named("__amd_rocclr_fillBuffer", command.gpu),
        _ => return copy(recorder, command, created, (start, end)),
    };
    let workgroup = created.workgroup.map(|size| u16::try_from(size).unwrap_or(u16::MAX));
    let (dst_gpu, src_gpu) = created.ends.unwrap_or((command.gpu, command.gpu));
    let dispatch = records::Dispatch {
        submit_start: created.time,
        submit_end: created.time,
        start,
        end,
        start_tick: 0,
        end_tick: 0,
        kernarg: 0,
        completion: 0,
        sequence: command.sequence,
        correlation: created.call,
        stream: created.stream,
        kernel,
        gpu: command.gpu,
        queue: command.queue + 1,
        tid: created.tid,
        dst_gpu,
        src_gpu,
        grid: std::array::from_fn(|axis| created.grid[axis].saturating_mul(created.workgroup[axis])),
        group_segment: created.shared,
        private_segment: 0,
        workgroup,
        header: records::UNKNOWN_FENCES,
        launch: if created.launch { 2 } else { 0 },
        source: functions::SOURCE,
        function: functions::DISPATCH,
    };
    if created.launch {
        recorder.counters.completed.fetch_add(1, Ordering::Relaxed);
    }
    if !push(recorder, Kind::Dispatch, bytemuck::bytes_of(&dispatch)) && dispatch.ends_launch() {
        recorder.lost_launches.add(dispatch.correlation);
    }
}

fn copy(recorder: &'static Recorder, command: &Completed, created: Created, (start, end): (u64, u64)) {
    let gpu = command.gpu;
    let (by_kind, rect) = match command.kind {
        DEVICE_TO_HOST => ((NO_GPU, gpu), false),
        HOST_TO_DEVICE => ((gpu, NO_GPU), false),
        DEVICE_TO_DEVICE => ((gpu, gpu), false),
        DEVICE_TO_HOST_RECT => ((NO_GPU, gpu), true),
        HOST_TO_DEVICE_RECT => ((gpu, NO_GPU), true),
        DEVICE_TO_DEVICE_RECT => ((gpu, gpu), true),
        // Markers, waits and whatever else is no operation of the file.
        _ => return,
    };
    // HIP calls a copy from or to pinned memory one on the device. One between places of the host's it makes itself.
    let (dst_gpu, src_gpu) = match created.ends {
        Some((NO_GPU, NO_GPU)) => return,
        known => known.unwrap_or(by_kind),
    };
    let copy = records::Copy {
        submit_start: created.time,
        submit_end: created.time,
        start,
        end,
        dst: 0,
        src: 0,
        size: command.bytes,
        width: if rect { command.bytes } else { 0 },
        height: rect.into(),
        sequence: command.sequence,
        completion: 0,
        correlation: created.call,
        gpu,
        dst_gpu,
        src_gpu,
        tid: created.tid,
        function: functions::COMMAND,
        source: functions::SOURCE,
        queue: 0,
        describes_call: 0,
    };
    push(recorder, Kind::Copy, bytemuck::bytes_of(&copy));
}

/// Begin and end as ns of CLOCK_MONOTONIC; zeros, counted, where there are none.
fn times(recorder: &Recorder, (begin, end): (u64, u64)) -> (u64, u64) {
    let translated = known::monotonic(begin).zip(known::monotonic(end));
    match translated.filter(|_| begin != 0 && end >= begin) {
        Some(times) => times,
        None => {
            recorder.counters.lose(Cause::NoTimes, 1);
            (0, 0)
        }
    }
}

/// False: the record is lost, and counted.
fn push(recorder: &'static Recorder, kind: Kind, body: &[u8]) -> bool {
    thread::push(recorder, kind, body, [&[], &[]], Patience::Drops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_recalled_once() {
        remember(7, Created::by(70, 0));
        assert_eq!(recall(8).map(|created| created.call), None);
        assert_eq!(recall(7).map(|created| created.call), Some(70));
        assert!(recall(7).is_none());
        remember(8, Created::by(80, 0));
        assert_eq!([look_up(8), look_up(8)].map(|created| created.map(|c| c.call)), [Some(80), Some(80)]);
    }

    #[test]
    fn threads_that_look_at_the_same_time_all_find_it() {
        remember(11, Created::by(110, 0));
        let begin = std::sync::Barrier::new(2);
        let missed = || {
            begin.wait();
            (0..1_000_000).filter(|_| look_up(11).is_none_or(|created| created.call != 110)).count()
        };
        let missed = std::thread::scope(|scope| {
            let threads = [scope.spawn(missed), scope.spawn(missed)];
            threads.map(|thread| thread.join().unwrap()).iter().sum::<usize>()
        });
        // Where a thread loses its processor at the place, the other gives up, again and again.
        assert!(missed < 100_000, "{missed}");
    }

    #[test]
    fn a_later_command_takes_the_place_of_one_that_never_completed() {
        remember(9, Created::by(90, 0));
        remember(9 + PLACES as u64, Created::by(91, 0));
        assert!(recall(9).is_none());
        assert_eq!(recall(9 + PLACES as u64).map(|created| created.call), Some(91));
    }
}
