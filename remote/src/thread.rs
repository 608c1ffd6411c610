//! The loader's one thread. It sleeps until a request comes, and serves it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rpd_preload::{clock, threads};
use rpd_remote_block::{
    Command, DRAIN, Reading, RecorderState, RequestOutcome, RequestVerb, SharedBlock, futex,
};

use crate::recorder::{self, RecorderFunctions, ReportedState};
use crate::{end, load, presence, signal};

/// One start of ours is counted by the recorder.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Launches without an operation after the last stop.
static WITHOUT_OP: AtomicU64 = AtomicU64::new(0);
/// When to stop by ourselves, ns of CLOCK_MONOTONIC; 0 for never.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// The name that a command last gave the trace. Used by the thread alone; only a forked child may find it locked, for good.
static NAMED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The thread looks what is asked for, or does it.
static BUSY: AtomicBool = AtomicBool::new(false);
/// How long the runtime's initialisation waits for a recorder that is being loaded.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks whether it is alone, once the program's first thread has ended.
const GLANCE: Duration = Duration::from_millis(200);

type Answered = (RequestOutcome, Vec<u8>);

/// Starts the thread, on which no signal handler of the program ever runs.
///
/// # Errors
/// The system has no room for another thread.
pub(crate) fn start() -> std::io::Result<()> {
    threads::spawn(c"rpd-remote", || {
        // A bug of ours ends our thread, not the program.
        let _ = catch_unwind(AssertUnwindSafe(serve));
        BUSY.store(false, Ordering::SeqCst);
    })
}

/// Waits, for a while, until a start that has been asked for has brought the recorder.
pub(crate) fn await_recorder() {
    let begin = Instant::now();
    // The thread says that it is busy before it takes what was asked for.
    let is_coming = || BUSY.load(Ordering::SeqCst) || signal::asks_for_start() || has_request();
    while is_coming() && !recorder::is_known() && begin.elapsed() < PATIENCE {
        // Not the C library's sleep, at which a thread of the program could be cancelled.
        futex::wait(&AtomicU32::new(0), 0, Some(Duration::from_micros(500)));
    }
}

fn has_request() -> bool {
    presence::block().is_some_and(|block| !block.is_idle())
}

fn serve() {
    while let Some(block) = presence::block() {
        // Read before looking for commands: one that comes later changes it, and the sleep below ends at once.
        let bell = block.bell.load(Ordering::Acquire);
        BUSY.store(true, Ordering::SeqCst);
        if let Some(verb) = signal::take_command() {
            let command = if verb == RequestVerb::Stop {
                stop()
            } else {
                Command { verb, duration_ns: 0, file: vec![] }
            };
            let (outcome, text) = act(block, &command);
            let number = block.signals_done.load(Ordering::Relaxed) + 1;
            block.signal_answer.write(number, outcome, &text);
            block.signals_done.store(number, Ordering::Release);
            block.answered();
        } else if let Some((number, verb, command)) = block.asked() {
            block.taken(number);
            let (outcome, text) =
                if verb.is_some() { act(block, &command) } else { (RequestOutcome::Unknown, vec![]) };
            block.reply(number, outcome, &text);
        } else {
            BUSY.store(false, Ordering::SeqCst);
            if end::first_left() && threads::are_alone() {
                return;
            }
            match remaining() {
                Some(time) if time.is_zero() => drop(act(block, &stop())),
                time if end::first_left() => {
                    futex::wait(&block.bell, bell, Some(time.map_or(GLANCE, |time| time.min(GLANCE))))
                }
                time => futex::wait(&block.bell, bell, time),
            }
        }
    }
}

fn stop() -> Command {
    Command { verb: RequestVerb::Stop, duration_ns: DRAIN.as_nanos() as u64, file: vec![] }
}

/// How long until recording stops by itself.
fn remaining() -> Option<Duration> {
    let until = UNTIL.load(Ordering::Relaxed);
    (until != 0).then(|| Duration::from_nanos(until.saturating_sub(clock::monotonic())))
}

/// Does what is asked and tells the block how things stand then.
fn act(block: &SharedBlock, command: &Command) -> Answered {
    let answer = match command.verb {
        RequestVerb::Look => (RequestOutcome::Done, vec![]),
        _ if load::is_ending() => (RequestOutcome::Ending, vec![]),
        RequestVerb::Start => start_recording(block, command),
        RequestVerb::Stop => recorder::present()
            .map_or((RequestOutcome::Already, vec![]), |recorder| stop_recording(recorder, command)),
        RequestVerb::Flush => recorder::present().map_or((RequestOutcome::Already, vec![]), |recorder| {
            let before = recorder.state().problems;
            (recorder.flush)();
            complaint_since(before, &recorder.state()).unwrap_or((RequestOutcome::Done, vec![]))
        }),
    };
    publish(block);
    answer
}

