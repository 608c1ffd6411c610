//! The runtime, as far as kernels are replaced by it, and code objects that it has loaded for that.

use std::sync::atomic::AtomicBool;

use crate::hsa_runtime::abi::Executable;
use crate::hsa_runtime::agent::Gpus;
use crate::hsa_runtime::code::CodeFunctions;
use crate::hsa_runtime::memory::MemoryFunctions;
use crate::hsa_runtime::own_queue::QueueFunctions;

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    pub(crate) code: &'static CodeFunctions,
    pub(crate) memory: &'static MemoryFunctions,
    pub(crate) own_queues: &'static QueueFunctions,
    pub(crate) gpus: &'static Gpus,
    /// Whether it may be called.
    pub(crate) lives: fn() -> bool,
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
