//! All kernels this process has loaded, and which of them a kernel object address means now.
//!
//! Numbers are never reused, addresses are: a module that is unloaded takes its addresses with it. A dispatch stores the
//! number, so the writer can look it up later whatever happened since.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use rpd_preload::lock::{read, write};
use rpd_transport::records::{KernelId, NO_GPU};
use rpd_transport::source::{CodeFacts, KernelText, Role};

use super::code_objects::CodeNumber;

/// What the names of graphs begin with.
const GRAPH: &str = "graph ";

/// What is known of a kernel from its code object and the loader.
#[derive(Debug)]
pub(crate) struct NumberedKernel {
    /// Symbol, such as `_Z3addPf.kd`.
    pub(crate) symbol: String,
    /// Index of the GPU that it was loaded for, which has registers and sizes of its own; `NO_GPU` where that is not known.
    pub(crate) gpu: u32,
    /// Registers and sizes; none when the code object could not be read.
    pub(crate) facts: Option<rpd_codeobject::Kernel>,
    /// What it came in; none where that is not known or not saved.
    pub(crate) code_object: Option<CodeNumber>,
    /// The kernel of the application in whose place it runs, and the number of the candidate that it is of.
    pub(crate) replaces: Option<(KernelId, u32)>,
    /// It does more than the application's, of which the file says what.
    pub(crate) is_instrumented: bool,
}

/// How the names of the runtime's own kernels begin.
const RUNTIMES: &str = "__amd_rocclr_";

struct KernelTable {
    kernels: RwLock<Vec<Arc<NumberedKernel>>>,
    by_object: RwLock<HashMap<u64, KernelId>>,
    /// The latest kernel of each symbol on each GPU.
    by_symbol: RwLock<HashMap<String, Vec<(u32, KernelId)>>>,
    /// Changes whenever an address may mean something else than before.
    generation: AtomicU64,
}

static TABLE: std::sync::LazyLock<KernelTable> = std::sync::LazyLock::new(|| KernelTable {
    kernels: RwLock::default(),
    by_object: RwLock::default(),
    by_symbol: RwLock::default(),
    generation: AtomicU64::new(1),
});

/// `object` is `kernel` from now on.
pub(crate) fn add(object: u64, kernel: NumberedKernel) -> KernelId {
    let id = number(kernel);
    write(&TABLE.by_object).insert(object, id);
    TABLE.generation.fetch_add(1, Ordering::Release);
    id
}

fn number(kernel: NumberedKernel) -> KernelId {
    let (symbol, gpu) = (kernel.symbol.clone(), kernel.gpu);
    let kernel = Arc::new(kernel);
    let mut by_symbol = write(&TABLE.by_symbol);
    let mut kernels = write(&TABLE.kernels);
    let id = kernels.len() as KernelId;
    let known = by_symbol.entry(symbol).or_default();
    if kernel.facts.is_some() {
        // HIP from 5.3 on loads a kernel when it is first launched, which was named before.
        for (_, earlier) in known.iter().filter(|(other, _)| [gpu, NO_GPU].contains(other)) {
            let earlier = &mut kernels[*earlier as usize];
            if earlier.facts.is_none() {
                *earlier = Arc::clone(&kernel);
            }
        }
    }
    kernels.push(kernel);
    known.retain(|(other, _)| *other != gpu);
    known.push((gpu, id));
    id
}

/// `facts` are those of a kernel of the candidate number `candidate`, which runs in the place of the application's kernel `original`.
pub(crate) fn add_replacement(
    original: KernelId,
    gpu: u32,
    facts: rpd_codeobject::Kernel,
    code_object: Option<CodeNumber>,
    candidate: u32,
    is_instrumented: bool,
) -> KernelId {
    let replaces = Some((original, candidate));
    let symbol = facts.symbol.clone();
    let kernel = NumberedKernel { symbol, gpu, facts: Some(facts), code_object, replaces, is_instrumented };
    let mut kernels = write(&TABLE.kernels);
    kernels.push(Arc::new(kernel));
    kernels.len() as KernelId - 1
}

/// A kernel of which nothing is known.
pub(crate) fn unnamed() -> KernelId {
    static UNNAMED: OnceLock<KernelId> = OnceLock::new();
    *UNNAMED.get_or_init(|| number(NumberedKernel::new(String::new(), NO_GPU, None)))
}

/// The kernel of that mangled name on `gpu`, loaded or not; where the GPU is not known, the only one of that name.
pub(crate) fn named(name: &str, gpu: u32) -> KernelId {
    let symbol = format!("{name}.kd");
    let known = read(&TABLE.by_symbol).get(&symbol).and_then(|known| match known[..] {
        [(_, only)] if gpu == NO_GPU => Some(only),
        _ => known.iter().find(|(other, _)| *other == gpu).map(|(_, id)| *id),
    });
    known.unwrap_or_else(|| number(NumberedKernel::new(symbol, gpu, None)))
}

