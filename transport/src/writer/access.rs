//! Whether the trace may be written, when it is tried again, and what the user reads where it may not.

use std::fmt::Display;
use std::time::{Duration, Instant};

use rpd_schema::{Appender, Error, ErrorKind};

use crate::log::{self, Complaint};
use crate::recorder::Recorder;

/// How long to leave a file alone that could not be opened.
const RETRY: Duration = Duration::from_secs(1);

/// What becomes of the records in the rings while the file cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meanwhile {
    /// They stay there, and so do new ones while there is room. The next try has as much patience as this one had.
    Wait,
    /// As above until they fill up the buffers: then they are lost.
    WaitForRoom,
    /// They are lost.
    Discard,
}

#[derive(Default)]
pub(super) struct Access {
    retry_at: Option<Instant>,
    complaint: Complaint,
    /// The file has reached its largest size.
    full: bool,
    /// There is no other chance to write.
    is_last_chance: bool,
    /// The file at that path is not one to be written.
    is_not_ours: bool,
    /// Nothing is to be written but a file to be there.
    is_only_wanted: bool,
}

impl Access {
    /// What could not be written a moment ago is tried at once.
    pub(super) fn try_again(&mut self) {
        self.retry_at = None;
    }

    /// The process ends: what could not be written a moment ago is tried now, and never again.
    pub(super) fn try_for_the_last_time(&mut self) {
        (self.is_last_chance, self.retry_at) = (true, None);
    }

    /// Whether this is no time to try.
    pub(super) fn is_to_wait(&self) -> bool {
        self.retry_at.is_some_and(|at| Instant::now() < at)
    }

    /// Whether there is no other chance to write.
    pub(super) fn is_last_chance(&self) -> bool {
        self.is_last_chance
    }

    /// Whether the file is somebody else's, beside which nothing is said.
    pub(super) fn is_not_ours(&self) -> bool {
        self.is_not_ours
    }

    /// Whether somebody waits for the file to be there, though there may be nothing to write.
    pub(super) fn file_is_wanted(&mut self, recorder: &Recorder) -> bool {
        self.is_only_wanted = recorder.requests.file_is_wanted();
        if self.is_only_wanted {
            self.try_again();
        }
        self.is_only_wanted
    }

    /// A session began in the file.
    pub(super) fn session_began(&mut self) {
        self.is_not_ours = false;
    }

    /// The file was opened, or written.
    pub(super) fn succeeded(&mut self) {
        self.retry_at = None;
    }

    /// The file cannot be written now. `is_empty`: no record waits for it.
    pub(super) fn failed(&mut self, error: &Error, recorder: &Recorder, is_empty: bool) -> Meanwhile {
        // Nothing to lose yet, and whoever asked hears of it.
        if std::mem::take(&mut self.is_only_wanted) && is_empty {
            self.complaint.say(&error.to_string());
            return Meanwhile::Wait;
        }
        if is_somebody_elses(error.kind()) {
            self.is_not_ours = true;
            recorder.switch.lose_file();
            self.complaint.say(&format!("{error}; recording is off for this process"));
            return Meanwhile::Discard;
        }
        let is_busy = *error.kind() == ErrorKind::Locked && !self.is_last_chance;
        // Others who write take their time; that is worth a word only when something is about to be lost by it.
        if !is_busy || recorder.buffers.budget.pressed() {
            self.complaint
                .say(&format!("{error}; what finds no room in the buffers meanwhile is lost and counted"));
        }
        if is_busy {
            return Meanwhile::Wait;
        }
        self.retry_at = Some(Instant::now() + RETRY);
        Meanwhile::WaitForRoom
    }

    /// Says a problem at most once a minute.
    pub(super) fn complain(&mut self, message: &str) {
        self.complaint.say(message);
    }

    /// The program has named a file that cannot be the trace.
    pub(super) fn refuse(&mut self, error: &dyn Display) {
        self.complaint.say_refused(error);
    }

    /// RPDT_MAX_MB: recording ends for this process, which says so.
    pub(super) fn stop_when_large(&mut self, recorder: &Recorder, appender: &Appender) {
        let Some(most) = recorder.config.max_bytes else { return };
        let size = std::fs::metadata(appender.path()).map_or(0, |file| file.len());
        if size >= most && !self.full {
            self.full = true;
            recorder.switch.disable();
            let path = appender.path().display();
            log::problem(&format!(
                "{path} has reached RPDT_MAX_MB={}: recording ends here for this process",
                most >> 20
            ));
        }
    }
}

/// Whether the file is something that must not be touched, however often it is tried.
fn is_somebody_elses(kind: &ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(
        kind,
        NotAFile
            | NotSqlite
            | Truncated
            | Corrupt
            | OtherSqlite
            | Rocprofv3
            | UnsupportedVersion(_)
            | NotWritable(_)
            | OtherRun
            | NameTooLong
            | NoWorkingDirectory
    )
}
