//! HIP up to 5.2: one callback per function, `hipRegisterActivityCallback` (HIP 5.2 hip_prof_api.h).
//!
//! At the beginning of a call HIP asks it for a place, puts the arguments there, and calls it again, with the registered argument,
//! when the call is about to return. Where it answered null the second call does not come. As long as any is registered HIP takes
//! times of every command: its dispatches then carry completion signals.

use std::ffi::c_void;
use std::ptr;

use super::{Door, call, door};
use crate::guard::guard;

/// Tells HIP's second call from its first.
static EXIT: u8 = 0;

/// Registers the callback for every function that `door` records.
pub(super) fn register(door: &Door) -> bool {
    let Some(register) = door.library.register_activity.filter(|_| door.data_size <= 8 * call::ROOM) else {
        return false;
    };
    let mut registered = 0;
    for id in door.recorded_ids() {
        let argument = (&raw const EXIT).cast_mut().cast::<c_void>();
        // SAFETY: the callback has the type that HIP calls it with, and lives as long as the process.
        let status = unsafe { register(id, callback as *mut c_void, argument) };
        registered += u32::from(status == 0);
    }
    registered > 0
}

unsafe extern "C" fn callback(
    id: u32,
    _: *mut c_void,
    _: *const c_void,
    argument: *mut c_void,
) -> *mut c_void {
    guard(ptr::null_mut(), || {
        if argument.is_null() {
            let api = door().and_then(|door| door.api(id));
            api.map_or(ptr::null_mut(), |(index, api)| call::enter(index, api, ptr::null_mut()).cast())
        } else {
            call::exit();
            ptr::null_mut()
        }
    })
}
