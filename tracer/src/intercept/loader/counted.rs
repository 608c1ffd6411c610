//! Kernels whose basic blocks are counted: their code objects are rewritten here, and loaded beside the application's own.
//!
//! The kernels of one code object that the user has selected are rewritten together, when the first of them is wanted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rpd_codeobject::counting::{self, Rewritten, Variant};
use rpd_codeobject::{Plan, SourceLines};
use rpd_schema::THE_PROGRAM;
use rpd_transport::log;
use rpd_transport::records::KernelId;
use rpd_transport::source::Block;

use super::{ApplicationKernel, LDS, Loader, Original, load};
use crate::gpu::{kernels, selection};
use crate::hsa_runtime::agent::Gpu;
use crate::intercept::candidate::CandidateError;
use crate::intercept::choice::{Choice, Planned};
use crate::intercept::counting::{
    BlockCounters, CountedBlock, CounterMemory, CountingConfig, CountingKernel, Visit,
};
use crate::intercept::packet;
use crate::intercept::runtime::{LoadedCandidate, Runtime};

/// How long counters and what names them may take to be written or read.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the thread knows of counted kernels.
#[derive(Default)]
pub(super) struct Counted {
    /// By GPU and the address of the bytes of the application's code object, which stay as long as this does.
    objects: HashMap<(u32, usize), CountedObject>,
    /// Those whose kernels the application has unloaded.
    retired: Vec<RewrittenObject>,
    /// The counters of kernels that it has unloaded, while dispatches of them are in flight.
    leaving: Vec<Arc<BlockCounters>>,
    /// Kernels that the user has left out, or of which nothing is known: by the address of the bytes of their code object, which are not there where
    /// nothing is known.
    left_out: HashMap<usize, LeftOutKernels>,
    /// A kernel was to be counted.
    is_asked: bool,
    /// A kernel was rewritten.
    is_used: bool,
}

/// Those of one code object.
#[derive(Default)]
struct LeftOutKernels {
    bytes: Option<Arc<[u8]>>,
    /// Addresses of the descriptors, and mangled names.
    kernels: Vec<(u64, String)>,
}

/// A code object of the application with counted kernels.
struct CountedObject {
    bytes: Arc<[u8]>,
    /// None where it could not be rewritten.
    rewritten: Option<RewrittenObject>,
    /// Mangled names of kernels that are not counted and whose workgroups may wait for each other.
    waiting: BTreeSet<String>,
    /// By the addresses of the application's descriptors.
    kernels: BTreeMap<u64, Arc<BlockCounters>>,
}

/// What is loaded beside it.
struct RewrittenObject {
    loaded: Arc<LoadedCandidate>,
    memory: Arc<CounterMemory>,
}

impl Counted {
    /// Whether nothing is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.retired.is_empty() && self.leaving.is_empty()
    }

    /// A kernel is not counted: whether its workgroups may wait for each other is looked for later.
    pub(super) fn leave_out(&mut self, original: &Original, facts: Option<&rpd_codeobject::Kernel>) {
        let bytes = original.bytes.clone().filter(|_| facts.is_some());
        let key = bytes.as_ref().map_or(0, |bytes| bytes.as_ptr() as usize);
        let left_out = self.left_out.entry(key).or_default();
        left_out.bytes = bytes;
        left_out.kernels.push((original.object, facts.map(mangled).unwrap_or_default().into()));
    }

    /// The application has unloaded these kernel objects.
    pub(super) fn forget(&mut self, objects: &[u64]) {
        for counted in self.objects.values_mut() {
            self.leaving.extend(objects.iter().filter_map(|object| counted.kernels.remove(object)));
        }
        let unused: Vec<_> = self.objects.extract_if(|_, counted| counted.kernels.is_empty()).collect();
        self.retired.extend(unused.into_iter().filter_map(|(_, counted)| counted.rewritten));
    }

    /// Reads what has been counted, and gives back what nothing uses any more.
    pub(super) fn visit(&mut self, runtime: &Runtime) {
        if !(runtime.lives)() {
            return;
        }
        let end = Instant::now() + PATIENCE;
        for counters in self.objects.values().flat_map(|counted| counted.kernels.values()) {
            counters.visit(Visit::Due, end);
        }
        self.leaving.retain(|counters| !counters.retire());
        self.retired.retain(|RewrittenObject { loaded, memory }| {
            let is_used =
                Arc::strong_count(loaded) > 1 || self.leaving.iter().any(|counters| counters.is_in(memory));
            if !is_used {
                // SAFETY: the runtime lives, and waits for this thread before it goes (`stop`); nobody has the kernels any more.
                unsafe {
                    loaded.executable.into_iter().for_each(|executable| runtime.code.unload(executable));
                    memory.free();
                }
            }
            is_used
        });
    }

    /// The runtime goes down: says that nothing was counted.
    pub(super) fn say_unused(&self) {
        if self.is_used {
            return;
        }
        log::problem(match self.is_asked {
            true => {
                "no basic blocks were counted: no kernel that the program has loaded and the user has selected could be rewritten"
            }
            false => {
                "no basic blocks were counted: the program has loaded no kernel that the user has selected"
            }
        });
    }
}

