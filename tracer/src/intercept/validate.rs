//! Whether a candidate leaves the same in memory as the application's kernel (RPDT_VALIDATE). Before a replaced dispatch runs, both
//! kernels run on copies of its buffers, and the copies are compared.
//!
//! The queue waits meanwhile. In front of the dispatch are two barriers: one says that all before it has completed, the other waits until a
//! thread of ours opens it. No thread of the application waits. The copies have the whole allocations that the arguments point into;
//! both kernels run in a queue of our own, whose dispatches are in no row.
//!
//! - `compare`: what two kernels left in a buffer; `copies`: the buffers of a dispatch, twice

mod compare;
mod copies;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use rpd_codeobject::{Launch, Plan, PointerPlace};
use rpd_preload::lock::lock;
use rpd_preload::threads;
use rpd_settings::measure::Measure;
use rpd_transport::env::Env;
use rpd_transport::log;
use rpd_transport::recorder::Recorder;
use rpd_transport::records::KernelId;
use rpd_transport::source::ValidationText;

use self::copies::Copier;
use super::gate::{self, DispatchGate, DispatchPlace};
use super::outcomes;
use super::runtime::{LoadedCandidate, Runtime};
use crate::gpu::kernels;
use crate::gpu::name_pattern::NamePattern;
use crate::hsa_runtime::abi::{Agent, Packet};

/// Time between two looks at gates, where a dispatch waits at one and where none does.
const GLANCE: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(5);
/// Requests that may wait, and gates for them.
const MOST: usize = 32;
/// Dispatches whose rows nobody has asked for yet.
const MOST_RESULTS: usize = 1 << 16;

/// What was asked for.
pub(super) struct ValidationConfig {
    kernels: NamePattern,
    /// One of them is replaced.
    is_used: AtomicBool,
    /// That none is was said.
    said: AtomicBool,
    /// Dispatches of each kernel and candidate.
    calls: u32,
    measure: Measure,
    /// Bytes that the copies of one dispatch may have.
    most_bytes: u64,
}

impl ValidationConfig {
    /// RPDT_VALIDATE, RPDT_VALIDATE_CALLS, RPDT_VALIDATE_AS, RPDT_VALIDATE_MB.
    pub(super) fn read(env: &mut Env<'_>) -> Option<ValidationConfig> {
        let calls = env.number("RPDT_VALIDATE_CALLS", 10, 1..=u64::from(u32::MAX)) as u32;
        let most_bytes = env.number("RPDT_VALIDATE_MB", 4096, 1..=1 << 30) << 20;
        let mut measure = Measure::BYTES;
        if let Some(text) = env.text("RPDT_VALIDATE_AS") {
            let text = text.to_string_lossy();
            match Measure::parse(&text) {
                Ok(asked) => measure = asked,
                Err(must) => env.complain(format!("RPDT_VALIDATE_AS={text}: {must}; bytes are compared")),
            }
        }
        let kernels = NamePattern::read(env, "RPDT_VALIDATE", "nothing is validated")?;
        let (is_used, said) = (AtomicBool::new(false), AtomicBool::new(false));
        Some(ValidationConfig { kernels, is_used, said, calls, measure, most_bytes })
    }

    /// Whether a kernel of that demangled name is meant.
    pub(super) fn has(&self, name: &str) -> bool {
        self.kernels.is_in(name)
    }

    /// The process ends: says that no kernel is meant, or none that has a candidate.
    pub(super) fn say_if_in_vain(&self, recorder: &Recorder) {
        self.kernels.say_if_in_vain(recorder);
        let is_in_vain = self.kernels.was_found() && !self.is_used.load(Ordering::Relaxed);
        if is_in_vain && !self.said.swap(true, Ordering::Relaxed) {
            log::problem(&format!(
                "{}: nothing was validated, because no kernel of such a name was replaced",
                self.kernels
            ));
        }
    }
}

/// How a candidate's kernel is compared with the application's.
pub(super) struct Validation {
    /// Where the arguments have addresses; why it cannot be compared otherwise.
    pub(super) places: Result<Vec<PointerPlace>, String>,
    /// Bytes of the application's arguments.
    pub(super) kernargs: u32,
    pub(super) plan: Plan,
    pub(super) agent: Agent,
    /// The candidate's number in records.
    pub(super) kernel: KernelId,
    /// How many dispatches are to be compared, and how many of them still are.
    asked: u32,
    pub(super) left: AtomicU32,
    /// Dispatches that were not compared because too many waited.
    missed: AtomicU32,
    /// It has not ended on copies, and another dispatch would keep the program waiting as long.
    given_up: AtomicBool,
    /// Something was said of it.
    said: AtomicBool,
}

