//! The recorder subscribes to CUPTI, gives it a clock, the threads' numbers and buffers, and tells it what to record. It also leaves CUPTI
//! again.
//!
//! Everything here happens with one lock held, in the process that began it. A forked child never calls CUPTI: it has CUPTI's memory without
//! CUPTI's threads, so calls do not return there.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rpd_preload::clock::{self, Clock};
use rpd_preload::library;
use rpd_preload::lock::{lock, lock_within};
use rpd_transport::log;
use rpd_transport::recorder::Recorder;

use super::abi::{self, SubscriberParameters, kind, status};
use super::buffers::{self, Buffers};
use super::functions::Functions;
use super::library::{Cupti, Driver};
use super::state::{self, CuptiEvent};
use super::{callback, collector, config, contexts, injection, late, yielding};
use crate::guard::guard;

/// How long a thread of the program waits for another that attaches or detaches.
const PATIENCE: Duration = Duration::from_secs(5);
/// Buffers that there may be, whatever RPDT_BUFFER_MB says: a thread of the program holds one.
const LEAST_BUFFERS: usize = 64;

/// CUPTI, as this process has it.
pub(super) struct Attachment {
    pub(super) pid: u32,
    pub(super) cupti: &'static Cupti,
    pub(super) driver: &'static Driver,
    pub(super) functions: &'static Functions,
    pub(super) buffers: Buffers,
    /// CUPTI refuses the recorder's clock.
    pub(super) is_on_wall_clock: AtomicBool,
    subscriber: usize,
}

/// How long after a start cuInit may have been running for: it takes seconds where there are many GPUs.
const LONGEST_INIT: Duration = Duration::from_secs(20);

/// Two readings of one clock, one after the other, are no further apart.
const SAME_CLOCK: Duration = Duration::from_secs(1);
/// How long a start waits until CUPTI is attached.
const START: Duration = Duration::from_secs(1);
/// A program that was not in CUDA so long ago has hardly begun to create a context.
const JUST_INITIALISED: Duration = Duration::from_millis(40);

/// What does not change while the process lives.
struct Found {
    /// Of CUDA, as the driver has it. It does not tell when the process ends.
    version: u32,
    cupti: Cupti,
    functions: Functions,
}

/// Threads of the program that ask CUPTI something where it has called them back.
static ASKING: AtomicUsize = AtomicUsize::new(0);
/// CUPTI is being given back: no thread begins to ask.
static LEAVES: AtomicBool = AtomicBool::new(false);
/// How long it is waited for those that ask: each takes moments.
const ANSWER: Duration = Duration::from_secs(1);

static ATTACHED: AtomicPtr<Attachment> = AtomicPtr::new(ptr::null_mut());
/// Held while that changes.
static CHANGES: Mutex<()> = Mutex::new(());
static DRIVER: OnceLock<Driver> = OnceLock::new();
static FOUND: OnceLock<Found> = OnceLock::new();
static TRIES: Tries = Tries {
    refused: Mutex::new(None),
    waits_for_start: AtomicBool::new(false),
    awaits_driver: AtomicBool::new(false),
    started_at: AtomicU64::new(0),
    uninitialised_at: AtomicU64::new(0),
    initialised_by: AtomicU32::new(0),
};

/// What came of trying to have CUPTI, and when it is tried again.
struct Tries {
    /// Why CUPTI could not be used when that was last tried.
    refused: Mutex<Option<String>>,
    /// It is not tried again before recording is started.
    waits_for_start: AtomicBool,
    /// Recording was started not long ago, and the driver was there when CUPTI was last tried, but not initialised: where cuInit had begun
    /// before the recorder came, nobody tells when it is.
    awaits_driver: AtomicBool,
    /// When recording was last started, ns of CLOCK_MONOTONIC.
    started_at: AtomicU64,
    /// When the driver was last seen before its initialisation, likewise; 0 for never.
    uninitialised_at: AtomicU64,
    /// The process that has initialised CUDA, as far as it is known; 0 for none. Processes forked from it cannot use CUDA.
    initialised_by: AtomicU32,
}

