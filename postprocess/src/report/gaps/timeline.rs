//! What a thread does at each moment: which kind of call it is inside, or none.
//!
//! Where calls are inside others, the outermost counts: it is the one that the program made. Markers count as the program itself.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};

use crate::pass::sorted::Sorted;

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// It launches kernels.
    Launch,
    /// It waits for the GPU.
    Sync,
    /// It copies or fills memory.
    Copy,
    /// Something else.
    Other,
}

/// How many kinds there are.
pub(super) const KINDS: usize = 4;

/// How the functions of the GPU's APIs are called. Other names are markers, and what recorders say of themselves.
const APIS: [&str; 5] = ["hip", "hsa", "cuda", "nccl", "rccl"];

impl CallKind {
    /// In the order of their numbers.
    pub(super) const ALL: [CallKind; KINDS] =
        [CallKind::Launch, CallKind::Sync, CallKind::Copy, CallKind::Other];

    /// What the function `name` of HIP, HSA, CUDA, NCCL or RCCL does; None where it is none of theirs.
    pub(super) fn of(name: &str) -> Option<CallKind> {
        // cuLaunchKernel
        let is_driver =
            name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        if !is_driver && !APIS.iter().any(|api| name.starts_with(api)) {
            return None;
        }
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        Some(if has(&["Launch"]) {
            CallKind::Launch
        } else if has(&["Synchronize", "EventQuery", "StreamQuery", "signal_wait"]) {
            CallKind::Sync
        } else if has(&["Memcpy", "Memset", "memory_async_copy", "memory_copy", "memory_fill"]) {
            CallKind::Copy
        } else {
            CallKind::Other
        })
    }
}

/// A call; ordered by thread and time, of two with one start the longer one first. Its times are those of the process's clock, which stands
/// still while it is not recorded: of two calls for which it shows the same times, the one that took longer is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ThreadCall {
    thread: i64,
    start: i64,
    /// The end with all bits turned over.
    not_end: i64,
    /// How long it took, with the time that was not recorded, with all bits turned over.
    not_length: i64,
    kind: i64,
}

impl ThreadCall {
    /// A call from `start` to `end` on the process's clock, which took `length`, ns.
    pub(super) fn new(thread: i64, (start, end): (i64, i64), length: i64, kind: CallKind) -> ThreadCall {
        ThreadCall { thread, start, not_end: !end, not_length: !length, kind: kind as i64 }
    }

    fn end(&self) -> i64 {
        !self.not_end
    }
}

/// The calls of all threads, read once, thread after thread.
pub(super) struct Timeline {
    calls: Sorted<ThreadCall>,
    ahead: Option<ThreadCall>,
    thread: i64,
    /// Time in calls that have ended.
    ended: [u64; KINDS],
    /// The last call that began, from where no other covers it, to its end.
    last: (i64, i64, usize),
}

impl Timeline {
    /// At the first call of the first thread.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn new(mut calls: Sorted<ThreadCall>) -> Result<Timeline> {
        let ahead = calls.next()?;
        Ok(Timeline { calls, ahead, thread: -1, ended: [0; KINDS], last: (0, 0, 0) })
    }

    /// The time that `thread` has spent in each kind of call until `time`, ns. Threads and the times of each are asked for in their
    /// order.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn spent(&mut self, thread: i64, time: i64) -> Result<[u64; KINDS]> {
        if thread != self.thread {
            self.thread = thread;
            self.ended = [0; KINDS];
            self.last = (0, 0, 0);
        }
        while let Some(call) = self.ahead
            && (call.thread, call.start) < (thread, time)
        {
            if call.thread == thread {
                let (_, end, _) = self.last;
                // One that overlaps the last without being inside it takes over where that ends: not before `time`.
                if end >= time && call.end() > end {
                    break;
                }
                self.enter(call);
            }
            self.ahead = self.calls.next()?;
        }
        let mut spent = self.ended;
        let (start, end, kind) = self.last;
        spent[kind] += time.min(end).saturating_sub(start).max(0).unsigned_abs();
        Ok(spent)
    }

    fn enter(&mut self, call: ThreadCall) {
        let (start, end, kind) = self.last;
        let from = call.start.max(end);
        if call.end() > from {
            self.ended[kind] += end.abs_diff(start);
            self.last = (from, call.end(), usize::try_from(call.kind).unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_names() {
        use CallKind::{Copy, Launch, Other, Sync};
        for (name, kind) in [
            ("hipLaunchKernel", Some(Launch)),
            ("hipExtModuleLaunchKernel", Some(Launch)),
            ("hipGraphLaunch", Some(Launch)),
            ("cuLaunchKernel", Some(Launch)),
            ("cudaGraphLaunch_v10000", Some(Launch)),
            ("hipStreamSynchronize", Some(Sync)),
            ("hipEventQuery", Some(Sync)),
            ("hsa_signal_wait_scacquire", Some(Sync)),
            ("hipMemcpyWithStream", Some(Copy)),
            ("hipMemsetAsync", Some(Copy)),
            ("hsa_amd_memory_async_copy", Some(Copy)),
            ("hipMalloc", Some(Other)),
            ("ncclAllReduce", Some(Other)),
            ("UserMarker", None),
            ("run_to_completion", None),
            ("customLaunch", None),
            ("OpTable::writeRows", None),
        ] {
            assert_eq!(CallKind::of(name), kind, "{name}");
        }
    }
}
