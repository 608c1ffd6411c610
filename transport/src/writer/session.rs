//! The facts in the file about this process and its GPUs.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::Ordering;

use rpd_preload::clock::{self, Clock};
use rpd_schema::{Appender, Error, session_fact as fact};

/// Where a fact about the session goes.
pub(super) type AddFact<'a> = dyn FnMut(&str, &str) -> Result<(), Error> + 'a;

use super::rows::Recorded;
use crate::counters::{Counters, Lost};
use crate::host;
use crate::recorder::Recorder;
use crate::stack::Stacks;

/// Which part of a recording in parts a session is in.
#[derive(Clone)]
pub(super) struct Part {
    /// From 1.
    pub(super) number: u32,
    /// When the part was begun, by whomever, ns of CLOCK_REALTIME.
    pub(super) began: u64,
    /// Where this process comes from: the name of the file, and the local id that its next call has.
    pub(super) before: Option<(String, u64)>,
}

/// Facts that are known when a session begins, in a `part` if the recording is in parts.
pub(super) fn begin(state: &mut AddFact<'_>, recorder: &Recorder, part: Option<&Part>) -> Result<(), Error> {
    // SAFETY: no arguments, cannot fail.
    let parent = unsafe { libc::getppid() };
    let facts = [
        (fact::HOST, rpd_settings::file_name::host()),
        (fact::BOOT_ID, host::boot_id()),
        (fact::PID, recorder.pid.to_string()),
        (fact::PID_NAMESPACE, host::pid_namespace()),
        (fact::PPID, parent.to_string()),
        (fact::COMMAND, host::command()),
        (fact::START_MONOTONIC_NS, recorder.began.0.to_string()),
        (fact::START_REALTIME_NS, recorder.began.1.to_string()),
        (fact::RECORDER_VERSION, env!("CARGO_PKG_VERSION").to_string()),
    ];
    for (key, value) in facts {
        state(key, &value)?;
    }
    if let Some(run) = run(recorder) {
        state(fact::RUN, &run)?;
    }
    if let Some(Part { number, began, before }) = part {
        state(fact::PART, &number.to_string())?;
        state(fact::PART_BEGAN_REALTIME_NS, &began.to_string())?;
        if let Some((file, calls)) = before {
            state(fact::PART_BEFORE, file)?;
            state(fact::CALLS_BEFORE_PART, &calls.to_string())?;
        }
    }
    for variable in fact::RANK_VARIABLES.into_iter().chain(fact::JOB_VARIABLES) {
        if let Ok(value) = std::env::var(variable) {
            state(&fact::env(variable), &value)?;
        }
    }
    Ok(())
}

/// The name by which `rpd record` knows the sessions of its own run, those of forked children too.
pub(super) fn run(recorder: &Recorder) -> Option<Cow<'_, str>> {
    let run = recorder.config.report.as_deref().and_then(Path::file_name);
    run.map(OsStr::to_string_lossy)
}

/// Name of a note beside the trace that no other process uses.
pub(super) fn name_of_note(recorder: &Recorder) -> String {
    let boot = host::boot_id();
    let boot = boot.split('-').next().unwrap_or_default();
    format!("{boot}-{}-{}", recorder.pid, recorder.began.0)
}

/// The GPUs and their runtimes, where there are more GPUs than the session names: a second vendor's may come later. How many it names then.
pub(super) fn gpus(appender: &mut Appender, recorder: &Recorder, named: usize) -> Result<usize, Error> {
    let gpus = recorder.setup.gpus.gpus();
    if gpus.len() <= named {
        return Ok(named);
    }
    sources(&mut |key, value| appender.session_fact(key, value), recorder)?;
    let timing = recorder.setup.gpus.timing();
    if !timing.is_empty() {
        appender.session_fact(fact::TIMING, &timing.join(","))?;
    }
    for (of, version) in recorder.setup.gpus.versions() {
        appender.session_fact(&fact::version(of), &version)?;
    }
    for gpu in &gpus {
        let facts = [
            (fact::GPU_NAME, &gpu.name),
            (fact::GPU_TARGET, &gpu.target),
            (fact::GPU_BDF, &gpu.bdf),
            (fact::GPU_UUID, &gpu.uuid),
        ];
        for (key, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
            appender.gpu_fact(gpu.index, key, value)?;
        }
    }
    Ok(gpus.len())
}

