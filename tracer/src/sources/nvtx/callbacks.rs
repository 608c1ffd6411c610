//! The functions that NVTX calls, under their callback ids (nvtxDetail/nvtxTypes.h). Names of threads, categories and resources are
//! not among them: the format has no place for names, and NVTX makes what is missing do nothing.
//!
//! Push and pop return the level of the range that they begin or end, from 0, and a negative number where there is none.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rpd_transport::marker;
use rpd_transport::process_range;
use rpd_transport::records::Stack;

use super::abi::EventAttributes;
use super::registry::{self, Domain, RegisteredText};
use super::text;
use crate::guard::{self, guard, with_recorder};

/// A function, whatever its signature: its callback id says that.
#[derive(Clone, Copy)]
pub(super) struct FunctionAddress(pub(super) *const c_void);

// SAFETY: the address of a function is the same for every thread.
unsafe impl Sync for FunctionAddress {}

type EventPointer = *const EventAttributes;
type Wide = *const u32;
type Narrow = *const c_char;

/// `NvtxCallbackIdCore`.
pub(super) static CORE: &[(u32, FunctionAddress)] = &[
    (1, FunctionAddress(mark_ex as *const c_void)),
    (2, FunctionAddress(mark_a as *const c_void)),
    (3, FunctionAddress(mark_w as *const c_void)),
    (4, FunctionAddress(range_start_ex as *const c_void)),
    (5, FunctionAddress(range_start_a as *const c_void)),
    (6, FunctionAddress(range_start_w as *const c_void)),
    (7, FunctionAddress(range_end as *const c_void)),
    (8, FunctionAddress(range_push_ex as *const c_void)),
    (9, FunctionAddress(range_push_a as *const c_void)),
    (10, FunctionAddress(range_push_w as *const c_void)),
    (11, FunctionAddress(range_pop as *const c_void)),
];

/// `NvtxCallbackIdCore2`.
pub(super) static CORE2: &[(u32, FunctionAddress)] = &[
    (1, FunctionAddress(domain_mark_ex as *const c_void)),
    (2, FunctionAddress(domain_range_start_ex as *const c_void)),
    (3, FunctionAddress(domain_range_end as *const c_void)),
    (4, FunctionAddress(domain_range_push_ex as *const c_void)),
    (5, FunctionAddress(domain_range_pop as *const c_void)),
    (10, FunctionAddress(domain_register_string_a as *const c_void)),
    (11, FunctionAddress(domain_register_string_w as *const c_void)),
    (12, FunctionAddress(domain_create_a as *const c_void)),
    (13, FunctionAddress(domain_create_w as *const c_void)),
];

/// Process ranges of NVTX and of roctx have ids of their own; this tells them apart.
const NVTX_RANGE: u64 = 1 << 63;

fn mark(text: &[u8]) {
    with_recorder(|recorder| marker::mark(recorder, marker::USER_MARKER.as_bytes(), text));
}

fn start(text: &[u8]) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    with_recorder(|recorder| process_range::start(recorder, id | NVTX_RANGE, text));
    id
}

fn push(stack: Stack, text: &[u8]) -> c_int {
    with_recorder(|recorder| marker::push(recorder, stack, marker::USER_MARKER.as_bytes(), text));
    guard(0, || marker::level_up(stack))
}

fn pop(stack: Stack) -> c_int {
    let Some(level) = guard(None, || marker::level_down(stack)) else { return -1 };
    with_recorder(|recorder| marker::pop(recorder, stack));
    level
}

/// # Safety
/// `domain` is null or a handle that we gave.
unsafe fn stack_of(domain: *const Domain) -> Stack {
    // SAFETY: the caller's promise; domains are kept for ever.
    unsafe { domain.as_ref() }.map_or(Stack::NVTX, |domain| domain.stack)
}

extern "C-unwind" fn mark_ex(event: EventPointer) {
    // SAFETY: what NVTX passes on of the application's.
    mark(&unsafe { text::of_event(event) });
}

extern "C-unwind" fn mark_a(message: Narrow) {
    // SAFETY: as above.
    mark(unsafe { guard::bytes(message) });
}

extern "C-unwind" fn mark_w(message: Wide) {
    // SAFETY: as above.
    mark(&unsafe { text::wide(message) });
}

extern "C-unwind" fn range_start_ex(event: EventPointer) -> u64 {
    // SAFETY: as above.
    start(&unsafe { text::of_event(event) })
}

extern "C-unwind" fn range_start_a(message: Narrow) -> u64 {
    // SAFETY: as above.
    start(unsafe { guard::bytes(message) })
}

extern "C-unwind" fn range_start_w(message: Wide) -> u64 {
    // SAFETY: as above.
    start(&unsafe { text::wide(message) })
}

extern "C-unwind" fn range_end(id: u64) {
    with_recorder(|recorder| process_range::stop(recorder, id | NVTX_RANGE));
}

extern "C-unwind" fn range_push_ex(event: EventPointer) -> c_int {
    // SAFETY: as above.
    push(Stack::NVTX, &unsafe { text::of_event(event) })
}

extern "C-unwind" fn range_push_a(message: Narrow) -> c_int {
    // SAFETY: as above.
    push(Stack::NVTX, unsafe { guard::bytes(message) })
}

extern "C-unwind" fn range_push_w(message: Wide) -> c_int {
    // SAFETY: as above.
    push(Stack::NVTX, &unsafe { text::wide(message) })
}

extern "C-unwind" fn range_pop() -> c_int {
    pop(Stack::NVTX)
}

extern "C-unwind" fn domain_mark_ex(_domain: *const Domain, event: EventPointer) {
    mark_ex(event);
}

extern "C-unwind" fn domain_range_start_ex(_domain: *const Domain, event: EventPointer) -> u64 {
    range_start_ex(event)
}

extern "C-unwind" fn domain_range_end(_domain: *const Domain, id: u64) {
    range_end(id);
}

extern "C-unwind" fn domain_range_push_ex(domain: *const Domain, event: EventPointer) -> c_int {
    // SAFETY: as above.
    unsafe { push(stack_of(domain), &text::of_event(event)) }
}

extern "C-unwind" fn domain_range_pop(domain: *const Domain) -> c_int {
    // SAFETY: as above.
    pop(unsafe { stack_of(domain) })
}

extern "C-unwind" fn domain_register_string_a(
    _domain: *const Domain,
    string: Narrow,
) -> *const RegisteredText {
    // SAFETY: as above.
    guard(ptr::null(), || registry::text(unsafe { guard::bytes(string) }))
}

extern "C-unwind" fn domain_register_string_w(_domain: *const Domain, string: Wide) -> *const RegisteredText {
    // SAFETY: as above.
    guard(ptr::null(), || registry::text(&unsafe { text::wide(string) }))
}

extern "C-unwind" fn domain_create_a(name: Narrow) -> *const Domain {
    // SAFETY: as above.
    guard(ptr::null(), || registry::domain(unsafe { guard::bytes(name) }))
}

extern "C-unwind" fn domain_create_w(name: Wide) -> *const Domain {
    // SAFETY: as above.
    guard(ptr::null(), || registry::domain(&unsafe { text::wide(name) }))
}
