//! A runtime that was initialised before the recorder came, and never offers its tables.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rpd_preload::threads;
use rpd_transport::log;

use super::abi::{NoArguments, SUCCESS, SystemGetInfo, system_info};
use super::inquiry::{Inquiry, exported};
use super::known;
use crate::guard::guard;

/// How long a thread waits for another that initialises the runtime.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often one of the two threads looks how far the other is.
const GLANCE: Duration = Duration::from_micros(200);

/// Whether the runtime is initialised and has not offered its tables: it was there before the recorder. Waits for a thread that is
/// initialising it, for a while. From now on it takes times of copies.
pub(crate) fn look() -> bool {
    let find = |inquiry: Inquiry| while_initialised(|| known::found_late(&inquiry));
    !known::is_offered() && (known::is_late() || Inquiry::exported().is_some_and(find))
}

/// As [`look`], but leaves the runtime as it is: nothing can be recorded by it.
pub(crate) fn is_there() -> bool {
    !known::is_offered()
        && (known::is_late() || Inquiry::exported().is_some_and(|_| while_initialised(|| {})))
}

/// Runs `act`, if the runtime is initialised and has not offered its tables; whether it did.
///
/// While another thread is in the first hsa_init almost nothing may be asked of the runtime (ROCr 5.2 aborts, or reads what is being
/// written), and it does not say that it is so. Only hsa_init itself waits for the other. So a thread of ours calls it and holds the
/// runtime for us. It may have to wait for longer than we do, who may hold locks that the other thread needs: then it has HIP looked
/// for again itself.
fn while_initialised(act: impl FnOnce()) -> bool {
    let Some(runtime) = RuntimeHold::exported().filter(RuntimeHold::is_begun) else { return false };
    let holder: &'static Holder = Box::leak(Box::new(Holder { runtime, state: AtomicU32::new(WAITS) }));
    // No closure: where the recorder is being loaded, a new thread that reaches for thread-local data of it waits until that is done.
    let argument = std::ptr::from_ref(holder).cast_mut().cast();
    // SAFETY: `hold` expects a holder, and this one is never freed.
    if let Err(error) = unsafe { threads::spawn_bare(c"rpd-runtime", hold, argument) } {
        log::problem(&format!("cannot start a thread ({error}): kernels and copies are not recorded"));
        return false;
    }
    let begin = Instant::now();
    while holder.state.load(Ordering::Acquire) == WAITS {
        let is_over = known::is_offered() || begin.elapsed() > PATIENCE;
        if is_over && holder.goes(WAITS, ABANDONED) {
            return false;
        }
        std::thread::park_timeout(GLANCE);
    }
    /// Also when `act` panics.
    struct LetGo(&'static Holder);
    impl Drop for LetGo {
        fn drop(&mut self) {
            self.0.state.store(LET_GO, Ordering::Release);
        }
    }
    let is_held = holder.state.load(Ordering::Acquire) == HOLDS;
    let _let_go = LetGo(holder);
    let is_late = is_held && !known::is_offered();
    if is_late {
        act();
    }
    is_late
}

/// A thread of ours that keeps the runtime initialised. A few bytes, never freed: there are as many as starts before HIP is found.
struct Holder {
    runtime: RuntimeHold,
    state: AtomicU32,
}

/// The thread is in hsa_init.
const WAITS: u32 = 0;
/// The runtime is initialised and stays so.
const HOLDS: u32 = 1;
/// It could not be initialised.
const FAILED: u32 = 2;
/// It is not needed any more.
const LET_GO: u32 = 3;
/// Nobody waits for the thread.
const ABANDONED: u32 = 4;

impl Holder {
    fn goes(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The thread. Uses nothing of the standard library before somebody may have been kept waiting: see [`while_initialised`].
extern "C" fn hold(holder: *mut c_void) -> *mut c_void {
    // SAFETY: the leaked holder that `while_initialised` passes.
    let holder = unsafe { &*holder.cast_const().cast::<Holder>() };
    // SAFETY: no arguments; may be called at any time. Where the program shuts the runtime down for the last time just before, it is
    // initialised once more, for as long as we hold it.
    let held = unsafe { (holder.runtime.init)() } == SUCCESS;
    if holder.goes(WAITS, if held { HOLDS } else { FAILED }) {
        while holder.state.load(Ordering::Acquire) != LET_GO {
            // SAFETY: plain call, on a thread of ours.
            unsafe { libc::usleep(GLANCE.as_micros() as u32) };
        }
    } else {
        guard((), known::notice);
    }
    if held {
        // SAFETY: takes the call above back.
        unsafe { (holder.runtime.shut_down)() };
    }
    std::ptr::null_mut()
}

/// The functions by which a runtime is kept initialised.
struct RuntimeHold {
    init: NoArguments,
    shut_down: NoArguments,
    system_get_info: SystemGetInfo,
}

impl RuntimeHold {
    fn exported() -> Option<RuntimeHold> {
        // SAFETY: functions of these names have these types (HSA 1.2).
        unsafe {
            Some(RuntimeHold {
                init: exported(c"hsa_init")?,
                shut_down: exported(c"hsa_shut_down")?,
                system_get_info: exported(c"hsa_system_get_info")?,
            })
        }
    }

    /// Whether somebody has called hsa_init, which may not have returned yet.
    fn is_begun(&self) -> bool {
        let mut major = 0u64;
        // SAFETY: the version is a u16 and a constant: it may be asked for at any time.
        let status = unsafe { (self.system_get_info)(system_info::VERSION_MAJOR, (&raw mut major).cast()) };
        status == SUCCESS
    }
}