/// CUPTI, where this process has it now.
pub(super) fn current() -> Option<&'static Attachment> {
    // SAFETY: null or a leaked box.
    let attached = unsafe { ATTACHED.load(Ordering::Acquire).as_ref() }?;
    (attached.pid == std::process::id()).then_some(attached)
}

/// A thread of the program that asks CUPTI something, which stays as long.
pub(super) struct Asking(());

impl Asking {
    /// Nothing: CUPTI is being given back, or was since the thread looked.
    pub(super) fn begin() -> Option<Asking> {
        ASKING.fetch_add(1, Ordering::SeqCst);
        let asking = Asking(());
        (!LEAVES.load(Ordering::SeqCst) && current().is_some()).then_some(asking)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Why not, where it was tried.
pub(super) fn refusal() -> Option<String> {
    lock_within(&TRIES.refused, PATIENCE)?.clone()
}

/// Versions of the driver's CUDA and of CUPTI, and where the latter is.
pub(super) fn found() -> Option<(u32, &'static Cupti)> {
    FOUND.get().map(|found| (found.version, &found.cupti))
}

/// Functions of CUDA, by their numbers; those of the parent in a forked child.
pub(super) fn functions() -> Option<&'static Functions> {
    FOUND.get().map(|found| &found.functions)
}

/// Whether CUPTI is to be tried again soon, because the program may call cuInit at any moment. It cannot launch anything for a while then: it
/// needs a context first.
pub(super) fn awaits_driver() -> bool {
    TRIES.awaits_driver.load(Ordering::Relaxed)
}

/// Another profiler asks for CUPTI: the collecting thread gives it back.
pub(super) fn leave_to_another() {
    if state::apply(CuptiEvent::AskedFor) {
        log::problem(
            "another profiler takes CUPTI (RPDT_CUPTI_YIELD): kernels and copies are not recorded until rpdstart() is called next",
        );
    }
}

/// Recording is started: CUPTI is tried again where it could not be used. What the program launches afterwards is recorded, unless the driver is busy
/// for long.
pub(super) fn started(recorder: &'static Recorder) {
    TRIES.waits_for_start.store(false, Ordering::Relaxed);
    TRIES.started_at.store(clock::monotonic(), Ordering::Relaxed);
    follow(recorder, false);
    late::wait(START);
    if awaits_driver() {
        // The writer visits from now on at that pace.
        recorder.requests.wake();
    }
}

/// Attaches, if recording is on and it has not been done. `is_starting`: the driver is inside cuInit, and must not be asked for GPUs.
pub(super) fn follow(recorder: &'static Recorder, is_starting: bool) {
    if is_starting {
        TRIES.initialised_by.store(std::process::id(), Ordering::Relaxed);
    }
    TRIES.awaits_driver.store(false, Ordering::Relaxed);
    say_if_anothers(recorder);
    if !is_wanted(recorder) {
        return;
    }
    let Some(driver) = driver(is_starting) else { return };
    if is_starting {
        attach(recorder, driver, true);
    } else {
        late::attach(recorder, driver, since(&TRIES.uninitialised_at) < JUST_INITIALISED);
    }
}

/// Whether CUPTI is to be attached.
pub(super) fn is_wanted(recorder: &'static Recorder) -> bool {
    let is_useless = TRIES.waits_for_start.load(Ordering::Relaxed) || is_forked() || injection::is_anothers();
    !is_useless && recorder.switch.is_on() && current().is_none() && state::current().is_free()
}

/// Attaches, unless that is not wanted any more.
pub(super) fn attach(recorder: &'static Recorder, driver: &'static Driver, is_starting: bool) {
    let Some(_changing) = lock_within(&CHANGES, PATIENCE) else { return };
    if !is_wanted(recorder) {
        return;
    }
    match begin(recorder, driver, is_starting) {
        Ok(()) => {
            state::apply(CuptiEvent::Attached);
            *lock(&TRIES.refused) = None;
        }
        Err(why) => {
            TRIES.waits_for_start.store(true, Ordering::Relaxed);
            refuse(why);
        }
    }
}

/// Says why nothing of the GPUs is recorded, unless that was said last.
fn refuse(why: String) {
    // The end of the process may come in a signal handler that interrupted the holder of the lock.
    let Some(mut refused) = lock_within(&TRIES.refused, PATIENCE) else { return };
    let said = refused.replace(why.clone());
    drop(refused);
    if said.as_ref() != Some(&why) {
        log::problem(&format!(
            "no kernels and copies of this process's NVIDIA GPUs are recorded: {why}; markers are"
        ));
    }
}

/// Says that the driver was to load another tool, if recording is on and the process uses NVIDIA's GPUs. Neither the driver nor the loader is asked: a
/// thread of the program may be in the one or the other for long, also when the process ends.
pub(super) fn say_if_anothers(recorder: &'static Recorder) {
    if let Some(tool) = injection::tool()
        && recorder.switch.is_on()
        && refusal().is_none()
        && library::is_loaded("libcuda.so")
        && contexts::uses_devices()
    {
        refuse(format!("CUDA_INJECTION64_PATH names another tool, {tool}"));
    }
}

/// Whether this process was forked from one that had initialised CUDA.
fn is_forked() -> bool {
    ![0, std::process::id()].contains(&TRIES.initialised_by.load(Ordering::Relaxed))
}

/// The driver, where the program uses CUDA.
fn driver(is_starting: bool) -> Option<&'static Driver> {
    let driver = match DRIVER.get() {
        Some(driver) => driver,
        None => {
            let driver = Driver::find()?;
            DRIVER.get_or_init(|| driver)
        }
    };
    if !is_starting && !driver.is_initialised() {
        TRIES.awaits_driver.store(since(&TRIES.started_at) < LONGEST_INIT, Ordering::Relaxed);
        TRIES.uninitialised_at.store(clock::monotonic(), Ordering::Relaxed);
        return None;
    }
    TRIES.initialised_by.store(std::process::id(), Ordering::Relaxed);
    Some(driver)
}

