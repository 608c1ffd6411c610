//! Which instrumented kernel runs in the place of one of the application's: one of a file of the cache, or else one that the application
//! itself has loaded.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use rpd_codeobject::Plan;
use rpd_preload::clock;
use rpd_schema::THE_PROGRAM;
use rpd_transport::log;
use rpd_transport::records::KernelId;
use rpd_transport::source::Outcome;

use super::{ApplicationKernel, LDS, Loader, Original, Place, may_run, usable};
use crate::gpu::code_objects::CodeNumber;
use crate::gpu::kernels;
use crate::hsa_runtime::agent::Gpu;
use crate::intercept::choice::Planned;
use crate::intercept::kernargs::Slots;
use crate::intercept::probe::{AnalyzedCode, Pool, Probe};
use crate::intercept::runtime::LoadedCandidate;

/// What the thread knows of instrumented kernels.
#[derive(Default)]
pub(super) struct Instrumented {
    /// Those that the application has loaded, by their GPU and symbol.
    own: HashMap<(u32, String), OwnKernel>,
    /// The symbols of all that it has ever loaded: it may have unloaded them when something is said of them.
    symbols: BTreeSet<String>,
    /// Stands for the code objects of the application's, which are not ours to unload.
    of_application: OnceLock<Arc<LoadedCandidate>>,
    pools: HashMap<u32, Arc<Pool>>,
    /// By their numbers in records: what has begun goes on when files change.
    probes: HashMap<KernelId, Arc<Probe>>,
}

/// An instrumented kernel of the application.
struct OwnKernel {
    object: u64,
    facts: rpd_codeobject::Kernel,
    bytes: Option<Arc<[u8]>>,
    code_object: Option<CodeNumber>,
}

/// An instrumented kernel that is loaded.
struct Found {
    plan: Plan,
    object: u64,
    loaded: Arc<LoadedCandidate>,
    outcome: usize,
    facts: rpd_codeobject::Kernel,
    code_object: Option<CodeNumber>,
    bytes: Option<Arc<[u8]>>,
}

impl Instrumented {
    /// The application has loaded an instrumented kernel.
    pub(super) fn add(&mut self, gpu: &Gpu, original: Original, facts: rpd_codeobject::Kernel) {
        let code_object = kernels::get(original.kernel).and_then(|kernel| kernel.code_object);
        let own = OwnKernel { object: original.object, bytes: original.bytes, code_object, facts };
        self.symbols.insert(own.facts.symbol.clone());
        self.own.insert((gpu.index, own.facts.symbol.clone()), own);
    }

    /// The application has unloaded the kernels at these addresses.
    pub(super) fn forget(&mut self, objects: &[u64]) {
        self.own.retain(|_, own| !objects.contains(&own.object));
    }

    /// Brings memory for messages where it runs short.
    pub(super) fn bring_memory(&self) {
        self.pools.values().for_each(|pool| pool.bring_memory());
    }

    /// The runtime goes down: says that no kernel had an instrumented one, and which of the program's are for none.
    pub(super) fn say_unused(&self) {
        if self.probes.is_empty() {
            log::problem(
                "no kernel was instrumented: of those that the program has loaded and the user has selected, none has an instrumented one in the program or the kernel cache",
            );
        }
        for symbol in &self.symbols {
            let original = rpd_codeobject::original_symbol(symbol);
            if original.is_some_and(|original| kernels::loaded_as(&original).is_empty()) {
                log::problem(&format!(
                    "{symbol} is the instrumented kernel of none that the program has loaded: is the name in RPD_INSTRUMENTED the mangled one?"
                ));
            }
        }
    }
}

