//! The thread that keeps the kernel cache: it reads candidates when they appear, compares their kernels with those that the
//! application has loaded, and loads into the runtime what can run in the place of one. Nothing is loaded that no kernel needs.
//!
//! A candidate that is gone stays in the runtime as long as something may run it: queues that know of it, and dispatches that have
//! not completed.
//!
//! - `counted`: kernels that are rewritten to count their basic blocks; `instrumented`: which instrumented kernel runs in the place of one; `unused`: why nothing of a file has run

mod counted;
mod instrumented;
mod unused;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rpd_codeobject::{CodeObject, Plan, pointer_places};
use rpd_preload::clock::{self, Clock};
use rpd_preload::lock::{lock, lock_within};
use rpd_preload::threads;
use rpd_transport::log;
use rpd_transport::recorder;
use rpd_transport::records::KernelId;
use rpd_transport::source::{CandidateText, Outcome};

use self::counted::Counted;
use self::instrumented::Instrumented;
use self::unused::LeftOut;
use super::alternate::Alternate;
use super::candidate::{Candidate, CandidateError, CandidatePart, Triton};
use super::choice::{Choice, Planned};
use super::config::{self, CacheConfig};
use super::gate;
use super::kernargs::Slots;
use super::libraries::Libraries;
use super::runtime::{LoadedCandidate, Runtime};
use super::tree::{Changes, LOOK, News, Tree};
use super::validate::{self, Validation};
use super::{outcomes, packet};
use crate::gpu::code_objects::{self, CodeNumber};
use crate::gpu::{kernels, selection};
use crate::hsa_runtime::abi::{Agent, Executable};
use crate::hsa_runtime::agent::Gpu;

/// How long a thread that loads kernels waits for what may run in their place.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at memory for arguments, where there is any.
const GLANCE: Duration = Duration::from_millis(5);

/// A kernel that the application has loaded.
pub(crate) struct Original {
    /// Address of its descriptor.
    pub(crate) object: u64,
    /// The agent it was loaded for.
    pub(crate) agent: Agent,
    /// Its number in records.
    pub(crate) kernel: KernelId,
    /// The file that it came from, where it came from one and somebody wants to know.
    pub(crate) origin: Option<Arc<Path>>,
    /// A variable of its code object that kernels could change, where somebody wants to know.
    pub(crate) variable: Option<String>,
    /// SHA-256 of its code object, in hexadecimal digits, where that has no other kernel.
    pub(crate) sha256: Option<Arc<str>>,
    /// The bytes of its code object, where somebody wants them.
    pub(crate) bytes: Option<Arc<[u8]>>,
}

/// What the thread is to do.
#[derive(Default)]
struct LoaderRequests {
    loaded: Vec<Original>,
    unloaded: Vec<u64>,
    news: News,
    stop: bool,
    /// How often it was asked, and up to which of them it has done all.
    asked: u64,
    done: u64,
    started: bool,
    finished: bool,
}

impl LoaderRequests {
    /// These kernels are gone, also those that nobody has looked at yet: others may be loaded at their addresses next.
    fn unload(&mut self, objects: &[u64]) {
        self.loaded.retain(|original| !objects.contains(&original.object));
        if !self.finished {
            self.unloaded.extend(objects);
        }
    }
}

/// The thread was started in this process, or in the one that it was forked from.
pub(super) static STARTED: AtomicBool = AtomicBool::new(false);
static REQUESTS: LazyLock<Mutex<LoaderRequests>> = LazyLock::new(Mutex::default);
/// There is something to do.
static ASKED: Condvar = Condvar::new();
/// Something was done.
static DONE: Condvar = Condvar::new();

