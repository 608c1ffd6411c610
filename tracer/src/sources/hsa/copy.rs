//! Asynchronous copies: all forms of hsa_amd_memory_async_copy.
//!
//! A copy has the application's completion signal, and `app_signal` reads its times. Two kinds of copies are passed on unrecorded: those
//! between two host agents, as no GPU has to do with them, and those of 0 bytes, as they change no signal.

use std::ffi::c_void;

use rpd_preload::clock;
use rpd_transport::counters::Cause;
use rpd_transport::records::{self, NO_GPU};
use rpd_transport::{correlation, thread};

use super::app_signal::{Claim, OperationKind};
use super::functions;
use super::in_flight::CopyInFlight;
use super::state::{Hsa, get};
use crate::call;
use crate::guard::guard;
use crate::hsa_runtime::abi::*;
use crate::hsa_runtime::agent::Gpu;

/// What a copy moves.
struct Job<'a> {
    function: u16,
    gpu: &'a Gpu,
    dst: *const c_void,
    dst_agent: Agent,
    src: *const c_void,
    src_agent: Agent,
    size: u64,
    width: u64,
    height: u64,
}

/// hsa_amd_memory_async_copy.
pub(super) unsafe extern "C-unwind" fn async_copy(
    dst: *mut c_void,
    dst_agent: Agent,
    src: *const c_void,
    src_agent: Agent,
    size: usize,
    dep_count: u32,
    deps: *const Signal,
    completion: Signal,
) -> Status {
    let Some(hsa) = get() else { return ERROR };
    let call = |completion| {
        let copy = hsa.originals.memory_async_copy;
        // SAFETY: the caller's arguments, passed on.
        unsafe { copy(dst, dst_agent, src, src_agent, size, dep_count, deps, completion) }
    };
    let job = linear(hsa, 0, dst, dst_agent, src, src_agent, size);
    timed(hsa, job, completion, call)
}

/// hsa_amd_memory_async_copy_on_engine.
pub(super) unsafe extern "C-unwind" fn async_copy_on_engine(
    dst: *mut c_void,
    dst_agent: Agent,
    src: *const c_void,
    src_agent: Agent,
    size: usize,
    dep_count: u32,
    deps: *const Signal,
    completion: Signal,
    engine: u32,
    force_sdma: bool,
) -> Status {
    let Some((hsa, copy)) = get().and_then(|hsa| Some((hsa, hsa.originals.memory_async_copy_on_engine?)))
    else {
        return ERROR;
    };
    let call = |completion| {
        // SAFETY: the caller's arguments, passed on.
        unsafe { copy(dst, dst_agent, src, src_agent, size, dep_count, deps, completion, engine, force_sdma) }
    };
    let job = linear(hsa, 1, dst, dst_agent, src, src_agent, size);
    timed(hsa, job, completion, call)
}

/// hsa_amd_memory_async_copy_rect.
pub(super) unsafe extern "C-unwind" fn async_copy_rect(
    dst: *const PitchedPtr,
    dst_offset: *const Dim3,
    src: *const PitchedPtr,
    src_offset: *const Dim3,
    range: *const Dim3,
    copy_agent: Agent,
    direction: u32,
    dep_count: u32,
    deps: *const Signal,
    completion: Signal,
) -> Status {
    let Some(hsa) = get() else { return ERROR };
    let call = |completion| {
        let copy = hsa.originals.memory_async_copy_rect;
        // SAFETY: the caller's arguments, passed on.
        unsafe {
            copy(dst, dst_offset, src, src_offset, range, copy_agent, direction, dep_count, deps, completion)
        }
    };
    // SAFETY: the runtime requires valid or null pointers here; null ones it refuses itself.
    let places = unsafe { (dst.as_ref(), src.as_ref(), range.as_ref()) };
    let job = match (places, hsa.known.gpus.of(copy_agent)) {
        ((Some(dst), Some(src), Some(range)), Some(gpu)) => {
            let rows = u64::from(range.y) * u64::from(range.z);
            let host = Agent(0);
            Some(Job {
                function: 2,
                gpu,
                dst: dst.base,
                dst_agent: if direction == 2 { host } else { copy_agent },
                src: src.base,
                src_agent: if direction == 1 { host } else { copy_agent },
                size: u64::from(range.x) * rows,
                width: u64::from(range.x),
                height: rows,
            })
        }
        _ => None,
    };
    timed(hsa, job, completion, call)
}

