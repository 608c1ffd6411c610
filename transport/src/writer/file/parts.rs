//! A recording in parts (RPDT_ROTATE): which file is the present part, when it is over, and how the recorder goes on in the next.
//!
//! Every process that records into the parts decides by the same rule, so all of them come to the same part. A process looks each time before
//! it writes. If the part is over, it first begins a session in the next part. When that session is in the file, it ends its session in the
//! old part. If it cannot begin a session in the next part, it goes on in the old one.
//!
//! Calls that were drained before the change have their rows in the old part. Operations that the GPU finishes later for these calls have
//! theirs in the next part, linked to a row that stands in for the call ([`super::super::rows::Rows::stand_in`]).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rpd_preload::clock::{self, Clock};
use rpd_preload::lock::lock;
use rpd_schema::{Appender, Error, session_fact as fact};
use rpd_settings::rotation::{self, Rotation};

use super::{TraceFile, Until, ownership};
use crate::recorder::Recorder;
use crate::writer::session::{self, Part};
use crate::writer::system_calls;

/// How long the writer stays in a part that is over when it could not get the next.
const RETRY: Duration = Duration::from_secs(5);
/// How long a look at when a part was begun waits for others who write it.
const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Parts {
    rotation: Option<Rotation>,
    /// Number of the part that is written, or is to be opened.
    number: u32,
    /// When it was begun, ns of CLOCK_REALTIME.
    began: u64,
    retry_at: Option<Instant>,
}

/// A part that can be gone on in.
struct NextPart {
    appender: Appender,
    number: u32,
    began: u64,
    part: Part,
}

impl Parts {
    /// Nothing is open yet.
    pub(super) fn new(rotation: Option<Rotation>) -> Parts {
        Parts { rotation, number: 1, began: 0, retry_at: None }
    }

    /// The trace has another name: its first part comes next.
    pub(super) fn begin(&mut self) {
        (self.number, self.retry_at) = (1, None);
    }

    /// The file to be opened of the recording into `trace`, and what its session says of it: the last part that is there, or the one
    /// behind it if that is over.
    pub(super) fn find(&mut self, trace: &Path) -> (PathBuf, Option<Part>) {
        let Some(rotation) = self.rotation else { return (trace.to_path_buf(), None) };
        (self.number, self.began) = last_part(rotation, trace, self.number);
        let part = Part { number: self.number, began: self.began, before: None };
        (rotation::part(trace, self.number), Some(part))
    }

    /// Whether the present part, that file, is to be left.
    fn is_over(&self, path: &Path) -> bool {
        self.retry_at.is_none_or(|at| Instant::now() >= at)
            && self.rotation.is_some_and(|rotation| is_over(rotation, path, self.began))
    }
}

/// Number of the part to write, at least `first`, and when it was begun. What has the name of a part and can be none is left alone, and so
/// is what comes behind it.
fn last_part(rotation: Rotation, trace: &Path, first: u32) -> (u32, u64) {
    let can_be = |number| rpd_schema::check_place(&rotation::part(trace, number), LOOK).is_ok();
    let mut last = rotation::last_part(trace, first);
    while last > first && !can_be(last) {
        last -= 1;
    }
    let path = rotation::part(trace, last);
    let began = began(&path).unwrap_or_else(now);
    match is_over(rotation, &path, began) && can_be(last + 1) {
        true => (last + 1, now()),
        false => (last, began),
    }
}

fn is_over(rotation: Rotation, path: &Path, began: u64) -> bool {
    match rotation {
        Rotation::Size(bytes) => std::fs::metadata(path).is_ok_and(|file| file.len() >= bytes),
        Rotation::Time(time) => u128::from(now().saturating_sub(began)) >= time.as_nanos(),
    }
}

/// When the part in that file was begun, as the first of its sessions that says it does.
fn began(path: &Path) -> Option<u64> {
    let (trace, _) = rpd_schema::open_read_within(path, LOOK).ok()?;
    let sessions = rpd_schema::sessions(&trace).ok()?;
    sessions.iter().filter_map(|session| session.number(fact::PART_BEGAN_REALTIME_NS)).min()
}

fn now() -> u64 {
    clock::read(Clock::Realtime)
}

