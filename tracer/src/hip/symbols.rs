//! Door D: librpd_hip.so, which has HIP's names, asks here what to call for each.
//!
//! The answer is a wrapper whether or not this is the door by which calls are recorded: that can then be said at any time, and a wrapper
//! that is not in use calls HIP's function.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use rpd_transport::log;
use rpd_transport::recorder;

use super::library::{self, Library};
use super::wrapper::{Target, Wrapper};
use super::{Way, config, table, version};
use crate::gpu::timing::{self, Timing};

/// Whether calls are recorded here: not yet known, no, yes.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const CLOSED: u8 = 1;
const OPEN: u8 = 2;

/// Whether HIP's functions are called by their symbols, and recorded so.
#[inline]
pub(super) fn is_open() -> bool {
    STATE.load(Ordering::Relaxed) == OPEN
}

/// Calls come by another door.
pub(super) fn close() {
    STATE.store(CLOSED, Ordering::Relaxed);
}

/// HIP's callbacks are gone: calls are recorded here from now on, if they come here. Whether they do.
pub(super) fn take_over() -> bool {
    let is_there = rpd_preload::library::is_loaded("librpd_hip.so");
    STATE.store(if is_there { OPEN } else { CLOSED }, Ordering::Relaxed);
    is_there
}

/// What is to be called for `name`, whose own function in HIP is `original`.
pub(crate) fn function(name: &CStr, original: usize) -> usize {
    let (Some(_), Ok(name)) = (recorder::get(), name.to_str()) else { return original };
    let wrapper = Wrapper::of(name, Target::Symbols);
    let Some(wrapper) = wrapper.filter(|wrapper| config::get().apis.contains(wrapper.recorded_as)) else {
        return original;
    };
    wrapper.keep(original);
    // HIP may not be initialised yet; this first call is to be recorded all the same.
    if STATE.load(Ordering::Relaxed) == UNKNOWN {
        has_calls(Library::find().as_ref());
    }
    wrapper.address
}

/// Whether calls of this HIP are recorded here, decided when it is asked first. No call of HSA: it may be being initialised.
pub(super) fn has_calls(library: Option<&Library>) -> bool {
    let state = if is_better(library) && !table::is_open() { OPEN } else { CLOSED };
    // Another thread that asks at the same time finds the same.
    let _ = STATE.compare_exchange(UNKNOWN, state, Ordering::Relaxed, Ordering::Relaxed);
    is_open()
}

/// Whether this door is the better one: HIP up to 5.2 times every command while it has callbacks, at the program's cost, and of versions
/// that nobody knows the callbacks cannot be read. A recorder that comes later than HIP has missed callers who know their functions.
fn is_better(library: Option<&Library>) -> bool {
    let is_there = rpd_preload::library::is_loaded("librpd_hip.so");
    match config::get().calls {
        Some(Way::Callbacks) => false,
        Some(Way::Symbols) => {
            if !is_there {
                log::problem(
                    "RPDT_HIP_DOOR=symbols needs librpd_hip.so in LD_PRELOAD; HIP's callbacks are used",
                );
            }
            is_there
        }
        None => {
            let calls_back =
                library.is_some_and(|hip| hip.register_tracer.is_some() && version(hip).is_some());
            is_there && !library::came_first() && timing::wanted() != Some(Timing::Hip) && !calls_back
        }
    }
}