impl Validation {
    /// With all the dispatches that were asked for still to come.
    pub(super) fn new(
        config: &ValidationConfig,
        places: Result<Vec<PointerPlace>, String>,
        (kernargs, plan): (u32, Plan),
        agent: Agent,
        kernel: KernelId,
    ) -> Validation {
        let left = AtomicU32::new(config.calls);
        let (given_up, said) = (AtomicBool::new(false), AtomicBool::new(false));
        config.is_used.store(true, Ordering::Relaxed);
        Validation {
            places,
            kernargs,
            plan,
            agent,
            kernel,
            asked: config.calls,
            left,
            missed: AtomicU32::new(0),
            given_up,
            said,
        }
    }

    /// The runtime goes down: says that fewer dispatches were compared than were asked for, because others waited.
    pub(super) fn say_missed(&self) {
        let (left, missed) = (self.left.load(Ordering::Relaxed), self.missed.swap(0, Ordering::Relaxed));
        if let Some(kernel) = kernels::get(self.kernel).filter(|_| left > 0 && missed > 0) {
            log::problem(&format!(
                "{} is validated in {} of {} dispatches: {missed} came when {MOST} waited to be already",
                outcomes::described(&kernel),
                self.asked - left,
                self.asked
            ));
        }
    }

    /// Whether this dispatch is one of those that are compared.
    #[inline]
    pub(super) fn takes(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
            && self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
    }

    /// No other dispatch is compared.
    fn give_up(&self) {
        self.left.store(0, Ordering::Relaxed);
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Says it once for each candidate and kernel: the file has all.
    fn say(&self, what: impl FnOnce(&str) -> String) {
        if let Some(kernel) = kernels::get(self.kernel).filter(|_| !self.said.swap(true, Ordering::Relaxed)) {
            log::problem(&what(&outcomes::described(&kernel)));
        }
    }
}

/// A dispatch that waits at its gate to be compared. The gate opens when this is dropped.
struct ValidationRequest {
    gate: Arc<DispatchGate>,
    place: DispatchPlace,
    launch: Launch,
    /// As the application has made it.
    original: Packet,
    /// With the candidate's kernel and sizes.
    candidate: Packet,
    validation: Arc<Validation>,
    _loaded: Arc<LoadedCandidate>,
}

impl Drop for ValidationRequest {
    fn drop(&mut self) {
        self.gate.open();
    }
}

/// The thread that compares: what it is asked for and what it has found.
struct ValidationService {
    requests: ArrayQueue<ValidationRequest>,
    results: Mutex<HashMap<DispatchPlace, Vec<ValidationText>>>,
    queues: Mutex<QueuesCompared>,
    /// The comparison under way is to end.
    cut: AtomicBool,
    /// Dispatches that were not compared because too many waited.
    missed: AtomicU64,
    /// The thread is there, and serves requests.
    serves: AtomicBool,
    /// It is to end.
    stops: AtomicBool,
}

static SERVICE: LazyLock<ValidationService> = LazyLock::new(|| ValidationService {
    requests: ArrayQueue::new(MOST),
    results: Mutex::default(),
    queues: Mutex::default(),
    cut: AtomicBool::new(false),
    missed: AtomicU64::new(0),
    serves: AtomicBool::new(false),
    stops: AtomicBool::new(false),
});

/// Which queue's dispatch is being compared, and which queues the application has destroyed. A queue is its GPU and its number there, which
/// no other queue of the process has.
#[derive(Default)]
struct QueuesCompared {
    at_work: Option<(u32, u32)>,
    gone: HashSet<(u32, u32)>,
}

/// The application destroys a queue, and may free what its dispatches use: waits until nobody reads it, `deadline` at most.
pub(super) fn leave(queue: (u32, u32), deadline: Duration) {
    let begin = Instant::now();
    lock(&SERVICE.queues).gone.insert(queue);
    while lock(&SERVICE.queues).at_work == Some(queue) && begin.elapsed() < deadline {
        SERVICE.cut.store(true, Ordering::SeqCst);
        std::thread::sleep(GLANCE);
    }
}

/// Why a comparison is to end before its end.
fn cut_off() -> Option<&'static str> {
    match (SERVICE.stops.load(Ordering::Relaxed), SERVICE.cut.load(Ordering::Relaxed)) {
        (true, _) => Some("was cut off: the program ended"),
        (false, true) => Some("was cut off: its queue was destroyed"),
        (false, false) => None,
    }
}