/// A kernel of that mangled name on `gpu`, of which that is known, and what it came in.
pub(crate) fn known_as(
    name: &str,
    gpu: u32,
    facts: rpd_codeobject::Kernel,
    code_object: Option<CodeNumber>,
) -> KernelId {
    number(NumberedKernel { code_object, ..NumberedKernel::new(format!("{name}.kd"), gpu, Some(facts)) })
}

/// All of a graph, which is run as if it were one kernel. No kernel has a name with a space in it.
pub(crate) fn graph(graph: u32, gpu: u32) -> KernelId {
    named(&format!("{GRAPH}{graph}"), gpu)
}

/// `objects` mean nothing any more.
pub(crate) fn remove(objects: &[u64]) {
    let mut by_object = write(&TABLE.by_object);
    for object in objects {
        by_object.remove(object);
    }
    drop(by_object);
    TABLE.generation.fetch_add(1, Ordering::Release);
}

/// The kernel numbered `id`.
pub(crate) fn get(id: KernelId) -> Option<Arc<NumberedKernel>> {
    read(&TABLE.kernels).get(id as usize).cloned()
}

/// The kernels of that symbol that the application has loaded, the latest for each GPU: index and number.
pub(crate) fn loaded_as(symbol: &str) -> Vec<(u32, KernelId)> {
    let known = read(&TABLE.by_symbol).get(symbol).cloned().unwrap_or_default();
    let is_loaded = |id: KernelId| get(id).is_some_and(|kernel| kernel.facts.is_some());
    known.into_iter().filter(|(_, id)| is_loaded(*id)).collect()
}

fn find(object: u64) -> KernelId {
    if let Some(id) = read(&TABLE.by_object).get(&object) {
        return *id;
    }
    // Loaded in a way the hooks do not see: its address is the name.
    add(object, NumberedKernel::new(format!("kernel object {object:#x}"), NO_GPU, None))
}

/// Whose kernel it is, as far as a dispatch of it must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelOrigin {
    /// The application's.
    Application,
    /// The runtime's, and copies memory: its first arguments are the addresses of source and destination.
    RuntimeCopies,
    /// Another one of the runtime's.
    Runtime,
}

/// The kernels one queue used last, so that a dispatch need not take a lock.
pub(crate) struct Cache {
    generation: u64,
    places: [(u64, KernelId, KernelOrigin); Cache::PLACES],
}

impl Cache {
    const PLACES: usize = 64;

    /// Empty.
    pub(crate) fn new() -> Cache {
        Cache { generation: 0, places: [(0, 0, KernelOrigin::Application); Cache::PLACES] }
    }

    /// The kernel that `object` means now, and whose it is.
    #[inline]
    pub(crate) fn find(&mut self, object: u64) -> (KernelId, KernelOrigin) {
        let generation = TABLE.generation.load(Ordering::Acquire);
        if generation != self.generation {
            *self = Cache { generation, ..Cache::new() };
        }
        // Kernel descriptors are 64 bytes, 64-aligned.
        let place = &mut self.places[(object >> 6) as usize % Cache::PLACES];
        if place.0 != object || object == 0 {
            let id = find(object);
            *place = (object, id, get(id).map_or(KernelOrigin::Application, |kernel| kernel.origin()));
        }
        (place.1, place.2)
    }
}

impl NumberedKernel {
    /// A kernel of which that is known.
    pub(crate) fn new(symbol: String, gpu: u32, facts: Option<rpd_codeobject::Kernel>) -> NumberedKernel {
        NumberedKernel { symbol, gpu, facts, code_object: None, replaces: None, is_instrumented: false }
    }

    /// Its demangled name.
    pub(crate) fn name(&self) -> String {
        rpd_codeobject::demangle(&self.symbol)
    }

    /// The number of the candidate that it is of, where it runs in the place of another one.
    pub(crate) fn candidate(&self) -> Option<u32> {
        self.replaces.map(|(_, candidate)| candidate)
    }

    fn origin(&self) -> KernelOrigin {
        // ROCclr 5.2 to 6.4 blitcl.cpp. An image is no address.
        let of_buffers = |name: &str| name.starts_with("copyBuffer") && !name.contains("Image");
        match self.symbol.strip_prefix(RUNTIMES) {
            Some(name) if of_buffers(name) && self.has_room_for(2 * size_of::<u64>()) => {
                KernelOrigin::RuntimeCopies
            }
            Some(_) => KernelOrigin::Runtime,
            None => KernelOrigin::Application,
        }
    }

    /// Whether it is known to have so many bytes of arguments.
    fn has_room_for(&self, bytes: usize) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.kernarg_segment_size as usize >= bytes)
    }

    /// What it does: kernels of the runtime's own and graphs have names of their own.
    fn role(&self) -> Role {
        if self.symbol.starts_with(GRAPH) {
            return Role::Graph;
        }
        match self.symbol.strip_prefix(RUNTIMES) {
            Some(name) if name.starts_with("copyBufferRect") => Role::CopyRect,
            Some(name) if name.starts_with("copy") => Role::Copy,
            Some(name) if name.starts_with("fill") => Role::Fill,
            _ => Role::Kernel,
        }
    }
}

/// Whether a kernel of that name is one that the runtime has brought along.
pub(crate) fn is_runtimes(name: &str) -> bool {
    name.starts_with(RUNTIMES)
}