/// See [`super::loaded`].
pub(super) fn loaded(runtime: Runtime, kernels: Vec<Original>) {
    let Some(config) = config::get() else { return };
    let Some(mut requests) = lock_within(&REQUESTS, PATIENCE) else { return };
    if !requests.started {
        *requests = LoaderRequests { started: true, ..LoaderRequests::default() };
        STARTED.store(true, Ordering::Relaxed);
        if let Err(error) = threads::spawn(c"rpd-candidates", move || run(runtime, config)) {
            log::problem(&format!("cannot start a thread ({error}): no kernel is replaced"));
            requests.finished = true;
        }
    }
    if requests.finished {
        return;
    }
    if let Some(counting) = &config.counting {
        let new = |kernel: &Original| (kernel.object, Choice::uncounted(counting.unknown(kernel.kernel)));
        packet::publish_new(kernels.iter().map(new));
    }
    requests.loaded.extend(kernels);
    requests.asked += 1;
    let mine = requests.asked;
    ASKED.notify_all();
    if config.counting.as_ref().is_some_and(|counting| !counting.waits) {
        return;
    }
    let (requests, waited) = DONE
        .wait_timeout_while(requests, PATIENCE, |requests| requests.done < mine && !requests.finished)
        .unwrap_or_else(PoisonError::into_inner);
    drop(requests);
    if waited.timed_out() {
        match config.counting {
            Some(_) => log::problem(
                "kernels take long to rewrite: the blocks of their first dispatches are not counted (rpd probe -k chooses fewer)",
            ),
            None => log::info(|| {
                "the kernel cache takes long to read: the first dispatches are not replaced".into()
            }),
        }
    }
}

/// See [`super::unloaded`].
pub(super) fn unloaded(objects: &[u64]) {
    // Their addresses may be those of other kernels at once.
    objects.iter().for_each(|object| packet::unload(*object));
    let Some(mut requests) = lock_within(&REQUESTS, PATIENCE) else { return };
    requests.unload(objects);
    ASKED.notify_all();
}

/// See [`super::stop`].
pub(super) fn stop(deadline: Duration) {
    let Some(mut requests) = lock_within(&REQUESTS, deadline) else { return };
    if !requests.started {
        return;
    }
    requests.stop = true;
    ASKED.notify_all();
    let stopped = DONE.wait_timeout_while(requests, deadline, |requests| !requests.finished);
    drop(stopped.unwrap_or_else(PoisonError::into_inner));
}

fn run(runtime: Runtime, config: &'static CacheConfig) {
    let body = std::panic::AssertUnwindSafe(|| Loader::new(runtime, config).serve());
    if std::panic::catch_unwind(body).is_err() {
        log::problem("kernels that are replaced stay so, no other ones will be");
    }
    let mut requests = lock(&REQUESTS);
    requests.finished = true;
    // Another life of the runtime begins anew.
    requests.started = !requests.stop;
    drop(requests);
    DONE.notify_all();
}

/// A file of the cache, and what was loaded of it.
struct CacheFile {
    candidate: Candidate,
    /// By code object and GPU; nothing where the runtime refuses it.
    loaded: HashMap<(usize, u32), Option<InRuntime>>,
    /// Something was said of it, or will not be.
    reported: bool,
    /// Why nothing of it may be of use, where more is known than that no kernel needs it.
    unused: Option<&'static str>,
}

impl CacheFile {
    /// The runtime has code of it, and the program has launched no kernel in whose place that runs.
    fn is_loaded_in_vain(&self) -> bool {
        let mut loaded = self.loaded.values().flatten().peekable();
        loaded.peek().is_some() && loaded.all(|code| !code.loaded.is_launched.load(Ordering::Relaxed))
    }
}

/// A candidate's code object in the runtime.
struct InRuntime {
    loaded: Arc<LoadedCandidate>,
    /// Kernel objects by their symbols.
    objects: HashMap<String, u64>,
    /// Where its bytes are saved.
    code_object: Option<CodeNumber>,
    /// Its number among the outcomes.
    outcome: usize,
}

/// A kernel of the application that may be replaced.
struct ApplicationKernel {
    object: u64,
    gpu: &'static Gpu,
    kernel: KernelId,
    facts: rpd_codeobject::Kernel,
    variable: Option<String>,
    sha256: Option<Arc<str>>,
    bytes: Option<Arc<[u8]>>,
}

/// What the builds of Triton's in the cache that have a kernel of one name are made of.
enum Programs {
    /// What the application's own build is made of, which is among them.
    Own(Option<String>),
    /// So many different ones.
    Several(usize),
    /// One, or none.
    One,
}