/// The name of a file as the facts have it: parts stay together when they are moved.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl TraceFile {
    /// Goes on in the next part if this one is over and there is something to be written. Between two drains.
    pub(super) fn change_part(&mut self) {
        let Some(appender) = &self.appender else { return };
        let path = appender.path().to_path_buf();
        let is_ending = self.recorder.requests.exit_wait.has_begun();
        if is_ending
            || !appender.has_session()
            || !self.parts.is_over(&path)
            || !self.is_still_there(appender)
        {
            return;
        }
        let left = system_calls::trace_file();
        let next = self.open_next(&path);
        let entered = system_calls::trace_file();
        system_calls::set_trace_file(left);
        let next = match next {
            Ok(next) => next,
            Err(error) => return self.stay(&path, &error),
        };
        let Some(mut appender) = self.appender.take() else { return };
        if let Err(error) = self.leave_part(&mut appender, name(next.appender.path())) {
            self.appender = Some(appender);
            self.stay(&path, &error);
            system_calls::set_trace_file(entered);
            self.end_unused(next.appender);
            system_calls::set_trace_file(left);
            return;
        }
        drop(appender);
        system_calls::set_trace_file(entered);
        self.enter(next);
    }

    /// The next part cannot be had, or this one not be left.
    fn stay(&mut self, path: &Path, error: &Error) {
        self.parts.retry_at = Some(Instant::now() + RETRY);
        self.access.complain(&format!("{error}; recording goes on in {} for now", path.display()));
    }

    /// Takes a session in the part behind the one in the file `left`.
    fn open_next(&mut self, left: &Path) -> Result<NextPart, Error> {
        let trace = lock(&self.recorder.filename).expanded();
        let rotation = self.recorder.config.rotation.unwrap_or(Rotation::Size(u64::MAX));
        let (number, began) = last_part(rotation, &trace, self.parts.number + 1);
        let part = Part { number, began, before: Some((name(left), self.rows.next_call())) };
        let mut appender = self.begin(&rotation::part(&trace, number))?;
        let recorder: &'static Recorder = self.recorder;
        let taken = self.turns.begin(recorder, &mut appender).and_then(|()| {
            ownership::check(&appender, recorder)?;
            session::begin(&mut |key, value| appender.session_fact(key, value), recorder, Some(&part))?;
            self.turns.commit(recorder, &mut appender)
        });
        match taken {
            Ok(()) => Ok(NextPart { appender, number, began, part }),
            Err(error) => {
                self.turns.roll_back(&mut appender);
                Err(error)
            }
        }
    }

    /// The last transaction of this part's session: its counts, its end, and stack frames of calls that are in it. What is in the rings
    /// is for the next part.
    fn leave_part(&mut self, appender: &mut Appender, next: String) -> Result<(), Error> {
        self.turns.begin(self.recorder, appender)?;
        let (_, filled) = self.fill(appender, clock::monotonic(), Until::PartEnds);
        let left = filled
            .and_then(|()| appender.session_fact(fact::NEXT_PART, &next))
            .and_then(|()| self.turns.commit(self.recorder, appender));
        match left {
            Ok(()) => {
                self.rows.commit();
                self.history.commit(self.recorder, appender, self.rows.recorded(), 0);
                self.reported.committed(appender, false);
            }
            Err(_) => {
                self.turns.roll_back(appender);
                self.rows.roll_back(self.history.committed());
                self.reported.roll_back();
            }
        }
        left
    }

    /// The session in the next part is of no use: it ends without a row.
    fn end_unused(&mut self, mut appender: Appender) {
        let ended = self.turns.begin(self.recorder, &mut appender).and_then(|()| {
            session::end(&mut |key, value| appender.session_fact(key, value))?;
            self.turns.commit(self.recorder, &mut appender)
        });
        if ended.is_err() {
            self.turns.roll_back(&mut appender);
        }
    }

    /// The session in the next part is the one that is written from now on.
    fn enter(&mut self, next: NextPart) {
        let carried = self.rows.recorded().carried();
        self.history.begin_part(&carried);
        self.reported.set_part(Some(next.part));
        self.reported.begin_file();
        self.reported.begin_session();
        self.reported.introduced();
        self.access.session_began();
        match self.rows.begin_part(&carried) {
            true => self.held.leave_part(),
            false => self.held.forget_calls(),
        }
        (self.parts.number, self.parts.began, self.parts.retry_at) = (next.number, next.began, None);
        self.appender = Some(next.appender);
        self.state = 0;
    }
}
