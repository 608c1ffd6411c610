//! The thread that keeps the kernel cache: it reads candidates when they appear, compares their kernels with those that the
//! application has loaded, and loads into the runtime what can run in the place of one. Nothing is loaded that no kernel needs.
//!
//! A candidate that is gone stays in the runtime as long as something may run it: queues that know of it, and dispatches that have
//! not completed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rpd_codeobject::{CodeObject, Plan};
use rpd_preload::clock::{self, Clock};
use rpd_preload::lock::{lock, lock_within};
use rpd_preload::threads;
use rpd_transport::log;
use rpd_transport::recorder;
use rpd_transport::records::KernelId;
use rpd_transport::source::{CandidateText, Outcome};

use super::candidate::{Candidate, Failure, Part};
use super::choice::{Alternate, Choice, Loaded, Planned};
use super::config::{self, Config};
use super::kernargs::Slots;
use super::libraries::Libraries;
use super::tree::{Changes, LOOK, News, Tree};
use super::{outcomes, packet};
use crate::gpu::code_objects::{self, CodeNumber};
use crate::gpu::{kernels, selection};
use crate::hsa_runtime::abi::{Agent, Executable};
use crate::hsa_runtime::agent::{Gpu, Gpus};
use crate::hsa_runtime::code::CodeFunctions;
use crate::hsa_runtime::memory::MemoryFunctions;

/// How long a thread that loads kernels waits for what may run in their place.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at memory for arguments, where there is any.
const GLANCE: Duration = Duration::from_millis(5);

/// The runtime, as far as the thread needs it.
#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    pub(crate) code: &'static CodeFunctions,
    pub(crate) memory: &'static MemoryFunctions,
    pub(crate) gpus: &'static Gpus,
    /// Whether it may be called.
    pub(crate) lives: fn() -> bool,
}

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
}

