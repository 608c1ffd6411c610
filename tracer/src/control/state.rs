//! The recorder's state, for librpd_remote.so and whoever else controls a recording (include/rpd_tracer.h).

use std::ffi::c_char;
use std::os::unix::ffi::OsStrExt;

use rpd_preload::lock::lock;
use rpd_transport::log;
use rpd_transport::recorder;

use crate::guard::guard;
use crate::process::finish;

/// `struct rpd_state` of include/rpd_tracer.h.
#[repr(C)]
pub struct RpdState {
    /// Bytes of the caller's structure.
    size: u32,
    /// 1 while it records, otherwise 0.
    recording: u32,
    /// Number of the recording in the file; -1 before there is a file.
    session: i64,
    /// Calls, operations and markers that are in the file.
    events: u64,
    lost: u64,
    /// Complaints so far, whether they were printed or not.
    problems: u64,
    /// The trace, NUL-terminated, cut off where it is longer.
    file: [c_char; 4096],
    /// The last complaint, NUL-terminated, cut off where it is longer.
    problem: [c_char; 512],
}

/// Fills in `state`; leaves it alone where nothing can be recorded or it is smaller than a state.
///
/// # Safety
/// `state` is null or points to as many writable bytes as its first member says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpd_state(state: *mut RpdState) {
    guard((), || {
        // SAFETY: the caller's promise; the size is looked at before anything else.
        let fits = !state.is_null() && unsafe { (*state).size } as usize >= size_of::<RpdState>();
        let Some(recorder) = recorder::get().filter(|_| fits) else { return };
        // SAFETY: as large as a State, by the caller's promise.
        let state = unsafe { &mut *state };
        let progress = recorder.requests.progress.get();
        let (session, events, file) =
            progress.unwrap_or_else(|| (-1, 0, lock(&recorder.filename).expanded()));
        state.recording = recorder.switch.is_on().into();
        (state.session, state.events) = (session, events);
        state.lost = recorder.counters.lost().records();
        put(&mut state.file, file.as_os_str().as_bytes());
        let (problems, last) = log::problems();
        state.problems = problems;
        put(&mut state.problem, last.as_bytes());
    });
}

fn put(place: &mut [c_char], text: &[u8]) {
    place.fill(0);
    let room = place.len() - 1;
    for (place, byte) in place[..room].iter_mut().zip(text) {
        *place = c_char::from_ne_bytes([*byte]);
    }
}

/// Makes the file now instead of with the first record; returns when it is there or cannot be made, or after 10 s.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpdopen() {
    guard((), || {
        if let Some(recorder) = recorder::get() {
            recorder.requests.open(recorder, finish::FLUSH_DEADLINE);
        }
    });
}