impl Loader {
    /// The rewritten kernel that runs in the place of the application's; nothing where there is none.
    pub(super) fn count(&mut self, wanted: &ApplicationKernel) -> Option<Planned> {
        let config = self.config.counting.as_ref()?;
        if kernels::is_runtimes(&wanted.facts.name) {
            return None;
        }
        self.counted.is_asked = true;
        let bytes = Arc::clone(wanted.bytes.as_ref()?);
        let key = (wanted.gpu.index, bytes.as_ptr() as usize);
        if !self.counted.objects.contains_key(&key) {
            let counted = self.rewrite(wanted, config, bytes);
            self.counted.is_used |= !counted.kernels.is_empty();
            self.counted.objects.insert(key, counted);
        }
        let counted = self.counted.objects.get(&key)?;
        let kernel = Arc::clone(&counted.kernels.get(&wanted.object)?.kernel);
        Some(Planned {
            plan: Plan::same(&wanted.facts),
            object: wanted.object,
            kernel: kernel.number(),
            loaded: Arc::clone(&counted.rewritten.as_ref()?.loaded),
            most_lds: self.runtime.memory.lds(wanted.gpu.agent).unwrap_or(LDS),
            slots: None,
            validation: None,
            probe: None,
            counting: Some(kernel),
            refused: OnceLock::new(),
            said: AtomicBool::new(false),
        })
    }

    /// What is to be known of dispatches of the application's kernel, which is not counted: nothing where its workgroups do not wait for each other.
    pub(super) fn waits_uncounted(&self, wanted: &ApplicationKernel) -> Option<Choice> {
        let config = self.config.counting.as_ref().filter(|config| config.keeps_grids())?;
        let bytes = wanted.bytes.as_ref().filter(|_| !kernels::is_runtimes(&wanted.facts.name))?;
        let object = self.counted.objects.get(&(wanted.gpu.index, bytes.as_ptr() as usize))?;
        let waits = object.waiting.contains(mangled(&wanted.facts));
        waits.then(|| Choice::uncounted(config.waiting_kernel()))
    }

    /// Looks which of the kernels that were left out have workgroups that may wait for each other. What is not known may.
    pub(super) fn watch_uncounted(&mut self) {
        let left_out = std::mem::take(&mut self.counted.left_out);
        let Some(config) = &self.config.counting else { return };
        for LeftOutKernels { bytes, kernels } in left_out.into_values() {
            let has = |name: &str| kernels.iter().any(|(_, kernel)| kernel == name);
            let known = bytes.filter(|_| config.keeps_grids()).map(|bytes| counting::waiting(&bytes, &has));
            for (object, name) in &kernels {
                let waits = match &known {
                    Some(Ok(waiting)) => waiting.contains(name),
                    _ => !kernels::is_runtimes(name),
                };
                let choice =
                    (waits && config.keeps_grids()).then(|| Choice::uncounted(config.waiting_kernel()));
                packet::publish(*object, choice);
            }
        }
    }

    /// Says that a kernel runs as it is, since the recorder has not seen where it came from.
    pub(super) fn cannot_count(&mut self, gpu: &Gpu, name: &str) {
        if self.config.counting.is_some() && !kernels::is_runtimes(name) && selection::has(name) {
            let why = format!("{name} is not counted on GPU {}: its code object is not known", gpu.index);
            self.refuse(Path::new(THE_PROGRAM), "", &gpu.target, why);
        }
    }

