//! A trace that is to be added: its ranks, the sessions of each, and which ids are theirs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_schema::{GpuInfo, SessionInfo, Version, session_fact};
use rusqlite::{Connection, OptionalExtension};
use sha2::{Digest, Sha256};

use super::alignment::Alignment;
use super::cells::From;
use super::clock::{Host, HostClock, KnownHosts};
use super::{AddOptions, hexadecimal};
use crate::check::rule::has_possible_times;
use crate::check::writer::recorder;
use crate::notes::{SharedNotes, watch};
use crate::text::escape_path;
use crate::text::{self, counted};
use crate::trace::clock::{NODE, median, pairs};
use crate::trace::layout::{Layout, metadata, quote};
use crate::trace::strides::Strides;

/// How many ranks a job has, as launchers say in their variables.
const RANKS: [&str; 5] = ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "FLUX_JOB_SIZE", "SLURM_NTASKS"];

/// Rows by table; first start and last end.
pub(super) type Extent = (BTreeMap<String, u64>, Option<i64>, Option<i64>);

/// An open trace, all of whose rows are read as they were at one moment.
pub(super) struct TraceSource {
    pub(super) path: PathBuf,
    pub(super) trace: Connection,
    pub(super) version: Version,
    pub(super) layout: Layout,
    gpus: Vec<GpuInfo>,
    sessions: Vec<SessionInfo>,
    is_merged: bool,
    /// What numbers of GPUs and queues, and ids of processes and threads, are taken modulo: merging has added as many of these as the
    /// number of the node. None in a trace that was not merged.
    pub(super) strides: Option<Strides>,
}

/// What one rank recorded into a trace.
#[derive(Debug)]
pub(super) struct RankPart {
    pub(super) job: String,
    pub(super) node: String,
    pub(super) rank: i64,
    /// What is added to its times, ns; none where nothing says it.
    pub(super) offset_ns: Option<i64>,
    /// Its sessions that say something of themselves.
    pub(super) sessions: Vec<SessionInfo>,
    /// Its ids in all tables, from and to.
    pub(super) ids: Vec<(i64, i64)>,
}

impl TraceSource {
    /// Opens a trace.
    ///
    /// # Errors
    /// As [`TraceSource::look_at`], and when it is being recorded.
    pub(super) fn open(path: &Path, notes: &SharedNotes) -> Result<TraceSource> {
        let source = TraceSource::look_at(path, notes)?;
        let shown = escape_path(path);
        if let Some(pid) = recorder(&source.trace).with_context(|| format!("cannot read {shown}"))? {
            bail!(
                "{shown}: process {pid} is recording into it; add it when that has ended, or a copy made with: rpd trim FILE -o COPY"
            );
        }
        Ok(source)
    }

    /// The same of a trace that may be being recorded.
    ///
    /// # Errors
    /// When it is no trace of schema 2 or 3, or cannot be read.
    pub(super) fn look_at(path: &Path, notes: &SharedNotes) -> Result<TraceSource> {
        let (mut trace, version) = rpd_schema::open_read(path)?;
        let shown = escape_path(path);
        if version == Version::V1 {
            bail!("{shown}: a trace of schema 1, and only schema 2 and 3 can be worked on");
        }
        watch(&mut trace, notes)?;
        let cannot = || format!("cannot read {shown}");
        let read = || -> Result<_> {
            trace.execute_batch("BEGIN")?;
            let layout = Layout::of(&trace)?;
            let is_merged = metadata(&trace, &layout, "node::0::host")?.is_some();
            let strides = if is_merged { Strides::of(&trace, &layout)? } else { None };
            let (gpus, sessions) = (rpd_schema::gpus(&trace)?, rpd_schema::sessions(&trace)?);
            Ok((layout, gpus, sessions, is_merged, strides))
        };
        let (layout, gpus, sessions, is_merged, strides) = read().with_context(cannot)?;
        Ok(TraceSource {
            path: path.to_path_buf(),
            trace,
            version,
            layout,
            gpus,
            sessions,
            is_merged,
            strides,
        })
    }

    /// The host of the rows of a session.
    pub(super) fn host_of(&self, session: i64) -> Host {
        let said = self.sessions.iter().find(|said| i64::from(said.session) == session);
        said.or(self.sessions.first()).map_or(Host::Unknown, Host::of)
    }

