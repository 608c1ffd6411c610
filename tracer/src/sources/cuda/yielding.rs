//! The recorder leaves CUPTI to another profiler of the process that asks for it (RPDT_CUPTI_YIELD=1), because CUPTI serves one at a time.
//!
//! That profiler calls cuptiSubscribe. The recorder changes the tables of the libraries that are loaded when recording begins, so that their
//! calls come here. It does not see a profiler that finds the function by its name.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use rpd_preload::got::{self, GotEntry};

use super::abi::{CuptiStatus, SubscriberParameters, status};
use super::library::Cupti;
use super::{attach, collector, config};
use crate::guard::guard;

/// How long the other profiler may be held up until all that CUPTI has is recorded.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether that is so.
const GLANCE: Duration = Duration::from_millis(1);

/// Has calls of the program's libraries come here, where that is asked for.
pub(super) fn watch(cupti: &Cupti) {
    if !config::get().yields {
        return;
    }
    let first = GotEntry {
        name: c"cuptiSubscribe",
        theirs: cupti.subscribe as *const () as usize,
        ours: subscribe as *const () as usize,
    };
    let second = cupti.subscribe_v2.map(|theirs| GotEntry {
        name: c"cuptiSubscribe_v2",
        theirs: theirs as *const () as usize,
        ours: subscribe_v2 as *const () as usize,
    });
    let replacements: Vec<GotEntry> = [Some(first), second].into_iter().flatten().collect();
    got::replace(&replacements);
}

fn step_aside() {
    if attach::current().is_none() {
        return;
    }
    attach::leave_to_another();
    let begin = Instant::now();
    collector::collect(PATIENCE);
    while attach::current().is_some() && begin.elapsed() < PATIENCE {
        std::thread::park_timeout(GLANCE);
    }
}

/// In the place of cuptiSubscribe.
unsafe extern "C-unwind" fn subscribe(
    subscriber: *mut *mut c_void,
    callback: super::abi::Callback,
    data: *mut c_void,
) -> CuptiStatus {
    guard((), step_aside);
    match attach::found() {
        // SAFETY: the function that the program has called, with what it has passed.
        Some((_, cupti)) => unsafe { (cupti.subscribe)(subscriber, callback, data) },
        None => status::MULTIPLE_SUBSCRIBERS,
    }
}

/// In the place of cuptiSubscribe_v2.
unsafe extern "C-unwind" fn subscribe_v2(
    subscriber: *mut *mut c_void,
    callback: super::abi::Callback,
    data: *mut c_void,
    parameters: *mut SubscriberParameters,
) -> CuptiStatus {
    guard((), step_aside);
    match attach::found().and_then(|(_, cupti)| cupti.subscribe_v2) {
        // SAFETY: the function that the program has called, with what it has passed.
        Some(theirs) => unsafe { theirs(subscriber, callback, data, parameters) },
        None => status::MULTIPLE_SUBSCRIBERS,
    }
}