impl Loader {
    /// The instrumented kernel that runs in the place of the application's; nothing where there is none.
    pub(super) fn instrument(&mut self, wanted: &ApplicationKernel) -> Option<Planned> {
        let config = self.config.probe.as_ref()?;
        let symbol = rpd_codeobject::instrumented_symbol(&wanted.facts.symbol)?;
        let places: Vec<Place> = self.by_symbol.get(&symbol).into_iter().flatten().cloned().collect();
        let of_cache = places.iter().find_map(|place| self.of_cache(wanted, &symbol, place));
        let found = of_cache.or_else(|| self.of_program(wanted, &symbol))?;
        let argument = found.plan.message_buffer()?;
        let number = *self.replacements.entry((wanted.kernel, found.outcome)).or_insert_with(|| {
            let candidate = found.outcome as u32;
            kernels::add_replacement(
                wanted.kernel,
                wanted.gpu.index,
                found.facts,
                found.code_object,
                candidate,
                true,
            )
        });
        let runtime = self.runtime;
        let Instrumented { pools, probes, .. } = &mut self.instrumented;
        let pool = pools.entry(wanted.gpu.index).or_insert_with(|| Pool::start(runtime, wanted.gpu, config));
        let probe = probes.entry(number).or_insert_with(|| {
            let name = wanted.facts.demangled();
            let code = AnalyzedCode::new(name, &wanted.gpu.target, found.bytes.as_deref());
            Arc::new(Probe::new(config, Arc::clone(pool), number, Arc::new(code), argument))
        });
        let slots = |size| Arc::clone(self.slots.entry(size).or_insert_with(|| Arc::new(Slots::new(size))));
        Some(Planned {
            object: found.object,
            kernel: number,
            loaded: found.loaded,
            most_lds: self.runtime.memory.lds(wanted.gpu.agent).unwrap_or(LDS),
            slots: found.plan.rebuilt_size().map(slots),
            plan: found.plan,
            validation: None,
            probe: Some(Arc::clone(probe)),
            counting: None,
            refused: OnceLock::new(),
            said: AtomicBool::new(false),
        })
    }

    /// The kernel of that symbol in a file of the cache.
    fn of_cache(&mut self, wanted: &ApplicationKernel, symbol: &str, (path, part): &Place) -> Option<Found> {
        let known = self.files.get_mut(path)?;
        let candidate = Arc::clone(&known.candidate.parts[*part]);
        if !may_run(&candidate.code, wanted.gpu) {
            return None;
        }
        known.reported = true;
        let sha256 = known.candidate.sha256.clone();
        let kernel = candidate.kernel(symbol)?;
        let instrumented =
            |()| Plan::instrumented(&wanted.facts, kernel).map_err(|mismatch| mismatch.to_string());
        let plan = match usable(&candidate).and_then(instrumented) {
            Ok(plan) => plan,
            Err(why) => {
                self.refuse_instrumented(path, &sha256, &candidate.code.target.to_string(), wanted, &why);
                return None;
            }
        };
        let bytes = self.files.get(path)?.candidate.code(*part).ok().map(|(bytes, _)| bytes.into());
        let in_runtime = self.load(path, *part, &candidate.code, wanted.gpu)?;
        Some(Found {
            plan,
            object: *in_runtime.objects.get(symbol)?,
            loaded: Arc::clone(&in_runtime.loaded),
            outcome: in_runtime.outcome,
            facts: kernel.clone(),
            code_object: in_runtime.code_object,
            bytes,
        })
    }

    /// The kernel of that symbol among those that the application has loaded.
    fn of_program(&mut self, wanted: &ApplicationKernel, symbol: &str) -> Option<Found> {
        let own = self.instrumented.own.get(&(wanted.gpu.index, symbol.to_string()))?;
        let plan = match Plan::instrumented(&wanted.facts, &own.facts) {
            Ok(plan) => plan,
            Err(why) => {
                self.refuse_instrumented(
                    Path::new(THE_PROGRAM),
                    "",
                    &wanted.gpu.target,
                    wanted,
                    &why.to_string(),
                );
                return None;
            }
        };
        let (object, facts, code_object, bytes) =
            (own.object, own.facts.clone(), own.code_object, own.bytes.clone());
        let never_unloaded = || {
            let (said_long, is_launched) = (AtomicBool::new(false), AtomicBool::new(false));
            Arc::new(LoadedCandidate { executable: None, said_long, is_launched })
        };
        let loaded = Arc::clone(self.instrumented.of_application.get_or_init(never_unloaded));
        let outcome = self.of_the_program(wanted.gpu);
        Some(Found { plan, object, loaded, outcome, facts, code_object, bytes })
    }

    /// The number of the outcome that stands for the program itself, as the source of kernels for that GPU.
    pub(super) fn of_the_program(&mut self, gpu: &Gpu) -> usize {
        let key = (THE_PROGRAM.into(), String::new(), 0, gpu.index);
        if let Some(outcome) = self.outcomes.get(&key) {
            return *outcome;
        }
        let now = clock::monotonic();
        let outcome =
            self.outcome(Path::new(THE_PROGRAM), "", &gpu.target, now, Outcome::Loaded, String::new());
        self.outcomes.insert(key, outcome);
        outcome
    }

    pub(super) fn refuse_instrumented(
        &mut self,
        path: &Path,
        sha256: &str,
        target: &str,
        wanted: &ApplicationKernel,
        why: &str,
    ) {
        let (name, gpu) = (wanted.facts.demangled(), wanted.gpu.index);
        self.refuse(path, sha256, target, format!("{name} is not instrumented on GPU {gpu}: {why}"));
    }
}
