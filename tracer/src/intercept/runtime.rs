//! The HSA runtime's functions that replacing kernels needs: loading code objects, copying memory, queues of the recorder's own.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::hsa_runtime::abi::{Agent, Executable};
use crate::hsa_runtime::agent::Gpus;
use crate::hsa_runtime::code::CodeFunctions;
use crate::hsa_runtime::memory::MemoryFunctions;
use crate::hsa_runtime::own_queue::QueueFunctions;

#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    pub(crate) code: &'static CodeFunctions,
    pub(crate) memory: &'static MemoryFunctions,
    pub(crate) own_queues: &'static QueueFunctions,
    pub(crate) gpus: &'static Gpus,
    /// Whether it may be called.
    pub(crate) lives: fn() -> bool,
}

/// Time between two looks at a copy.
const GLANCE: Duration = Duration::from_micros(50);

impl Runtime {
    /// Copies to memory of `agent`; whether that has ended well, within `patience`.
    ///
    /// # Safety
    /// The runtime lives; so many bytes of its memory on both sides, which stay where the copy takes longer.
    pub(super) unsafe fn copy_to(
        &self,
        agent: Agent,
        to: u64,
        from: NonNull<u8>,
        bytes: usize,
        patience: Duration,
    ) -> bool {
        let from = from.as_ptr() as u64;
        // SAFETY: the caller's promise.
        unsafe {
            let Some(owner) = self.memory.allocation(from) else { return false };
            self.copy((to, agent), (from, owner.owner), bytes, patience)
        }
    }

    /// Copies from memory of `agent`; whether that has ended well, within `patience`.
    ///
    /// # Safety
    /// As for [`Runtime::copy_to`].
    pub(super) unsafe fn copy_from(
        &self,
        agent: Agent,
        from: u64,
        to: NonNull<u8>,
        bytes: usize,
        patience: Duration,
    ) -> bool {
        let to = to.as_ptr() as u64;
        // SAFETY: the caller's promise.
        unsafe {
            let Some(owner) = self.memory.allocation(to) else { return false };
            self.copy((to, owner.owner), (from, agent), bytes, patience)
        }
    }

    /// # Safety
    /// As for [`Runtime::copy_to`].
    unsafe fn copy(&self, to: (u64, Agent), from: (u64, Agent), bytes: usize, patience: Duration) -> bool {
        // SAFETY: the caller's promise; the copy is waited for, and where it does not end the signal stays.
        unsafe {
            let Some(signal) = self.own_queues.signal() else { return false };
            if !self.memory.copy(to, from, bytes, signal) {
                (self.own_queues.signal_destroy)(signal);
                return false;
            }
            let begin = Instant::now();
            while signal.memory().value.load(Ordering::Acquire) > 0 {
                if begin.elapsed() > patience {
                    return false;
                }
                std::thread::sleep(GLANCE);
            }
            let ended = signal.memory().value.load(Ordering::Acquire) == 0;
            (self.own_queues.signal_destroy)(signal);
            ended
        }
    }
}

/// A candidate's code object in the runtime. What runs of it, or may still do so, has one of these.
pub(super) struct LoadedCandidate {
    /// None where it is the application's own.
    pub(super) executable: Option<Executable>,
    /// It was said that a kernel of it takes long.
    pub(super) said_long: AtomicBool,
    /// The application has launched a kernel that one of it may run in the place of.
    pub(super) is_launched: AtomicBool,
}