    /// Rewrites the code object that `wanted` is of, with all of its kernels that may be counted, and loads it.
    fn rewrite(
        &mut self,
        wanted: &ApplicationKernel,
        config: &'static CountingConfig,
        bytes: Arc<[u8]>,
    ) -> CountedObject {
        let is_of_it = |other: &&ApplicationKernel| {
            let same = other.bytes.as_ref().is_some_and(|other| Arc::ptr_eq(other, &bytes));
            same && other.gpu.index == wanted.gpu.index
        };
        let others = self.wanted.values().flatten().filter(is_of_it);
        let all: HashMap<String, CountableKernel> = others
            .chain([wanted])
            .map(|kernel| (mangled(&kernel.facts).into(), CountableKernel::of(kernel)))
            .collect();
        let waiting = BTreeSet::new();
        let mut counted = CountedObject { bytes, rewritten: None, waiting, kernels: BTreeMap::new() };
        let made = counting::rewrite(&counted.bytes, &config.options, &|name| all.contains_key(name));
        let is_refused = |name: &str| match &made {
            Ok(made) => made.refused.iter().any(|(refused, _)| refused == name),
            Err(_) => all.contains_key(name),
        };
        if made.as_ref().map_or(true, |made| !made.refused.is_empty()) {
            counted.waiting = counting::waiting(&counted.bytes, &is_refused)
                .unwrap_or_else(|_| all.keys().filter(|name| is_refused(name)).cloned().collect());
        }
        let (gpu, target) = (wanted.gpu, wanted.gpu.target.clone());
        let program = Path::new(THE_PROGRAM);
        let mut refuse = |what: &str, why: &dyn std::fmt::Display| {
            self.refuse(program, "", &target, format!("{what} is not counted on GPU {}: {why}", gpu.index));
        };
        let made = match made {
            Ok(made) => made,
            Err(why) => {
                refuse("a code object", &why);
                return counted;
            }
        };
        for (name, why) in &made.refused {
            if let Some(kernel) = all.get(name) {
                refuse(&kernel.facts.demangled(), why);
            }
        }
        if made.kernels.is_empty() {
            return counted;
        }
        match self.load_counting(gpu, &made, &all, config, &counted.bytes) {
            Ok((rewritten, kernels)) => (counted.rewritten, counted.kernels) = (Some(rewritten), kernels),
            Err(why) => {
                self.refuse(program, "", &target, format!("nothing is counted on GPU {}: {why}", gpu.index))
            }
        }
        counted
    }

    /// Loads what was made of a code object, and gives its kernels their counters.
    fn load_counting(
        &mut self,
        gpu: &'static Gpu,
        made: &Rewritten,
        all: &HashMap<String, CountableKernel>,
        config: &'static CountingConfig,
        bytes: &[u8],
    ) -> Result<(RewrittenObject, BTreeMap<u64, Arc<BlockCounters>>), String> {
        let (executable, objects) =
            load(&self.runtime, gpu.agent, &made.object).map_err(|why| match why {
                CandidateError::Useless(why) => why,
                CandidateError::Changed | CandidateError::Incomplete(_) => "the runtime goes down".into(),
            })?;
        let (said_long, is_launched) = (AtomicBool::new(false), AtomicBool::new(false));
        let loaded = Arc::new(LoadedCandidate { executable: Some(executable), said_long, is_launched });
        let size = |kernel: &counting::CountedKernel| {
            BlockCounters::size(kernel.slots.len(), kernel.counters as usize)
        };
        // SAFETY: the runtime lives, and waits for this thread before it goes (`stop`).
        let memory =
            unsafe { CounterMemory::allocate(&self.runtime, gpu.agent, made.kernels.iter().map(size).sum()) };
        let memory = match memory {
            Ok(memory) => Arc::new(memory),
            Err(why) => {
                // SAFETY: as above; nothing has its kernels.
                unsafe { self.runtime.code.unload(executable) };
                return Err(why.into());
            }
        };
        let outcome = self.of_the_program(gpu) as u32;
        let lines = SourceLines::of(bytes).unwrap_or_default();
        let (mut kernels, mut cells, mut from) = (BTreeMap::new(), BTreeMap::new(), 0);
        for kernel in &made.kernels {
            let place = from;
            from += size(kernel);
            let Some(original) = all.get(&kernel.name) else { continue };
            // An id of a block has no room for more.
            let is_numbered = u64::from(original.kernel) < u64::from(Block::MOST) - 1
                && kernel.blocks.len() < Block::MOST as usize;
            let object = match (is_numbered, objects.get(&original.facts.symbol)) {
                (true, Some(object)) => object,
                (is_numbered, _) => {
                    let name = original.facts.demangled();
                    let what = match is_numbered {
                        true => "the runtime does not name its copy",
                        false => "it has too many blocks",
                    };
                    let why = format!("{name} is not counted on GPU {}: {what}", gpu.index);
                    self.refuse(Path::new(THE_PROGRAM), "", &gpu.target, why);
                    continue;
                }
            };
            let at = |address: u64| object.wrapping_sub(kernel.original_descriptor).wrapping_add(address);
            let mut facts = original.facts.clone();
            (facts.vgpr_count, facts.sgpr_count) = (kernel.registers.vgprs, kernel.registers.sgprs);
            // Blocks are those of the original's code.
            let code_object = kernels::get(original.kernel).and_then(|kernel| kernel.code_object);
            let number =
                kernels::add_replacement(original.kernel, gpu.index, facts, code_object, outcome, true);
            let slots: Vec<u64> = kernel.slots.iter().map(|slot| at(slot.descriptor)).collect();
            let early =
                packet::present(original.object).and_then(|choice| choice.uncounted.as_ref()?.early.clone());
            let counted = Arc::new(CountingKernel::new(
                config,
                number,
                &slots,
                kernel.clone(),
                early.unwrap_or_default(),
            ));
            let blocks = blocks(made, kernel, config.options.variant, &lines, original.kernel);
            let counters = BlockCounters::new(
                counted,
                gpu,
                Arc::clone(&memory),
                (place, kernel.counters as usize),
                blocks,
            );
            let base = original.object.wrapping_sub(kernel.original_descriptor);
            for (number, slot) in kernel.slots.iter().enumerate() {
                let mut cell = counters.address(number).to_le_bytes().to_vec();
                cell.extend(base.to_le_bytes());
                cells.insert(at(slot.cell), cell);
            }
            kernels.insert(original.object, counters);
        }
        for (address, bytes) in joined(cells) {
            // SAFETY: the runtime lives, as above; cells in the executable that was just loaded, which nothing runs yet.
            if !unsafe { memory.write(address, &bytes) } {
                return Err("the addresses of its counters cannot be written".into());
            }
        }
        Ok((RewrittenObject { loaded, memory }, kernels))
    }
}