fn start_recording(block: &SharedBlock, command: &Command) -> Answered {
    if recorder::present().is_none() {
        block.status.write(&Reading { state: RecorderState::Loading, wanted: true, ..known() });
    }
    let recorder = match recorder::load() {
        Ok(recorder) => recorder,
        Err(reason) => return (RequestOutcome::NoRecorder, reason.into_bytes()),
    };
    let before = recorder.state();
    if !command.file.is_empty() && !is_named(&command.file) {
        if before.session >= 0 && before.file() != command.file {
            return (RequestOutcome::OtherFile, before.file());
        }
        if !recorder.set_filename(&command.file) {
            return complaint_since(before.problems, &recorder.state())
                .unwrap_or((RequestOutcome::Ending, vec![]));
        }
        if let Ok(mut named) = NAMED.try_lock() {
            named.clone_from(&command.file);
        }
    }
    if before.recording != 0 && STARTED.load(Ordering::Relaxed) {
        set_end(command);
        return (RequestOutcome::Already, vec![]);
    }
    // A file that cannot be made is better known now than when the first kernel is through.
    (recorder.open)();
    if let Some(complaint) = complaint_since(before.problems, &recorder.state()) {
        return complaint;
    }
    WITHOUT_OP.store(0, Ordering::Relaxed);
    if !STARTED.swap(true, Ordering::Relaxed) {
        (recorder.start)();
    }
    let after = recorder.state();
    if after.recording == 0 {
        // A recorder that has no reason to give has ended with the process.
        return match after.problem() {
            reason if reason.is_empty() => (RequestOutcome::Ending, vec![]),
            reason => (RequestOutcome::Problem, reason),
        };
    }
    set_end(command);
    match complaint_since(before.problems, &after) {
        Some((_, complaint)) => (RequestOutcome::Partly, complaint),
        None => (RequestOutcome::Done, vec![]),
    }
}

/// Whether the trace was given this name before. What it became is known to the recorder alone: it may have %p in it.
fn is_named(file: &[u8]) -> bool {
    NAMED.try_lock().is_ok_and(|named| *named == file)
}

fn set_end(command: &Command) {
    let until =
        if command.duration_ns == 0 { 0 } else { clock::monotonic().saturating_add(command.duration_ns) };
    UNTIL.store(until, Ordering::Relaxed);
}

fn stop_recording(recorder: &RecorderFunctions, command: &Command) -> Answered {
    UNTIL.store(0, Ordering::Relaxed);
    let before = recorder.state();
    if before.recording == 0 && !STARTED.load(Ordering::Relaxed) {
        return (RequestOutcome::Already, vec![]);
    }
    // Also where the program itself began it: whoever says stop means this recording.
    STARTED.store(false, Ordering::Relaxed);
    (recorder.stop)();
    // Where the program goes on recording there is no end to what is in flight.
    let patience = if recorder.state().recording == 0 { command.duration_ns } else { 0 };
    WITHOUT_OP.store((recorder.drain)(patience), Ordering::Relaxed);
    let after = recorder.state();
    let still = (after.recording != 0).then_some((RequestOutcome::StillRecording, vec![]));
    complaint_since(before.problems, &after).or(still).unwrap_or((RequestOutcome::Done, vec![]))
}

/// What the recorder complained of since it had complained `before` times.
fn complaint_since(before: u64, state: &ReportedState) -> Option<Answered> {
    (state.problems > before).then(|| (RequestOutcome::Problem, state.problem()))
}

fn publish(block: &SharedBlock) {
    block.status.write(&known());
}

fn known() -> Reading {
    let nothing = Reading { signals: signal::owners(), ..Reading::nothing() };
    let Some(recorder) = recorder::present() else { return nothing };
    let state = recorder.state();
    Reading {
        state: if state.recording != 0 { RecorderState::Recording } else { RecorderState::Stopped },
        wanted: STARTED.load(Ordering::Relaxed),
        session: u32::try_from(state.session).ok(),
        events: state.events,
        lost: state.lost,
        launches_without_op: WITHOUT_OP.load(Ordering::Relaxed),
        file: state.file(),
        problem: state.problem(),
        ..nothing
    }
}
