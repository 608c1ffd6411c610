//! Door A: the HSA runtime's own tables, by which every queue, dispatch, copy and code object of the process is seen.
//!
//! - `table`, `abi`: the runtime's interface; `agent`: its GPUs; `time`: its clocks
//! - `queue`: intercepted queues; `dispatch`: what happens to their packets
//! - `signal`: signals of ours that time dispatches; `app_signal`: the application's, which keep what the hardware gives them
//! - `copy`: asynchronous copies; `code_object`, `kernel`: what the kernels are
//! - `in_flight`: what the device has; `completion`: the thread that sees it end; `settle`: the records of it

pub(crate) mod abi;
mod agent;
mod app_signal;
mod code_object;
mod completion;
pub(crate) mod copy;
mod dispatch;
mod in_flight;
pub(crate) mod kernel;
mod queue;
mod settle;
mod signal;
mod table;
mod time;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use crate::log;
use crate::recorder::{self, Recorder};
use abi::{ApiTable, CONDITION_LT, SUCCESS, Signal};
pub(crate) use agent::Gpu;
use agent::Gpus;
use app_signal::AppSignals;
use completion::Completion;
use queue::Queues;
use table::{AmdEntry, Originals, Table, core_entry};

static HSA: AtomicPtr<Hsa> = AtomicPtr::new(std::ptr::null_mut());

/// One life of the runtime, from OnLoad to OnUnload. Never freed: hooks may hold it on any thread.
struct Hsa {
    originals: Originals,
    recorder: &'static Recorder,
    gpus: Gpus,
    queues: Queues,
    app_signals: AppSignals,
    completion: Completion,
    clock: time::SystemClock,
    /// Between OnLoad and OnUnload; afterwards the runtime may not be called.
    alive: AtomicBool,
    /// The runtime has the bug that aborts on a full intercept queue (ROCr before 6.0).
    small_queues_abort: bool,
    /// The thread on which the runtime calls signal handlers; 0 until it is known.
    event_thread: AtomicU32,
}

/// The present runtime, also after its OnUnload.
fn get() -> Option<&'static Hsa> {
    // SAFETY: null or a leaked box.
    unsafe { HSA.load(Ordering::Acquire).as_ref() }
}

impl Hsa {
    /// Whether hooks may do more than pass on: the runtime lives and this is not a forked child.
    fn usable(&self) -> bool {
        self.alive.load(Ordering::Acquire)
            && recorder::get().is_some_and(|recorder| std::ptr::eq(recorder, self.recorder))
    }
}

/// OnLoad: saves the originals, puts the hooks in. Once per life of the runtime; a second call changes nothing.
///
/// # Safety
/// `table` is the live table of the calling runtime.
pub(crate) unsafe fn load(table: *mut ApiTable) {
    let Some(recorder) = recorder::get() else { return };
    // SAFETY: the caller's promise.
    let Some(root) = (unsafe { table.as_ref() }) else { return };
    // SAFETY: members of the live root table.
    let (core, amd) = unsafe { (Table::new(root.core), Table::new(root.amd_ext)) };
    if table::address(core, core_entry::QUEUE_CREATE) == queue::create as *const () as usize {
        return;
    }
    // SAFETY: the root table vouches for its member; a null one has no functions and is refused below.
    let amd_size = unsafe { root.amd_ext.as_ref() }.map_or(0, |version| version.minor_id);
    let entry = AmdEntry::of(amd_size);
    // SAFETY: tables of this runtime, layout chosen by its size.
    let originals = match unsafe { Originals::read(core, amd, &entry) } {
        Ok(originals) => originals,
        Err(missing) => {
            log::problem(&format!("this HSA runtime has no {missing}: kernels and copies are not recorded"));
            return;
        }
    };
    let hsa: &'static Hsa = Box::leak(Box::new(Hsa {
        gpus: Gpus::find(&originals),
        queues: Queues::default(),
        app_signals: AppSignals::default(),
        completion: Completion::default(),
        clock: time::SystemClock::measure(&originals),
        alive: AtomicBool::new(true),
        small_queues_abort: root.version.major_id < 2,
        event_thread: AtomicU32::new(0),
        originals,
        recorder,
    }));
    HSA.store(std::ptr::from_ref(hsa).cast_mut(), Ordering::Release);
    // Copies carry no times unless somebody asked for them; HIP does not in every version.
    // SAFETY: an original of this runtime.
    unsafe { (hsa.originals.async_copy_enable)(true) };
    find_event_thread(hsa);
    let core_hooks = [
        (core_entry::QUEUE_CREATE, queue::create as *const () as usize),
        (core_entry::QUEUE_DESTROY, queue::destroy as *const () as usize),
        (core_entry::SIGNAL_DESTROY, app_signal::destroy as *const () as usize),
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
    let mut amd_hooks = vec![
        (entry.set_profiler_enabled, queue::set_profiler_enabled as *const () as usize),
        (entry.async_copy_enable, copy::async_copy_enable as *const () as usize),
        (entry.memory_async_copy, copy::async_copy as *const () as usize),
        (entry.memory_async_copy_rect, copy::async_copy_rect as *const () as usize),
    ];
    if let (Some(at), Some(_)) =
        (entry.memory_async_copy_on_engine, hsa.originals.memory_async_copy_on_engine)
    {
        amd_hooks.push((at, copy::async_copy_on_engine as *const () as usize));
    }
    // SAFETY: inside OnLoad, hooks of the entries' types.
    unsafe {
        table::patch(core, &core_hooks);
        table::patch(amd, &amd_hooks);
    }
    log::info(|| {
        format!("HSA runtime found: {} GPU(s), extension table of {amd_size} bytes", hsa.gpus.len())
    });
}

