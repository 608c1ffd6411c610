//! What changes packets on their way to the hardware: other kernels run in the place of the application's own.
//!
//! A kernel is replaced by one of the same mangled name and the same explicit arguments, of a code object for the same processor. The
//! application does not notice; the file says which dispatch ran what.
//!
//! - [`config`]: what the user asked for; `tree`: the files of the cache, and when they change; `candidate`: one of them, read;
//!   `libraries`: whose kernels may be replaced
//! - `loader`: the thread that reads them and loads them into the runtime; `outcomes`: what became of each, for the file
//! - `choice`: what may run in the place of one kernel; `alternate`: whose turn it is; `kernargs`: memory for arguments made anew
//! - `runtime`: the runtime, as far as all this needs it
//! - [`packet`]: what happens to one dispatch packet; `gate`: what holds a queue in front of one
//! - [`validate`]: whether both kernels leave the same in memory; [`probe`]: instrumented kernels, and what they stream out; `counting`:
//!   kernels that are rewritten to count their basic blocks; `dispatches`: which dispatches of both run
//!
//! The `hsa` source tells of the kernels that the application loads, and hands packets over. Nothing here is called by another source.

mod alternate;
mod candidate;
mod choice;
pub(crate) mod config;
mod counting;
mod dispatches;
mod gate;
mod kernargs;
mod libraries;
mod loader;
mod outcomes;
pub(crate) mod packet;
pub(crate) mod probe;
mod runtime;
mod tree;
pub(crate) mod validate;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rpd_schema::session_fact;
use rpd_transport::log;
use rpd_transport::recorder::Recorder;
use rpd_transport::source::CandidateText;

pub(crate) use counting::QueueFacts;
pub(crate) use loader::Original;
pub(crate) use outcomes::described;
pub(crate) use runtime::Runtime;

/// How long the end of the process waits for counters of basic blocks.
const COUNTERS: Duration = Duration::from_secs(2);

/// Whether packets are to be handed over.
#[inline]
pub(crate) fn is_on() -> bool {
    config::ON.load(Ordering::Relaxed)
}

/// Says once why kernels are not replaced, instrumented or counted although that was asked for.
pub(crate) fn cannot(why: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Some(config) = config::get().filter(|_| is_on()) else { return };
    if !SAID.swap(true, Ordering::Relaxed) {
        let what = match (&config.probe, &config.counting) {
            (Some(_), _) => "kernels are not instrumented",
            (None, Some(_)) => "basic blocks are not counted",
            (None, None) => "kernels are not replaced",
        };
        log::problem(&format!("{what} {why}"));
    }
}

/// What the session says of it.
pub(crate) fn facts(add: &mut dyn FnMut(&str, &str)) {
    let Some(config) = config::get() else { return };
    if let Some(cache) = &config.cache {
        add(session_fact::KERNEL_CACHE, &cache.to_string_lossy());
    }
    if let Some(name) = config.alternate.name() {
        add(session_fact::ALTERNATE, &name);
    }
    if let alternate::Alternate::Random(seed) = config.alternate {
        add(session_fact::ALTERNATE_SEED, &seed.to_string());
    }
    if let Some(missed) = Some(validate::missed()).filter(|missed| *missed > 0 && is_on()) {
        add(session_fact::VALIDATION_MISSED, &missed.to_string());
    }
}

/// The application has loaded these kernels, whose numbers in records are given. Returns when what may run in their place is known,
/// within a deadline: then their first dispatch is replaced already.
pub(crate) fn loaded(runtime: Runtime, kernels: Vec<loader::Original>) {
    if is_on() {
        loader::loaded(runtime, kernels);
    }
}

/// Whether it makes a difference which files kernels come from.
pub(crate) fn wants_origins() -> bool {
    config::get().is_some_and(|config| config.libraries.is_some())
}

/// Whether results are compared, for which it matters which variables code objects have.
pub(crate) fn wants_validation() -> bool {
    config::get().is_some_and(|config| config.validation.is_some())
}

/// Whether the bytes of a code object with these kernels are wanted: instrumented ones say what they are of, others are rewritten to count their basic
/// blocks.
pub(crate) fn wants_bytes(kernels: &[rpd_codeobject::Kernel]) -> bool {
    let is_instrumented =
        |kernel: &rpd_codeobject::Kernel| rpd_codeobject::original_symbol(&kernel.symbol).is_some();
    config::get().is_some_and(|config| {
        config.counting.is_some() || config.probe.is_some() && kernels.iter().any(is_instrumented)
    })
}

/// What the log begins with where it has reports of analyzers.
pub(crate) fn report_header() -> Option<&'static str> {
    config::get()?.probe.as_ref().map(|probe| probe.log_header())
}

/// The application destroys a queue: nothing that its dispatches use is read when this returns, within `deadline`.
pub(crate) fn queue_gone(gpu: u32, queue: u32, deadline: Duration) {
    if wants_validation() {
        validate::leave((gpu, queue), deadline);
    }
}

/// These kernel objects mean nothing any more.
pub(crate) fn unloaded(objects: &[u64]) {
    if is_on() {
        loader::unloaded(objects);
    }
}

/// The runtime goes down: nothing is asked of it when this returns, within `deadline`.
pub(crate) fn stop(deadline: Duration) {
    if is_on() {
        loader::stop(deadline);
    }
}

/// Recording stops for a while: what rewritten kernels have counted is recorded when this returns, within `deadline`.
pub(crate) fn drain(deadline: Duration) {
    if is_on() {
        counting::read_all(deadline);
    }
}

/// The program comes down: what instrumented kernels have streamed out by now is analyzed when this returns, within `deadline`.
pub(crate) fn abort(deadline: Duration) {
    if is_on() {
        probe::abort(deadline);
        counting::finish(deadline);
        packet::say_early();
    }
}

/// Nothing more is recorded: what instrumented kernels have streamed out is analyzed when this returns, within RPDT_EXIT_MS.
pub(crate) fn finish() {
    if is_on() {
        probe::finish();
        counting::finish(COUNTERS);
        packet::say_early();
        gate::forget();
    }
}

/// The runtime goes down, and what it ran has ended or never will: nothing uses its memory when this returns, within `deadline`.
pub(crate) fn leave(deadline: Duration) {
    if is_on() {
        probe::leave(deadline);
    }
}

/// This is a forked child. Where its parent has a loader, the child has no use of the runtime, and may find the loader's locks taken.
pub(crate) fn forked() {
    if loader::STARTED.load(Ordering::Relaxed) {
        config::ON.store(false, Ordering::Relaxed);
    }
}

/// The process ends: says that a pattern for names of kernels is found in none, or in none that was replaced.
pub(crate) fn say_if_in_vain(recorder: &Recorder) {
    if let Some(validation) = config::get().and_then(|config| config.validation.as_ref()).filter(|_| is_on())
    {
        validation.say_if_in_vain(recorder);
    }
}

/// What became of files of the cache, from number `from` on, counted from 0.
pub(crate) fn outcomes(from: usize) -> Vec<CandidateText> {
    if is_on() { outcomes::from(from) } else { Vec::new() }
}
