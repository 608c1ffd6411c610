//! Calls of the HIP API. HIP's own callbacks (door C) tell of every call, whoever makes it and however it found the function; its
//! dispatch table (door B) does where rocprofiler-register hands it over; and wrappers of its symbols (door D) where that is cheaper.
//!
//! - `library`: the HIP library of the process; `description`: what its functions are
//! - `activity`, `tracer_callback`: how HIP up to 5.2, and from 5.3 on, tells of calls and commands (C); `command`: commands as HIP
//!   times them; `table`: its dispatch table (B); `symbols`: its functions' names (D)
//! - `wrapper`: functions that stand in the place of HIP's own (B, D)
//! - `call`: the call that a thread is in; `frame`: whether it still is; `arguments`: what is kept of it; `launch`: as the columns of a row
//! - `function`, `device`, `pointer`: which kernel, which GPU, and whose memory, an argument means
//! - `filter`: which functions are recorded; `silence`: another profiler has taken HIP's callbacks

mod activity;
pub(crate) mod arguments;
pub(crate) mod call;
mod command;
mod config;
pub(crate) mod description;
mod device;
pub(crate) mod filter;
mod frame;
mod function;
pub(crate) mod launch;
mod library;
mod pointer;
pub(crate) mod silence;
pub(crate) mod symbols;
pub(crate) mod table;
mod tracer_callback;
mod wrapper;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use rpd_preload::lock::lock_within;
use rpd_preload::threads;
use rpd_transport::env::Env;
use rpd_transport::log;
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::records::Call;
use rpd_transport::source::{Answer, CallText, Detail, Loading, Offer, Source, Watch};

use crate::gpu::timing;
use crate::hsa;
use activity::follow;
use arguments::Arguments;
use description::{Api, Row, Version};
use library::Library;

static DOOR: AtomicPtr<Door> = AtomicPtr::new(std::ptr::null_mut());
/// There is nothing more to find out: the door is open, or HIP is there and it cannot be.
static SETTLED: AtomicBool = AtomicBool::new(false);
/// How long a thread waits for another one that opens the door.
const LOOK: Duration = Duration::from_secs(1);
/// HIP's callbacks are in use.
static CALLBACKS: AtomicBool = AtomicBool::new(false);

/// They were in use, until another profiler took them.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The two doors between which there is a choice, RPDT_HIP_DOOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// HIP's own callbacks.
    Callbacks,
    /// Its functions' names.
    Symbols,
}

impl Way {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Callbacks => "callbacks",
            Way::Symbols => "symbols",
        }
    }
}

/// HIP as this process has it. Never freed: callbacks may come at any time.
struct Door {
    library: Library,
    /// By HIP's own id: place in the description, where the function is to be recorded.
    apis: Vec<Option<(u16, &'static Api)>>,
    version: &'static str,
    /// sizeof(hip_api_data_t) there.
    data_size: usize,
    /// Times come from HIP's commands.
    times_commands: bool,
}

fn door() -> Option<&'static Door> {
    // SAFETY: null or a leaked box.
    unsafe { DOOR.load(Ordering::Acquire).as_ref() }
}

impl Door {
    /// The function with HIP's number `id`, if it is to be recorded.
    #[inline]
    fn api(&self, id: u32) -> Option<(u16, &'static Api)> {
        self.apis.get(id as usize).copied().flatten()
    }

    fn recorded_ids(&self) -> impl Iterator<Item = u32> {
        let known = self.apis.iter().enumerate();
        known.filter(|(_, api)| api.is_some()).map(|(id, _)| id as u32)
    }
}

/// Opens the door if HIP is in the process and recording is on. Called whenever HIP may have come; costs nothing once it is settled.
pub(crate) fn notice() {
    if !SETTLED.load(Ordering::Relaxed) {
        look();
    }
}

#[cold]
fn look() {
    static LOOKING: Mutex<()> = Mutex::new(());
    let Some(recorder) = recorder::get() else { return };
    // A process that only might record later does not pay for it now.
    if !recorder.switch.is_on() && !recorder.switch.is_timed() {
        return;
    }
    // Before the lock: it takes the loader's, which a thread may hold that comes here from a library's initialiser.
    let Some(library) = Library::find() else { return };
    // Before the lock as well: the thread that initialises the runtime comes here when that offers its tables.
    let late = hsa::is_late();
    if library::has_hsa() && !hsa::offered() && !late {
        // It is not known yet what there will be to time kernels by.
        return;
    }
    let Some(_looking) = lock_within(&LOOKING, LOOK) else { return };
    if !SETTLED.load(Ordering::Relaxed) {
        open(recorder, library, late);
        SETTLED.store(true, Ordering::Relaxed);
    }
}

