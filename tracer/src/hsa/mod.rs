//! The HSA runtime's own tables, by which every queue, dispatch, copy and code object of the process is seen. They arrive through
//! door A (OnLoad) or door B (rocprofiler_set_api_table); what happens then is the same.
//!
//! - `table`, `abi`: the runtime's interface; `inquiry`: what it may be asked; `agent`: its GPUs; `time`: its clocks; `life`: when it
//!   starts and ends; `late`: one that was there before the recorder
//! - `queue`, `queue_descriptor`: intercepted queues; `queue_error`: when one fails; `reservation`: whose their packets are; `dispatch`: what
//!   happens to them
//! - `signal`: signals of ours that time dispatches; `app_signal`: the application's, which keep what the hardware gives them
//! - `copy`: asynchronous copies; `code_object`, `kernel`: what the kernels are
//! - `in_flight`: what the device has; `completion`: the thread that sees it end; `settle`: the records of it

pub(crate) mod abi;
mod agent;
mod app_signal;
mod code_object;
pub(crate) mod completion;
pub(crate) mod copy;
mod dispatch;
mod in_flight;
mod inquiry;
mod late;
mod life;
mod queue;
mod queue_descriptor;
mod queue_error;
mod reservation;
mod settle;
mod signal;
mod table;
mod time;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use rpd_transport::log;
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::source::{Answer, Offer, Source};

use crate::environment;
use crate::gpu::timing;
use abi::{ApiTable, CONDITION_LT, SUCCESS, Signal};
pub(crate) use agent::Gpu;
use agent::Gpus;
use app_signal::AppSignals;
use completion::Completion;
use inquiry::Inquiry;
pub(crate) use inquiry::exported;
use queue::Queues;
use table::{AmdEntry, Originals, Table, core_entry};

/// How long to wait for a look at signals that is under way, which takes moments unless the runtime keeps it.
const LEAVE: Duration = Duration::from_secs(5);

static HSA: AtomicPtr<Hsa> = AtomicPtr::new(std::ptr::null_mut());

/// One life of the runtime, from the offer of its table to its shutdown. Never freed: hooks may hold it on any thread.
struct Hsa {
    originals: Originals,
    recorder: &'static Recorder,
    gpus: Gpus,
    queues: Queues,
    app_signals: AppSignals,
    completion: Completion,
    clock: time::SystemClock,
    /// Until the runtime shuts down; afterwards it may not be called.
    alive: AtomicBool,
    /// The runtime has the bug that aborts on a full intercept queue (ROCr before 6.0).
    small_queues_abort: bool,
    /// The thread on which the runtime calls signal handlers; 0 until it is known.
    event_thread: AtomicU32,
    /// It has been asked for.
    event_thread_asked: AtomicBool,
    /// Address of its core table, by which it is known again.
    core: usize,
}

/// The present runtime, also after its shutdown.
fn get() -> Option<&'static Hsa> {
    // SAFETY: null or a leaked box.
    unsafe { HSA.load(Ordering::Acquire).as_ref() }
}

impl Hsa {
    /// Whether hooks may do more than pass on: the runtime lives and this is not a forked child.
    fn usable(&self) -> bool {
        self.lives() && self.is_own()
    }

    /// The runtime may be called, and memory of its signals is there.
    fn lives(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// This is not a forked child, where another thread of the parent may have held any lock at the fork.
    fn is_own(&self) -> bool {
        recorder::get().is_some_and(|recorder| std::ptr::eq(recorder, self.recorder))
    }
}

/// How the tables of the runtime were had.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// OnLoad: the runtime will call OnUnload before it shuts down.
    Tool,
    /// rocprofiler_set_api_table: nobody says when the runtime shuts down.
    Register,
}

