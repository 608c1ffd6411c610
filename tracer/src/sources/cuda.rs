//! The source of what NVIDIA's GPUs do, and of calls of CUDA, by CUPTI.
//!
//! CUDA's driver loads this library (`CUDA_INJECTION64_PATH`, which is set where it is preloaded) in the first cuInit. CUPTI is loaded then,
//! never before.
//!
//! - `export`: what the driver calls; `injection`: whether it is to call another tool; `config`, `filter`: what the user wants; `library`:
//!   libcuda and libcupti; `abi`: their interfaces
//! - `attach`: CUPTI is subscribed to, and given back when recording stops; `late`: that happens after cuInit, on a thread of its own; `contexts`: and
//!   not while the driver creates a context; `yielding`: CUPTI is given back when another profiler asks for it; `state`: whether it may be used
//! - `buffers`: memory for CUPTI's records; `collector`: the thread that makes CUPTI give them back; `record` and `field`: what they say; `decode`: the
//!   recorder's records of it; `wall_clock`: their times, where CUPTI refuses the recorder's clock
//! - `callback`: what CUPTI calls back for: `arguments` of calls, and `modules`, whose code is saved
//! - `functions`, `kernel`, `device`, `queue`: what records name by number; `detail`: what is known of a call beside its record; `facts`: of the process

mod abi;
mod arguments;
mod attach;
mod buffers;
mod callback;
mod captures;
mod collector;
mod config;
mod contexts;
mod decode;
mod detail;
mod device;
pub mod export;
mod facts;
mod field;
mod filter;
mod functions;
mod injection;
mod kernel;
mod late;
mod library;
mod modules;
mod queue;
mod record;
mod state;
mod wall_clock;
mod yielding;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rpd_transport::env::Env;
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::records::Call;
use rpd_transport::source::{CallText, GpuFacts, Loading, Source};

pub(crate) struct Cuda;

impl Source for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn number(&self) -> u8 {
        functions::SOURCE
    }

    fn configure(&self, env: &mut Env<'_>) {
        config::configure(env);
    }

    fn loaded(&self, at: Loading) {
        injection::prepare(at);
    }

    fn started(&self, recorder: &'static Recorder) {
        state::apply(state::CuptiEvent::RecordingStarted);
        attach::started(recorder);
    }

    fn visit(&self, recorder: &'static Recorder) {
        attach::follow(recorder, false);
    }

    fn next_visit(&self) -> Option<Duration> {
        attach::awaits_driver().then_some(Duration::from_millis(20))
    }

    fn collect(&self, deadline: Duration) -> bool {
        collector::collect(deadline);
        true
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn drain(&self, deadline: Duration) {
        let begin = Instant::now();
        loop {
            collector::collect(deadline.saturating_sub(begin.elapsed()));
            if !collector::has_outstanding() || begin.elapsed() >= deadline {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn abort(&self, deadline: Duration) {
        collector::collect(deadline);
    }

    fn finish(&self, _: Duration) {
        if let Some(recorder) = recorder::get() {
            attach::say_if_anothers(recorder);
        }
        collector::finish();
    }

    fn is_used(&self) -> bool {
        state::current().was_used()
    }

    fn causes_operations(&self) -> bool {
        attach::current().is_some_and(|attached| attached.functions.has_any())
    }

    fn function(&self, index: u16) -> &'static str {
        if index == functions::OPERATION {
            return "cudaOperation";
        }
        attach::functions()
            .and_then(|functions| functions.by_index(index))
            .map_or("", |function| function.name)
    }

    fn describe(&self, call: &Call, behind: &[u8]) -> Option<CallText> {
        let functions = attach::functions();
        let Some(function) = functions.and_then(|functions| functions.by_index(call.function)) else {
            return Some(CallText { name: self.function(call.function), ..CallText::default() });
        };
        let arguments = if behind.is_empty() { String::new() } else { detail::text(function, behind) };
        Some(CallText {
            name: function.name,
            arguments,
            launches: function.launches_kernel,
            ..CallText::default()
        })
    }

    fn facts(&self, add: &mut dyn FnMut(&str, &str)) {
        if let Some(why) = attach::refusal() {
            add("cuda_unavailable", &why);
        } else if state::current().is_left() {
            add("cuda_unavailable", "left to another profiler of the process (RPDT_CUPTI_YIELD)");
        }
        if attach::current().is_some_and(|attached| attached.is_on_wall_clock.load(Ordering::Relaxed)) {
            add("cuda::clock", "CLOCK_REALTIME, converted: CUPTI refuses the recorder's clock");
        }
        facts::tell(add);
    }

    fn state(&self) -> Option<(&'static str, &'static str)> {
        let word = match (state::current().was_used(), attach::refusal()) {
            (true, _) => "attached",
            (false, _) if injection::is_anothers() => "other",
            (false, Some(_)) => "refused",
            (false, None) => "none",
        };
        Some(("cupti", word))
    }

    fn gpus(&self) -> Vec<GpuFacts> {
        device::gpus().to_vec()
    }

    /// Versions of what is between the program and its GPUs.
    fn versions(&self) -> Vec<(&'static str, String)> {
        let Some((cuda, cupti)) = attach::found() else { return Vec::new() };
        let driver = std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default();
        let mut versions = vec![
            ("cuda", format!("{}.{}", cuda / 1000, cuda % 1000 / 10)),
            ("cupti", format!("{}, {}", cupti.version_text(), cupti.path.display())),
        ];
        if !driver.trim().is_empty() {
            versions.push(("nvidia_driver", driver.trim().to_string()));
        }
        versions
    }

    fn timing(&self) -> Option<&'static str> {
        state::current().was_used().then_some("cupti")
    }
}
