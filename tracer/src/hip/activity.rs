//! HIP up to 5.2: one callback per function, `hipRegisterActivityCallback` (HIP 5.2 hip_prof_api.h), and a pair of them for
//! commands, `hipInitActivityCallback` (ROCclr 5.2 activity.hpp).
//!
//! At the beginning of a call HIP asks the function's callback for a place, puts the arguments there, and calls it again, with the
//! registered argument, when the call is about to return. Where it answered null the second call does not come. As long as any is
//! registered HIP takes times of every command: its dispatches then carry completion signals.

use std::ffi::c_void;
use std::ptr;

use super::command::{self, Completed};
use super::{Door, call, device, door};
use crate::guard::guard;
use crate::recorder;

/// Tells HIP's second call from its first.
static EXIT: u8 = 0;

/// Commands that are kernels, and all others (HIP 5.2 hip_activity.cpp).
const COMMANDS: [u32; 2] = [0, 1];

/// A completed command (ROCclr 5.2 prof_protocol.h, activity_record_t).
#[repr(C)]
struct Record {
    domain: u32,
    kind: u32,
    operation: u32,
    /// HIP's own number of the command, as it told it when the command was created.
    id: u64,
    begin: u64,
    end: u64,
    device: i32,
    queue: u64,
    bytes: usize,
}

/// Registers the callback for every function that `door` records; whether there are any.
pub(super) fn register_calls(door: &Door) -> bool {
    let Some(register) = door.library.register_activity.filter(|_| door.data_size <= 8 * call::ROOM) else {
        return false;
    };
    let mut registered = 0;
    for id in door.recorded_ids() {
        let argument = (&raw const EXIT).cast_mut().cast::<c_void>();
        // SAFETY: the callback has the type that HIP calls it with, and lives as long as the process.
        let status = unsafe { register(id, on_call as *mut c_void, argument) };
        registered += u32::from(status == 0);
        let launches = door.api(id).is_some_and(|(_, api)| api.is_launch());
        if let Some(register) = door.library.register_api.filter(|_| launches && door.times_commands) {
            // SAFETY: as above.
            unsafe { register(id, on_arguments as *mut c_void, ptr::null_mut()) };
        }
    }
    registered > 0
}

/// Asks for every command; whether HIP has that.
pub(super) fn register_commands(door: &Door) -> bool {
    let (Some(init), Some(enable), Some(register)) =
        (door.library.init_commands, door.library.enable_commands, door.library.register_activity)
    else {
        return false;
    };
    // SAFETY: callbacks of the types that HIP calls them with, which live as long as the process; they are set before the commands
    // that use them are enabled. HIP takes times only while some function has a callback.
    unsafe {
        init(created as *mut c_void, completed as *mut c_void, ptr::null_mut());
        register(1, on_call as *mut c_void, (&raw const EXIT).cast_mut().cast());
        COMMANDS.into_iter().all(|command| enable(command, true))
    }
}

unsafe extern "C" fn on_call(
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

/// The arguments of a launch are there; HIP calls this a second time at its end.
unsafe extern "C" fn on_arguments(_: u32, _: u32, _: *const c_void, _: *mut c_void) {
    guard((), call::find_kernel);
}

/// A command is created, on the thread of the call that creates it.
unsafe extern "C" fn created(id: u64) {
    guard((), || {
        if recorder::get().is_some_and(|recorder| recorder.switch.is_on()) {
            command::remember(id, call::created());
        }
    });
}

/// A command has completed.
unsafe extern "C" fn completed(_: u32, record: *const Record, _: *mut c_void) {
    guard((), || {
        // SAFETY: HIP's record, valid during the call.
        let record = unsafe { &*record };
        let (Some(recorder), Some(created)) = (recorder::get(), command::recall(record.id)) else { return };
        let completed = Completed {
            kind: record.kind,
            gpu: device::gpu(record.device),
            queue: record.queue as u32,
            times: (record.begin, record.end),
            bytes: record.bytes as u64,
            sequence: record.id,
            kernel: None,
        };
        command::record(recorder, &completed, created);
    });
}
