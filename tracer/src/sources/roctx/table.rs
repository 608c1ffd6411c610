//! The tables of rocprofiler-sdk-roctx: markers come through them that do not pass our own symbols, such as those of programs that load the
//! library by dlopen. A call that did pass them comes here a second time, and is only handed on.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use rpd_transport::log;

use crate::sized_table::SizedTable;
use crate::sources::roctx;

/// Copies of the library that can be told apart.
const INSTANCES: usize = 2;

/// Entries that are replaced, by their place in the originals.
#[derive(Clone, Copy)]
enum RoctxEntry {
    Mark,
    Push,
    Pop,
    Start,
    Stop,
    Pause,
    Resume,
}
const ENTRIES: usize = 7;

static ORIGINALS: [[AtomicUsize; ENTRIES]; INSTANCES] =
    [const { [const { AtomicUsize::new(0) }; ENTRIES] }; INSTANCES];

/// Puts our hooks into the core and control tables of copy number `instance`. Names of threads and devices pass: the format has no
/// place for them.
///
/// # Safety
/// Live tables of rocprofiler-sdk-roctx.
pub(super) unsafe fn patch(instance: u64, core: *mut c_void, control: *mut c_void) {
    // SAFETY: the caller's promise.
    let (core, control) = unsafe { (SizedTable::new(core), SizedTable::new(control)) };
    match instance {
        // SAFETY: as above.
        0 => unsafe { patch_as::<0>(core, control) },
        // SAFETY: as above.
        1 => unsafe { patch_as::<1>(core, control) },
        _ => log::problem("a third copy of librocprofiler-sdk-roctx: its markers are not recorded"),
    }
}

/// # Safety
/// As for [`patch`].
unsafe fn patch_as<const I: usize>(core: SizedTable, control: SizedTable) {
    // Offsets in bytes: rocprofiler-sdk-roctx/api_trace.h.
    let hooks = [
        (core, 8, RoctxEntry::Mark, mark::<I> as *const () as usize),
        (core, 16, RoctxEntry::Push, push::<I> as *const () as usize),
        (core, 24, RoctxEntry::Pop, pop::<I> as *const () as usize),
        (core, 32, RoctxEntry::Start, start::<I> as *const () as usize),
        (core, 40, RoctxEntry::Stop, stop::<I> as *const () as usize),
        (control, 8, RoctxEntry::Pause, pause::<I> as *const () as usize),
        (control, 16, RoctxEntry::Resume, resume::<I> as *const () as usize),
    ];
    for (table, offset, entry, hook) in hooks {
        let keep = |original| ORIGINALS[I][entry as usize].store(original, Ordering::Release);
        // SAFETY: a hook of the entry's type.
        unsafe { table.replace(offset, hook, keep) };
    }
}

/// The function that was at `entry`. There is one: a hook is put in after its original was kept.
fn original<F: Copy>(instance: usize, entry: RoctxEntry) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>(), "a function pointer") };
    let address = ORIGINALS[instance][entry as usize].load(Ordering::Acquire);
    // SAFETY: the caller names the type of the entry; not null.
    (address != 0).then(|| unsafe { std::mem::transmute_copy(&address) })
}

unsafe extern "C-unwind" fn mark<const I: usize>(message: *const c_char) {
    let next: Option<roctx::Mark> = original(I, RoctxEntry::Mark);
    match next.filter(|_| roctx::is_handed_on()) {
        // SAFETY: the application's argument.
        Some(next) => unsafe { next(message) },
        // SAFETY: as above.
        None => unsafe { roctx::mark(next, message) },
    }
}

unsafe extern "C-unwind" fn push<const I: usize>(message: *const c_char) -> c_int {
    let next: Option<roctx::RangePush> = original(I, RoctxEntry::Push);
    match next.filter(|_| roctx::is_handed_on()) {
        // SAFETY: the application's argument.
        Some(next) => unsafe { next(message) },
        // SAFETY: as above.
        None => unsafe { roctx::range_push(next, message) },
    }
}

extern "C-unwind" fn pop<const I: usize>() -> c_int {
    let next: Option<roctx::RangePop> = original(I, RoctxEntry::Pop);
    match next.filter(|_| roctx::is_handed_on()) {
        Some(next) => next(),
        None => roctx::range_pop(next),
    }
}

unsafe extern "C-unwind" fn start<const I: usize>(message: *const c_char) -> u64 {
    let next: Option<roctx::RangeStart> = original(I, RoctxEntry::Start);
    match next.filter(|_| roctx::is_handed_on()) {
        // SAFETY: the application's argument.
        Some(next) => unsafe { next(message) },
        // SAFETY: as above.
        None => unsafe { roctx::range_start(next, message) },
    }
}

extern "C-unwind" fn stop<const I: usize>(id: u64) {
    let next: Option<roctx::RangeStop> = original(I, RoctxEntry::Stop);
    match next.filter(|_| roctx::is_handed_on()) {
        Some(next) => next(id),
        None => roctx::range_stop(next, id),
    }
}

extern "C-unwind" fn pause<const I: usize>(tid: u64) -> c_int {
    let next: Option<roctx::ProfilerControl> = original(I, RoctxEntry::Pause);
    match next.filter(|_| roctx::is_handed_on()) {
        Some(next) => next(tid),
        None => roctx::pause(next, tid),
    }
}

extern "C-unwind" fn resume<const I: usize>(tid: u64) -> c_int {
    let next: Option<roctx::ProfilerControl> = original(I, RoctxEntry::Resume);
    match next.filter(|_| roctx::is_handed_on()) {
        Some(next) => next(tid),
        None => roctx::resume(next, tid),
    }
}