    /// Its ranks, in the order of their first sessions.
    ///
    /// # Errors
    /// When the trace cannot be read or aligned, or the dataset not be written.
    pub(super) fn ranks(
        &self,
        hosts: &dyn KnownHosts,
        alignment: Option<&Alignment>,
        options: &AddOptions,
        notes: &SharedNotes,
    ) -> Result<Vec<RankPart>> {
        let shown = escape_path(&self.path);
        let mut ranks: Vec<RankPart> = Vec::new();
        let mut of_session = Vec::new();
        let (mut without_rank, mut without_clock) = (0, false);
        let merged = self.merged_offset(hosts, alignment)?;
        let mut late = BTreeMap::new();
        let own_ranks: Vec<Option<i64>> = self.sessions.iter().map(rank).collect();
        let mut only = own_ranks.iter().flatten();
        let only = only.next().filter(|first| only.all(|rank| rank == *first)).copied();
        let silent = [SessionInfo::default()];
        let sessions = if self.sessions.is_empty() { &silent[..] } else { &self.sessions };
        for session in sessions {
            let own = options.rank.or_else(|| rank(session)).or(only);
            without_rank += u64::from(own.is_none());
            let host = Host::of(session);
            let clock = self.clock(hosts, alignment, &host, session)?;
            if let Some(alignment) = alignment {
                late.extend(alignment.lateness_ns(&host, &clock)?.map(|ns| (clock.node.clone(), ns)));
            }
            let offset_ns = if self.is_merged { merged } else { clock.realtime_less_monotonic_ns };
            without_clock |= offset_ns.is_none();
            let job = options.job.clone().or_else(|| session.job().map(str::to_string));
            let job = job.or_else(|| self.job().map(str::to_string));
            let (job, rank) = (job.unwrap_or_default(), own.unwrap_or(0));
            let node = options.node.clone().unwrap_or(clock.node);
            let found = ranks.iter().position(|known| {
                (&known.job, &known.node, known.rank, known.offset_ns) == (&job, &node, rank, offset_ns)
            });
            let at = found.unwrap_or_else(|| {
                let (sessions, ids) = (Vec::new(), Vec::new());
                ranks.push(RankPart { job, node, rank, offset_ns, sessions, ids });
                ranks.len() - 1
            });
            if !self.sessions.is_empty() {
                ranks[at].sessions.push(session.clone());
                of_session.push((i64::from(session.session), at));
            }
        }
        if without_rank > 0 {
            notes.note(format_args!(
                "{shown}: {} no rank, and {} taken for rank 0: --rank R names it",
                counted(without_rank, "session says", "sessions say"),
                if without_rank == 1 { "is" } else { "are" }
            ));
        }
        if without_clock {
            notes.note(format_args!(
                "{shown} says nothing of its host's wall clock: its times stay as they are, and are comparable with no other node's"
            ));
        }
        for (node, ns) in late {
            notes.note(format_args!(
                "{shown}: the clock of {} was decided by an earlier trace, and the marker begins {} ns {} than that of the job",
                text::escape(&node),
                ns.unsigned_abs(),
                if ns > 0 { "later" } else { "earlier" }
            ));
        }
        share_ids(&mut ranks, &of_session);
        Ok(ranks)
    }

    /// The job of the first session that says one.
    pub(super) fn job(&self) -> Option<&str> {
        self.sessions.iter().find_map(SessionInfo::job)
    }

    fn clock(
        &self,
        hosts: &dyn KnownHosts,
        alignment: Option<&Alignment>,
        host: &Host,
        session: &SessionInfo,
    ) -> Result<HostClock> {
        let name = session.host().unwrap_or_default().trim();
        // The median of all sessions of that host; times of a merged trace are on another clock than their hosts'.
        let of_host = self.sessions.iter().filter(|other| Host::of(other) == *host);
        let said = if self.is_merged && session.number(NODE) != self.reference()? {
            Vec::new()
        } else {
            of_host.flat_map(pairs).collect()
        };
        match median(said) {
            // A host whose clock this trace does not tell has one by another trace, or this one alone.
            None if self.is_merged => {
                Ok(HostClock { node: agreed_name(hosts, host, name)?, realtime_less_monotonic_ns: None })
            }
            mut offset => {
                if let Some(alignment) = alignment {
                    offset = alignment.offset(host, hosts.known(host)?.as_ref(), offset)?;
                }
                hosts.agreed(host, name, offset)
            }
        }
    }

