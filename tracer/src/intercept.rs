//! What changes packets on their way to the hardware: kernels of a cache directory run in the place of the application's own.
//!
//! A kernel is replaced by one of the same mangled name and the same explicit arguments, of a code object for the same processor. The
//! application does not notice; the file says which dispatch ran what.
//!
//! - [`config`]: what the user asked for; `tree`: the files of the cache, and when they change; `candidate`: one of them, read;
//!   `libraries`: whose kernels may be replaced
//! - `loader`: the thread that reads them and loads them into the runtime; `outcomes`: what became of each, for the file
//! - `choice`: what may run in the place of one kernel, and whose turn it is; `kernargs`: memory for arguments made anew
//! - [`packet`]: what happens to one dispatch packet
//!
//! The `hsa` source tells of the kernels that the application loads, and hands packets over. Nothing here is called by another source.

mod candidate;
mod choice;
pub(crate) mod config;
mod kernargs;
mod libraries;
mod loader;
mod outcomes;
pub(crate) mod packet;
mod tree;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rpd_schema::session_fact;
use rpd_transport::log;
use rpd_transport::source::CandidateText;

use crate::gpu::kernels::Kernel;

pub(crate) use loader::{Original, Runtime};

/// Whether a kernel cache was asked for and the recorder can make use of it.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether packets are to be handed over.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Says once why kernels are not replaced although a cache was asked for.
pub(crate) fn cannot(why: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if is_on() && !SAID.swap(true, Ordering::Relaxed) {
        log::problem(&format!("kernels are not replaced {why}"));
    }
}

/// What the session says of it.
pub(crate) fn facts(add: &mut dyn FnMut(&str, &str)) {
    let Some(config) = config::get() else { return };
    add(session_fact::KERNEL_CACHE, &config.cache.to_string_lossy());
    if let Some(name) = config.alternate.name() {
        add(session_fact::ALTERNATE, &name);
    }
    if let choice::Alternate::Random(seed) = config.alternate {
        add(session_fact::ALTERNATE_SEED, &seed.to_string());
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

/// This is a forked child. Where its parent has a loader, the child has no use of the runtime, and may find the loader's locks taken.
pub(crate) fn forked() {
    if loader::STARTED.load(Ordering::Relaxed) {
        ON.store(false, Ordering::Relaxed);
    }
}

/// What became of files of the cache, from number `from` on, counted from 0.
pub(crate) fn outcomes(from: usize) -> Vec<CandidateText> {
    if is_on() { outcomes::from(from) } else { Vec::new() }
}

/// The name of a kernel for people, with the candidate that it is of.
pub(crate) fn described(kernel: &Kernel) -> String {
    let of = |number: u32| outcomes::from(number as usize).into_iter().next();
    match kernel.candidate().and_then(of) {
        Some(candidate) => format!("{} of the candidate {}", kernel.name(), candidate.path),
        None => kernel.name(),
    }
}