/// Has a replaced dispatch compared before it runs: the gate that is to be in front of it. None where it cannot be now.
pub(super) fn ask(
    validation: &Arc<Validation>,
    place: DispatchPlace,
    launch: Launch,
    (original, candidate): (Packet, Packet),
    loaded: &Arc<LoadedCandidate>,
) -> Option<Arc<DispatchGate>> {
    if !SERVICE.serves.load(Ordering::SeqCst) {
        return None;
    }
    if let Err(why) = &validation.places {
        keep(place, vec![ValidationText { reason: why.clone(), ..ValidationText::default() }]);
        validation.say(|kernel| format!("{kernel} is not validated: {why}"));
        return None;
    }
    let Some(gate) = DispatchGate::take() else {
        // A later dispatch is compared in its place.
        validation.left.fetch_add(1, Ordering::Relaxed);
        validation.missed.fetch_add(1, Ordering::Relaxed);
        SERVICE.missed.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    let request = ValidationRequest {
        gate: Arc::clone(&gate),
        place,
        launch,
        original,
        candidate,
        validation: Arc::clone(validation),
        _loaded: Arc::clone(loaded),
    };
    // One that finds no room is dropped, and so is its gate open.
    drop(SERVICE.requests.push(request));
    if !SERVICE.serves.load(Ordering::SeqCst) {
        open_all();
    }
    Some(gate)
}

/// How many dispatches were not compared when their turn came, because too many waited.
pub(super) fn missed() -> u64 {
    SERVICE.missed.load(Ordering::Relaxed)
}

/// What was found before that dispatch, once.
pub(crate) fn result(place: DispatchPlace) -> Vec<ValidationText> {
    lock(&SERVICE.results).remove(&place).unwrap_or_default()
}

fn keep(place: DispatchPlace, found: Vec<ValidationText>) {
    let mut results = lock(&SERVICE.results);
    if results.len() < MOST_RESULTS {
        results.insert(place, found);
    }
}

/// Nobody serves requests any more: none waits.
fn open_all() {
    while SERVICE.requests.pop().is_some() {}
}

/// Starts the thread that compares.
pub(super) fn start(runtime: Runtime, config: &'static ValidationConfig) {
    // SAFETY: the runtime lives while the candidates' thread begins to serve it.
    unsafe { gate::make(&runtime, MOST) };
    SERVICE.stops.store(false, Ordering::SeqCst);
    SERVICE.serves.store(true, Ordering::SeqCst);
    if let Err(error) = threads::spawn(c"rpd-validate", move || run(runtime, config)) {
        SERVICE.serves.store(false, Ordering::SeqCst);
        open_all();
        log::problem(&format!("cannot start a thread ({error}): nothing is validated"));
    }
}

/// The runtime goes down: waits until nothing is asked of it, `deadline` at most.
pub(super) fn stop(deadline: Duration) {
    SERVICE.stops.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    while SERVICE.serves.load(Ordering::SeqCst) && begin.elapsed() < deadline {
        std::thread::sleep(GLANCE);
    }
}

fn run(runtime: Runtime, config: &'static ValidationConfig) {
    let body = std::panic::AssertUnwindSafe(|| serve(runtime, config));
    if std::panic::catch_unwind(body).is_err() {
        log::problem("nothing is validated any more");
    }
    lock(&SERVICE.queues).at_work = None;
    SERVICE.serves.store(false, Ordering::SeqCst);
    open_all();
}

fn serve(runtime: Runtime, config: &'static ValidationConfig) {
    let mut copier = Copier::new(runtime, config.most_bytes, cut_off);
    let mut waiting: Vec<ValidationRequest> = Vec::new();
    while !SERVICE.stops.load(Ordering::SeqCst) {
        waiting.extend(std::iter::from_fn(|| SERVICE.requests.pop()));
        // Nothing is behind the gate any more: its queue was destroyed.
        waiting.retain(|request| Arc::strong_count(&request.gate) > 1);
        // One queue may wait for another, so whichever has arrived is next.
        let Some(place) = waiting.iter().position(|request| request.gate.has_arrived()) else {
            std::thread::sleep(if waiting.is_empty() { IDLE } else { GLANCE });
            continue;
        };
        let request = waiting.swap_remove(place);
        let (gpu, queue, _) = request.place;
        let mut queues = lock(&SERVICE.queues);
        if queues.gone.contains(&(gpu, queue)) {
            continue;
        }
        queues.at_work = Some((gpu, queue));
        SERVICE.cut.store(false, Ordering::SeqCst);
        drop(queues);
        let found = compare(&mut copier, config.measure, &request);
        lock(&SERVICE.queues).at_work = None;
        // The rows are there before the dispatch can end.
        keep(request.place, found);
    }
}

fn compare(copier: &mut Copier, measure: Measure, request: &ValidationRequest) -> Vec<ValidationText> {
    let validation = &request.validation;
    let compared = match validation.given_up.load(Ordering::Relaxed) {
        true => Err("another dispatch of it did not end on copies".into()),
        false => copier.compare(measure, request),
    };
    match compared {
        Ok(found) => {
            if let Some(row) = found.iter().find(|row| row.different > 0) {
                validation.say(|kernel| {
                    format!("{kernel} leaves other results than the program's: {}", difference(row))
                });
            }
            found
        }
        Err(reason) => {
            validation.say(|kernel| format!("{kernel} is not validated: {reason}"));
            vec![ValidationText { reason, ..ValidationText::default() }]
        }
    }
}

/// A buffer that differs, in words.
fn difference(row: &ValidationText) -> String {
    let argument = row.argument.map_or_else(String::new, |number| format!("argument {number}: "));
    let (different, elements, compared) = (row.different, row.elements, row.compared);
    let [original, candidate] = &row.values;
    format!(
        "{argument}{different} of {elements} {compared} differ, first {candidate} instead of {original} at {}",
        row.first
    )
}
