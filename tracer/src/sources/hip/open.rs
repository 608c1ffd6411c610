//! HIP is found in the process: what it is, and how its calls and commands are observed from then on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rpd_preload::lock::lock_within;
use rpd_transport::log;
use rpd_transport::recorder::{self, Recorder};

use super::library::{self, LoadedHip, names, version};
use super::state::{self, HipEvent, HipLibrary, HipState};
use super::{activity, config, description, symbols, tracer_callback};
use crate::gpu::timing;
use crate::hsa_runtime::{known, late};
use crate::intercept;

/// rpdRemote says to its own user what this module notes.
static BY_REMOTE: AtomicBool = AtomicBool::new(false);

pub(super) fn set_loaded_by_remote(by_remote: bool) {
    BY_REMOTE.store(by_remote, Ordering::Relaxed);
}

/// How long a thread waits for another one that does the same.
const PATIENCE: Duration = Duration::from_secs(1);

/// Begins to observe HIP if it is in the process and recording is on. Called whenever HIP may have come; costs nothing once that is done.
pub(super) fn notice() {
    if !state::is_complete() {
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
    let Some(library) = LoadedHip::find() else { return };
    // Before the lock as well: the thread that initialises the runtime comes here when that offers its tables.
    let late = late::look();
    if library::has_hsa() && !known::is_offered() && !late {
        // It is not known yet what there will be to time kernels by.
        return;
    }
    let Some(_looking) = lock_within(&LOOKING, PATIENCE) else { return };
    if !state::is_complete() {
        open(recorder, library, late);
        state::complete();
    }
}

/// Every start that cannot record what it should hears of it; the program's user once.
pub(super) fn complain_of_hsa_alone() {
    static SAID: AtomicBool = AtomicBool::new(false);
    let complain = if SAID.swap(true, Ordering::Relaxed) { log::note } else { log::problem };
    complain(
        "the program uses HSA without HIP and made its queues before the recorder came: only markers are recorded; \
         start it with LD_PRELOAD=librpd_tracer.so",
    );
}

fn open(recorder: &'static Recorder, library: LoadedHip, late: bool) {
    recorder.in_use();
    let by_symbols = symbols::has_calls(Some(&library));
    let times_commands = timing::by_hip(late);
    if times_commands {
        intercept::cannot(
            "where HIP's own records time them: start the program with the recorder, and RPDT_TIMING=hsa",
        );
    }
    let mut hip = HipLibrary { library, apis: Vec::new(), version: "", data_size: 0, times_commands };
    let wanted = !config::get().apis.is_empty();
    let known = wanted && describe(&mut hip);
    let hip = state::found(hip);
    // Calls are observed in one way; HIP alone tells of commands.
    let by_others = by_symbols || state::current() == HipState::Table;
    let (calls, commands) = if hip.library.register_tracer.is_some() {
        let registered = (times_commands || !by_others) && tracer_callback::register(hip);
        (registered && known, registered && times_commands)
    } else {
        activity::open(recorder, hip, known && !by_others)
    };
    state::apply(HipEvent::Found(calls && !by_others));
    if late && commands && hip.library.register_tracer.is_none() {
        let say = if BY_REMOTE.load(Ordering::Relaxed) { log::note } else { log::problem };
        say(
            "the recorder came later than HIP, whose own times are used: HIP before 5.3 has faults then with many threads and with \
             hipStreamAddCallback (docs/hazards.md); preload the recorder to have none of that",
        );
    }
    if times_commands && !commands {
        log::problem("this HIP does not tell of its commands: kernels and copies are not recorded");
    }
    log::info(|| {
        let functions = hip.recorded_ids().count();
        match (wanted, known) {
            (false, _) => "HIP found: its calls are not wanted".to_string(),
            (true, true) => format!("HIP {} found: {functions} of its functions are recorded", hip.version),
            (true, false) if by_others => {
                "this HIP is of no version known: what its callbacks tell is not used".to_string()
            }
            (true, false) => "this HIP is of no version known: its calls are not recorded".to_string(),
        }
    });
}

/// Finds out which version this is and which functions it has. False: it is of no version known.
fn describe(hip: &mut HipLibrary) -> bool {
    let description = description::get();
    let Some(version) = version(&hip.library) else { return false };
    hip.apis = vec![None; version.last_id as usize + 1];
    for (id, name) in names(&hip.library) {
        if config::get().apis.contains(name) {
            let place = description.find(name, version);
            hip.apis[id as usize] = place.map(|place| (place, &description.apis[place as usize]));
        }
    }
    (hip.version, hip.data_size) = (version.name, version.data_size);
    true
}
