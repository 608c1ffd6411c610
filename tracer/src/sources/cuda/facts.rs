//! Facts of the session about CUDA's streams and contexts, and about the time that CUPTI itself took.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use rpd_preload::lock::lock_within;

use super::device;
use super::record::Fact;

/// How long the writer waits for the thread that decodes.
const PATIENCE: Duration = Duration::from_secs(1);
/// Streams and contexts that are written one by one, the first.
const MOST: usize = 256;

/// What is known so far.
#[derive(Default)]
struct Known {
    /// The process that it is of.
    pid: u32,
    /// By context and number.
    streams: BTreeMap<(u32, u32), String>,
    contexts: BTreeMap<u32, u32>,
    /// How often, and ns.
    overheads: BTreeMap<&'static str, (u64, u64)>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    pid: 0,
    streams: BTreeMap::new(),
    contexts: BTreeMap::new(),
    overheads: BTreeMap::new(),
});

/// CUPTI says so.
pub(super) fn add(fact: &Fact) {
    let Some(mut known) = lock_within(&KNOWN, PATIENCE) else { return };
    let own = std::process::id();
    if known.pid != own {
        *known = Known { pid: own, ..Known::default() };
    }
    match *fact {
        Fact::Stream { context, stream, priority, flag } => {
            if known.streams.len() < MOST {
                let flag = ["", ", default", ", non-blocking", ", null"].get(flag as usize).unwrap_or(&"");
                known.streams.insert((context, stream), format!("priority {priority}{flag}"));
            }
        }
        Fact::Context { context, device } => {
            if known.contexts.len() < MOST {
                known.contexts.insert(context, device);
            }
        }
        Fact::Overhead { kind, time } => {
            let sum = known.overheads.entry(overhead(kind)).or_default();
            *sum = (sum.0 + 1, sum.1 + time);
        }
    }
}

/// CUpti_ActivityOverheadKind.
fn overhead(kind: u32) -> &'static str {
    match (kind, kind >> 16) {
        (1, _) => "driver_compiler",
        (_, 1) => "buffer_flush",
        (_, 2) => "instrumentation",
        (_, 3) => "resource",
        (_, 4) => "module_loading",
        (_, 5) => "lazy_function_loading",
        (_, 6) => "command_buffer_full",
        (_, 7) => "buffer_request",
        (_, 8) => "uvm_activity_init",
        _ => "other",
    }
}

/// Hands all of it to `add`.
pub(super) fn tell(add: &mut dyn FnMut(&str, &str)) {
    let Some(known) = lock_within(&KNOWN, PATIENCE).filter(|known| known.pid == std::process::id()) else {
        return;
    };
    for ((context, stream), text) in &known.streams {
        add(&format!("cuda::stream::{context}::{stream}"), text);
    }
    for (context, ordinal) in &known.contexts {
        add(&format!("cuda::context::{context}"), &format!("gpu {}", device::index(*ordinal)));
    }
    for (what, (count, time)) in &known.overheads {
        add(&format!("cuda::overhead::{what}"), &format!("{count} times, {time} ns"));
    }
}
