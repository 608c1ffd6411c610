//! What cannot be written: it waits in the rings while there is room, and is then drained and counted.

use std::time::{Duration, Instant};

use rpd_preload::clock;
use rpd_schema::{Appender, Error, ErrorKind};

use super::{AtStake, File, ThreadInput};
use crate::counters::Cause;
use crate::records::{Call, Dispatch, Kind};

/// How long to leave a file alone that could not be opened.
const RETRY: Duration = Duration::from_secs(1);

impl File {
    /// A transaction failed: nothing of it is in the file.
    pub(super) fn fail(&mut self, mut appender: Appender, error: &Error, at_stake: AtStake) {
        self.turns.roll_back(&mut appender);
        self.recorder.counters.lose(Cause::Write, at_stake.records);
        self.account(at_stake.drained);
        self.committed.launches_done += at_stake.launches;
        self.rows.roll_back(self.committed);
        self.drain.links.forget();
        (self.reported.gpus, self.reported.counted) = (false, None);
        if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Truncated) && appender.has_session() {
            return self.move_aside(&appender, error);
        }
        // What is wrong may last, and a new session for each try would say nothing. Whether the file is another one is asked before
        // each transaction.
        if matches!(error.kind(), ErrorKind::DiskFull | ErrorKind::Locked) {
            self.appender = Some(appender);
        } else if *error.kind() == ErrorKind::Sqlite {
            // The file says no to these rows: a table is gone, or has a trigger that raises. It may have room for their count.
            if !self.ending {
                let _ = self.write_counts(&mut appender, false);
            }
            self.appender = Some(appender);
        }
        self.give_up(error);
    }

    pub(super) fn give_up(&mut self, error: &Error) {
        // Nothing to lose yet, and whoever asked hears of it.
        if std::mem::take(&mut self.opening) && !self.has_records() {
            return self.complaint.say(&error.to_string());
        }
        if is_somebody_elses(error.kind()) {
            self.is_not_ours = true;
            self.recorder.switch.lose_file();
            self.complaint.say(&format!("{error}; recording is off for this process"));
            return self.discard();
        }
        let is_busy = *error.kind() == ErrorKind::Locked && !self.ending;
        // Others who write take their time; that is worth a word only when something is about to be lost by it.
        if !is_busy || self.recorder.pressed() {
            self.complaint
                .say(&format!("{error}; what finds no room in the buffers meanwhile is lost and counted"));
        }
        if is_busy {
            // The rings keep what they have, and the next try has as much patience as this one had.
            return;
        }
        self.retry_at = Some(Instant::now() + RETRY);
        self.make_room();
    }

    /// Nothing can be written now: records wait in the rings until those fill up.
    pub(super) fn make_room(&mut self) {
        if self.recorder.pressed() {
            self.discard();
        }
    }

    pub(super) fn discard(&mut self) {
        self.begin_links(None);
        let held = std::mem::take(&mut self.drain.held);
        let mut records = held.len() as u64;
        let (links, changes) = (&mut self.drain.links, &self.drain.changes);
        // Launches that are in the file: it is said once that their operations are not.
        let mut launches = 0;
        for operation in &held {
            launches += u64::from(operation.settles_launch() && links.is_committed(operation.call()));
        }
        for ThreadInput { consumer, ranges, .. } in &mut self.drain.inputs {
            let tid = consumer.tid;
            consumer.gone = consumer.drain(|entry| {
                records += 1;
                match entry.kind {
                    Kind::Call => {
                        links.drained(bytemuck::pod_read_unaligned::<Call>(entry.body).correlation);
                    }
                    Kind::Dispatch => {
                        let record: Dispatch = bytemuck::pod_read_unaligned(entry.body);
                        launches += u64::from(record.launch != 0 && links.is_committed(record.correlation));
                    }
                    Kind::Copy | Kind::Launch => {}
                    // Which range the next pop ends must be known all the same.
                    Kind::Start | Kind::Stop => {
                        self.drain.process_ranges.follow(tid, &entry, changes, |_, _| {})
                    }
                    _ => ranges.follow(&entry, changes, |_| {}),
                }
            });
        }
        self.drain.process_ranges.drained(clock::monotonic(), changes, |_, _| {});
        self.drain.links.forget();
        self.drain.inputs.retain(|input| !input.consumer.gone);
        self.account(records);
        self.rows.recorded.launches_done += launches;
        self.committed.launches_done += launches;
        self.recorder.counters.lose(Cause::Write, records);
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
            | NameTooLong
            | NoWorkingDirectory
    )
}