/// Where a kernel of a candidate is.
type Place = (PathBuf, usize);

/// The thread's own state.
struct Loader {
    runtime: Runtime,
    config: &'static CacheConfig,
    libraries: Libraries,
    /// Files of the cache, where there is one.
    tree: Option<Tree>,
    files: BTreeMap<PathBuf, CacheFile>,
    /// Files beside which something is not there yet, and what.
    incomplete: BTreeMap<PathBuf, String>,
    /// Which candidates have a kernel of that symbol, in the order of their paths.
    by_symbol: HashMap<String, BTreeSet<Place>>,
    wanted: HashMap<String, Vec<ApplicationKernel>>,
    /// The application's kernels that are not to be replaced, by their numbers in records.
    left_out: HashMap<KernelId, LeftOut>,
    /// Code objects that are to leave the runtime.
    retired: Vec<Arc<LoadedCandidate>>,
    slots: BTreeMap<u32, Arc<Slots>>,
    /// Numbers of outcomes that came before: of the same bytes at the same path, for the same GPU.
    outcomes: HashMap<(PathBuf, String, usize, u32), usize>,
    /// Those of them that are gone.
    removed: BTreeSet<usize>,
    /// What was said of which bytes.
    refused: HashSet<(String, String)>,
    /// Numbers in records, by the application's kernel and the candidate's outcome.
    replacements: HashMap<(KernelId, usize), KernelId>,
    /// By these numbers: what has begun goes on when files change.
    validations: HashMap<KernelId, Arc<Validation>>,
    instrumented: Instrumented,
    counted: Counted,
}

impl Loader {
    fn new(runtime: Runtime, config: &'static CacheConfig) -> Loader {
        Loader {
            runtime,
            config,
            libraries: Libraries::read(config.libraries.as_deref()),
            tree: config.cache.clone().map(Tree::new),
            files: BTreeMap::new(),
            incomplete: BTreeMap::new(),
            by_symbol: HashMap::new(),
            wanted: HashMap::new(),
            left_out: HashMap::new(),
            retired: Vec::new(),
            slots: BTreeMap::new(),
            outcomes: HashMap::new(),
            removed: BTreeSet::new(),
            refused: HashSet::new(),
            replacements: HashMap::new(),
            validations: HashMap::new(),
            instrumented: Instrumented::default(),
            counted: Counted::default(),
        }
    }

    fn serve(&mut self) {
        if let (Some(tree), Some(cache)) = (&mut self.tree, &self.config.cache) {
            if let Err(error) = tree.watch(changed) {
                log::info(|| format!("{}: changes are looked for every second ({error})", cache.display()));
            }
            if !cache.is_dir() {
                log::problem(&format!("{} is no directory: no kernel is replaced", cache.display()));
            }
        }
        if let Some(validation) = &self.config.validation {
            validate::start(self.runtime, validation);
        }
        if self.config.probe.is_some() {
            // SAFETY: the runtime lives while this thread begins to serve it.
            unsafe { gate::make(&self.runtime, usize::MAX) };
        }
        let mut looked = Instant::now();
        let mut news = News { everything: true, ..News::default() };
        let mut first = true;
        let mut cpu = clock::read(Clock::ThreadCpu);
        loop {
            let mut symbols = BTreeSet::new();
            let looks = |tree: &Tree| !news.is_empty() || (!tree.is_watched() && looked.elapsed() >= LOOK);
            if let Some(tree) = self.tree.as_mut().filter(|tree| looks(tree)) {
                looked = Instant::now();
                let changes = tree.look(&news, first);
                self.apply(changes, &mut symbols);
                first = false;
            }
            let mut requests = lock(&REQUESTS);
            let (asked, stop) = (requests.asked, requests.stop);
            let (loaded, unloaded) =
                (std::mem::take(&mut requests.loaded), std::mem::take(&mut requests.unloaded));
            drop(requests);
            if stop {
                return self.finish();
            }
            self.forget(&unloaded);
            self.libraries.look_again();
            loaded.into_iter().for_each(|original| self.want(original, &mut symbols));
            symbols.iter().for_each(|symbol| self.reconsider(symbol));
            // What is chosen needs memory for arguments from the first dispatch on.
            self.bring_memory();
            answer(asked);
            self.watch_uncounted();
            packet::say_refusals();
            self.retire();
            let now = clock::read(Clock::ThreadCpu);
            if let Some(recorder) = recorder::get() {
                recorder.counters.cpu_ns.fetch_add(now - cpu, Ordering::Relaxed);
            }
            cpu = now;
            news = self.wait(asked);
        }
    }

