//! Reading back what a file says of its sessions and GPUs. Files of other recorders say nothing; what cannot be
//! parsed is kept as text and left out of the numbers.

use crate::numbered::numbered_facts;
use crate::{note, session_fact as fact};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;

/// What is known of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Session number; its ids start at this times 2^32.
    pub session: u32,
    /// Every fact as it is in the file, by key.
    pub facts: BTreeMap<String, String>,
}

impl SessionInfo {
    /// A fact as text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(String::as_str)
    }

    /// A fact as a number, if it is one.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.trim().parse().ok()
    }

    /// Name of the host.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.get(fact::HOST)
    }

    /// Command line.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        self.get(fact::COMMAND)
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.get(fact::PID)?.trim().parse().ok()
    }

    /// Rank of the process in its job: the first of [`fact::RANK_VARIABLES`] that has a value.
    #[must_use]
    pub fn rank(&self) -> Option<&str> {
        rpd_settings::rank::first(|variable| self.get(&fact::env(variable)))
    }

    /// Id of the job the process belonged to.
    #[must_use]
    pub fn job(&self) -> Option<&str> {
        rpd_settings::job::first(|variable| self.get(&fact::env(variable)))
    }

    /// Recorded launches that have no operation. Those of a session that goes on in a next part are counted there.
    #[must_use]
    pub fn launches_without_op(&self) -> u64 {
        match self.get(fact::NEXT_PART) {
            Some(_) => 0,
            None => self.number(fact::LAUNCHES_WITHOUT_OP).unwrap_or(0),
        }
    }

    /// Counts of what was recorded, by kind.
    #[must_use]
    pub fn recorded(&self) -> BTreeMap<String, u64> {
        self.counts(fact::RECORDED)
    }

    /// Counts of what was lost, by cause; causes that lost nothing included.
    #[must_use]
    pub fn lost(&self) -> BTreeMap<String, u64> {
        self.counts(fact::LOST)
    }

    fn counts(&self, prefix: &str) -> BTreeMap<String, u64> {
        let named = self.facts.iter().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value)));
        named.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
    }
}

/// What is known of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuInfo {
    /// Index of the GPU among all GPUs of the node: `gpuId` of its ops.
    pub gpu: u32,
    /// Every fact as it is in the file, by key.
    pub facts: BTreeMap<String, String>,
}

impl GpuInfo {
    /// A fact as text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(String::as_str)
    }

    /// Whether it is one of NVIDIA's: its target is an architecture of CUDA's, such as `sm_90`.
    #[must_use]
    pub fn is_nvidia(&self) -> bool {
        self.get("target").is_some_and(|target| target.starts_with("sm_"))
    }
}

/// The sessions that say something of themselves, by number; also what processes left beside the file that could not write it.
///
/// # Errors
///
/// Those of SQLite. A file without such facts, or without metadata, has none.
pub fn sessions(connection: &Connection) -> rusqlite::Result<Vec<SessionInfo>> {
    let mut by_number = numbered_facts(connection, "session::")?;
    if let Some(file) = connection.path().filter(|file| !file.is_empty()) {
        note::count_in(connection, Path::new(file), &mut by_number)?;
    }
    Ok(by_number.into_iter().map(|(session, facts)| SessionInfo { session, facts }).collect())
}

/// What the notes on the trace say that the file does not, by session as [`sessions`] numbers them: for a file that is made of it.
///
/// # Errors
///
/// Those of SQLite.
pub fn noted_sessions(connection: &Connection, trace: &Path) -> rusqlite::Result<Vec<SessionInfo>> {
    let mut sessions = numbered_facts(connection, "session::")?;
    let noted = note::count_in(connection, trace, &mut sessions)?;
    Ok(noted.into_iter().map(|(session, facts)| SessionInfo { session, facts }).collect())
}

/// The GPUs that the file says something of, by index.
///
/// # Errors
///
/// As [`sessions`].
pub fn gpus(connection: &Connection) -> rusqlite::Result<Vec<GpuInfo>> {
    let by_number = numbered_facts(connection, "gpu::")?;
    Ok(by_number.into_iter().map(|(gpu, facts)| GpuInfo { gpu, facts }).collect())
}

/// How many recorded launches have no operation because their kernels were not known to have completed when the file was last written, over all
/// sessions.
///
/// # Errors
///
/// As [`sessions`].
pub fn launches_without_op(connection: &Connection) -> rusqlite::Result<u64> {
    let sessions = sessions(connection)?;
    Ok(sessions.iter().map(SessionInfo::launches_without_op).fold(0, u64::saturating_add))
}

/// How many records were lost, by cause, over all sessions; causes that lost nothing left out.
///
/// # Errors
///
/// As [`sessions`].
pub fn lost(connection: &Connection) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut sum: BTreeMap<String, u64> = BTreeMap::new();
    for (cause, count) in sessions(connection)?.iter().flat_map(SessionInfo::lost) {
        if count > 0 {
            let all = sum.entry(cause).or_default();
            *all = all.saturating_add(count);
        }
    }
    Ok(sum)
}
