//! Taking turns with the other processes that write the file.
//!
//! SQLite alone is not fair. Who waits for its lock asks again after pauses that grow to 100 ms. A writer that has much to write asks for its
//! next transaction at once. Among many processes some then wait for minutes. Here a waiting process asks every few ms, and a process that
//! has had a turn stays away for longer than that, so one of the waiting ones gets the file. No lock of the system queues, works on every
//! kind of file and has a deadline.
//!
//! SQLite reads the file's head when it asks, under a lock that a commit has to wait for. On a loaded machine the process that commits would
//! wait for waiting processes that do not run. So recorders first take a lock on a byte of the file that SQLite does not use, and only the
//! recorder that has it asks SQLite. Other programs do not know that byte, and some file systems have no such locks: there only SQLite's own
//! locks keep writers apart.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rpd_preload::clock;
use rpd_preload::fork::Gate;
use rpd_schema::{Appender, BUSY_TIME, Error, ErrorKind};

use super::system_calls;
use crate::recorder::{self, Recorder};

/// Longest time between two tries to get the file.
const ASK: Duration = Duration::from_millis(5);
/// Time that one try to open the file waits.
const OPEN: Duration = Duration::from_millis(100);
/// Time to stay away after having had the file for a turn.
const APART: Duration = Duration::from_millis(6);
/// A turn: transactions of this length in all.
const TURN: Duration = Duration::from_millis(50);

/// How often a commit is tried that a reader of the file holds up, when room runs out.
const COMMIT_TRIES: u32 = 3;
/// How often a drain that let forks pass tries to go on, [`BUSY_TIME`] each.
const GO_ON_TRIES: u32 = 12;

/// No fork happens while the writer uses SQLite, except where it lets them pass.
pub static GATE: Gate = Gate::new();

thread_local! {
    /// The writer's wait: SQLite calls a function that is given nothing of it.
    static WAIT: Wait = const { Wait { began: Cell::new(0), seen: Cell::new(0), is_between: Cell::new(false) } };
}

/// A wait for the file.
struct Wait {
    /// When it began, ns of CLOCK_MONOTONIC.
    began: Cell<u64>,
    /// State of the file when it was last looked at.
    seen: Cell<u64>,
    /// Nothing is open that a fork would tear apart.
    is_between: Cell<bool>,
}

impl Wait {
    /// For the next transaction.
    fn begin(&self) {
        self.began.set(clock::monotonic());
        self.seen.set(system_calls::trace_state());
        self.is_between.set(true);
    }

    /// SQLite's question whether to try again; `tries`: how often it has asked in this wait.
    fn go_on(&self, tries: i32) -> bool {
        if tries == 0 && !self.is_between.get() {
            self.began.set(clock::monotonic());
        }
        // SQLite has given up every lock of this process's, unless a transaction is open: then it still is this process's turn.
        !self.is_in_vain() && {
            pause();
            !self.is_between.get() || self.take_turn()
        }
    }

    /// Waits until this process may ask SQLite for the file. False: for too long, or a fork waits.
    fn take_turn(&self) -> bool {
        loop {
            if system_calls::take_turn() {
                return true;
            }
            if self.is_in_vain() {
                return false;
            }
            pause();
            let state = system_calls::trace_state();
            if self.seen.replace(state) != state
                && let Some(recorder) = recorder::get()
            {
                recorder.requests.exit_wait.others_wrote();
            }
        }
    }

    fn is_in_vain(&self) -> bool {
        let waited = clock::monotonic().saturating_sub(self.began.get());
        is_too_long(Duration::from_nanos(waited)) || (self.is_between.get() && GATE.is_waiting())
    }
}

/// Takes the turn without SQLite, unless that takes longer than `patience`.
pub(super) fn take_for(patience: Duration) -> bool {
    let begin = Instant::now();
    while !system_calls::take_turn() {
        if begin.elapsed() > patience {
            return false;
        }
        pause();
    }
    true
}

fn pause() {
    // Those that wait should not ask at the same moments.
    let half = ASK / 2;
    std::thread::sleep(half + Duration::from_nanos(clock::monotonic() % half.as_nanos() as u64));
}

/// Whether to give up waiting for the file this time; at the end there is no other time.
fn is_too_long(waited: Duration) -> bool {
    recorder::get().is_none_or(|recorder| match recorder.requests.exit_wait.has_begun() {
        true => recorder.requests.exit_wait.is_over(),
        false => waited > BUSY_TIME || recorder.requests.note_is_due(),
    })
}

/// Whether the process ends and has waited long enough for it.
fn is_over() -> bool {
    recorder::get().is_some_and(|recorder| recorder.requests.exit_wait.is_over())
}

/// Opens the file; forks happen while others have it.
pub(super) fn open(path: &Path) -> Result<Appender, Error> {
    let begin = Instant::now();
    loop {
        // What is left of RPDT_EXIT_MS then is for the note beside the file.
        let left =
            recorder::get().map_or(Duration::ZERO, |recorder| recorder.requests.exit_wait.time_for_file());
        let patience = OPEN.min(left);
        match Appender::open_without_session(path, patience) {
            Err(error) if *error.kind() == ErrorKind::Locked && !is_too_long(begin.elapsed()) => {
                GATE.let_pass()
            }
            result => {
                let mut appender = result?;
                system_calls::is_trace(path);
                appender.set_busy_handler(|tries| WAIT.with(|wait| wait.go_on(tries)))?;
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
        WAIT.with(Wait::begin);
        let result = loop {
            // In vain: SQLite says once more that the file is locked.
            WAIT.with(Wait::take_turn);
            match appender.begin() {
                Err(error) if *error.kind() == ErrorKind::Locked && GATE.is_waiting() => {
                    system_calls::leave_turn();
                    GATE.let_pass();
                }
                result => break result,
            }
        };
        WAIT.with(|wait| wait.is_between.set(false));
        if result.is_err() {
            system_calls::leave_turn();
        }
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
                    // What has been drained so far is in the file, and the rest in nobody's hands but this drain's.
                    recorder.requests.note_done();
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    /// Undoes the open transaction.
    pub(super) fn roll_back(&mut self, appender: &mut Appender) {
        appender.rollback();
        self.over();
    }

    /// The transaction is over.
    fn over(&mut self) {
        system_calls::leave_turn();
        self.had += self.began.take().map_or(Duration::ZERO, |began| began.elapsed());
    }

    /// Commits. A reader of the file may hold that up; nothing is lost by trying again while there is room for what comes meanwhile.
    pub(super) fn commit(&mut self, recorder: &Recorder, appender: &mut Appender) -> Result<(), Error> {
        let mut tries = 1;
        let result = loop {
            match appender.commit() {
                Err(error)
                    if *error.kind() == ErrorKind::Locked
                        && (tries < COMMIT_TRIES || !recorder.buffers.budget.pressed())
                        && !is_over()
                        && !recorder.requests.note_is_due() =>
                {
                    tries += 1;
                }
                other => break other,
            }
        };
        if result.is_ok() {
            self.over();
        }
        // There is no time for that at the end.
        if self.had > TURN && !recorder.requests.exit_wait.is_late() {
            self.had = Duration::ZERO;
            self.away_until = Some(Instant::now() + APART);
        }
        result
    }
}