fn since(moment: &AtomicU64) -> Duration {
    Duration::from_nanos(clock::monotonic().saturating_sub(moment.load(Ordering::Relaxed)))
}

fn find(driver: &Driver) -> Result<&'static Found, String> {
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let config = config::get();
    let version = driver.version();
    let cupti = Cupti::find(config.cupti.as_deref(), version / 1000).map_err(|why| why.to_string())?;
    let (functions, unknown) = Functions::ask(&cupti, &config.apis);
    if !unknown.is_empty() {
        log::problem(&format!("RPDT_CUDA_APIS: this CUDA has no {}", unknown.join(", ")));
    }
    Ok(FOUND.get_or_init(|| Found { version, cupti, functions }))
}

fn begin(recorder: &'static Recorder, driver: &'static Driver, is_starting: bool) -> Result<(), String> {
    let Found { cupti, functions, .. } = find(driver)?;
    let subscriber = subscribe(cupti)?;
    let most = (recorder.buffers.bytes() / buffers::SIZE).max(LEAST_BUFFERS);
    let attachment: &'static Attachment = Box::leak(Box::new(Attachment {
        pid: std::process::id(),
        cupti,
        driver,
        functions,
        buffers: Buffers::new(most),
        is_on_wall_clock: AtomicBool::new(false),
        subscriber: subscriber.addr(),
    }));
    ATTACHED.store(ptr::from_ref(attachment).cast_mut(), Ordering::Release);
    // What runs at the end of the program before CUDA's own handlers do, which were registered earlier.
    static AT_EXIT: OnceLock<()> = OnceLock::new();
    AT_EXIT.get_or_init(|| {
        extern "C" fn handler() {
            guard((), collector::finish);
        }
        // SAFETY: the handler lives as long as the process: the library is never unloaded.
        unsafe { libc::atexit(handler) };
    });
    callback::enable(cupti, subscriber, functions);
    let begun = tell(attachment, is_starting).and_then(|()| {
        if collector::begin(recorder, attachment) {
            Ok(())
        } else {
            Err("there is no room for a thread".into())
        }
    });
    if begun.is_err() {
        give_up(attachment);
    }
    begun.map(|()| {
        attachment.buffers.prepare();
        yielding::watch(cupti);
        log::info(|| format!("CUPTI {} of {}", cupti.version_text(), cupti.path.display()));
    })
}

