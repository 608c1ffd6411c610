//! Taking turns with the other processes that write the file.
//!
//! SQLite's own way is to ask again after pauses that grow to 100 ms, while a writer that has much to write is back for its next
//! transaction at once: among many, some wait for minutes. Here everybody asks every few ms, and who has had a turn stays away for
//! longer than that, so the file goes to one of those that wait. No lock of the system's queues in a file of any kind and has a deadline.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rpd_schema::{Appender, BUSY_TIME, Error, ErrorKind};

use crate::recorder::{self, Recorder};
use crate::{clock, fork};

/// Longest time between two tries to get the file.
const ASK: Duration = Duration::from_millis(3);
/// Time that one try to open the file waits.
const OPEN: Duration = Duration::from_millis(100);
/// Time to stay away after having had the file for a turn.
const APART: Duration = Duration::from_millis(4);
/// A turn: transactions of this length in all.
const TURN: Duration = Duration::from_millis(50);

/// How often a commit is tried that a reader of the file holds up, when room runs out.
const COMMIT_TRIES: u32 = 3;
/// How often a drain that let forks pass tries to go on, [`BUSY_TIME`] each.
const GO_ON_TRIES: u32 = 12;

/// When the present wait began, ns of CLOCK_MONOTONIC.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// Nothing is open that a fork would tear apart.
static BETWEEN: AtomicBool = AtomicBool::new(false);

/// SQLite's question whether to try again; `tries`: how often it has asked in this wait.
fn wait(tries: i32) -> bool {
    let now = clock::monotonic();
    if tries == 0 {
        BEGAN.store(now, Ordering::Relaxed);
    }
    let waited = now.saturating_sub(BEGAN.load(Ordering::Relaxed));
    if is_too_long(Duration::from_nanos(waited)) || (BETWEEN.load(Ordering::Relaxed) && fork::is_waiting()) {
        return false;
    }
    // Those that wait should not ask at the same moments.
    let half = ASK / 2;
    std::thread::sleep(half + Duration::from_nanos(now % half.as_nanos() as u64));
    true
}

/// Whether to give up waiting for the file this time; at the end there is no other time.
fn is_too_long(waited: Duration) -> bool {
    recorder::get().is_none_or(|recorder| match recorder.writer.is_ending() {
        true => recorder.writer.is_over(recorder),
        false => waited > BUSY_TIME,
    })
}

/// Whether the process ends and has waited long enough for it.
fn is_over() -> bool {
    recorder::get().is_some_and(|recorder| recorder.writer.is_over(recorder))
}

/// Opens the file; forks happen while others have it.
pub(super) fn open(path: &Path) -> Result<Appender, Error> {
    let begin = Instant::now();
    loop {
        let patience = if is_over() { Duration::ZERO } else { OPEN };
        match Appender::open_within(path, patience) {
            Err(error) if *error.kind() == ErrorKind::Locked && !is_too_long(begin.elapsed()) => {
                fork::let_pass()
            }
            result => {
                let mut appender = result?;
                appender.set_busy_handler(wait)?;
                return Ok(appender);
            }
        }
    }
}

/// This process's turns.
#[derive(Default)]
pub(super) struct Turns {
    began: Option<Instant>,
    /// Length of the transactions of this turn.
    had: Duration,
    /// When to be back after a turn.
    away_until: Option<Instant>,
}

impl Turns {
    /// Begins a transaction; forks happen while it waits for one.
    pub(super) fn begin(&mut self, recorder: &Recorder, appender: &mut Appender) -> Result<(), Error> {
        if let Some(back) = self.away_until.take() {
            std::thread::sleep(back.saturating_duration_since(Instant::now()));
        }
        let begin = clock::monotonic();
        BETWEEN.store(true, Ordering::Relaxed);
        let result = loop {
            match appender.begin() {
                Err(error) if *error.kind() == ErrorKind::Locked && fork::is_waiting() => fork::let_pass(),
                result => break result,
            }
        };
        BETWEEN.store(false, Ordering::Relaxed);
        recorder.counters.longest_turn_ns.fetch_max(clock::monotonic() - begin, Ordering::Relaxed);
        self.began = Some(Instant::now());
        result
    }

    /// [`Turns::begin`] in the middle of a drain, whose records are in no ring any more.
    pub(super) fn go_on(&mut self, recorder: &Recorder, appender: &mut Appender) -> Result<(), Error> {
        let mut tries = 1;
        loop {
            match self.begin(recorder, appender) {
                Err(error) if *error.kind() == ErrorKind::Locked && tries < GO_ON_TRIES && !is_over() => {
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    /// Commits. A reader of the file may hold that up; nothing is lost by trying again while there is room for what comes meanwhile.
    pub(super) fn commit(&mut self, recorder: &Recorder, appender: &mut Appender) -> Result<(), Error> {
        let mut tries = 1;
        let result = loop {
            match appender.commit() {
                Err(error)
                    if *error.kind() == ErrorKind::Locked
                        && (tries < COMMIT_TRIES || !recorder.pressed())
                        && !is_over() =>
                {
                    tries += 1;
                }
                other => break other,
            }
        };
        self.had += self.began.take().map_or(Duration::ZERO, |began| began.elapsed());
        // There is no time for that at the end.
        if self.had > TURN && !recorder.writer.is_late(recorder) {
            self.had = Duration::ZERO;
            self.away_until = Some(Instant::now() + APART);
        }
        result
    }
}