    /// The node of a merged trace whose clock all its times are on: the one whose times were not moved.
    fn reference(&self) -> Result<Option<u64>> {
        let nodes = self.sessions.iter().filter_map(|session| session.number(NODE));
        for node in nodes {
            let shift = metadata(&self.trace, &self.layout, &format!("node::{node}::shift_ns"))?;
            if shift.is_some_and(|shift| shift.trim() == "0") {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    /// What is added to all times of a merged trace.
    fn merged_offset(&self, hosts: &dyn KnownHosts, alignment: Option<&Alignment>) -> Result<Option<i64>> {
        if !self.is_merged {
            return Ok(None);
        }
        let reference = self.reference()?;
        match self.sessions.iter().find(|session| session.number(NODE) == reference) {
            Some(session) if reference.is_some() => {
                Ok(self.clock(hosts, alignment, &Host::of(session), session)?.realtime_less_monotonic_ns)
            }
            _ => Ok(median(self.sessions.iter().flat_map(pairs).collect())),
        }
    }

    /// A column (SQL) as its own node had it, before traces of several nodes were merged.
    pub(super) fn of_node(&self, column: &str, from: From) -> String {
        let stride = match (self.strides, from) {
            (Some(strides), From::Gpu) => strides.gpu,
            (Some(strides), From::Process) => strides.pid,
            _ => return column.to_string(),
        };
        format!("CASE WHEN typeof({column}) = 'integer' THEN {column} % {stride} ELSE {column} END")
    }

    /// The GPUs that a rank's node has, with their numbers there.
    pub(super) fn gpus_of(&self, rank: &RankPart) -> Vec<(i64, &GpuInfo)> {
        let node = rank.sessions.iter().find_map(|session| session.number(NODE));
        let node = node.and_then(|node| i64::try_from(node).ok());
        let gpus = self.gpus.iter().map(|gpu| (i64::from(gpu.gpu), gpu));
        match self.strides.zip(node) {
            None => gpus.collect(),
            Some((strides, node)) => gpus
                .filter(|(number, _)| number / strides.gpu == node)
                .map(|(number, gpu)| (number % strides.gpu, gpu))
                .collect(),
        }
    }

    /// How many operations, calls and sensors' values a rank has, by table of the dataset; first start and last end of its operations and
    /// calls, as the dataset has them.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn extent(&self, rank: &RankPart) -> Result<Extent> {
        let mut rows = BTreeMap::new();
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for name in ["op", "api", "monitor"] {
            let table = format!("rocpd_{name}");
            let mut of_table = 0;
            if let Some(layout) = self.layout.table(&table) {
                let has_times = name != "monitor" && layout.is_timed();
                // The others are not in the dataset.
                let which = if layout.is_timed() { has_possible_times() } else { "1".to_string() };
                let times = if has_times { "min(start), max(\"end\")" } else { "NULL, NULL" };
                let id = layout.id();
                let query = format!(
                    "SELECT count(*), {times} FROM {table} AS t WHERE {id} BETWEEN ?1 AND ?2 AND {which}"
                );
                let mut count = self.trace.prepare(&query)?;
                for ids in &rank.ids {
                    let (found, start, end) = count.query_row([ids.0, ids.1], |row| {
                        let number = |at| row.get_ref(at).ok().and_then(|value| value.as_i64().ok());
                        Ok((number(0).unwrap_or(0), number(1), number(2)))
                    })?;
                    of_table += found.unsigned_abs();
                    starts.extend(start);
                    ends.extend(end);
                }
            }
            rows.insert(name.to_string(), of_table);
        }
        let moved = |time: i64| time.saturating_add(rank.offset_ns.unwrap_or(0));
        Ok((rows, starts.into_iter().min().map(moved), ends.into_iter().max().map(moved)))
    }

    /// What tells a rank's recording from all others, as the number of its part.
    ///
    /// It is made of its first session and of its first row: a recording that went on has both still. The next file of a process that
    /// went on in it, or another window that was cut out, has another first row.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn part(&self, rank: &RankPart) -> Result<i64> {
        let mut digest = Sha256::new();
        for session in identities(&rank.sessions).into_iter().take(1) {
            digest.update(session);
        }
        for (name, columns) in
            [("rocpd_api", ["start", "end", "pid"]), ("rocpd_op", ["start", "end", "gpuId"])]
        {
            let Some(table) = self.layout.table(name) else { continue };
            if !columns.iter().all(|column| table.has(column)) {
                continue;
            }
            let id = table.id();
            let columns = columns.map(quote).join(", ");
            let query =
                format!("SELECT {columns} FROM {name} WHERE {id} BETWEEN ?1 AND ?2 ORDER BY {id} LIMIT 1");
            let mut first = self.trace.prepare(&query)?;
            for ids in &rank.ids {
                let row = first.query_row([ids.0, ids.1], |row| {
                    let number = |at| row.get_ref(at).ok().and_then(|value| value.as_i64().ok());
                    Ok([number(0), number(1), number(2)])
                });
                if let Some([start, end, place]) = row.optional()? {
                    // As the dataset has them: merging has moved times, and process ids by strides.
                    let moved =
                        |time: Option<i64>| time.map(|time| time.wrapping_add(rank.offset_ns.unwrap_or(0)));
                    let place = place.filter(|_| rank.sessions.is_empty());
                    digest.update(format!("{name} {:?} {:?} {place:?}", moved(start), moved(end)));
                    break;
                }
            }
        }
        let digest = digest.finalize();
        let mut number = [0; 8];
        number.copy_from_slice(&digest[..8]);
        Ok(i64::from_be_bytes(number) & i64::MAX)
    }
}

/// The name of a host whose clock is not known.
fn agreed_name(hosts: &dyn KnownHosts, host: &Host, name: &str) -> Result<String> {
    Ok(hosts.known(host)?.map_or_else(|| name.to_string(), |clock| clock.node))
}

/// The rank of a session as a number.
fn rank(session: &SessionInfo) -> Option<i64> {
    session.rank()?.trim().parse::<u32>().ok().map(i64::from)
}

/// What tells each session from all others: host, process and the moment of its start, on the clock that merging does not move.
pub(super) fn identities(sessions: &[SessionInfo]) -> Vec<String> {
    let identity = |session: &SessionInfo| {
        let start = session_fact::START_REALTIME_NS;
        let start = session.get(start).or_else(|| session.get(session_fact::START_MONOTONIC_NS))?;
        let host = session.get(session_fact::BOOT_ID).or_else(|| session.host()).unwrap_or_default();
        let namespace = session.get(session_fact::PID_NAMESPACE).unwrap_or_default();
        let whole = format!("{host}\n{namespace}\n{}\n{start}", session.pid()?);
        Some(hexadecimal(&Sha256::digest(whole)[..8]))
    };
    sessions.iter().filter_map(identity).collect()
}

/// How many ranks the job of these sessions has, if they say it.
pub(super) fn ranks_of_job(sessions: &[SessionInfo]) -> Option<i64> {
    let of = |session: &SessionInfo| {
        RANKS.iter().find_map(|variable| session.number(&session_fact::env(variable)))
    };
    sessions.iter().filter_map(of).max().and_then(|ranks| i64::try_from(ranks).ok())
}

/// Gives each rank the ids of its sessions. Ids of sessions that say nothing of themselves are those of the first rank.
fn share_ids(ranks: &mut [RankPart], of_session: &[(i64, usize)]) {
    let mut of_session = of_session.to_vec();
    of_session.sort_unstable();
    let mut shares = Vec::new();
    let mut from = i64::MIN;
    for (session, rank) in of_session {
        let first = session << 32;
        if from < first {
            shares.push((from, first - 1, 0));
        }
        shares.push((first, first | 0xffff_ffff, rank));
        from = (first | 0xffff_ffff).saturating_add(1);
    }
    shares.push((from, i64::MAX, 0));
    let mut last = None;
    for (from, to, rank) in shares {
        let ids = &mut ranks[rank].ids;
        match ids.last_mut().filter(|_| last == Some(rank)) {
            Some(ids) => ids.1 = to,
            None => ids.push((from, to)),
        }
        last = Some(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank_part(rank: i64) -> RankPart {
        let (job, node) = (String::new(), String::new());
        RankPart { job, node, rank, offset_ns: None, sessions: Vec::new(), ids: Vec::new() }
    }

    #[test]
    fn every_id_is_of_one_rank() {
        let mut ranks = [rank_part(0), rank_part(1)];
        share_ids(&mut ranks, &[(0, 0), (1, 1), (3, 1), (4, 0)]);
        assert_eq!(ranks[0].ids, [(i64::MIN, (1 << 32) - 1), (2 << 32, (3 << 32) - 1), (4 << 32, i64::MAX)]);
        assert_eq!(ranks[1].ids, [(1 << 32, (2 << 32) - 1), (3 << 32, (4 << 32) - 1)]);
        let mut alone = [rank_part(0)];
        share_ids(&mut alone, &[]);
        assert_eq!(alone[0].ids, [(i64::MIN, i64::MAX)]);
    }
}