/// Finds out which thread the runtime calls signal handlers on, by a signal of its own.
fn find_event_thread(hsa: &'static Hsa) {
    unsafe extern "C" fn here(_: i64, hsa: *mut c_void) -> bool {
        // SAFETY: the object given below, which lives for ever.
        let hsa = unsafe { &*hsa.cast_const().cast::<Hsa>() };
        crate::guard::guard((), || hsa.event_thread.store(crate::thread::tid(), Ordering::Relaxed));
        false
    }
    let mut signal = Signal(0);
    // SAFETY: originals of this runtime, which is initialised but for its tools. The runtime keeps a signal with a handler
    // until that has run.
    unsafe {
        if (hsa.originals.signal_create)(1, 0, std::ptr::null(), &mut signal) == SUCCESS {
            let data = std::ptr::from_ref(hsa).cast_mut().cast();
            (hsa.originals.signal_async_handler)(signal, CONDITION_LT, 1, here, data);
            (hsa.originals.signal_subtract)(signal, 1);
            (hsa.originals.signal_destroy)(signal);
        }
    }
}

/// OnUnload: waits for what is still running (up to 2 s), then lets go of the runtime.
pub(crate) fn unload() {
    finish(Duration::from_secs(2));
}

/// No more operations will be timed: records those that end within `deadline`, counts the rest. Later calls do nothing.
pub(crate) fn finish(deadline: Duration) {
    let Some(hsa) = get().filter(|hsa| hsa.usable()) else { return };
    hsa.completion.finish(deadline);
    hsa.queues.retire(hsa);
    hsa.alive.store(false, Ordering::Release);
}

/// Makes records of everything that has completed by now, waiting up to `deadline` for the thread that does it.
pub(crate) fn collect(deadline: Duration) {
    if let Some(hsa) = get().filter(|hsa| hsa.usable()) {
        hsa.completion.collect(deadline);
    }
}

/// The GPUs of the node that this process sees.
pub(crate) fn gpus() -> &'static [Gpu] {
    get().map_or(&[], |hsa| hsa.gpus.all())
}

/// Index among the GPUs of the node of the agent with that handle; nothing for a CPU.
pub(crate) fn gpu_of(agent: u64) -> Option<u32> {
    get()?.gpus.of(abi::Agent(agent)).map(|gpu| gpu.index)
}

/// `loaded`: the runtime offered its table; `mapped`: it is in the process but never did; `no`: it is not there.
pub(crate) fn presence() -> &'static str {
    if get().is_some() {
        return "loaded";
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if maps.contains("libhsa-runtime64") { "mapped" } else { "no" }
}