fn subscribe(cupti: &Cupti) -> Result<*mut c_void, String> {
    let mut subscriber = ptr::null_mut();
    // SAFETY: a place for the handle, and a callback that lives as long as the process.
    match unsafe { (cupti.subscribe)(&raw mut subscriber, callback::called, ptr::null_mut()) } {
        status::SUCCESS => Ok(subscriber),
        status::MULTIPLE_SUBSCRIBERS | status::MAX_LIMIT_REACHED => {
            Err(format!("another profiler{} has CUPTI, which serves one at a time", holder(cupti)))
        }
        status::NOT_INITIALIZED => Err(format!(
            "{} does not work with this driver (NVIDIA has a table of which do); RPDT_CUPTI names another",
            cupti.path.display()
        )),
        other => Err(format!("cuptiSubscribe: {}", cupti.meaning(other))),
    }
}

/// Who has CUPTI, in brackets; empty where it does not say.
fn holder(cupti: &Cupti) -> String {
    let Some(subscribe) = cupti.subscribe_v2 else { return String::new() };
    let (mut subscriber, mut name) = (ptr::null_mut(), [0u8; 128]);
    let size = size_of::<SubscriberParameters>() - if cupti.version < abi::VERSION_13_2 { 8 } else { 0 };
    let mut parameters = SubscriberParameters {
        size,
        name: ptr::null(),
        holder: name.as_mut_ptr().cast(),
        holder_size: name.len() - 1,
        shares: 0,
    };
    // SAFETY: places for the handle and for the name, with a callback that lives as long as the process. One that was free after all is
    // given back: the next try takes it.
    unsafe {
        if subscribe(&raw mut subscriber, callback::called, ptr::null_mut(), &raw mut parameters)
            == status::SUCCESS
        {
            (cupti.unsubscribe)(subscriber);
        }
    }
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name);
    let name = name.trim().strip_prefix("CUPTI for ").unwrap_or(name.trim());
    // "<not provided>" is the name of one that has given none.
    let is_plain =
        |name: &str| !name.is_empty() && !name.starts_with('<') && !name.contains(char::is_control);
    if is_plain(name) { format!(" ({name})") } else { String::new() }
}