/// Every start that cannot record what it should hears of it; the program's user once.
fn complain_of_hsa_alone() {
    static SAID: AtomicBool = AtomicBool::new(false);
    let complain = if SAID.swap(true, Ordering::Relaxed) { log::note } else { log::problem };
    complain(
        "the program uses HSA without HIP and made its queues before the recorder came: only markers are recorded; \
         start it with LD_PRELOAD=librpd_tracer.so",
    );
}

fn open(recorder: &'static Recorder, library: Library, late: bool) {
    recorder.in_use();
    let by_symbols = symbols::has_calls(Some(&library));
    let times_commands = timing::by_hip(late);
    let mut door = Door { library, apis: Vec::new(), version: "", data_size: 0, times_commands };
    let wanted = !config::get().apis.is_empty();
    let known = wanted && door.describe();
    let door: &'static Door = Box::leak(Box::new(door));
    DOOR.store(std::ptr::from_ref(door).cast_mut(), Ordering::Release);
    // One door tells of calls; HIP alone tells of commands.
    let by_others = table::is_open() || by_symbols;
    let (calls, commands) = if door.library.register_tracer.is_some() {
        let registered = (times_commands || !by_others) && tracer_callback::register(door);
        (registered && known, registered && times_commands)
    } else {
        activity::open(recorder, door, known && !by_others)
    };
    CALLBACKS.store(calls && !by_others, Ordering::Relaxed);
    if late && commands && door.library.register_tracer.is_none() {
        log::note(
            "the recorder came later than HIP, whose own times are used: HIP before 5.3 has faults then with many threads and with \
             hipStreamAddCallback (docs/hazards.md); preload the recorder to have none of that",
        );
    }
    if times_commands && !commands {
        log::problem("this HIP does not tell of its commands: kernels and copies are not recorded");
    }
    log::info(|| {
        let functions = door.recorded_ids().count();
        match (wanted, known) {
            (false, _) => "HIP found: its calls are not wanted".to_string(),
            (true, true) => format!("HIP {} found: {functions} of its functions are recorded", door.version),
            (true, false) if by_others => {
                "this HIP is of no version known: what its callbacks tell is not used".to_string()
            }
            (true, false) => "this HIP is of no version known: its calls are not recorded".to_string(),
        }
    });
}

impl Door {
    /// Finds out which version this is and which functions it has. False: it is of no version known.
    fn describe(&mut self) -> bool {
        let description = description::get();
        let Some(version) = version(&self.library) else { return false };
        self.apis = vec![None; version.last_id as usize + 1];
        for (id, name) in names(&self.library) {
            if config::get().apis.contains(name) {
                let place = description.find(name, version);
                self.apis[id as usize] = place.map(|place| (place, &description.apis[place as usize]));
            }
        }
        (self.version, self.data_size) = (version.name, version.data_size);
        true
    }
}

/// Functions by HIP's own ids.
fn names(library: &Library) -> impl Iterator<Item = (u32, &'static str)> {
    let most = description::get().versions.iter().map(|version| version.last_id).max().unwrap_or(0);
    // Beyond the largest id known: a version with more functions is another one.
    (1..=most + 64).filter_map(|id| Some((id, library.api_name(id)?)))
}

/// Which version it is, if it is one that the description knows.
fn version(library: &Library) -> Option<&'static Version> {
    description::get().version_of(names(library))
}

/// HIP's callbacks tell of nothing any more: calls are recorded by the names of its functions from now on, where those are preloaded.
#[cold]
fn fall_silent() {
    let Some(recorder) = recorder::get() else { return };
    let mut launches = description::get().apis.iter().filter(|api| api.launches());
    // Otherwise the kernels are of calls that nobody wanted, or of lost ones.
    let told = launches.all(|api| config::get().apis.contains(api.name));
    if !told || recorder.counters.lost().records() > 0 || !CALLBACKS.swap(false, Ordering::Relaxed) {
        return;
    }
    TAKEN.store(true, Ordering::Relaxed);
    log::problem(if symbols::take_over() {
        "another profiler seems to have taken HIP's callbacks: its calls are recorded by the names of its functions from now on"
    } else {
        "another profiler seems to have taken HIP's callbacks: its calls are not recorded from now on; with librpd_hip.so in LD_PRELOAD they would be"
    });
}