/// Saves the originals, puts the hooks in; true if they are in. Once per life of the runtime: a second call, through whichever
/// door, changes nothing.
///
/// # Safety
/// `table` is the live table of the calling runtime, which offers it to tools at this moment.
pub(crate) unsafe fn load(table: *mut ApiTable, door: Door) -> bool {
    let Some(recorder) = recorder::get() else { return false };
    // SAFETY: the caller's promise.
    let Some(root) = (unsafe { table.as_ref() }) else { return false };
    if let Some(hsa) = get().filter(|hsa| hsa.usable()) {
        if hsa.core != root.core as usize {
            log::problem("a second HSA runtime in this process: its kernels and copies are not recorded");
        }
        return hsa.core == root.core as usize;
    }
    // SAFETY: members of the live root table.
    let (core, amd) = unsafe { (Table::new(root.core), Table::new(root.amd_ext)) };
    if table::address(core, core_entry::EXECUTABLE_FREEZE) == code_object::freeze as *const () as usize {
        return true;
    }
    // SAFETY: the root table vouches for its member; a null one has no functions and is refused below.
    let (amd_size, step) = unsafe { root.amd_ext.as_ref() }.map_or((0, 0), |v| (v.minor_id, v.step_id));
    let entry = AmdEntry::of(amd_size, step);
    // SAFETY: tables of this runtime, layout chosen by its size.
    let originals = match unsafe { Originals::read(core, amd, &entry) } {
        Ok(originals) => originals,
        Err(missing) => {
            log::problem(&format!("this HSA runtime has no {missing}: kernels and copies are not recorded"));
            return false;
        }
    };
    let hsa: &'static Hsa = Box::leak(Box::new(Hsa {
        gpus: Gpus::find(&Inquiry::of(&originals)),
        queues: Queues::default(),
        app_signals: AppSignals::default(),
        completion: Completion::default(),
        clock: time::SystemClock::measure(originals.system_get_info),
        alive: AtomicBool::new(true),
        small_queues_abort: root.version.major_id < 2,
        event_thread: AtomicU32::new(0),
        event_thread_asked: AtomicBool::new(false),
        core: root.core as usize,
        originals,
        recorder,
    }));
    HSA.store(std::ptr::from_ref(hsa).cast_mut(), Ordering::Release);
    let timed = timing::by_hsa();
    // Copies carry no times unless somebody asked for them; HIP does not in every version.
    // SAFETY: an original of this runtime.
    unsafe { (hsa.originals.async_copy_enable)(true) };
    // SAFETY: tables offered at this moment, hooks of the entries' types.
    unsafe {
        table::patch(core, &core_hooks(door, timed));
        table::patch(amd, &amd_hooks(&entry, &hsa.originals, timed));
    }
    log::info(|| {
        format!("HSA runtime found: {} GPU(s), extension table of {amd_size} bytes", hsa.gpus.len())
    });
    true
}

/// What replaces which entry of the core table; `timed`: queues are to be intercepted.
fn core_hooks(door: Door, timed: bool) -> Vec<(usize, usize)> {
    let mut hooks = vec![
        (core_entry::READER_FROM_FILE, code_object::reader_from_file as *const () as usize),
        (core_entry::READER_FROM_MEMORY, code_object::reader_from_memory as *const () as usize),
        (core_entry::READER_DESTROY, code_object::reader_destroy as *const () as usize),
        (
            core_entry::EXECUTABLE_LOAD_AGENT_CODE_OBJECT,
            code_object::load_agent_code_object as *const () as usize,
        ),
        (core_entry::EXECUTABLE_FREEZE, code_object::freeze as *const () as usize),
        (core_entry::EXECUTABLE_DESTROY, code_object::destroy as *const () as usize),
    ];
    if timed {
        hooks.extend([
            (core_entry::QUEUE_CREATE, queue::create as *const () as usize),
            (core_entry::QUEUE_DESTROY, queue::destroy as *const () as usize),
            (core_entry::SIGNAL_DESTROY, app_signal::destroy as *const () as usize),
            (
                core_entry::ADD_WRITE_INDEX_SCACQ_SCREL,
                reservation::add_write_index_scacq_screl as *const () as usize,
            ),
            (
                core_entry::ADD_WRITE_INDEX_SCACQUIRE,
                reservation::add_write_index_scacquire as *const () as usize,
            ),
            (core_entry::ADD_WRITE_INDEX_RELAXED, reservation::add_write_index_relaxed as *const () as usize),
            (
                core_entry::ADD_WRITE_INDEX_SCRELEASE,
                reservation::add_write_index_screlease as *const () as usize,
            ),
        ]);
    }
    if door == Door::Register {
        life::begin();
        hooks.push((core_entry::INIT, life::init as *const () as usize));
        hooks.push((core_entry::SHUT_DOWN, life::shut_down as *const () as usize));
    }
    hooks
}