/// What is needed of a kernel of the application.
struct CountableKernel {
    object: u64,
    kernel: KernelId,
    facts: rpd_codeobject::Kernel,
}

impl CountableKernel {
    fn of(kernel: &ApplicationKernel) -> CountableKernel {
        CountableKernel { object: kernel.object, kernel: kernel.kernel, facts: kernel.facts.clone() }
    }
}

/// The name by which the code object has the kernel.
fn mangled(facts: &rpd_codeobject::Kernel) -> &str {
    facts.symbol.strip_suffix(".kd").unwrap_or(&facts.symbol)
}

/// The blocks of a kernel and of the functions that it calls, but for those of other kernels that call these too.
fn blocks(
    made: &Rewritten,
    kernel: &counting::CountedKernel,
    variant: Variant,
    lines: &SourceLines,
    number: KernelId,
) -> Vec<CountedBlock> {
    let function = |block: &counting::RewrittenBlock| {
        made.functions.get(block.function as usize).map_or("", String::as_str)
    };
    let is_its = |block: &&counting::RewrittenBlock| {
        let function = function(block);
        function == kernel.name || made.kernels.iter().all(|other| other.name != function)
    };
    let own = made.blocks[kernel.blocks.clone()].iter().filter(is_its).enumerate();
    let counted = |(place, block): (usize, &counting::RewrittenBlock)| {
        let (file, line) =
            (block.start..block.end).step_by(4).find_map(|at| lines.at(at)).unwrap_or_default();
        let first = block.counter as usize;
        CountedBlock {
            block: Block {
                kernel: u64::from(number) + 1,
                number: place as u32,
                function: function(block).to_string(),
                offset: block.start,
                size: block.end - block.start,
                file: file.to_string(),
                line,
                kinds: block.classes,
            },
            waves: Some(first),
            lanes: (variant == Variant::Lanes).then_some(first + 1),
            times: (variant == Variant::Time).then_some((first + 1, first + 2)),
        }
    };
    own.map(counted).collect()
}

/// Pieces of memory that lie one behind the other, as one.
fn joined(pieces: BTreeMap<u64, Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
    let mut joined: Vec<(u64, Vec<u8>)> = Vec::new();
    for (address, bytes) in pieces {
        match joined.last_mut() {
            Some((begin, before)) if *begin + before.len() as u64 == address => before.extend(bytes),
            _ => joined.push((address, bytes)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_touch_are_one() {
        let pieces = [(64, vec![1; 16]), (80, vec![2; 16]), (112, vec![3; 16])];
        let joined = joined(pieces.into_iter().collect());
        let all: Vec<(u64, usize)> = joined.iter().map(|(address, bytes)| (*address, bytes.len())).collect();
        assert_eq!(all, [(64, 32), (112, 16)]);
        assert_eq!(joined[0].1[15..17], [1, 2]);
    }
}