/// Whether another profiler has HIP's callbacks.
fn is_taken() -> bool {
    TAKEN.load(Ordering::Relaxed)
}

/// Which door tells of calls, as the file has it.
fn way() -> Option<&'static str> {
    let ways = [
        ("callbacks,symbols", is_taken() && symbols::is_open()),
        ("callbacks,none", is_taken()),
        ("table", table::is_open()),
        (Way::Symbols.name(), symbols::is_open()),
        (Way::Callbacks.name(), registered()),
    ];
    ways.into_iter().find(|(_, open)| *open).map(|(name, _)| name)
}

/// Whether HIP's callbacks tell of calls.
fn registered() -> bool {
    CALLBACKS.load(Ordering::Relaxed)
}

/// The source of HIP's calls, and of commands as HIP times them.
pub(crate) struct Hip;

/// Its number in records.
const NUMBER: u8 = 2;
/// What a kernel, and another command, is called that is of no call. Other numbers are places in the description.
const DISPATCH: u16 = u16::MAX;
const COMMAND: u16 = u16::MAX - 1;

impl Source for Hip {
    fn name(&self) -> &'static str {
        "hip"
    }

    fn number(&self) -> u8 {
        NUMBER
    }

    fn configure(&self, env: &mut Env<'_>) {
        config::configure(env);
    }

    /// Where HIP has been used before, nothing else will tell: the HSA runtime offers its tables only once. A runtime that is told to load
    /// this library does so while it is initialised, and offers its tables next.
    fn loaded(&self, at: Loading) {
        // Libraries that came with the program have not been initialised yet when this one is, and a program that has used HIP has
        // threads.
        if !at.by_runtime && library::came_first() && threads::others() {
            notice();
        }
    }

    fn offered(&self, offer: &Offer<'_>) -> Answer {
        let (b"hip", [table]) = (offer.name, offer.tables) else { return Answer::NotMine };
        if recorder::get().is_some() {
            // SAFETY: HIP offers its own table (hip_api_trace.cpp).
            unsafe { table::patch(offer.instance, *table) };
        }
        Answer::Taken
    }

    fn noticed(&self) {
        notice();
    }

    fn started(&self, recorder: &'static Recorder) {
        notice();
        if !SETTLED.load(Ordering::Relaxed) && library::has_hsa() && hsa::is_beyond_reach() {
            complain_of_hsa_alone();
        }
        follow(recorder);
    }

    fn visit(&self, recorder: &'static Recorder) {
        follow(recorder);
    }

    fn is_used(&self) -> bool {
        registered() || table::is_open() || symbols::is_open()
    }

    fn causes_operations(&self) -> bool {
        way().is_some()
    }

    fn function(&self, index: u16) -> &'static str {
        match index {
            DISPATCH => "hsaDispatch",
            COMMAND => "hipCommand",
            place => description::get().apis.get(usize::from(place)).map_or("", |api| api.name),
        }
    }

    fn describe(&self, call: &Call, arguments: &[u8]) -> Option<CallText> {
        let api = description::get().apis.get(usize::from(call.function))?;
        let detail = match api.row {
            Row::Kernel => Detail::Launch(launch::launch(api, arguments)),
            Row::Copy { .. } => launch::transfer(api, arguments).map_or(Detail::Nothing, Detail::Copy),
            _ => Detail::Nothing,
        };
        let text = Arguments::new(api, arguments).text();
        Some(CallText { name: api.name, arguments: text, launches: api.is_launch(), detail })
    }

    fn facts(&self, add: &mut dyn FnMut(&str, &str)) {
        if let Some(way) = way() {
            add("hip_door", way);
        }
    }

    fn watch(&self) -> Option<Watch> {
        let mut silence = silence::Silence::default();
        Some(Box::new(move |dispatch| {
            if silence.after(dispatch) {
                fall_silent();
            }
        }))
    }
}