/// The kernel numbered `id`, for the writer.
pub(crate) fn text(id: KernelId) -> Option<KernelText> {
    let kernel = get(id)?;
    let code = kernel.facts.as_ref().map(|facts| CodeFacts {
        vgpr: facts.vgpr_count,
        sgpr: facts.sgpr_count,
        agpr: facts.agpr_count,
        vgpr_spill: facts.vgpr_spill_count,
        sgpr_spill: facts.sgpr_spill_count,
        group_segment_size: facts.group_segment_fixed_size,
        private_segment_size: facts.private_segment_fixed_size,
        kernarg_segment_size: facts.kernarg_segment_size,
        wavefront_size: facts.wavefront_size,
        max_workgroup_size: facts.max_flat_workgroup_size,
    });
    Some(KernelText {
        name: kernel.name(),
        role: kernel.role(),
        code,
        code_object: kernel.code_object,
        replaces: kernel.replaces,
        is_instrumented: kernel.is_instrumented,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_reused_means_the_new_kernel() {
        let named = |symbol: &str| NumberedKernel::new(symbol.into(), 0, None);
        let mut cache = Cache::new();
        let old = add(0x7000, named("old.kd"));
        assert_eq!(cache.find(0x7000), (old, KernelOrigin::Application));
        remove(&[0x7000]);
        let new = add(0x7000, named("new.kd"));
        assert_eq!(cache.find(0x7000), (new, KernelOrigin::Application));
        assert_eq!(get(old).unwrap().symbol, "old.kd", "earlier dispatches keep their name");
    }

    #[test]
    fn an_unknown_object_is_named_by_its_address() {
        let mut cache = Cache::new();
        let (id, _) = cache.find(0xabc0);
        assert_eq!(get(id).unwrap().symbol, "kernel object 0xabc0");
        assert_eq!(cache.find(0xabc0), (id, KernelOrigin::Application));
    }

    #[test]
    fn a_kernel_that_is_named_before_it_is_loaded_is_known_from_then_on() {
        let early = [named("lazy", 1), named("lazy", 0)];
        let mut facts = rpd_codeobject::Kernel::default();
        facts.vgpr_count = 24;
        let loaded = add(0x7100, NumberedKernel::new("lazy.kd".into(), 0, Some(facts)));
        let vgprs = |id| get(id).unwrap().facts.as_ref().map(|facts| facts.vgpr_count);
        assert_eq!(early.map(vgprs), [None, Some(24)]);
        assert_eq!(named("lazy", 0), loaded);
    }

    #[test]
    fn a_name_means_the_kernel_of_its_gpu() {
        let on = |gpu| NumberedKernel::new("shared.kd".into(), gpu, None);
        let first = add(0x9000, on(0));
        assert_eq!(named("shared", NO_GPU), first, "there is no other");
        let (second, newer) = (add(0x9100, on(1)), add(0x9200, on(0)));
        assert_eq!([named("shared", 0), named("shared", 1)], [newer, second]);
        let unknown = named("shared", NO_GPU);
        assert!(![first, second, newer].contains(&unknown), "it may be either");
        assert_eq!(named("shared", NO_GPU), unknown);
    }

    #[test]
    fn the_runtimes_own_kernels() {
        let role = |symbol: &str| NumberedKernel::new(symbol.into(), 0, None).role();
        assert_eq!(role("__amd_rocclr_copyBufferRectAligned.kd"), Role::CopyRect);
        assert_eq!(role("__amd_rocclr_copyBufferAligned.kd"), Role::Copy);
        assert_eq!(role("__amd_rocclr_fillBufferAligned.kd"), Role::Fill);
        assert_eq!(role("__amd_rocclr_gwsInit.kd"), Role::Kernel);
        assert_eq!(role("_Z4copyPf.kd"), Role::Kernel);
    }

    #[test]
    fn copy_kernels_whose_first_arguments_are_two_addresses() {
        let origin = |symbol: &str, arguments: Option<u32>| {
            let facts = arguments.map(|bytes| {
                let mut facts = rpd_codeobject::Kernel::default();
                facts.kernarg_segment_size = bytes;
                facts
            });
            NumberedKernel::new(symbol.into(), 0, facts).origin()
        };
        assert_eq!(origin("__amd_rocclr_copyBufferAligned.kd", Some(40)), KernelOrigin::RuntimeCopies);
        assert_eq!(origin("__amd_rocclr_copyBufferRect.kd", Some(112)), KernelOrigin::RuntimeCopies);
        for (symbol, arguments) in [
            ("__amd_rocclr_copyBuffer.kd", Some(8)),
            ("__amd_rocclr_copyBuffer.kd", None),
            ("__amd_rocclr_copyBufferToImage.kd", Some(112)),
            ("__amd_rocclr_fillBufferAligned.kd", Some(112)),
        ] {
            assert_eq!(origin(symbol, arguments), KernelOrigin::Runtime, "{symbol}");
        }
        assert_eq!(origin("copyBuffer.kd", Some(40)), KernelOrigin::Application);
    }
}
