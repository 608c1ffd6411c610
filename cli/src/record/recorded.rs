//! What one run of `rpd record` added to its trace.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rpd_postprocess::check::liveness::{self, SessionState};
use rpd_postprocess::trace::op_kind::OpKind;
use rpd_postprocess::trace::{self, Strings};
use rpd_schema::session_fact;
use rpd_settings::rotation;
use rusqlite::Connection;

use crate::record::destination::Destination;
use crate::record::replaced::ReplacedInRecording;
use crate::record::report::RunReport;

/// Counts over the sessions of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCounts {
    /// Kernels of the program.
    pub(crate) kernels: u64,
    /// Which of them ran another kernel than the program's.
    pub(crate) replaced: ReplacedInRecording,
    /// Copies between host and devices.
    pub(crate) copies: u64,
    /// Memory fills.
    pub(crate) fills: u64,
    /// Operations of other types.
    pub(crate) others: u64,
    /// Ranges and marks of the program.
    pub(crate) markers: u64,
    pub(crate) lost: u64,
    /// Lines that are missing in the duration log.
    pub(crate) log_lost: u64,
    /// Launches that the file says have no operation: their kernels were not known to have completed.
    pub(crate) launches_without_op: u64,
    /// CPU time that the recorder used, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Processes that are gone and whose sessions have no end, or that had something to record and have no session.
    pub(crate) cut_off: u64,
    /// The ids of the latter, but for the command's.
    pub(crate) unwritten: Vec<u32>,
    /// What timed operations, in any of the processes.
    timings: BTreeSet<String>,
    /// Files of the run that are later parts of others.
    pub(crate) later_parts: u64,
    /// A sensor of a GPU was read meanwhile, by whichever process has this file.
    pub(crate) has_sensors: bool,
    /// Code objects were saved.
    pub(crate) has_code: bool,
    /// Queues that failed, or what had not completed when a process aborted.
    pub(crate) failures: Vec<String>,
}

/// What one process says of itself, in the file or at its end.
#[derive(Debug, Default)]
struct ProcessCounts {
    lost: u64,
    cpu_ns: u64,
    cut_off: bool,
}

/// By id and start: containers have processes of equal ids, and ids come back.
type CountsByProcess = HashMap<(u32, u64), ProcessCounts>;

impl RunCounts {
    /// Counts what the sessions of `run` left in the file or files, whichever process of it they are of, and in their later parts if there
    /// may be some. A signal ended the process `killed`.
    ///
    /// # Errors
    /// When a trace cannot be read.
    pub(crate) fn by_run(
        destination: &Destination,
        is_rotated: bool,
        run: &str,
        report: &RunReport,
        killed: Option<u32>,
    ) -> Result<RunCounts> {
        let files: Vec<(PathBuf, u32)> = match destination {
            Destination::File(trace) => vec![(trace.path().to_path_buf(), trace.first_session())],
            // Which sessions are older is not known of these, but other runs made them.
            Destination::PerProcess(_) => {
                report.files().into_iter().filter(|file| file.exists()).map(|file| (file, 0)).collect()
            }
        };
        let mut recorded = RunCounts::default();
        let mut processes = CountsByProcess::default();
        for (file, first_session) in files {
            let parts = if is_rotated { rotation::later_parts(&file) } else { Vec::new() };
            let parts = parts.into_iter().filter(|part| part.metadata().is_ok_and(|part| part.len() > 0));
            for (file, known) in
                [(file, Some(first_session))].into_iter().chain(parts.map(|part| (part, None)))
            {
                recorded
                    .add_file(&file, known, run, &mut processes)
                    .with_context(|| format!("cannot read {}", file.display()))?;
            }
        }
        Ok(recorded.with(processes, report, killed))
    }

    /// Adds what the run has in a file, whose sessions it took from `first_session` on. That is not known of a later part, where the run
    /// may have none.
    fn add_file(
        &mut self,
        file: &Path,
        first_session: Option<u32>,
        run: &str,
        processes: &mut CountsByProcess,
    ) -> Result<()> {
        let (trace, _) = rpd_schema::open_read(file)?;
        let first_session = match first_session {
            Some(first_session) => first_session,
            None => {
                let sessions = rpd_schema::sessions(&trace)?;
                let own = sessions.iter().filter(|session| session.get(session_fact::RUN) == Some(run));
                let Some(first) = own.map(|session| session.session).min() else { return Ok(()) };
                self.later_parts += 1;
                first
            }
        };
        self.add((file, &trace), first_session, run, processes)
    }