    /// Waits for something to do: what the kernel told of meanwhile.
    fn wait(&self, done: u64) -> News {
        let pause = match (self.slots.is_empty() && self.counted.is_empty(), self.retired.is_empty()) {
            (false, _) => GLANCE,
            (true, false) => GLANCE * 10,
            (true, true) => LOOK,
        };
        let requests = lock(&REQUESTS);
        let idle = |requests: &mut LoaderRequests| {
            requests.asked == done
                && requests.unloaded.is_empty()
                && requests.news.is_empty()
                && !requests.stop
        };
        let waiting = ASKED.wait_timeout_while(requests, pause, idle);
        let (mut requests, _): (MutexGuard<'_, LoaderRequests>, _) =
            waiting.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut requests.news)
    }

    /// Reads what is new and forgets what is gone; adds the symbols for which that may make a difference.
    fn apply(&mut self, changes: Changes, symbols: &mut BTreeSet<String>) {
        for (directory, why) in changes.unreadable {
            self.outcome(
                &directory,
                "",
                "",
                0,
                Outcome::Failed,
                format!("the directory cannot be read ({why})"),
            );
        }
        for path in changes.gone {
            self.incomplete.remove(&path);
            let Some(known) = self.files.remove(&path) else { continue };
            for (part, code) in known.candidate.parts.iter().enumerate() {
                for kernel in &code.code.kernels {
                    if let Some(places) = self.by_symbol.get_mut(&kernel.symbol) {
                        places.remove(&(path.clone(), part));
                    }
                    symbols.insert(kernel.symbol.clone());
                }
            }
            for in_runtime in known.loaded.into_values().flatten() {
                if self.removed.insert(in_runtime.outcome) {
                    let Candidate { path, sha256, .. } = &known.candidate;
                    self.outcome(path, sha256, "", 0, Outcome::Removed, String::new());
                }
                self.retired.push(in_runtime.loaded);
            }
        }
        for path in changes.new {
            let candidate = match Candidate::read(&path) {
                Ok(candidate) => candidate,
                Err(CandidateError::Changed) => continue,
                Err(CandidateError::Incomplete(why)) => {
                    self.incomplete.insert(path, why);
                    continue;
                }
                Err(CandidateError::Useless(why)) => {
                    self.outcome(&path, "", "", 0, Outcome::Failed, why);
                    continue;
                }
            };
            for (part, code) in candidate.parts.iter().enumerate() {
                for kernel in &code.code.kernels {
                    self.by_symbol.entry(kernel.symbol.clone()).or_default().insert((path.clone(), part));
                    symbols.insert(kernel.symbol.clone());
                }
            }
            self.files
                .insert(path, CacheFile { candidate, loaded: HashMap::new(), reported: false, unused: None });
        }
    }

