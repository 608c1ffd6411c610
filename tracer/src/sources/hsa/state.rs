//! The runtime as the recorder has it: one object for each of its lives, which every hook asks for.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use rpd_transport::recorder::{self, Recorder};
use rpd_transport::{log, thread};

use super::app_signal::AppSignals;
use super::completion::Completion;
use super::queue::Queues;
use super::table::Originals;
use crate::guard::guard;
use crate::hsa_runtime::abi::{CONDITION_LT, SUCCESS, Signal};
use crate::hsa_runtime::code::CodeFunctions;
use crate::hsa_runtime::known::Known;
use crate::hsa_runtime::memory::MemoryFunctions;
use crate::hsa_runtime::own_queue::QueueFunctions;
use crate::intercept;

/// How long to wait for a look at signals that is under way, which takes moments unless the runtime keeps it.
const LEAVE: Duration = Duration::from_secs(5);

static HSA: AtomicPtr<Hsa> = AtomicPtr::new(std::ptr::null_mut());

/// One life of the runtime, from the offer of its table to its shutdown. Never freed: hooks may hold it on any thread.
pub(super) struct Hsa {
    pub(super) originals: Originals,
    pub(super) code: CodeFunctions,
    pub(super) memory: MemoryFunctions,
    pub(super) own_queues: QueueFunctions,
    pub(super) recorder: &'static Recorder,
    pub(super) known: &'static Known,
    pub(super) queues: Queues,
    pub(super) app_signals: AppSignals,
    pub(super) completion: Completion,
    /// Until the runtime shuts down; afterwards it may not be called.
    pub(super) alive: AtomicBool,
    /// The runtime has the bug that aborts on a full intercept queue (ROCr before 6.0).
    pub(super) small_queues_abort: bool,
    /// The thread on which the runtime calls signal handlers; 0 until it is known.
    pub(super) event_thread: AtomicU32,
    /// It has been asked for.
    pub(super) event_thread_asked: AtomicBool,
    /// Address of its core table, by which it is known again.
    pub(super) core: usize,
}

/// A new life begins.
pub(super) fn put(hsa: &'static Hsa) {
    HSA.store(std::ptr::from_ref(hsa).cast_mut(), Ordering::Release);
}

/// The present runtime, also after its shutdown.
pub(super) fn get() -> Option<&'static Hsa> {
    // SAFETY: null or a leaked box.
    unsafe { HSA.load(Ordering::Acquire).as_ref() }
}

impl Hsa {
    /// Whether hooks may do more than pass on: the runtime lives and this is not a forked child.
    pub(super) fn usable(&self) -> bool {
        self.lives() && self.is_own()
    }

    /// The runtime may be called, and memory of its signals is there.
    pub(super) fn lives(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// This is not a forked child, where another thread of the parent may have held any lock at the fork.
    pub(super) fn is_own(&self) -> bool {
        recorder::get().is_some_and(|recorder| std::ptr::eq(recorder, self.recorder))
    }
}

/// Finds out which thread the runtime calls signal handlers on, by a signal of its own, once there is a queue: where the
/// driver's topology cannot be read the runtime starts without any memory, and aborts when it is to make a signal (ROCr 5.2).
pub(super) fn find_event_thread(hsa: &'static Hsa) {
    if hsa.event_thread_asked.swap(true, Ordering::Relaxed) {
        return;
    }
    unsafe extern "C-unwind" fn here(_: i64, hsa: *mut c_void) -> bool {
        // SAFETY: the object given below, which lives for ever.
        let hsa = unsafe { &*hsa.cast_const().cast::<Hsa>() };
        guard((), || hsa.event_thread.store(thread::tid(), Ordering::Relaxed));
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

/// The runtime is about to shut down: waits for what is still running (up to 2 s), then lets go of it.
pub(super) fn unload() {
    finish(Duration::from_secs(2));
    intercept::leave(LEAVE);
}

/// No more operations will be timed: records those that end within `deadline`, counts the rest. Later calls do nothing.
pub(super) fn finish(deadline: Duration) {
    let Some(hsa) = get().filter(|hsa| hsa.usable()) else { return };
    intercept::stop(deadline);
    hsa.completion.finish(deadline);
    intercept::finish();
    hsa.queues.retire(hsa);
    hsa.alive.store(false, Ordering::Release);
    // From here on the thread looks at no signal any more; one look may have begun before.
    if !hsa.completion.has_left(LEAVE) {
        log::info(|| "the GPU runtime shuts down while it is being asked for times".into());
    }
}