/// Which sources have found what they observe, and what they say of it. A later start or another profiler can change that.
fn sources(state: &mut AddFact<'_>, recorder: &Recorder) -> Result<(), Error> {
    let used = recorder.setup.sources.iter().filter(|source| source.is_used());
    let names: Vec<&str> = used.map(|source| source.name()).collect();
    if !names.is_empty() {
        state(fact::SOURCES, &names.join(","))?;
    }
    let mut said = Ok(());
    for source in recorder.setup.sources {
        source.facts(&mut |key, value| {
            if said.is_ok() {
                said = state(key, value);
            }
        });
    }
    said
}

/// Sums of the process. A session tells what has come to them since the session before it.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) lost: Lost,
    without_stack: u64,
    cpu_ns: u64,
    clamped: u64,
    waited_ns: u64,
}

impl Sums {
    /// As they are now.
    pub(super) fn of(recorder: &Recorder) -> Sums {
        let Counters { clamped, waited_ns, cpu_ns, .. } = &recorder.counters;
        Sums {
            lost: recorder.counters.lost(),
            without_stack: recorder.stacks.as_ref().map_or(0, Stacks::without),
            cpu_ns: cpu_ns.load(Ordering::Relaxed),
            clamped: clamped.load(Ordering::Relaxed),
            waited_ns: waited_ns.load(Ordering::Relaxed),
        }
    }

    /// The same with other losses.
    pub(super) fn with_lost(self, lost: Lost) -> Sums {
        Sums { lost, ..self }
    }

    /// What has come since `earlier`.
    pub(super) fn since(self, earlier: Sums) -> Sums {
        Sums {
            lost: self.lost.since(earlier.lost),
            without_stack: self.without_stack - earlier.without_stack,
            cpu_ns: self.cpu_ns - earlier.cpu_ns,
            clamped: self.clamped - earlier.clamped,
            waited_ns: self.waited_ns - earlier.waited_ns,
        }
    }
}

/// What the session has recorded and lost so far.
pub(super) fn counts(
    state: &mut AddFact<'_>,
    recorder: &Recorder,
    recorded: &Recorded,
    sums: Sums,
) -> Result<(), Error> {
    let kinds = [
        ("call", recorded.calls),
        ("kernel", recorded.kernels),
        ("copy", recorded.copies),
        ("fill", recorded.fills),
        ("stack", recorded.stacks),
        ("range", recorded.ranges),
        ("mark", recorded.marks),
    ];
    for (kind, count) in kinds {
        state(&fact::recorded(kind), &count.to_string())?;
    }
    if recorded.graphs > 0 {
        state(&fact::recorded("graph"), &recorded.graphs.to_string())?;
    }
    if recorded.sensors > 0 {
        state(&fact::recorded("sensor"), &recorded.sensors.to_string())?;
    }
    for (key, value) in recorder.failures.facts() {
        state(key, &value)?;
    }
    for (cause, count) in sums.lost.by_name() {
        state(&fact::lost(cause), &count.to_string())?;
    }
    if recorder.stacks.is_some() {
        state("calls_without_stack", &sums.without_stack.to_string())?;
    }
    sources(state, recorder)?;
    if recorder.setup.sources.iter().any(|source| source.causes_operations()) {
        state("ops_without_call", &recorded.without_call.to_string())?;
    }
    launches_without_op(state, recorded)?;
    state(fact::RECORDER_CPU_NS, &sums.cpu_ns.to_string())?;
    state("clamped_times", &sums.clamped.to_string())?;
    state("waited_ns", &sums.waited_ns.to_string())?;
    let longest_turn = recorder.counters.longest_turn_ns.load(Ordering::Relaxed);
    state("longest_turn_ns", &longest_turn.to_string())
}

/// How many events the file has with the open transaction, which each says: by that an older copy of the file is known.
pub(super) fn committed(appender: &mut Appender, recorded: &Recorded) -> Result<(), Error> {
    appender.session_fact(fact::COMMITTED_EVENTS, &recorded.events().to_string())
}

/// How many launches have not completed; also a zero, where it was more before.
pub(super) fn launches_without_op(state: &mut AddFact<'_>, recorded: &Recorded) -> Result<(), Error> {
    if recorded.launches == 0 {
        return Ok(());
    }
    state(fact::LAUNCHES_WITHOUT_OP, &recorded.launches_without_op().to_string())
}

/// The session ends well.
pub(super) fn end(state: &mut AddFact<'_>) -> Result<(), Error> {
    state(fact::END_MONOTONIC_NS, &clock::monotonic().to_string())?;
    state(fact::END_REALTIME_NS, &clock::read(Clock::Realtime).to_string())
}