    /// A kernel of the application is there.
    fn want(&mut self, original: Original, symbols: &mut BTreeSet<String>) {
        let Some(gpu) = self.runtime.gpus.of(original.agent) else {
            return packet::publish(original.object, None);
        };
        let Some(kernel) = kernels::get(original.kernel) else {
            return packet::publish(original.object, None);
        };
        let Some(facts) = kernel.facts.clone() else {
            self.cannot_count(gpu, &kernel.name());
            return self.counted.leave_out(&original, None);
        };
        if self.config.probe.is_some()
            && let Some(plain) = rpd_codeobject::original_symbol(&facts.symbol)
        {
            symbols.insert(plain);
            return self.instrumented.add(gpu, original, facts);
        }
        let name = kernel.name();
        if let Some(validation) = &self.config.validation {
            // Also kernels that nothing replaces show that the pattern is a good one.
            validation.has(&name);
        }
        let left_out = match selection::has(&name) {
            false => Some(LeftOut::Filter),
            true => (!self.libraries.allow(&original.origin)).then_some(LeftOut::Library),
        };
        if let Some(left_out) = left_out {
            self.left_out.insert(original.kernel, left_out);
            return self.counted.leave_out(&original, Some(&facts));
        }
        symbols.insert(facts.symbol.clone());
        let wanted = ApplicationKernel {
            object: original.object,
            gpu,
            kernel: original.kernel,
            facts,
            variable: original.variable,
            sha256: original.sha256,
            bytes: original.bytes,
        };
        self.wanted.entry(wanted.facts.symbol.clone()).or_default().push(wanted);
    }

    fn forget(&mut self, objects: &[u64]) {
        if objects.is_empty() {
            return;
        }
        // This thread may have published what it found out meanwhile.
        objects.iter().for_each(|object| packet::unload(*object));
        for wanted in self.wanted.values_mut() {
            wanted.retain(|wanted| !objects.contains(&wanted.object));
        }
        self.wanted.retain(|_, wanted| !wanted.is_empty());
        self.instrumented.forget(objects);
        self.counted.forget(objects);
    }

    /// Works out anew what may run in the place of the application's kernels of that symbol.
    fn reconsider(&mut self, symbol: &str) {
        let original = rpd_codeobject::original_symbol(symbol).filter(|_| self.config.probe.is_some());
        let symbol = original.as_deref().unwrap_or(symbol);
        let Some(wanted) = self.wanted.remove(symbol) else { return };
        for wanted in &wanted {
            if self.config.probe.is_some() || self.config.counting.is_some() {
                let planned = self.instrument(wanted).or_else(|| self.count(wanted));
                let planned: Vec<Planned> = planned.into_iter().collect();
                let choice = match planned.is_empty() {
                    false => Some(Choice::new(Alternate::Never, planned, None)),
                    true => self.waits_uncounted(wanted),
                };
                packet::publish(wanted.object, choice);
                continue;
            }
            let places: Vec<Place> = self.by_symbol.get(symbol).into_iter().flatten().cloned().collect();
            let programs = self.programs(wanted, &places);
            let mut planned = Vec::new();
            for place in places {
                if !planned.is_empty() && self.config.alternate == Alternate::Never {
                    if let Some(known) = self.files.get_mut(&place.0) {
                        known.unused =
                            Some("without turns, the kernels of the file whose path comes first run");
                    }
                    continue;
                }
                planned.extend(self.plan(wanted, &programs, &place));
            }
            let choice = (!planned.is_empty()).then(|| {
                let before = packet::present(wanted.object);
                Choice::new(self.config.alternate, planned, before.as_deref())
            });
            packet::publish(wanted.object, choice);
        }
        self.wanted.insert(symbol.to_string(), wanted);
    }

    /// What the builds of Triton's among these candidates are made of.
    fn programs(&self, wanted: &ApplicationKernel, places: &[Place]) -> Programs {
        let of_gpu = places.iter().filter_map(|(path, part)| {
            let known = self.files.get(path)?;
            may_run(&known.candidate.parts.get(*part)?.code, wanted.gpu).then_some(&known.candidate)
        });
        let mut all = BTreeSet::new();
        for candidate in of_gpu {
            let Some(triton) = &candidate.triton else { continue };
            if wanted.sha256.as_deref() == Some(candidate.sha256.as_str()) {
                return Programs::Own(triton.program.clone());
            }
            all.insert(&triton.program);
        }
        if all.len() > 1 { Programs::Several(all.len()) } else { Programs::One }
    }

