//! Kernels, by what their records say of them.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use rpd_preload::lock::lock;
use rpd_transport::records::KernelId;
use rustc_hash::FxHashMap;

use super::modules;
use super::record::KernelRun;
use crate::gpu::code_objects::CodeNumber;
use crate::gpu::kernels;

/// What a kernel is known by beside its name. Two of one name may be of different modules.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    gpu: u32,
    registers: u16,
    static_shared: u32,
    local: u32,
}

/// A kernel's name, and what it came in.
type Key = (String, Option<CodeNumber>, Shape);

/// All kernels of the process.
static ALL: LazyLock<Mutex<HashMap<Key, KernelId>>> = LazyLock::new(Mutex::default);

/// The kernels seen so far.
#[derive(Default)]
pub(super) struct Kernels {
    /// By addresses of their names, which mean the same as long as CUPTI is attached.
    known: FxHashMap<(usize, Shape), KernelId>,
    fills: FxHashMap<u32, KernelId>,
    /// By graph and GPU.
    graphs: FxHashMap<(u32, u32), KernelId>,
}

impl Kernels {
    /// The number of the kernel that ran.
    ///
    /// # Safety
    /// As CUPTI has filled `run` in.
    pub(super) unsafe fn of(&mut self, run: &KernelRun, gpu: u32) -> KernelId {
        let shape =
            Shape { gpu, registers: run.registers, static_shared: run.static_shared, local: run.local };
        *self.known.entry((run.name.addr(), shape)).or_insert_with(|| {
            // SAFETY: the caller's promise.
            let name = unsafe { run.name() }.to_string_lossy();
            let code = modules::of(&name);
            *lock(&ALL).entry((name.to_string(), code, shape)).or_insert_with(|| {
                let mut facts = rpd_codeobject::Kernel::default();
                facts.vgpr_count = run.registers.into();
                facts.group_segment_fixed_size = run.static_shared;
                facts.private_segment_fixed_size = run.local;
                facts.wavefront_size = 32;
                kernels::known_as(&name, gpu, facts, code)
            })
        })
    }

    /// What runs that graph as a whole.
    pub(super) fn graph(&mut self, graph: u32, gpu: u32) -> KernelId {
        *self.graphs.entry((graph, gpu)).or_insert_with(|| kernels::graph(graph, gpu))
    }

    /// What fills memory of that GPU.
    pub(super) fn fill(&mut self, gpu: u32) -> KernelId {
        *self.fills.entry(gpu).or_insert_with(|| kernels::named("__amd_rocclr_fillBuffer", gpu))
    }
}