    /// Adds what the sessions of `run` from `first_session` on say, and what they have.
    fn add(
        &mut self,
        (file, trace): (&Path, &Connection),
        first_session: u32,
        run: &str,
        processes: &mut CountsByProcess,
    ) -> Result<()> {
        let mut foreign = HashSet::new();
        for session in rpd_schema::sessions(trace)?.iter().filter(|session| session.session >= first_session)
        {
            if session.get(session_fact::RUN) != Some(run) {
                foreign.insert(i64::from(session.session));
                continue;
            }
            self.replaced.was_asked_for |= session.get(session_fact::KERNEL_CACHE).is_some();
            self.timings.extend(session.get(session_fact::TIMING).map(str::to_string));
            self.markers += count_markers(trace, session.session)?;
            let start = session.number(session_fact::START_MONOTONIC_NS).unwrap_or(0);
            let process = processes.entry((session.pid().unwrap_or(0), start)).or_default();
            process.lost =
                session.lost().values().fold(process.lost, |sum, count| sum.saturating_add(*count));
            self.launches_without_op = self.launches_without_op.saturating_add(session.launches_without_op());
            let cpu = session.number(session_fact::RECORDER_CPU_NS).unwrap_or(0);
            process.cpu_ns = process.cpu_ns.saturating_add(cpu);
            process.cut_off |= liveness::state(session) == SessionState::Killed;
            let failed = session.get(session_fact::QUEUE_ERROR).map(|what| format!("failed: {what}"));
            let running = || {
                session
                    .get(session_fact::ABORT_KERNELS)
                    .map(|what| format!("not completed when it aborted: {what}"))
            };
            self.failures.extend(failed.or_else(running));
            self.has_sensors = self.has_sensors || has_sensors(trace, session.session, start)?;
            self.has_code = self.has_code || has_code(trace, session.session)?;
        }
        let mut strings = Strings::of(trace)?;
        for (op_type, count) in count_types(trace, first_session, &foreign)? {
            match OpKind::of(&strings.get(op_type)?.unwrap_or_default()) {
                OpKind::Kernel => self.kernels += count,
                OpKind::Copy => self.copies += count,
                OpKind::Fill => self.fills += count,
                OpKind::Other => self.others += count,
            }
        }
        self.replaced.add((file, trace), first_session, &foreign)
    }

    /// With what the processes say of themselves, in files and at their ends.
    fn with(mut self, mut processes: CountsByProcess, report: &RunReport, killed: Option<u32>) -> RunCounts {
        // A killed process reports nothing but left its counts in the file; one that could not write to the file any more
        // reports what the file does not have.
        for ended in &report.ended {
            let process = processes.entry((ended.pid, ended.start)).or_default();
            self.log_lost = self.log_lost.saturating_add(ended.log_lost);
            process.lost = process.lost.max(ended.lost);
            process.cpu_ns = process.cpu_ns.max(ended.cpu_ns);
        }
        for process in processes.values() {
            self.lost = self.lost.saturating_add(process.lost);
            self.cpu_ns = self.cpu_ns.saturating_add(process.cpu_ns);
            self.cut_off += u64::from(process.cut_off);
        }
        // It has no session if it was killed before its first commit.
        let is_known = |pid: u32| processes.keys().any(|(known, _)| *known == pid);
        self.cut_off += u64::from(killed.is_some_and(|pid| report.program(pid).is_some() && !is_known(pid)));
        let is_gone = |process: &&(u32, u64)| {
            !processes.contains_key(*process) && !liveness::is_same_process(process.0, Some(process.1))
        };
        let gone = report.recording.iter().filter(is_gone).map(|(pid, _)| *pid);
        self.unwritten = gone.filter(|pid| Some(*pid) != killed).collect();
        self.cut_off += self.unwritten.len() as u64;
        self
    }

    /// Whether all that was recorded of GPUs is of NVIDIA's.
    pub(crate) fn is_of_nvidia_alone(&self) -> bool {
        self.timings.iter().eq(["cupti"])
    }

    /// All GPU operations.
    pub(crate) fn operations(&self) -> u64 {
        self.kernels + self.copies + self.fills + self.others
    }
}

/// Whether a session that began then has rows of sensors, or another one that has sampled for it.
fn has_sensors(trace: &Connection, session: u32, start: u64) -> Result<bool> {
    let own = "SELECT EXISTS (SELECT 1 FROM rocpd_monitor WHERE id >= ?1 AND id < ?2)";
    if trace.query_row(own, ids(session), |row| row.get(0))? {
        return Ok(true);
    }
    let any = "SELECT EXISTS (SELECT 1 FROM rocpd_monitor WHERE \"end\" > ?1)";
    Ok(trace.query_row(any, [start.min(i64::MAX as u64) as i64], |row| row.get(0))?)
}

/// Whether a session has saved code objects.
fn has_code(trace: &Connection, session: u32) -> Result<bool> {
    let of_session = "SELECT EXISTS (SELECT 1 FROM ext_codeobject WHERE id >= ?1 AND id < ?2)";
    Ok(trace::has_table(trace, "ext_codeobject")?
        && trace.query_row(of_session, ids(session), |row| row.get(0))?)
}

/// The first id of a session, and the first behind it.
fn ids(session: u32) -> [i64; 2] {
    [i64::from(session) << 32, (i64::from(session) + 1) << 32]
}

/// Rows of ranges and marks of a session. Counted, because a killed process may not have said.
fn count_markers(trace: &Connection, session: u32) -> Result<u64> {
    let first = (i64::from(session) << 32) + rpd_schema::ApiId::marker(0).local() as i64;
    let count = "SELECT count(*) FROM rocpd_api WHERE id >= ?1 AND id < ?2";
    let rows: i64 = trace.query_row(count, [first, (i64::from(session) + 1) << 32], |row| row.get(0))?;
    Ok(rows.unsigned_abs())
}

/// How many operations of each type (a string id) the sessions from `first` on have, but for `foreign`
/// ones. One scan from the first id of those sessions.
fn count_types(trace: &Connection, first: u32, foreign: &HashSet<i64>) -> Result<HashMap<i64, u64>> {
    let mut counts = HashMap::new();
    let mut ops = trace.prepare("SELECT id >> 32, opType_id FROM rocpd_op WHERE id >= ?1")?;
    let mut ops = ops.query([i64::from(first) << 32])?;
    while let Some(op) = ops.next()? {
        if foreign.is_empty() || !foreign.contains(&op.get(0)?) {
            *counts.entry(op.get(1)?).or_default() += 1;
        }
    }
    Ok(counts)
}