    /// How the candidate's kernel runs in the place of the application's, loaded; nothing where it cannot.
    fn plan(&mut self, wanted: &ApplicationKernel, programs: &Programs, place: &Place) -> Option<Planned> {
        let (path, part) = place;
        let known = self.files.get_mut(path)?;
        let candidate = Arc::clone(&known.candidate.parts[*part]);
        let code = &candidate.code;
        if !may_run(code, wanted.gpu) {
            return None;
        }
        let sha256 = known.candidate.sha256.clone();
        let triton = known.candidate.triton.clone();
        if triton.is_some() && wanted.sha256.as_deref() == Some(sha256.as_str()) {
            known.unused = Some("it is the build that the program itself has loaded");
            return None;
        }
        known.reported = true;
        let symbol = &wanted.facts.symbol;
        let kernel = candidate.kernel(symbol)?;
        let build = triton.as_deref().filter(|triton| triton.build.name == kernel.name);
        let plan = build.map_or(Ok(()), |triton| programs.allow(triton));
        let plan = plan.and_then(|()| check(&candidate, &wanted.facts, kernel, build));
        let plan = match plan {
            Ok(plan) => plan,
            Err(why) => {
                let why =
                    format!("{} is not replaced on GPU {}: {why}", kernel.demangled(), wanted.gpu.index);
                let target = code.target.to_string();
                self.refuse(path, &sha256, &target, why);
                return None;
            }
        };
        let in_runtime = self.load(path, *part, code, wanted.gpu)?;
        let (object, outcome) = (*in_runtime.objects.get(symbol)?, in_runtime.outcome);
        let (loaded, code_object) = (Arc::clone(&in_runtime.loaded), in_runtime.code_object);
        let number = self.replacements.entry((wanted.kernel, outcome)).or_insert_with(|| {
            let candidate = outcome as u32;
            let gpu = wanted.gpu.index;
            kernels::add_replacement(wanted.kernel, gpu, kernel.clone(), code_object, candidate, false)
        });
        let number = *number;
        let slots = plan
            .rebuilt_size()
            .map(|size| Arc::clone(self.slots.entry(size).or_insert_with(|| Arc::new(Slots::new(size)))));
        let validation = self.validation(wanted, &plan, number);
        Some(Planned {
            plan,
            object,
            kernel: number,
            loaded,
            most_lds: self.runtime.memory.lds(wanted.gpu.agent).unwrap_or(LDS),
            slots,
            validation,
            probe: None,
            counting: None,
            refused: OnceLock::new(),
            said: AtomicBool::new(false),
        })
    }

    /// How the results of the candidate of that number are compared, where that was asked for.
    fn validation(
        &mut self,
        wanted: &ApplicationKernel,
        plan: &Plan,
        number: KernelId,
    ) -> Option<Arc<Validation>> {
        let facts = &wanted.facts;
        let config = self.config.validation.as_ref().filter(|config| config.has(&facts.demangled()))?;
        if let Some(known) = self.validations.get(&number) {
            return Some(Arc::clone(known));
        }
        let places = match &wanted.variable {
            Some(variable) => {
                Err(format!("the program's code object has a variable {variable}, which both would change"))
            }
            None => pointer_places(facts),
        };
        let plan = (facts.kernarg_segment_size, plan.clone());
        let validation = Arc::new(Validation::new(config, places, plan, wanted.gpu.agent, number));
        self.validations.insert(number, Arc::clone(&validation));
        Some(validation)
    }

    /// The code object in the runtime, loaded for that GPU; nothing where the runtime refuses it.
    fn load(&mut self, path: &PathBuf, part: usize, code: &CodeObject, gpu: &Gpu) -> Option<&InRuntime> {
        let known = self.files.get_mut(path)?;
        let key = (part, gpu.index);
        if !known.loaded.contains_key(&key) {
            let sha256 = known.candidate.sha256.clone();
            let target = code.target.to_string();
            let loaded = known.candidate.code(part).and_then(|(bytes, origin)| {
                let (executable, objects) = load(&self.runtime, gpu.agent, &bytes)?;
                Ok((executable, objects, code_objects::loaded(&bytes, &origin, target.clone())))
            });
            let in_runtime = match loaded {
                Ok((executable, objects, code_object)) => {
                    let same = (path.clone(), sha256.clone(), part, gpu.index);
                    let outcome = match self.outcomes.get(&same) {
                        Some(outcome) => *outcome,
                        None => {
                            let now = clock::monotonic();
                            self.outcome(path, &sha256, &target, now, Outcome::Loaded, String::new())
                        }
                    };
                    self.outcomes.insert(same, outcome);
                    Some(InRuntime {
                        loaded: Arc::new(LoadedCandidate {
                            executable: Some(executable),
                            said_long: AtomicBool::new(false),
                            is_launched: AtomicBool::new(false),
                        }),
                        objects,
                        code_object,
                        outcome,
                    })
                }
                Err(CandidateError::Changed | CandidateError::Incomplete(_)) => return None,
                Err(CandidateError::Useless(why)) => {
                    self.outcome(path, &sha256, &target, 0, Outcome::Failed, why);
                    None
                }
            };
            self.files.get_mut(path)?.loaded.insert(key, in_runtime);
        }
        self.files.get(path)?.loaded.get(&key)?.as_ref()
    }