/// hsa_amd_memory_async_batch_copy: all copies of a batch complete through one signal, which has the times of none of them for sure.
/// They are counted as lost.
pub(super) unsafe extern "C-unwind" fn async_batch_copy(
    copies: *const c_void,
    count: u32,
    dep_count: u32,
    deps: *const Signal,
) -> Status {
    let Some((hsa, copy)) = get().and_then(|hsa| Some((hsa, hsa.originals.memory_async_batch_copy?))) else {
        return ERROR;
    };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { copy(copies, count, dep_count, deps) };
    if status == SUCCESS && hsa.usable() && call::records_copies(hsa.recorder) {
        hsa.recorder.counters.lose(Cause::SharedSignal, count.into());
    }
    status
}

fn linear<'a>(
    hsa: &'a Hsa,
    function: u16,
    dst: *mut c_void,
    dst_agent: Agent,
    src: *const c_void,
    src_agent: Agent,
    size: usize,
) -> Option<Job<'a>> {
    // The runtime lets the source's GPU copy where there is one (ROCr 5.2 runtime.cpp CopyMemory).
    let gpu = hsa.known.gpus.of(src_agent).or_else(|| hsa.known.gpus.of(dst_agent))?;
    Some(Job { function, gpu, dst, dst_agent, src, src_agent, size: size as u64, width: 0, height: 0 })
}

/// Makes the call with a signal whose times can be read.
fn timed(
    hsa: &'static Hsa,
    job: Option<Job<'_>>,
    completion: Signal,
    call: impl FnOnce(Signal) -> Status,
) -> Status {
    let watched = hsa.usable() && hsa.completion.works();
    let job = job.filter(|job| job.size > 0 && completion.0 != 0 && watched);
    let Some(job) = job else { return call(completion) };
    if !call::records_copies(hsa.recorder) {
        guard((), || hsa.app_signals.release(hsa, completion));
        return call(completion);
    }
    let start = clock::monotonic();
    let submitted = hsa.known.clock.system(start);
    let claim =
        guard(None, || Some(hsa.app_signals.claim(hsa, completion, OperationKind::Copy { submitted })));
    let (signal, times) = match claim {
        Some(Claim::InPlace(times)) => (completion, Some(times)),
        Some(Claim::Shared) => match guard(None, || hsa.app_signals.stand_in(hsa, completion)) {
            Some((own, times)) => (own, Some(times)),
            None => (completion, None),
        },
        None => (completion, None),
    };
    let status = call(signal);
    let end = clock::monotonic();
    guard((), || match times {
        Some(times) if status == SUCCESS => {
            let record = describe(hsa, &job, completion, start, end);
            hsa.completion.add_copy(hsa, CopyInFlight { record, times });
        }
        // Refused: nothing will complete.
        Some(times) if signal == completion => hsa.app_signals.withdraw(completion, &times),
        Some(_) => hsa.app_signals.dismiss(hsa, signal),
        None => hsa.recorder.counters.lose(Cause::NoSignal, 1),
    });
    status
}

fn describe(hsa: &Hsa, job: &Job<'_>, completion: Signal, start: u64, end: u64) -> records::Copy {
    let index = |agent| hsa.known.gpus.of(agent).map_or(NO_GPU, |gpu| gpu.index);
    let (mut dst_gpu, mut src_gpu) = (index(job.dst_agent), index(job.src_agent));
    if dst_gpu == src_gpu {
        // HIP also says so to have the runtime copy with a kernel, wherever the memory lies.
        // SAFETY: the runtime has just taken the copy.
        (dst_gpu, src_gpu) =
            unsafe { hsa.memory.ends(&hsa.known.gpus, job.gpu, job.dst as u64, job.src as u64) };
    }
    let call = call::cause().call;
    // A call of the HSA runtime does not say itself what it copies: by 2 also that its host memory is pinned.
    let is_between_gpus = dst_gpu != NO_GPU && src_gpu != NO_GPU;
    let describes_call = match call::handover().call {
        handed_over if handed_over == call && call != correlation::NONE => 2 - u8::from(is_between_gpus),
        _ => 0,
    };
    records::Copy {
        submit_start: start,
        submit_end: end,
        start: 0,
        end: 0,
        dst: job.dst as u64,
        src: job.src as u64,
        size: job.size,
        width: job.width,
        height: job.height,
        sequence: job.gpu.next_copy(),
        completion: completion.0,
        correlation: call,
        gpu: job.gpu.index,
        dst_gpu,
        src_gpu,
        tid: thread::tid(),
        function: job.function,
        source: functions::SOURCE,
        queue: 0,
        describes_call,
    }
}

/// hsa_amd_profiling_async_copy_enable: stays on, copies without times would be lost.
pub(super) unsafe extern "C-unwind" fn async_copy_enable(enable: bool) -> Status {
    let Some(hsa) = get() else { return ERROR };
    // SAFETY: the caller's argument, or on where we need times.
    unsafe { (hsa.originals.async_copy_enable)(enable || hsa.usable()) }
}
