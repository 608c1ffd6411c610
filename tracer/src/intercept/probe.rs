//! Instrumented kernels (LOGDUR_INSTRUMENTED): they run in the place of the application's own, and stream messages into memory that is
//! read while they run (dh_comms).
//!
//! Each dispatch has memory of its own meanwhile. Where none is free, the queue waits in front of the dispatch until another one has
//! completed; no thread of the application waits.
//!
//! - `memory`: what a dispatch streams into; `pool`: the memory of a GPU, and its dispatches
//! - `reader`: the thread of a GPU that takes the messages out; it must never stop while a kernel runs, which waits where it finds no room
//! - `analysis`: what is made of the messages, on another thread, and records of it; `handlers`: those of the user's own

mod analysis;
mod handlers;
mod memory;
mod pool;
mod reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rpd_analyzers::handler_protocol::SOCKETS;
use rpd_analyzers::{Analyzers, BlockFilter, log_header};
use rpd_codeobject::Launch;
use rpd_duration_log::LogFormat;
use rpd_transport::env::Env;
use rpd_transport::records::KernelId;

use super::dispatches::Dispatches;
use super::gate::{DispatchGate, DispatchPlace};
use super::kernargs::Taken;

pub(super) use self::analysis::AnalyzedCode;
use self::handlers::UserHandler;
use self::pool::Dispatched;
pub(super) use self::pool::{Pool, abort, finish, leave};

/// What was asked for.
pub(super) struct ProbeConfig {
    dispatches: Dispatches,
    analyzers: Analyzers,
    handlers: Vec<&'static UserHandler>,
    filter: BlockFilter,
    /// How reports are written.
    format: LogFormat,
    /// Sub-buffers of a dispatch, and bytes of each.
    sub_buffers: usize,
    capacity: usize,
    /// Dispatches of a GPU that have memory at the same time.
    in_flight: usize,
}

impl ProbeConfig {
    /// LOGDUR_INSTRUMENTED, LOGDUR_DISPATCHES, LOGDUR_HANDLERS, DH_COMMS_GROUP_FILTER_X, _Y and _Z, RPDT_PROBE_SUB_BUFFERS,
    /// RPDT_PROBE_SUB_BUFFER_KB, RPDT_PROBE_IN_FLIGHT. Nothing where instrumented kernels are not asked for.
    pub(super) fn read(env: &mut Env<'_>) -> Option<ProbeConfig> {
        let asked = env.text("LOGDUR_INSTRUMENTED")?.to_string_lossy().to_lowercase();
        match asked.as_str() {
            "true" | "1" => {}
            "false" | "0" => return None,
            _ => {
                env.complain(format!(
                    "LOGDUR_INSTRUMENTED={asked} is neither true nor false; no kernel is instrumented"
                ));
                return None;
            }
        }
        let dispatches = Dispatches::read(env);
        let handlers = env.text("LOGDUR_HANDLERS").map(|text| text.to_string_lossy().into_owned());
        let (mut analyzers, wrong) = Analyzers::named(handlers.as_deref().unwrap_or_default());
        wrong.into_iter().for_each(|wrong| env.complain(format!("LOGDUR_HANDLERS: {wrong}")));
        let sockets = env.text(SOCKETS).map(|text| text.to_string_lossy().into_owned());
        if sockets.is_some() && handlers.is_none() {
            analyzers = Analyzers::none();
        }
        let mut filter = BlockFilter::default();
        for (axis, name) in ["DH_COMMS_GROUP_FILTER_X", "DH_COMMS_GROUP_FILTER_Y", "DH_COMMS_GROUP_FILTER_Z"]
            .iter()
            .enumerate()
        {
            let Some(text) = env.text(name) else { continue };
            let text = text.to_string_lossy();
            if let Err(wrong) = filter.set(axis, &text) {
                env.complain(format!("{name}={text}: {wrong}; it selects every workgroup"));
            }
        }
        let format = env.text("LOGDUR_LOG_FORMAT").and_then(|text| LogFormat::named(&text.to_string_lossy()));
        let capacity = env.number("RPDT_PROBE_SUB_BUFFER_KB", 64, 1..=1 << 20) as usize * 1024;
        Some(ProbeConfig {
            dispatches,
            analyzers,
            handlers: handlers::named(sockets.as_deref().unwrap_or_default(), capacity),
            filter,
            // A word that is none is complained of where lines for kernels are written.
            format: format.unwrap_or_default(),
            sub_buffers: env.number("RPDT_PROBE_SUB_BUFFERS", 256, 1..=1 << 16) as usize,
            capacity,
            in_flight: env.number("RPDT_PROBE_IN_FLIGHT", 8, 1..=1 << 10) as usize,
        })
    }
}

impl ProbeConfig {
    /// What the log begins with.
    pub(super) fn log_header(&self) -> &'static str {
        log_header(&self.analyzers, self.format)
    }
}

/// An instrumented kernel in the place of one of the application's.
pub(super) struct Probe {
    config: &'static ProbeConfig,
    pool: Arc<Pool>,
    /// Its number in records.
    kernel: KernelId,
    code: Arc<AnalyzedCode>,
    /// Where its arguments have the address of the memory.
    argument: u32,
    /// Dispatches so far.
    launched: AtomicU64,
}

impl Probe {
    /// Nothing of it was dispatched yet.
    pub(super) fn new(
        config: &'static ProbeConfig,
        pool: Arc<Pool>,
        kernel: KernelId,
        code: Arc<AnalyzedCode>,
        argument: u32,
    ) -> Probe {
        Probe { config, pool, kernel, code, argument, launched: AtomicU64::new(0) }
    }

    /// Whether the next dispatch is instrumented.
    pub(super) fn takes(&self) -> bool {
        let number = self.launched.fetch_add(1, Ordering::Relaxed);
        self.config.dispatches.takes(number, self.code.seed)
    }

    /// Gives the dispatch at `place` memory for its messages, or a gate that opens when there is some. Nothing where neither is
    /// free: the application's kernel runs then.
    pub(super) fn begin(&self, place: DispatchPlace, launch: Launch, kernargs: Taken) -> Option<ProbeUse> {
        let dispatch =
            Dispatched::new(place, self.kernel, launch, Arc::clone(&self.code), kernargs, self.argument);
        self.pool.begin(dispatch).map(ProbeUse)
    }
}

/// An instrumented dispatch, until it has completed or never will.
pub(super) struct ProbeUse(Arc<Dispatched>);

impl ProbeUse {
    /// What its queue waits at, where there was no memory for it.
    pub(super) fn gate(&self) -> Option<&DispatchGate> {
        self.0.gate()
    }

    /// The kernel has run to its end.
    pub(super) fn complete(&self) {
        self.0.end(true);
    }
}

impl Drop for ProbeUse {
    fn drop(&mut self) {
        // A thread that panics may drop it while the kernel still runs.
        if !std::thread::panicking() {
            self.0.end(false);
        }
    }
}