    fn outcome(
        &self,
        path: &std::path::Path,
        sha256: &str,
        target: &str,
        loaded: u64,
        outcome: Outcome,
        reason: String,
    ) -> usize {
        outcomes::add(CandidateText {
            path: path.to_string_lossy().into_owned(),
            sha256: sha256.to_string(),
            target: target.to_string(),
            loaded,
            outcome,
            reason,
        })
    }

    /// Brings memory for arguments where it runs short.
    fn bring_memory(&mut self) {
        self.instrumented.bring_memory();
        self.counted.visit(&self.runtime);
        for slots in self.slots.values() {
            let wanted = slots.wanted();
            if wanted == 0 || !(self.runtime.lives)() {
                continue;
            }
            let agents: Vec<Agent> = self.runtime.gpus.all().iter().map(|gpu| gpu.agent).collect();
            // SAFETY: the runtime lives, and waits for this thread before it goes (`stop`).
            if let Some(memory) = unsafe { self.runtime.memory.kernargs(&agents, wanted) } {
                // SAFETY: memory of whole pages that was just allocated for devices to read, and is never given back.
                unsafe { slots.add(memory, wanted) };
            }
        }
    }

    /// Takes what nothing can run any more out of the runtime.
    fn retire(&mut self) {
        let runtime = self.runtime;
        self.retired.retain(|loaded| {
            // Others get theirs from a choice, which has one as long as it can be found.
            let is_used = Arc::strong_count(loaded) > 1;
            if let Some(executable) = loaded.executable.filter(|_| !is_used && (runtime.lives)()) {
                // SAFETY: the runtime lives, and waits for this thread before it goes (`stop`); nobody has the kernels any more.
                unsafe { runtime.code.unload(executable) };
            }
            is_used
        });
    }

    /// The process or the runtime ends.
    fn finish(&mut self) {
        if self.config.validation.is_some() {
            validate::stop(PATIENCE);
            self.validations.values().for_each(|validation| validation.say_missed());
        }
        for known in self.files.values().filter(|known| !known.reported || known.is_loaded_in_vain()) {
            let Candidate { path, sha256, parts, .. } = &known.candidate;
            let runs =
                parts.iter().any(|part| self.runtime.gpus.all().iter().any(|gpu| may_run(&part.code, gpu)));
            let targets: Vec<String> = parts.iter().map(|part| part.code.target.to_string()).collect();
            let (outcome, reason) = match runs {
                true => (Outcome::Unused, self.why_unused(known, known.is_loaded_in_vain())),
                false => (Outcome::OtherTarget, "no GPU of this process is such a processor".into()),
            };
            self.outcome(path, sha256, &targets.join(", "), 0, outcome, reason);
        }
        for (path, why) in &self.incomplete {
            self.outcome(path, "", "", 0, Outcome::Failed, why.clone());
        }
        let missed: u64 = self.slots.values().map(|slots| slots.missed()).sum();
        if missed > 0 {
            log::problem(&format!(
                "{missed} dispatches ran the application's kernel: there was no memory for other arguments"
            ));
        }
        if self.config.probe.is_some() {
            self.instrumented.say_unused();
        }
        if self.config.counting.is_some() {
            self.counted.say_unused();
        }
        self.wanted.values().flatten().for_each(|wanted| packet::publish(wanted.object, None));
    }

