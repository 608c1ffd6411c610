//! HIP up to 5.2: one callback per function, `hipRegisterActivityCallback` (HIP 5.2 hip_prof_api.h), and a pair of them for
//! commands, `hipInitActivityCallback` (ROCclr 5.2 activity.hpp).
//!
//! At the beginning of a call HIP asks the function's callback for a place, puts the arguments there, and calls it again, with the
//! registered argument, when the call is about to return. Where it answered null the second call does not come.
//!
//! As long as any is registered HIP takes times of every command: its dispatches then carry completion signals. So HIP has them
//! only while recording is on. Calls and commands that are under way when they are taken back end as if it had them still.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rpd_preload::clock;
use rpd_preload::lock::lock_within;
use rpd_transport::correlation;
use rpd_transport::recorder::{self, Recorder};

use super::call::CallPlace;
use super::command::{self, Completed, Created};
use super::library::{EnableActivityCallback, RegisterActivityCallback};
use super::state::{self, HipLibrary};
use super::{call, device};
use crate::guard::{guard, guard_without_points};
use crate::hsa_runtime::known;

/// Tells HIP's second call from its first.
static EXIT: u8 = 0;

/// Commands that are kernels, and all others (HIP 5.2 hip_activity.cpp).
const COMMANDS: [u32; 2] = [0, 1];

/// How long a thread waits for another that gives or takes.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long after a start commands may come that HIP began to make before it: threads are interrupted anywhere. In ns.
const STRAGGLING: u64 = 1_000_000_000;

static CALLBACKS: OnceLock<Callbacks> = OnceLock::new();

/// What HIP is given and what is taken from it.
struct Callbacks {
    /// The process whose HIP this is: a forked child may have copied it in any state.
    pid: u32,
    register: RegisterActivityCallback,
    /// Numbers of the functions.
    functions: Vec<u32>,
    /// Where HIP reports commands as well.
    enable: Option<EnableActivityCallback>,
    /// HIP has them.
    given: Mutex<bool>,
    /// Since when it last tells of commands, ns of CLOCK_MONOTONIC.
    given_at: AtomicU64,
    /// Until when it last did not, ns of CLOCK_MONOTONIC; `u64::MAX` while it does not.
    silent_until: AtomicU64,
}

/// A completed command (ROCclr 5.2 prof_protocol.h, activity_record_t).
#[repr(C)]
struct ActivityRecord {
    domain: u32,
    kind: u32,
    operation: u32,
    /// HIP's own number of the command, as it gave it when the command was created.
    id: u64,
    begin: u64,
    end: u64,
    device: i32,
    queue: u64,
    bytes: usize,
}

/// Prepares to have HIP tell of calls of the functions that `hip` records, if `calls`, and of commands, if `hip` times by them.
/// Whether there are any functions, and whether it tells of commands.
pub(super) fn open(recorder: &'static Recorder, hip: &HipLibrary, calls: bool) -> (bool, bool) {
    let library = &hip.library;
    let Some(register) = library.register_activity else { return (false, false) };
    let fits = hip.data_size <= 8 * call::ROOM;
    let mut functions: Vec<u32> = hip.recorded_ids().filter(|_| calls && fits).collect();
    let calls = !functions.is_empty();
    let mut enable = None;
    if hip.times_commands {
        for id in &functions {
            let launches = hip.api(*id).is_some_and(|(_, api)| api.is_launch());
            if let Some(register) = library.register_api.filter(|_| launches) {
                // SAFETY: the callback has the type that HIP calls it with, and lives as long as the process. HIP calls it only
                // where `on_call` has answered with a place.
                unsafe { register(*id, on_arguments as *mut c_void, ptr::null_mut()) };
            }
        }
        if let Some((init, enables)) = library.init_commands.zip(library.enable_commands) {
            // SAFETY: callbacks of the types that HIP calls them with, which live as long as the process; no command uses them yet.
            unsafe { init(created as *mut c_void, completed as *mut c_void, ptr::null_mut()) };
            enable = Some(enables);
            if functions.is_empty() {
                // HIP takes times only while some function has a callback; this one is not recorded.
                functions.push(1);
            }
        }
    }
    let (given, [given_at, silent_until]) = (Mutex::new(false), [0, u64::MAX].map(AtomicU64::new));
    let commands = enable.is_some();
    if !functions.is_empty() {
        let pid = recorder.pid;
        let _ = CALLBACKS.set(Callbacks { pid, register, functions, enable, given, given_at, silent_until });
        follow(recorder);
    }
    (calls, commands)
}

/// Gives HIP the callbacks if recording is on, and takes them back if it is off. The latter waits for threads that are looking a
/// callback up at this moment, so what merely stops recording, maybe in a signal handler on such a thread, leaves it to the writer.
pub(crate) fn follow(recorder: &'static Recorder) {
    let Some(callbacks) = CALLBACKS.get().filter(|callbacks| callbacks.pid == recorder.pid) else { return };
    // What is there now is another profiler's.
    if state::current().is_displaced() {
        return;
    }
    let Some(mut given) = lock_within(&callbacks.given, PATIENCE) else { return };
    let wanted = recorder.switch.is_on();
    match (*given, wanted) {
        (false, true) => callbacks.give(),
        (true, false) => callbacks.take_back(),
        _ => return,
    }
    *given = wanted;
    // It takes them back when recording stops.
    recorder.requests.start(recorder);
}