/// What replaces which entry of the extension table; `timed`: queues are to be intercepted.
fn amd_hooks(entry: &AmdEntry, originals: &Originals, timed: bool) -> Vec<(usize, usize)> {
    let mut hooks = vec![
        (entry.set_profiler_enabled, queue::set_profiler_enabled as *const () as usize),
        (entry.async_copy_enable, copy::async_copy_enable as *const () as usize),
    ];
    if !timed {
        return hooks;
    }
    hooks.extend([
        (entry.memory_async_copy, copy::async_copy as *const () as usize),
        (entry.memory_async_copy_rect, copy::async_copy_rect as *const () as usize),
        (entry.intercept_create, queue::intercept_create as *const () as usize),
    ]);
    if let (Some(at), Some(_)) = (entry.memory_async_copy_on_engine, originals.memory_async_copy_on_engine) {
        hooks.push((at, copy::async_copy_on_engine as *const () as usize));
    }
    if let (Some(at), Some(_)) = (entry.queue_create, originals.create_described) {
        hooks.push((at, queue_descriptor::create as *const () as usize));
    }
    hooks
}

/// Finds out which thread the runtime calls signal handlers on, by a signal of its own, once there is a queue: where the
/// driver's topology cannot be read the runtime starts without any memory, and aborts when it is to make a signal (ROCr 5.2).
fn find_event_thread(hsa: &'static Hsa) {
    if hsa.event_thread_asked.swap(true, Ordering::Relaxed) {
        return;
    }
    unsafe extern "C-unwind" fn here(_: i64, hsa: *mut c_void) -> bool {
        // SAFETY: the object given below, which lives for ever.
        let hsa = unsafe { &*hsa.cast_const().cast::<Hsa>() };
        crate::guard::guard((), || hsa.event_thread.store(rpd_transport::thread::tid(), Ordering::Relaxed));
        false
    }
    let mut signal = Signal(0);
    // SAFETY: originals of this runtime, which is initialised. The runtime keeps a signal with a handler until that has run.
    unsafe {
        if (hsa.originals.signal_create)(1, 0, std::ptr::null(), &mut signal) == SUCCESS {
            let data = std::ptr::from_ref(hsa).cast_mut().cast();
            (hsa.originals.signal_async_handler)(signal, CONDITION_LT, 1, here, data);
            (hsa.originals.signal_subtract)(signal, 1);
            (hsa.originals.signal_destroy)(signal);
        }
    }
}

/// The runtime is there: others that are built upon it may be.
pub(crate) fn found() {
    if let Some(recorder) = recorder::get() {
        recorder.setup.sources.iter().for_each(|source| source.noticed());
    }
}

/// The runtime is about to shut down: waits for what is still running (up to 2 s), then lets go of it.
pub(crate) fn unload() {
    finish(Duration::from_secs(2));
}

/// No more operations will be timed: records those that end within `deadline`, counts the rest. Later calls do nothing.
fn finish(deadline: Duration) {
    let Some(hsa) = get().filter(|hsa| hsa.usable()) else { return };
    hsa.completion.finish(deadline);
    hsa.queues.retire(hsa);
    hsa.alive.store(false, Ordering::Release);
    // From here on the thread looks at no signal any more; one look may have begun before.
    if !hsa.completion.has_left(LEAVE) {
        log::info(|| "the GPU runtime shuts down while it is being asked for times".into());
    }
}

