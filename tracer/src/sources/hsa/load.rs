//! The runtime offers its tables: the originals are kept and the hooks put in, once in each of the runtime's lives.

use std::sync::atomic::{AtomicBool, AtomicU32};

use rpd_transport::{log, recorder};

use super::app_signal::{self, AppSignals};
use super::completion::Completion;
use super::queue::{self, Queues};
use super::state::{self, Hsa, get};
use super::table::{self, AmdEntry, LiveTable, Originals, core_entry};
use super::{api_calls, code_object, copy, life, queue_descriptor, reservation};
use crate::gpu::timing;
use crate::hsa_runtime::abi::ApiTable;
use crate::hsa_runtime::code::CodeFunctions;
use crate::hsa_runtime::inquiry::Inquiry;
use crate::hsa_runtime::known;
use crate::hsa_runtime::memory::MemoryFunctions;
use crate::hsa_runtime::own_queue::QueueFunctions;
use crate::library_call::is_trampoline;

/// How the tables of the runtime were had.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TableOrigin {
    /// OnLoad: the runtime will call OnUnload before it shuts down.
    Tool,
    /// rocprofiler_set_api_table: nobody says when the runtime shuts down.
    Register,
}

/// Saves the originals, puts the hooks in; true if they are in. Once per life of the runtime: a second call, whatever the
/// origin, changes nothing.
///
/// # Safety
/// `table` is the live table of the calling runtime, which offers it to tools at this moment.
pub(super) unsafe fn load(table: *mut ApiTable, origin: TableOrigin) -> bool {
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
    let (core, amd) = unsafe { (LiveTable::new(root.core), LiveTable::new(root.amd_ext)) };
    let freeze = table::address(core, core_entry::EXECUTABLE_FREEZE);
    if freeze == code_object::freeze as *const () as usize || is_trampoline(freeze) {
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
        known: known::offered(&Inquiry::from(&originals)),
        code: CodeFunctions::from(&originals),
        memory: MemoryFunctions::from(&originals),
        own_queues: QueueFunctions::from(&originals),
        queues: Queues::default(),
        app_signals: AppSignals::default(),
        completion: Completion::default(),
        alive: AtomicBool::new(true),
        small_queues_abort: root.version.major_id < 2,
        event_thread: AtomicU32::new(0),
        event_thread_asked: AtomicBool::new(false),
        core: root.core as usize,
        originals,
        recorder,
    }));
    state::put(hsa);
    let timed = timing::by_hsa();
    // Copies carry no times unless somebody asked for them; HIP does not in every version.
    // SAFETY: an original of this runtime.
    unsafe { (hsa.originals.async_copy_enable)(true) };
    // SAFETY: tables offered at this moment, hooks of the entries' types.
    unsafe {
        table::patch(core, &core_hooks(origin, timed));
        table::patch(amd, &amd_hooks(&entry, &hsa.originals, timed));
        api_calls::patch(core, amd);
    }
    log::info(|| {
        format!("HSA runtime found: {} GPU(s), extension table of {amd_size} bytes", hsa.known.gpus.len())
    });
    true
}

/// What replaces which entry of the core table; `timed`: queues are to be intercepted.
fn core_hooks(origin: TableOrigin, timed: bool) -> Vec<(usize, usize)> {
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
    if origin == TableOrigin::Register {
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
        (entry.set_cu_mask, queue::set_cu_mask as *const () as usize),
    ]);
    if let (Some(at), Some(_)) = (entry.memory_async_copy_on_engine, originals.memory_async_copy_on_engine) {
        hooks.push((at, copy::async_copy_on_engine as *const () as usize));
    }
    if let (Some(at), Some(_)) = (entry.memory_async_batch_copy, originals.memory_async_batch_copy) {
        hooks.push((at, copy::async_batch_copy as *const () as usize));
    }
    if let (Some(at), Some(_)) = (entry.counted_queue_acquire, originals.counted_queue_acquire) {
        hooks.push((at, queue::counted_acquire as *const () as usize));
    }
    if let (Some(at), Some(_)) = (entry.queue_create, originals.create_described) {
        hooks.push((at, queue_descriptor::create as *const () as usize));
    }
    hooks
}