/// What the thread is to do.
#[derive(Default)]
struct Requests {
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

/// The thread was started in this process, or in the one that it was forked from.
pub(super) static STARTED: AtomicBool = AtomicBool::new(false);
static REQUESTS: LazyLock<Mutex<Requests>> = LazyLock::new(Mutex::default);
/// There is something to do.
static ASKED: Condvar = Condvar::new();
/// Something was done.
static DONE: Condvar = Condvar::new();

/// See [`super::loaded`].
pub(super) fn loaded(runtime: Runtime, kernels: Vec<Original>) {
    let Some(config) = config::get() else { return };
    let Some(mut requests) = lock_within(&REQUESTS, PATIENCE) else { return };
    if !requests.started {
        *requests = Requests { started: true, ..Requests::default() };
        STARTED.store(true, Ordering::Relaxed);
        if let Err(error) = threads::spawn(c"rpd-candidates", move || run(runtime, config)) {
            log::problem(&format!("cannot start a thread ({error}): no kernel is replaced"));
            requests.finished = true;
        }
    }
    if requests.finished {
        return;
    }
    requests.loaded.extend(kernels);
    requests.asked += 1;
    let mine = requests.asked;
    ASKED.notify_all();
    let (requests, waited) = DONE
        .wait_timeout_while(requests, PATIENCE, |requests| requests.done < mine && !requests.finished)
        .unwrap_or_else(PoisonError::into_inner);
    drop(requests);
    if waited.timed_out() {
        log::info(|| "the kernel cache takes long to read: the first dispatches are not replaced".into());
    }
}

/// See [`super::unloaded`].
pub(super) fn unloaded(objects: &[u64]) {
    // Their addresses may be those of other kernels at once.
    objects.iter().for_each(|object| packet::publish(*object, None));
    let Some(mut requests) = lock_within(&REQUESTS, PATIENCE) else { return };
    if !requests.finished {
        requests.unloaded.extend(objects);
    }
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

fn run(runtime: Runtime, config: &'static Config) {
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
struct Known {
    candidate: Candidate,
    /// By code object and GPU; nothing where the runtime refuses it.
    loaded: HashMap<(usize, u32), Option<InRuntime>>,
    /// Something was said of it, or will not be.
    settled: bool,
}

/// A candidate's code object in the runtime.
struct InRuntime {
    loaded: Arc<Loaded>,
    /// Kernel objects by their symbols.
    objects: HashMap<String, u64>,
    /// Where its bytes are saved.
    code_object: Option<CodeNumber>,
    /// Its number among the outcomes.
    outcome: usize,
}

/// A kernel of the application that may be replaced.
struct Wanted {
    object: u64,
    gpu: &'static Gpu,
    kernel: KernelId,
    facts: rpd_codeobject::Kernel,
}

/// Where a kernel of a candidate is.
type Place = (PathBuf, usize);

/// The thread's own state.
struct Loader {
    runtime: Runtime,
    config: &'static Config,
    libraries: Libraries,
    tree: Tree,
    files: BTreeMap<PathBuf, Known>,
    /// Which candidates have a kernel of that symbol, in the order of their paths.
    by_symbol: HashMap<String, BTreeSet<Place>>,
    wanted: HashMap<String, Vec<Wanted>>,
    /// Code objects that are to leave the runtime.
    retired: Vec<Arc<Loaded>>,
    slots: BTreeMap<u32, Arc<Slots>>,
    /// Numbers of outcomes that came before: of the same bytes at the same path, for the same GPU.
    outcomes: HashMap<(PathBuf, String, usize, u32), usize>,
    /// Those of them that are gone.
    removed: BTreeSet<usize>,
    /// What was said of which bytes.
    refused: HashSet<(String, String)>,
    /// Numbers in records, by the application's kernel and the candidate's outcome.
    replacements: HashMap<(KernelId, usize), KernelId>,
}

impl Loader {
    fn new(runtime: Runtime, config: &'static Config) -> Loader {
        Loader {
            runtime,
            config,
            libraries: Libraries::read(config.libraries.as_deref()),
            tree: Tree::new(config.cache.clone()),
            files: BTreeMap::new(),
            by_symbol: HashMap::new(),
            wanted: HashMap::new(),
            retired: Vec::new(),
            slots: BTreeMap::new(),
            outcomes: HashMap::new(),
            removed: BTreeSet::new(),
            refused: HashSet::new(),
            replacements: HashMap::new(),
        }
    }

    fn serve(&mut self) {
        if let Err(error) = self.tree.watch(told) {
            log::info(|| {
                format!("{}: changes are looked for every second ({error})", self.config.cache.display())
            });
        }
        if !self.config.cache.is_dir() {
            log::problem(&format!("{} is no directory: no kernel is replaced", self.config.cache.display()));
        }
        let mut looked = Instant::now();
        let mut news = News { everything: true, ..News::default() };
        let mut first = true;
        let mut cpu = clock::read(Clock::ThreadCpu);
        loop {
            let mut symbols = BTreeSet::new();
            if !news.is_empty() || (!self.tree.is_watched() && looked.elapsed() >= LOOK) {
                looked = Instant::now();
                let changes = self.tree.look(&news, first);
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
            self.bring_memory();
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

    /// Says how far it is, and waits for something to do: what the kernel told of meanwhile.
    fn wait(&self, done: u64) -> News {
        let pause = match (self.slots.is_empty(), self.retired.is_empty()) {
            (false, _) => GLANCE,
            (true, false) => GLANCE * 10,
            (true, true) => LOOK,
        };
        let mut requests = lock(&REQUESTS);
        requests.done = done;
        DONE.notify_all();
        let idle = |requests: &mut Requests| {
            requests.asked == done
                && requests.unloaded.is_empty()
                && requests.news.is_empty()
                && !requests.stop
        };
        let waiting = ASKED.wait_timeout_while(requests, pause, idle);
        let (mut requests, _): (MutexGuard<'_, Requests>, _) =
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
                Err(Failure::Changed) => continue,
                Err(Failure::Useless(why)) => {
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
            self.files.insert(path, Known { candidate, loaded: HashMap::new(), settled: false });
        }
    }

    /// A kernel of the application is there.
    fn want(&mut self, original: Original, symbols: &mut BTreeSet<String>) {
        let Some(gpu) = self.runtime.gpus.of(original.agent) else { return };
        let Some(kernel) = kernels::get(original.kernel) else { return };
        let Some(facts) = kernel.facts.clone() else { return };
        if !selection::has(&kernel.name()) || !self.libraries.allow(&original.origin) {
            return;
        }
        symbols.insert(facts.symbol.clone());
        let wanted = Wanted { object: original.object, gpu, kernel: original.kernel, facts };
        self.wanted.entry(wanted.facts.symbol.clone()).or_default().push(wanted);
    }

    fn forget(&mut self, objects: &[u64]) {
        if objects.is_empty() {
            return;
        }
        for wanted in self.wanted.values_mut() {
            wanted.retain(|wanted| !objects.contains(&wanted.object));
        }
        self.wanted.retain(|_, wanted| !wanted.is_empty());
    }

    /// Works out anew what may run in the place of the application's kernels of that symbol.
    fn reconsider(&mut self, symbol: &str) {
        let Some(wanted) = self.wanted.remove(symbol) else { return };
        for wanted in &wanted {
            let places: Vec<Place> = self.by_symbol.get(symbol).into_iter().flatten().cloned().collect();
            let mut planned = Vec::new();
            for place in places {
                if !planned.is_empty() && self.config.alternate == Alternate::Never {
                    break;
                }
                planned.extend(self.plan(wanted, &place));
            }
            let choice = (!planned.is_empty()).then(|| Choice::new(self.config.alternate, planned));
            packet::publish(wanted.object, choice);
        }
        self.wanted.insert(symbol.to_string(), wanted);
    }

    /// How the candidate's kernel runs in the place of the application's, loaded; nothing where it cannot.
    fn plan(&mut self, wanted: &Wanted, place: &Place) -> Option<Planned> {
        let (path, part) = place;
        let known = self.files.get_mut(path)?;
        let candidate = Arc::clone(&known.candidate.parts[*part]);
        let code = &candidate.code;
        if !may_run(code, wanted.gpu) {
            return None;
        }
        known.settled = true;
        let sha256 = known.candidate.sha256.clone();
        let symbol = &wanted.facts.symbol;
        let kernel = candidate.kernel(symbol)?;
        let plan = match check(&candidate, &wanted.facts, kernel) {
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
            kernels::add_replacement(wanted.kernel, wanted.gpu.index, kernel.clone(), code_object, candidate)
        });
        let number = *number;
        let slots = plan
            .rebuilt_size()
            .map(|size| Arc::clone(self.slots.entry(size).or_insert_with(|| Arc::new(Slots::new(size)))));
        Some(Planned {
            plan,
            object,
            kernel: number,
            loaded,
            most_lds: self.runtime.memory.lds(wanted.gpu.agent).unwrap_or(LDS),
            slots,
            refused: OnceLock::new(),
            said: AtomicBool::new(false),
        })
    }

    /// The code object in the runtime, loaded for that GPU; nothing where the runtime refuses it.
    fn load(&mut self, path: &PathBuf, part: usize, code: &CodeObject, gpu: &Gpu) -> Option<&InRuntime> {
        let known = self.files.get_mut(path)?;
        let key = (part, gpu.index);
        if !known.loaded.contains_key(&key) {
            let sha256 = known.candidate.sha256.clone();
            let target = code.target.to_string();
            let loaded = known.candidate.code(part).and_then(|(bytes, origin)| {
                let (executable, objects) = self.runtime.load(gpu.agent, &bytes)?;
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
                        loaded: Arc::new(Loaded { executable, said_long: AtomicBool::new(false) }),
                        objects,
                        code_object,
                        outcome,
                    })
                }
                Err(Failure::Changed) => return None,
                Err(Failure::Useless(why)) => {
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
    fn bring_memory(&self) {
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
            if !is_used && (runtime.lives)() {
                // SAFETY: the runtime lives, and waits for this thread before it goes (`stop`); nobody has the kernels any more.
                unsafe { runtime.code.unload(loaded.executable) };
            }
            is_used
        });
    }

    /// The process or the runtime ends.
    fn finish(&mut self) {
        for known in self.files.values().filter(|known| !known.settled) {
            let Candidate { path, sha256, parts, .. } = &known.candidate;
            let runs =
                parts.iter().any(|part| self.runtime.gpus.all().iter().any(|gpu| may_run(&part.code, gpu)));
            let targets: Vec<String> = parts.iter().map(|part| part.code.target.to_string()).collect();
            let (outcome, reason) = match runs {
                true => {
                    (Outcome::Unused, "the program has loaded no kernel of its names that may be replaced")
                }
                false => (Outcome::OtherTarget, "no GPU of this process is such a processor"),
            };
            self.outcome(path, sha256, &targets.join(", "), 0, outcome, reason.to_string());
        }
        let missed: u64 = self.slots.values().map(|slots| slots.missed()).sum();
        if missed > 0 {
            log::problem(&format!(
                "{missed} dispatches ran the application's kernel: there was no memory for other arguments"
            ));
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

/// Called by the thread of `notify`.
fn told(event: notify::Result<notify::Event>) {
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
    part: &Part,
    original: &rpd_codeobject::Kernel,
    kernel: &rpd_codeobject::Kernel,
) -> Result<Plan, String> {
    if part.code.source != rpd_codeobject::FactsFrom::Metadata {
        return Err("its code object does not say what arguments it has".into());
    }
    if let Some(variable) = part.variables.first() {
        return Err(format!(
            "its code object has a variable {variable} of its own, which the program does not set"
        ));
    }
    Plan::new(original, kernel).map_err(|mismatch| mismatch.to_string())
}

impl Runtime {
    /// Loads a code object: its executable, and its kernel objects by their symbols.
    fn load(&self, agent: Agent, code: &[u8]) -> Result<(Executable, HashMap<String, u64>), Failure> {
        if !(self.lives)() {
            return Err(Failure::Changed);
        }
        // SAFETY: the runtime lives, and waits for this thread before it goes (`stop`).
        let executable = unsafe { self.code.load(agent, code) }.map_err(|(function, status)| {
            format!("the runtime refuses it ({function}: status {status:#x})")
        })?;
        let kernels = self.code.kernels(executable);
        Ok((executable, kernels.into_iter().map(|kernel| (kernel.symbol, kernel.object)).collect()))
    }
}
