//! The one thread that owns the file: drains all rings, makes rows of records, commits at least once a second.
//!
//! Everybody else only wakes it, or waits for it with a deadline, by [`crate::requests`].

mod access;
mod code_objects;
mod duration_log;
mod file;
mod frames;
mod held;
mod history;
mod inputs;
mod instrumented;
mod links;
mod names;
mod note;
mod process_ranges;
mod ranges;
mod reported;
mod rows;
mod session;
mod sink;
mod system_calls;
mod turn;

use std::sync::atomic::Ordering;
use std::time::Duration;

use rpd_preload::clock::{self, Clock};
use rpd_preload::threads;

use crate::recorder::Recorder;
use crate::{log, provoked};
use file::TraceFile;
pub use turn::GATE;

/// Ends the session and closes the file, waiting up to RPDT_EXIT_MS.
pub fn finish(recorder: &'static Recorder) {
    if !recorder.requests.finish(recorder) {
        log::problem("the trace was not written to its end within RPDT_EXIT_MS: its last rows are missing");
        note::leave_last(recorder);
    }
    duration_log::finish(recorder);
}

/// The program comes down: what the duration log has so far is written, as far as somebody takes it.
pub fn abort(recorder: &'static Recorder, deadline: Duration) {
    recorder.requests.flush_or_note(deadline);
    duration_log::flush(deadline);
}

/// Adds whole lines of an analyzer's report to the log of this process, where one was asked for. For threads of ours: waits a moment
/// where the log has no room.
pub fn log_report(recorder: &'static Recorder, text: String) {
    duration_log::report(recorder, text);
}

/// How many lines the duration log of this process is short of.
pub fn log_lines_lost() -> u64 {
    duration_log::lost()
}

/// Whether the trace is open. For [`crate::source::Source::visit`].
pub fn has_file() -> bool {
    system_calls::has_trace()
}

/// Whether this process is the one that records the sensors of that GPU into its trace. Other processes that record into the same file
/// may have been first; the place of one that has ended is free. False before there is a file. For [`crate::source::Source::visit`].
pub fn claim_sensors(recorder: &Recorder, gpu: u32) -> bool {
    let claimed = system_calls::claim_sensors(gpu);
    recorder.sensors.set_anothers(gpu, !claimed);
    claimed
}

/// Leaves the sensors of all GPUs to other processes. For [`crate::source::Source::visit`].
pub fn leave_sensors() {
    system_calls::leave_sensors();
}

/// The body of the thread.
pub fn run(recorder: &'static Recorder) {
    let body = std::panic::AssertUnwindSafe(|| serve(recorder));
    if std::panic::catch_unwind(body).is_err() {
        recorder.switch.disable();
    }
    recorder.requests.acknowledge(u64::MAX, true);
}

fn serve(recorder: &'static Recorder) {
    recorder.buffers.fit_into_memory();
    let mut file = TraceFile::new(recorder);
    let mut cpu = clock::read(Clock::ThreadCpu);
    let mut account = || {
        let now = clock::read(Clock::ThreadCpu);
        recorder.counters.cpu_ns.fetch_add(now - cpu, Ordering::Relaxed);
        cpu = now;
    };
    let mut flushed = 0;
    // What samples begins with the first record, not with the first transaction.
    GATE.without(|| recorder.setup.sources.iter().for_each(|source| source.visit(recorder)));
    loop {
        provoked::panic("writer");
        let edge = recorder.switch.keep_time().map_or(Duration::MAX, Duration::from_nanos);
        let visit = recorder.setup.sources.iter().filter_map(|source| source.next_visit()).min();
        let pause = recorder.config.flush_interval.min(edge).min(visit.unwrap_or(Duration::MAX));
        let (flush, filename, mut finish) = recorder.requests.wait(pause);
        finish |= threads::are_alone();
        if flush != flushed {
            // Who asks hears whether it can be written now.
            file.try_again();
            flushed = flush;
        }
        // The last drain comes after the request to finish was seen, so it sees all that was pushed before it.
        GATE.without(|| {
            if !finish {
                recorder.switch.keep_time();
                recorder.setup.sources.iter().for_each(|source| source.visit(recorder));
            }
            file.drain();
            if recorder.requests.note_is_due() {
                file.leave_early_note();
            }
        });
        if file.name_frames() {
            GATE.without(|| file.drain());
        }
        if let Some(filename) = filename
            && !GATE.without(|| file.change_to(filename))
        {
            recorder.requests.refuse();
        }
        account();
        if finish {
            // The session's last facts tell what recording has cost up to here.
            GATE.without(|| file.end());
            system_calls::leave_sensors();
            account();
        }
        recorder.requests.ops.store(file.ops(), Ordering::Relaxed);
        recorder.requests.acknowledge(flush, finish);
        if finish {
            return;
        }
    }
}

/// In a forked child: closes the parent's descriptors, so that its locks on the file do not outlive it.
pub fn close_inherited() {
    system_calls::close_inherited();
}
