//! Symbol interposition: librpd_hip.so, which has HIP's names, asks here what to call for each.
//!
//! The answer is a wrapper whether or not calls are observed so: that can then change at any time, and a wrapper that is not in use calls
//! HIP's function.

use std::ffi::CStr;

use rpd_transport::log;
use rpd_transport::recorder;

use super::config::{self, HipCalls};
use super::library::version;
use super::library::{self, LoadedHip};
use super::state::{self, HipEvent, HipState};
use super::wrapper::{OriginalsOf, Wrapper};
use crate::gpu::timing::{self, Timing};

/// What is to be called for `name`, whose own function in HIP is `original`.
pub(crate) fn function(name: &CStr, original: usize) -> usize {
    let (Some(_), Ok(name)) = (recorder::get(), name.to_str()) else { return original };
    let wrapper = Wrapper::of(name, OriginalsOf::Symbols);
    let Some(wrapper) = wrapper.filter(|wrapper| config::get().apis.contains(wrapper.recorded_as)) else {
        return original;
    };
    wrapper.keep(original);
    // HIP may not be initialised yet; this first call is to be recorded all the same.
    if state::current() == HipState::Unknown {
        has_calls(LoadedHip::find().as_ref());
    }
    wrapper.address
}

/// Whether calls of this HIP are recorded here, decided when it is asked first. No call of HSA: it may be being initialised.
pub(super) fn has_calls(library: Option<&LoadedHip>) -> bool {
    if state::current() == HipState::Unknown {
        // Another thread that asks at the same time finds the same.
        state::apply(HipEvent::SymbolsDecided(is_better(library)));
    }
    state::is_by_symbols()
}

/// Whether symbols are the better way to observe calls: HIP up to 5.2 times every command while it has callbacks, at the program's cost,
/// and of versions that nobody knows the callbacks cannot be read. A recorder that comes later than HIP has missed callers who know their
/// functions.
fn is_better(library: Option<&LoadedHip>) -> bool {
    let is_there = rpd_preload::library::is_loaded("librpd_hip.so");
    match config::get().calls {
        Some(HipCalls::Callbacks) => false,
        Some(HipCalls::Symbols) => {
            if !is_there {
                log::problem(
                    "RPDT_HIP_CALLS=symbols needs librpd_hip.so in LD_PRELOAD; HIP's callbacks are used",
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