    fn refuse(&mut self, path: &std::path::Path, sha256: &str, target: &str, why: String) {
        if self.refused.insert((sha256.to_string(), why.clone())) {
            self.outcome(path, sha256, target, 0, Outcome::Refused, why);
        }
    }
}

/// LDS of a workgroup where the runtime does not say: that of every GPU up to gfx942, bytes.
const LDS: u32 = 64 << 10;

/// Says how far the thread is.
fn answer(done: u64) {
    lock(&REQUESTS).done = done;
    DONE.notify_all();
}

/// Called by the thread of `notify`.
fn changed(event: notify::Result<notify::Event>) {
    let mut requests = lock(&REQUESTS);
    requests.news.add(event);
    if !requests.news.is_empty() {
        ASKED.notify_all();
    }
}

/// Whether a code object is for the processor of that GPU, as far as names tell; the runtime knows of features.
fn may_run(code: &CodeObject, gpu: &Gpu) -> bool {
    code.target.processor == gpu.target || code.target.processor.ends_with("-generic")
}

/// How the kernel runs in the place of the original; why not, otherwise.
fn check(
    part: &CandidatePart,
    original: &rpd_codeobject::Kernel,
    kernel: &rpd_codeobject::Kernel,
    triton: Option<&Triton>,
) -> Result<Plan, String> {
    usable(part)?;
    Plan::new(original, kernel, triton.map(|triton| &triton.build)).map_err(|mismatch| mismatch.to_string())
}

/// Whether kernels of a candidate's code object can run without the program knowing of it; why not, otherwise.
fn usable(part: &CandidatePart) -> Result<(), String> {
    if part.code.source != rpd_codeobject::FactsFrom::Metadata {
        return Err("its code object does not say what arguments it has".into());
    }
    if let Some(variable) = part.variables.first() {
        return Err(format!(
            "its code object has a variable {variable} of its own, which the program does not set"
        ));
    }
    Ok(())
}

impl Programs {
    /// Whether a build of this program may run in the place of the application's; why not, otherwise. The code object of a build does not
    /// say its constants, such as how much one workgroup does.
    fn allow(&self, triton: &Triton) -> Result<(), String> {
        match self {
            Programs::Own(own) if *own != triton.program => {
                Err("it was made of other code or other constants \
                than the application's, whose build is in the directory too (their .ttir differ)"
                    .into())
            }
            Programs::Several(count) => Err(format!(
                "the directory has builds of {count} programs of that name, with other code or other constants (their .ttir \
                 differ), and not the application's own"
            )),
            _ => Ok(()),
        }
    }
}

/// Loads a code object into the runtime: its executable, and its kernel objects by their symbols.
fn load(
    runtime: &Runtime,
    agent: Agent,
    code: &[u8],
) -> Result<(Executable, HashMap<String, u64>), CandidateError> {
    if !(runtime.lives)() {
        return Err(CandidateError::Changed);
    }
    // SAFETY: the runtime lives, and waits for this thread before it goes (`stop`).
    let executable = unsafe { runtime.code.load(agent, code) }
        .map_err(|(function, status)| format!("the runtime refuses it ({function}: status {status:#x})"))?;
    let kernels = runtime.code.kernels(executable);
    Ok((executable, kernels.into_iter().map(|kernel| (kernel.symbol, kernel.object)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unloaded_before_anybody_looked_is_not_wanted() {
        let original = |object| Original {
            object,
            agent: Agent(1),
            kernel: 0,
            origin: None,
            variable: None,
            sha256: None,
            bytes: None,
        };
        let mut requests =
            LoaderRequests { loaded: [64, 128, 192].map(original).into(), ..LoaderRequests::default() };
        requests.unload(&[64, 192, 256]);
        // Another kernel at an address that is free again.
        requests.loaded.push(original(64));
        assert_eq!(requests.loaded.iter().map(|original| original.object).collect::<Vec<_>>(), [128, 64]);
        assert_eq!(requests.unloaded, [64, 192, 256], "taken before what is loaded");
    }
}