/// What is to be recorded, and how.
fn tell(attachment: &Attachment, is_starting: bool) -> Result<(), String> {
    let (cupti, functions) = (attachment.cupti, attachment.functions);
    let checked = |what: &str, answer: abi::CuptiStatus| match answer {
        status::SUCCESS => Ok(()),
        other => Err(format!("{what}: {}", cupti.meaning(other))),
    };
    let (mut zeroed, mut size) = (1u8, 1usize);
    // SAFETY: a byte, as this attribute is; functions of the types that CUPTI calls them with, which live as long as the process.
    unsafe {
        // One that refuses zeroes the buffers itself.
        (cupti.set_attribute)(abi::ZEROED_BUFFERS, &raw mut size, (&raw mut zeroed).cast());
        let takes_clock = cupti.register_timestamp.is_some_and(|register| register(now) == status::SUCCESS);
        if !takes_clock && !is_wall_clock(cupti) {
            return Err("CUPTI does not take the recorder's clock, and its own is not CLOCK_REALTIME".into());
        }
        attachment.is_on_wall_clock.store(!takes_clock, Ordering::Relaxed);
        if let Some(set) = cupti.set_thread_id_type {
            checked("cuptiSetThreadIdType", set(abi::SYSTEM_THREAD_IDS))?;
        }
        checked("cuptiActivityRegisterCallbacks", (cupti.register_callbacks)(requested, completed))?;
        for wanted in [kind::CONCURRENT_KERNEL, kind::MEMCPY, kind::MEMCPY2, kind::MEMSET] {
            checked("cuptiActivityEnable", (cupti.enable)(wanted))?;
        }
        // Without these the file says less, and no version is known that lacks one.
        for wanted in [kind::MEMORY2, kind::STREAM, kind::CONTEXT, kind::OVERHEAD] {
            (cupti.enable)(wanted);
        }
        if let Some(tell_sources) = cupti.tell_allocation_sources {
            tell_sources(1);
        }
        // It makes records of waits for events too, which cost PyTorch a tenth of its time.
        if config::get().apis.has_arguments {
            (cupti.enable)(kind::SYNCHRONIZATION);
        }
        if config::get().whole_graphs {
            checked("RPDT_CUDA_GRAPHS=launch: cuptiActivityEnable", (cupti.enable)(kind::GRAPH_TRACE))?;
        }
    }
    let mut dropped = 0;
    // SAFETY: a place for the number, which begins anew: what CUPTI dropped while it was given back is of no time that is recorded.
    unsafe { (cupti.dropped)(ptr::null_mut(), 0, &raw mut dropped) };
    let domains = functions.enabled().into_iter().zip([kind::DRIVER, kind::RUNTIME]);
    // CUPTI takes single functions where it comes while the driver initialises. Later it says that it does, and records none (measured with
    // CUPTI 13.0).
    let single = cupti.enable_api.filter(|_| is_starting);
    for (place, (numbers, all)) in domains.enumerate() {
        let enable = |enable: abi::EnableApi| {
            // SAFETY: numbers that CUPTI itself has names for.
            numbers.iter().all(|cbid| unsafe { enable(*cbid, 1) } == status::SUCCESS)
        };
        let is_enabled = numbers.is_empty() || single.is_some_and(|single| enable(single[place]));
        if !is_enabled {
            // SAFETY: any kind may be asked for.
            checked("cuptiActivityEnable", unsafe { (cupti.enable)(all) })?;
        }
    }
    Ok(())
}

/// Takes CUPTI out of the program's way: only then are its calls as fast as before. All that it had was flushed.
pub(super) fn detach(recorder: &'static Recorder, attachment: &'static Attachment) -> bool {
    let Some(_changing) = lock_within(&CHANGES, PATIENCE) else { return false };
    // It was started again meanwhile.
    if recorder.switch.is_on() && !state::current().is_left() {
        return false;
    }
    give_up(attachment);
    true
}

fn give_up(attachment: &'static Attachment) {
    let cupti = attachment.cupti;
    LEAVES.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    while ASKING.load(Ordering::SeqCst) > 0 && begin.elapsed() < ANSWER {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the subscriber of the attachment, once; CUPTI may be finalized at any time and calls no callback afterwards. One that still
    // runs asks it nothing.
    unsafe {
        (cupti.unsubscribe)(ptr::with_exposed_provenance_mut(attachment.subscriber));
        (cupti.finalize)();
    }
    ATTACHED.store(ptr::null_mut(), Ordering::Release);
    LEAVES.store(false, Ordering::SeqCst);
    attachment.buffers.retire();
}

/// Whether CUPTI's own times are those of CLOCK_REALTIME.
fn is_wall_clock(cupti: &Cupti) -> bool {
    let mut time = 0;
    // SAFETY: a place for the time.
    let is_known = cupti.timestamp.is_some_and(|get| unsafe { get(&raw mut time) } == status::SUCCESS);
    is_known && time.abs_diff(clock::read(Clock::Realtime)) < SAME_CLOCK.as_nanos() as u64
}

extern "C-unwind" fn now() -> u64 {
    clock::monotonic()
}

unsafe extern "C-unwind" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    guard((), || {
        let given = current().and_then(|attached| attached.buffers.give());
        // SAFETY: CUPTI's places for its answer.
        unsafe {
            *size = if given.is_some() { buffers::SIZE } else { 0 };
            *buffer = given.unwrap_or(ptr::null_mut());
            *records = 0;
        }
    });
}

unsafe extern "C-unwind" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    guard((), || {
        let Some(attached) = current() else { return };
        attached.buffers.take_back(buffer, valid);
        if valid * 2 > buffers::SIZE {
            collector::wake();
        }
    });
}