/// The GPUs of the node that this process sees.
pub(crate) fn gpus() -> &'static [Gpu] {
    known_gpus().map_or(&[], Gpus::all)
}

fn known_gpus() -> Option<&'static Gpus> {
    get().map(|hsa| &hsa.gpus).or_else(|| late::get().map(|late| &late.gpus))
}

/// Index among the GPUs of the node of the agent with that handle; nothing for a CPU.
pub(crate) fn gpu_of(agent: u64) -> Option<u32> {
    known_gpus()?.of(abi::Agent(agent)).map(|gpu| gpu.index)
}

/// Index among the GPUs of the node of the one that the driver's topology calls `node`.
pub(crate) fn gpu_of_node(node: u32) -> Option<u32> {
    known_gpus()?.at_node(node).map(|gpu| gpu.index)
}

/// A time of the runtime's system clock as ns of CLOCK_MONOTONIC; nothing before the runtime is known.
pub(crate) fn monotonic(system: u64) -> Option<u64> {
    let clock = get().map(|hsa| &hsa.clock).or_else(|| late::get().map(|late| &late.clock))?;
    clock.refresh();
    Some(clock.monotonic(system))
}

/// Whether a runtime has offered its tables.
pub(crate) fn offered() -> bool {
    get().is_some()
}

/// Whether the runtime is initialised and has not offered its tables: it was there before the recorder. Waits for a thread that is
/// initialising it, for a while.
pub(crate) fn is_late() -> bool {
    get().is_none() && late::look()
}

/// As [`is_late`], but leaves the runtime as it is: nothing can be recorded by it.
pub(crate) fn is_beyond_reach() -> bool {
    get().is_none() && late::is_there()
}

/// The source of dispatches and copies.
pub(crate) struct HsaSource;

/// Its number in records.
const NUMBER: u8 = 1;
/// What a dispatch is called that is of no call. Below it are the functions that copy.
const DISPATCH: u16 = 3;

const FUNCTIONS: [&str; 4] = [
    "hsa_amd_memory_async_copy",
    "hsa_amd_memory_async_copy_on_engine",
    "hsa_amd_memory_async_copy_rect",
    "hsaDispatch",
];

impl Source for HsaSource {
    fn name(&self) -> &'static str {
        "hsa"
    }

    fn number(&self) -> u8 {
        NUMBER
    }

    fn offered(&self, offer: &Offer<'_>) -> Answer {
        let (b"hsa", [root]) = (offer.name, offer.tables) else { return Answer::NotMine };
        // SAFETY: the runtime that calls offers its own table (ROCr LoadTools).
        let loaded = unsafe { load(root.cast(), Door::Register) };
        // Taking it would leave the tools that the user named in HSA_TOOLS_LIB unstarted.
        if loaded && !environment::names_other_tools() { Answer::Taken } else { Answer::Declined }
    }

    fn collect(&self, deadline: Duration) {
        if let Some(hsa) = get().filter(|hsa| hsa.usable()) {
            hsa.completion.collect(deadline);
        }
    }

    fn drain(&self, deadline: Duration) {
        if let Some(hsa) = get().filter(|hsa| hsa.usable()) {
            hsa.completion.drain(deadline);
        }
    }

    fn abort(&self, deadline: Duration) {
        if let Some(hsa) = get().filter(|hsa| hsa.usable()) {
            hsa.completion.abort(deadline);
        }
    }

    fn finish(&self, deadline: Duration) {
        finish(deadline);
    }

    fn is_used(&self) -> bool {
        get().is_some()
    }

    fn is_own_thread(&self, tid: u32) -> bool {
        completion::is_thread(tid)
    }

    fn presence(&self) -> Option<&'static str> {
        if get().is_some() {
            return Some("loaded");
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Some(if maps.contains("libhsa-runtime64") { "mapped" } else { "no" })
    }

    fn function(&self, index: u16) -> &'static str {
        FUNCTIONS.get(usize::from(index)).copied().unwrap_or_default()
    }
}
