//! The source of dispatches and copies. The recorder puts hooks into the HSA runtime's API tables and so sees every queue, dispatch, copy and
//! code object of the process. It gets the tables in one of two ways: the runtime gives them to a tool (OnLoad), or rocprofiler-register
//! does (rocprofiler_set_api_table). From then on both are the same.
//!
//! - `export`: the symbols by which the runtime finds a tool; `tools_lib`: the variable by which an old runtime finds it
//! - `load`: puts hooks into the tables (`table`); `state`: what the hooks share; `life`: when the runtime starts and ends
//! - `queue`, `queue_descriptor`: intercepted queues; `queue_error`: a queue that fails
//! - `reservation`: which call each packet of a queue belongs to; `dispatch`: what the recorder does with the packets
//! - `functions`: the numbers of functions in records; `api_calls`: calls of the runtime's functions, where they are to be recorded
//! - `signal`: the recorder's own signals, which time dispatches; `app_signal`: the application's, from which times are read too
//! - `copy`: asynchronous copies; `code_object`: the kernels of code objects
//! - `in_flight`: operations that have not completed; `completion`: the thread that sees them complete; `finished`: their records

mod api_calls;
mod app_signal;
mod code_object;
mod completion;
mod copy;
mod dispatch;
pub mod export;
mod finished;
mod functions;
mod in_flight;
mod life;
mod load;
mod queue;
mod queue_descriptor;
mod queue_error;
mod reservation;
mod signal;
mod state;
mod table;
mod tools_lib;

use std::time::{Duration, Instant};

use rpd_transport::env::Env;
use rpd_transport::source::{Answer, Launched, Loading, Offer, Source};

use crate::gpu::code_objects;
use crate::intercept;
use load::TableOrigin;
use state::get;

/// The source of dispatches and copies.
pub(crate) struct HsaSource;

impl Source for HsaSource {
    fn name(&self) -> &'static str {
        "hsa"
    }

    fn number(&self) -> u8 {
        functions::SOURCE
    }

    fn configure(&self, env: &mut Env<'_>) {
        intercept::config::read(env);
        api_calls::configure(env);
    }

    fn loaded(&self, at: Loading) {
        // Children of a process that somebody looks into for a while are not to be recorded by themselves.
        if !at.by_remote {
            tools_lib::announce();
        }
    }

    fn offered(&self, offer: &Offer<'_>) -> Answer {
        let (b"hsa", [root]) = (offer.name, offer.tables) else { return Answer::NotMine };
        // SAFETY: the runtime that calls offers its own table (ROCr LoadTools).
        let loaded = unsafe { load::load(root.cast(), TableOrigin::Register) };
        // Taking it would leave the tools that the user named in HSA_TOOLS_LIB unstarted.
        if loaded && !tools_lib::names_others() { Answer::Taken } else { Answer::Declined }
    }

    fn collect(&self, deadline: Duration) -> bool {
        get().filter(|hsa| hsa.usable()).is_none_or(|hsa| hsa.completion.collect(deadline))
    }

    fn drain(&self, deadline: Duration) {
        if let Some(hsa) = get().filter(|hsa| hsa.usable()) {
            let end = Instant::now() + deadline;
            hsa.completion.drain(deadline);
            intercept::drain(end.saturating_duration_since(Instant::now()));
        }
    }

    fn launched(&self) -> Launched {
        get().filter(|hsa| hsa.usable()).map_or_else(Launched::default, |hsa| hsa.queues.launched())
    }

    fn abort(&self, deadline: Duration) {
        if let Some(hsa) = get().filter(|hsa| hsa.usable()) {
            hsa.completion.abort(deadline);
            intercept::abort(deadline);
        }
    }

    fn finish(&self, deadline: Duration) {
        state::finish(deadline);
    }

    fn is_used(&self) -> bool {
        get().is_some()
    }

    fn is_own_thread(&self, tid: u32) -> bool {
        completion::is_thread(tid)
    }

    fn presence(&self) -> Option<&'static str> {
        if get().is_some() {
            return Some("loaded");
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Some(if maps.contains("libhsa-runtime64") { "mapped" } else { "no" })
    }

    fn facts(&self, add: &mut dyn FnMut(&str, &str)) {
        code_objects::facts(add);
        intercept::facts(add);
        api_calls::facts(add);
    }

    fn function(&self, index: u16) -> &'static str {
        functions::NAMES.get(usize::from(index)).copied().unwrap_or_default()
    }
}
