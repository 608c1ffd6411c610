//! What CUPTI calls back for: calls that return, whose arguments are asked for, and modules that were loaded, whose code is to be saved.
//! Without either it calls back for nothing.

use std::ffi::c_void;
use std::sync::Mutex;

use rpd_preload::lock::lock;

use super::abi::{self, CallbackData, ModuleData, ResourceData, status};
use super::attach;
use super::detail::Behind;
use super::functions::Functions;
use super::library::Cupti;
use super::{arguments, modules};
use crate::guard::guard;

/// Lists of what came, by threads: they hardly wait for each other.
const LISTS: usize = 16;
/// Calls in a list at most, should nobody come for them.
const MOST: usize = 1 << 16;

static CAME: [Mutex<Vec<(u32, Behind)>>; LISTS] = [const { Mutex::new(Vec::new()) }; LISTS];

/// Asks for what is wanted. What CUPTI refuses is not told: calls then have no arguments.
pub(super) fn enable(cupti: &Cupti, subscriber: *mut c_void, functions: &Functions) {
    // SAFETY: the subscriber that was given just now, and numbers that CUPTI has names for.
    let on = |domain: u32, number: u32| unsafe {
        (cupti.enable_callback)(1, subscriber, domain, number) == status::SUCCESS
    };
    for (domain, numbers) in abi::DOMAINS.into_iter().zip(functions.with_arguments()) {
        numbers.into_iter().for_each(|number| {
            on(domain, number);
        });
    }
    if modules::are_saved() {
        on(abi::RESOURCES, abi::MODULE_LOADED);
    }
}

/// Those that came since this was last asked, to `each`.
pub(super) fn take(mut each: impl FnMut(u32, Behind)) {
    for list in &CAME {
        let came = std::mem::take(&mut *lock(list));
        came.into_iter().for_each(|(call, behind)| each(call, behind));
    }
}

/// CUpti_CallbackFunc.
pub(super) unsafe extern "C-unwind" fn called(_: *mut c_void, domain: u32, number: u32, data: *const c_void) {
    guard((), || {
        if data.is_null() {
            return;
        }
        if domain == abi::RESOURCES {
            if number == abi::MODULE_LOADED {
                // SAFETY: what CUPTI hands over for this number, while this function runs.
                unsafe { module(&*data.cast::<ResourceData>()) };
            }
            return;
        }
        // SAFETY: what CUPTI hands over for calls, while this function runs.
        unsafe { returned(domain == abi::DOMAINS[0], number, &*data.cast::<CallbackData>()) };
    });
}

/// # Safety
/// As CUPTI has filled it in.
unsafe fn returned(is_driver: bool, number: u32, data: &CallbackData) {
    if data.site != abi::RETURNS || data.parameters.is_null() {
        return;
    }
    let Some(attached) = attach::current() else { return };
    let Some(known) = attached.functions.get(is_driver, number).and_then(|function| function.arguments)
    else {
        return;
    };
    let mut bytes = [0; arguments::MOST];
    // SAFETY: where a call returns, this is its status; CUPTI's structure of the arguments of that function.
    let end = unsafe {
        let succeeded = data.returned.is_null() || *data.returned == 0;
        arguments::copy(known, data.parameters, succeeded, &mut bytes)
    };
    let list = rpd_transport::thread::tid() as usize % LISTS;
    let mut list = lock(&CAME[list]);
    if list.len() < MOST {
        list.push((data.correlation, Behind::arguments(&bytes[..end])));
    }
}

/// # Safety
/// As CUPTI has filled it in.
unsafe fn module(data: &ResourceData) {
    // SAFETY: the caller's promise: for modules this is what the descriptor leads to.
    let Some(module) = (unsafe { data.descriptor.cast::<ModuleData>().as_ref() }) else { return };
    if !module.cubin.is_null() && module.size > 0 {
        // SAFETY: the module's bytes, which are there while this function runs.
        modules::loaded(unsafe { std::slice::from_raw_parts(module.cubin, module.size) });
    }
}