impl Callbacks {
    fn give(&self) {
        self.register_all(on_call as *mut c_void);
        // HIP has begun to take times: commands that it begins to make from now on have some.
        self.given_at.store(clock::monotonic(), Ordering::Relaxed);
        self.tell_commands(true);
        self.silent_until.store(clock::monotonic(), Ordering::Release);
    }

    fn take_back(&self) {
        self.silent_until.store(u64::MAX, Ordering::SeqCst);
        self.tell_commands(false);
        self.register_all(ptr::null_mut());
    }

    fn register_all(&self, callback: *mut c_void) {
        for id in &self.functions {
            // SAFETY: null, or a callback of the type that HIP calls it with, which lives as long as the process. The argument stays
            // also where the callback goes: who looks one up between two changes may see the callback of one and the argument of the other.
            unsafe { (self.register)(*id, callback, (&raw const EXIT).cast_mut().cast()) };
        }
    }

    fn tell_commands(&self, wanted: bool) {
        if let Some(enable) = self.enable {
            for command in COMMANDS {
                // SAFETY: takes any number of a kind of command; their callbacks are in place.
                unsafe { enable(command, wanted) };
            }
        }
    }
}

/// Whether HIP may have made a command of a call that began at `start` and ends now, and not told of it: recording was started or stopped
/// meanwhile.
pub(super) fn may_have_been_silent(start: u64) -> bool {
    let callbacks = CALLBACKS.get().filter(|callbacks| callbacks.enable.is_some());
    callbacks.is_some_and(|callbacks| start <= callbacks.silent_until.load(Ordering::Acquire))
}

/// HIP's callback of a call: [`on_call_at`], with where HIP's own memory on the stack begins.
#[unsafe(naked)]
unsafe extern "C-unwind" fn on_call(_: u32, _: *mut c_void, _: *const c_void, _: *mut c_void) -> *mut c_void {
    // The return address lies below it.
    naked_asm!("lea r8, [rsp + 8]", "jmp {on_call_at}", on_call_at = sym on_call_at)
}

unsafe extern "C-unwind" fn on_call_at(
    id: u32,
    _: *mut c_void,
    _: *const c_void,
    argument: *mut c_void,
    callers: *const u8,
) -> *mut c_void {
    guard_without_points(ptr::null_mut(), || {
        let Some((index, api)) = state::get().and_then(|hip| hip.api(id)) else { return ptr::null_mut() };
        if argument.is_null() {
            return call::enter(index, api, CallPlace::Callers(callers)).cast();
        }
        call::exit(index, ptr::null());
        ptr::null_mut()
    })
}

/// The arguments of a launch are there; HIP calls this a second time at its end.
unsafe extern "C-unwind" fn on_arguments(_: u32, _: u32, _: *const c_void, _: *mut c_void) {
    guard((), call::find_kernel);
}

/// A command is created, on the thread of the call that creates it.
unsafe extern "C-unwind" fn created(id: u64) {
    guard((), || {
        // What is launched after a stop has no times, though its call began before: it counts as a launch without its operation.
        let is_first = call::commands();
        if let Some(recorder) = recorder::get().filter(|recorder| recorder.switch.is_on()) {
            recorder.counters.commanded.fetch_add(is_first.into(), Ordering::Relaxed);
            command::remember(id, call::created());
        }
    });
}

/// Whether HIP began to make the command before recording was started: then it has no times, or those of an older command that was in
/// its place.
fn is_straggler(record: &ActivityRecord, created: &Created) -> bool {
    let given_at = CALLBACKS.get().map_or(0, |callbacks| callbacks.given_at.load(Ordering::Relaxed));
    let is_its_own = |begin| known::monotonic(begin).is_some_and(|begin| begin >= created.time);
    created.call == correlation::NONE
        && created.time < given_at + STRAGGLING
        && (record.begin == 0 || !is_its_own(record.begin))
}

/// A command has completed.
unsafe extern "C-unwind" fn completed(_: u32, record: *const ActivityRecord, _: *mut c_void) {
    guard((), || {
        // SAFETY: HIP's record, valid during the call.
        let record = unsafe { &*record };
        let (Some(recorder), Some(created)) = (recorder::get(), command::recall(record.id)) else { return };
        if is_straggler(record, &created) {
            return;
        }
        let completed = Completed {
            kind: record.kind,
            gpu: device::gpu(record.device),
            queue: record.queue as u32,
            times: (record.begin, record.end),
            bytes: record.bytes as u64,
            sequence: record.id,
            kernel: None,
        };
        command::record(recorder, &completed, created);
    });
}
