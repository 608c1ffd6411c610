//! What CUPTI calls back for: calls whose arguments are asked for, calls that have waited for a stream or for a context, and modules that were
//! loaded, whose code is to be saved. Calls are looked at as they return.

use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;

use rpd_preload::lock::lock;

use super::abi::{self, CallbackData, ModuleData, ResourceData, status};
use super::attach;
use super::detail::{Behind, WAITS_FOR_CONTEXT, WAITS_FOR_STREAM};
use super::functions::{self, Functions, WaitsFor};
use super::library::Cupti;
use super::record::CallDetail;
use super::{arguments, modules};
use crate::guard::guard;

/// Lists of what came, by threads: they hardly wait for each other.
const LISTS: usize = 16;
/// Calls in a list at most, should nobody come for them.
const MOST: usize = 1 << 16;

/// Null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are no addresses of streams.
const LAST_DEFAULT_STREAM: usize = 2;

static CAME: [Mutex<Vec<(u32, Behind)>>; LISTS] = [const { Mutex::new(Vec::new()) }; LISTS];

/// Asks for what is wanted. What CUPTI refuses is not reported: calls then have no arguments.
pub(super) fn enable(cupti: &Cupti, subscriber: *mut c_void, functions: &Functions) {
    // What came last before CUPTI was given back: it may number calls anew.
    take(|_, _| {});
    // SAFETY: the subscriber that was given just now, and numbers that CUPTI has names for.
    let on = |domain: u32, number: u32| unsafe {
        (cupti.enable_callback)(1, subscriber, domain, number) == status::SUCCESS
    };
    for (domain, numbers) in abi::DOMAINS.into_iter().zip(functions.looked_at()) {
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
    if data.site != abi::RETURNS {
        return;
    }
    let Some(attached) = attach::current() else { return };
    let Some(function) = attached.functions.get(is_driver, number) else { return };
    // SAFETY: where a call returns, this is its status.
    let succeeded = data.returned.is_null() || unsafe { *data.returned } == 0;
    let behind = match (function.waits_for, function.arguments) {
        // SAFETY: the caller's promise; the function is the one of the call, which has waited.
        (Some(waits_for), _) if succeeded => unsafe { waited(attached.cupti, waits_for, data) },
        (None, Some(known)) if !data.parameters.is_null() => {
            let mut bytes = [0; arguments::MOST];
            // SAFETY: CUPTI's structure of the arguments of that function.
            let end = unsafe { arguments::copy(known, data.parameters, succeeded, &mut bytes) };
            Some(Behind::arguments(functions::index(is_driver, number), &bytes[..end]))
        }
        _ => None,
    };
    let Some(behind) = behind else { return };
    let list = rpd_transport::thread::tid() as usize % LISTS;
    let mut list = lock(&CAME[list]);
    if list.len() < MOST {
        list.push((data.correlation, behind));
    }
}

/// What a call has waited for, with the numbers that CUPTI's records have of it.
///
/// # Safety
/// As CUPTI has filled it in for a call, without failure, of a function that waits so.
unsafe fn waited(cupti: &Cupti, waits_for: WaitsFor, data: &CallbackData) -> Option<Behind> {
    let context = data.context_uid;
    let detail = match waits_for {
        WaitsFor::Context => {
            CallDetail::Synchronization { kind: WAITS_FOR_CONTEXT, context, stream: 0, event: 0 }
        }
        WaitsFor::Stream { per_thread } => {
            let ask = cupti.get_stream_id.filter(|_| !data.parameters.is_null())?;
            let _asking = attach::Asking::begin()?;
            let mut stream = 0;
            // SAFETY: the stream is the function's argument, and exists: the call has just waited for it. A place for the number.
            let answer = unsafe {
                let handle = data.parameters.cast::<*mut c_void>().read_unaligned();
                // A stream may be of another context than the thread's; a default stream is that of the thread's.
                let context =
                    if handle.addr() > LAST_DEFAULT_STREAM { ptr::null_mut() } else { data.context };
                ask(context, handle, per_thread.into(), &raw mut stream)
            };
            if answer != status::SUCCESS {
                return None;
            }
            CallDetail::Synchronization { kind: WAITS_FOR_STREAM, context, stream, event: 0 }
        }
    };
    Some(Behind::detail(&detail))
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
