//! Records that cannot be written. They wait in the rings while there is room, and are then drained and counted.

use rpd_preload::clock;
use rpd_schema::{Appender, Error, ErrorKind};

use super::{AtStake, TraceFile};
use crate::counters::Cause;
use crate::writer::access::Meanwhile;
use crate::writer::held::Discarded;

impl TraceFile {
    /// A transaction failed: nothing of it is in the file.
    pub(super) fn fail(&mut self, mut appender: Appender, error: &Error, at_stake: AtStake) {
        self.turns.roll_back(&mut appender);
        self.recorder.counters.lose(Cause::Write, at_stake.records());
        self.recorder.counters.account(at_stake.drained);
        self.history.end_launches(at_stake.launches);
        self.rows.roll_back(self.history.committed());
        self.held.forget_calls();
        self.reported.roll_back();
        if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Truncated) && appender.has_session() {
            return self.move_aside(&appender, error);
        }
        // What is wrong may last, and a new session for each try would say nothing. Whether the file is another one is asked before
        // each transaction.
        if matches!(error.kind(), ErrorKind::DiskFull | ErrorKind::Locked | ErrorKind::TooManyOpenFiles) {
            self.appender = Some(appender);
        } else if *error.kind() == ErrorKind::Sqlite {
            // The file says no to these rows: a table is gone, or has a trigger that raises. It may have room for their count.
            if !self.access.is_last_chance() {
                let _ = self.write_counts(&mut appender, false);
            }
            self.appender = Some(appender);
        } else if appender.has_session() {
            self.reported.leave_unended(appender.session(), self.history.committed());
        }
        self.give_up(error);
    }

    pub(super) fn give_up(&mut self, error: &Error) {
        let is_empty = !self.has_records();
        match self.access.failed(error, self.recorder, is_empty) {
            Meanwhile::Wait => {}
            Meanwhile::WaitForRoom => self.make_room(),
            Meanwhile::Discard => self.discard(),
        }
    }

    /// Nothing can be written now: records wait in the rings until those fill up.
    pub(super) fn make_room(&mut self) {
        if self.recorder.buffers.budget.pressed() {
            self.discard();
        }
    }

    pub(super) fn discard(&mut self) {
        let calls = self.inputs.begin(false);
        self.held.begin(calls, self.recorder.lost_calls.take(), true);
        // Launches that are in the file: it is said once that their operations are not.
        let Discarded { records, launches } =
            self.inputs.discard(&mut self.held, self.log.as_mut(), clock::monotonic());
        self.end_drain_of_log();
        self.held.forget_calls();
        self.rows.end_launches(launches);
        self.history.end_launches(launches);
        self.recorder.counters.account(records);
        self.recorder.counters.lose(Cause::Write, records);
    }
}
