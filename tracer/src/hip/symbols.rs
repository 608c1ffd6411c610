//! Door D: librpd_hip.so, which has HIP's names, asks here what to call for each.
//!
//! Whichever of the doors comes first has the calls: a function that HIP's callbacks or its table already tell of is not wrapped again.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::wrapper::{Target, Wrapper};
use super::{registered, table};
use crate::recorder;

static OPEN: AtomicBool = AtomicBool::new(false);

/// Whether HIP's functions are called by their symbols, and recorded so.
pub(super) fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed)
}

/// What is to be called for `name`, whose own function in HIP is `original`.
pub(crate) fn function(name: &CStr, original: usize) -> usize {
    let (Some(recorder), Ok(name)) = (recorder::get(), name.to_str()) else { return original };
    if registered() || table::is_open() {
        return original;
    }
    let wrapper = Wrapper::of(name, Target::Symbols);
    let Some(wrapper) = wrapper.filter(|wrapper| recorder.config.hip_apis.contains(wrapper.recorded_as))
    else {
        return original;
    };
    wrapper.keep(original);
    OPEN.store(true, Ordering::Relaxed);
    wrapper.address
}
