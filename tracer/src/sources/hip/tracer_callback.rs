//! HIP from 5.3 on: one callback for calls and commands, `hipRegisterTracerCallback` (HIP 5.3 hip_prof_api.h, ROCclr 5.3 activity.cpp).
//!
//! There is one place for it in the process: a profiler that registers after us takes it, and we hear no more (see `displaced`).
//!
//! At the beginning of a call HIP asks whether it is wanted, with room for its data on its stack. Who answers yes has put an id there
//! and two functions, which HIP calls when the arguments are there and when the call is about to return. Where those lie depends on
//! the size of HIP's data: only versions that the description knows are answered.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use rpd_preload::clock;
use rpd_transport::correlation;
use rpd_transport::recorder;
use rpd_transport::records::NO_GPU;

use super::call::CallPlace;
use super::command::{self, Completed, Created};
use super::state::{self, HipLibrary, HipState};
use super::{call, device};
use crate::gpu::kernels;
use crate::guard::{guard, guard_without_points};
use crate::hsa_runtime::known;

/// Domain of commands.
const COMMANDS: u32 = 2;
/// Domain of calls.
const CALLS: u32 = 3;
/// Operation of kernels; copies and fills are 1, barriers 2.
const KERNELS: u32 = 0;
const COPIES: u32 = 1;
/// Answers of the callback.
const YES: i32 = 0;
const NO: i32 = 1;

/// A completed command (ROCclr 5.3 prof_protocol.h, activity_record_t).
#[repr(C)]
struct CommandRecord {
    domain: u32,
    kind: u32,
    operation: u32,
    correlation: u64,
    begin: u64,
    end: u64,
    /// The driver's number of the device; in HIP 5.3 HIP's own.
    device: i32,
    queue: u64,
    /// Bytes of a copy, or address of a kernel's mangled name.
    detail: u64,
}

/// What HIP calls at the beginning and at the end of a call, with its number and its data (HIP 5.3 hip_prof_api.h).
type Phase = unsafe extern "C-unwind" fn(u32, *mut c_void);

/// Registers the callback; whether HIP has one.
pub(super) fn register(hip: &HipLibrary) -> bool {
    let Some(register) = hip.library.register_tracer else { return false };
    // SAFETY: the callback has the type that HIP calls it with, and lives as long as the process.
    unsafe { register(on_event as *mut c_void) };
    true
}

unsafe extern "C-unwind" fn on_event(domain: u32, operation: u32, data: *mut c_void) -> i32 {
    guard(NO, || {
        let Some(hip) = state::get() else { return NO };
        match (domain, data as usize) {
            // Also while recording is off: HIP 6 asks the same again at a command's end, and tells of it only if it hears yes.
            (COMMANDS, 0) if hip.times_commands && operation <= COPIES => {
                if call::commands()
                    && let Some(recorder) = recorder::get()
                {
                    recorder.counters.commanded.fetch_add(1, Ordering::Relaxed);
                }
                YES
            }
            // A record; newer versions say by a 1 that commands were handed over. Of commands with events HIP tells unasked.
            (COMMANDS, 2..) if hip.times_commands => {
                // SAFETY: HIP's record, valid during the call.
                completed(unsafe { &*data.cast::<CommandRecord>() }, hip.library.numbers_devices);
                YES
            }
            // SAFETY: the room that HIP offers for a call, in a version that the description knows.
            (CALLS, 2..) => unsafe { begins(hip, operation, data.cast()) },
            _ => NO,
        }
    })
}

/// # Safety
/// `data` is HIP's hip_api_trace_data_t of a call to function `id`.
unsafe fn begins(hip: &HipLibrary, id: u32, data: *mut u8) -> i32 {
    let Some((index, api)) = hip.api(id) else { return NO };
    let functions: [Option<Phase>; 2] =
        if !call::enter(index, api, CallPlace::Data(data, hip.data_size)).is_null() {
            [Some(on_arguments), Some(on_return)]
        } else if hip.times_commands
            && !(state::current() == HipState::Callbacks)
            && call::cause_id() != correlation::NONE
        {
            // A wrapper has the call and its arguments already; HIP's commands must know it as well.
            remember();
            [None, None]
        } else {
            return NO;
        };
    // SAFETY: the id is the first member; the functions are behind the data, a time and a word of the tool's.
    unsafe {
        data.cast::<u64>().write(call::cause_id());
        data.add(hip.data_size + 16).cast::<[Option<Phase>; 2]>().write(functions);
    }
    YES
}

/// The arguments are there.
unsafe extern "C-unwind" fn on_arguments(_: u32, data: *mut c_void) {
    guard((), || {
        let Some(hip) = state::get() else { return };
        // SAFETY: HIP's data of the call that `begins` took, which HIP has just filled.
        unsafe { call::filled(data.cast(), hip.data_size) };
        if hip.times_commands {
            remember();
        }
    });
}

/// What the commands of this thread's call should know of it.
fn remember() {
    let created = call::created();
    command::remember(created.call, created);
}

/// The call is about to return.
unsafe extern "C-unwind" fn on_return(id: u32, data: *mut c_void) {
    guard_without_points((), || {
        if let Some((index, _)) = state::get().and_then(|hip| hip.api(id)) {
            call::exit(index, data.cast());
        }
    });
}

fn completed(record: &CommandRecord, numbers_devices: bool) {
    /// Commands that have completed before.
    static COMPLETED: AtomicU64 = AtomicU64::new(0);
    let Some(recorder) = recorder::get() else { return };
    let begin = known::monotonic(record.begin);
    // Commands of a call that is not recorded have no id; neither have all while recording is paused, whenever they complete.
    let paused = || {
        let resumed = recorder.switch.resumed_at();
        !recorder.switch.is_on() || begin.is_some_and(|begin| begin < resumed)
    };
    if record.correlation == 0 && paused() {
        return;
    }
    let unknown = || Created::by(record.correlation, begin.unwrap_or_else(clock::monotonic));
    let created = command::look_up(record.correlation).unwrap_or_else(unknown);
    let gpu = if numbers_devices { device::gpu(record.device) } else { gpu_of_node(record.device) };
    let is_kernel = record.operation == KERNELS && record.detail != 0;
    let kernel = is_kernel.then(|| {
        // SAFETY: HIP's own copy of the name, which it keeps during the call.
        let name = unsafe { CStr::from_ptr(record.detail as *const c_char) };
        kernels::named(&name.to_string_lossy(), gpu)
    });
    let completed = Completed {
        kind: record.kind,
        gpu,
        queue: record.queue as u32,
        times: (record.begin, record.end),
        bytes: if is_kernel { 0 } else { record.detail },
        sequence: COMPLETED.fetch_add(1, Ordering::Relaxed),
        kernel,
    };
    command::record(recorder, &completed, created);
}

fn gpu_of_node(node: i32) -> u32 {
    u32::try_from(node).ok().and_then(known::gpu_of_node).unwrap_or(NO_GPU)
}
