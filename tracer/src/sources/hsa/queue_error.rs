//! Errors of queues. The runtime calls the application's callback for them, and that often ends the process: HIP's calls abort(). So the
//! recorder gives the runtime a callback of its own, which writes what has completed to the file and then calls the application's.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::time::Duration;

use rpd_schema::session_fact;
use rpd_transport::recorder::Recorder;

use super::completion::Oldest;
use super::queue::HwQueue;
use super::state::Hsa;
use crate::gpu::kernels;
use crate::guard::guard;
use crate::hsa_runtime::abi::*;
use crate::hsa_runtime::inquiry::exported;
use crate::intercept;

/// How long the recorder may hold up a program that is about to come down.
const DEADLINE: Duration = Duration::from_secs(2);
/// How long to wait for the completion thread.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the application wants to be called for errors of one queue. Freed never: the runtime keeps its address.
pub(super) struct ErrorCallback {
    hsa: &'static Hsa,
    callback: QueueCallback,
    data: *mut c_void,
    /// Known once it is made.
    pub(super) queue: OnceLock<&'static HwQueue>,
}

impl ErrorCallback {
    /// Stands in front of the application's.
    pub(super) fn new(
        hsa: &'static Hsa,
        callback: QueueCallback,
        data: *mut c_void,
    ) -> &'static ErrorCallback {
        Box::leak(Box::new(ErrorCallback { hsa, callback, data, queue: OnceLock::new() }))
    }

    /// What to give the runtime for it.
    pub(super) fn for_runtime(&'static self) -> (QueueCallback, *mut c_void) {
        (Some(failed), std::ptr::from_ref(self).cast_mut().cast())
    }
}

/// Called by the runtime, on a thread of its own. Its house rule, never to wait there, is broken for a moment: what follows is often
/// the end of the process.
unsafe extern "C-unwind" fn failed(status: Status, queue: *mut Queue, data: *mut c_void) {
    // SAFETY: what `for_runtime` gave, which lives for ever.
    let target = unsafe { &*data.cast_const().cast::<ErrorCallback>() };
    guard((), || {
        if target.hsa.usable() {
            let queue = target.queue.get().copied();
            tell(target.hsa.recorder, described(target.hsa, queue, status));
        }
    });
    if let Some(callback) = target.callback {
        // SAFETY: the application's own, with what the runtime would have given it.
        unsafe { callback(status, queue, target.data) };
    }
}

/// The session says so, and what has completed is written out: the program may come down by it.
fn tell(recorder: &'static Recorder, what: String) {
    recorder.failures.add(session_fact::QUEUE_ERROR, what);
    if recorder.switch.is_on() {
        recorder.requests.start(recorder);
    }
    recorder.requests.flush_or_note(DEADLINE);
}

fn described(hsa: &'static Hsa, queue: Option<&'static HwQueue>, status: Status) -> String {
    let oldest = hsa.completion.oldest(PATIENCE);
    let Some(queue) = queue else { return format!("a queue that is not recorded: {}", name(status)) };
    let place = format!("queue {} of GPU {}: {}", queue.number, queue.gpu.index, name(status));
    match oldest.iter().find(|oldest| std::ptr::eq(oldest.queue, queue)) {
        Some(oldest) => format!("{place} in {} (packet {})", oldest.name(), oldest.index),
        None => place,
    }
}

impl Oldest {
    /// The kernel's name, for people.
    fn name(&self) -> String {
        kernels::get(self.kernel).map(|kernel| intercept::described(&kernel)).unwrap_or_default()
    }

    /// It, its queue and its place there.
    pub(super) fn described(&self) -> String {
        let HwQueue { number, gpu, .. } = self.queue;
        format!("{} (queue {number} of GPU {}, packet {})", self.name(), gpu.index, self.index)
    }
}

/// The runtime's name of a status, such as HSA_STATUS_ERROR_EXCEPTION.
fn name(status: Status) -> String {
    type StatusString = unsafe extern "C-unwind" fn(Status, *mut *const c_char) -> Status;
    let mut text = std::ptr::null();
    // SAFETY: the function of that name has that type (HSA 1.2).
    let known = unsafe { exported::<StatusString>(c"hsa_status_string") }.is_some_and(|function| {
        // SAFETY: in a runtime that lives, with a place for the result.
        unsafe { function(status, &mut text) == SUCCESS }
    });
    if !known || text.is_null() {
        return format!("HSA status {status:#x}");
    }
    // SAFETY: a text of the runtime's own.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    text.split([':', ' ']).next().unwrap_or_default().to_string()
}
