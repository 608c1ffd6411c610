//! The manifest of a part: which files it has, and what must be in them. It is written when they are all there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::place::{self, Place, shown};

/// The folder of all manifests.
pub(super) const FOLDER: &str = "_manifest";

/// What one rank of one trace has in the dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The number that the column `part` has, in hexadecimal digits: the name of its files.
    pub part: String,
    /// The trace, as it was named.
    pub trace: String,
    /// Job, node and rank, as they are.
    pub job: String,
    /// See `job`.
    pub node: String,
    /// See `job`.
    pub rank: i64,
    /// How many ranks the job has, where a session says it.
    pub ranks: Option<i64>,
    /// What tells each of its sessions from all others; sessions that say nothing of themselves are not in it.
    pub sessions: Vec<String>,
    /// First start and last end of its calls and operations, ns, as its rows have them.
    pub first_ns: Option<i64>,
    /// See `first_ns`.
    pub last_ns: Option<i64>,
    /// Whether times are ns since 1970; otherwise the trace's own.
    pub is_aligned: bool,
    /// What was added to the trace's times, ns; none where nothing was, and in datasets of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// Rows by table.
    pub rows: BTreeMap<String, u64>,
    /// Its files.
    pub files: Vec<PartFile>,
}

/// One Parquet file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFile {
    /// Its path from the dataset's directory on.
    pub path: String,
    /// Its rows.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// First start and last end in it, ns.
    pub first_ns: Option<i64>,
    /// See `first_ns`.
    pub last_ns: Option<i64>,
}

impl Manifest {
    /// Whether both are of one recording: they have a session in common, and at least half of the shorter one's time. Windows of a
    /// recording that were cut out of it one after the other are not.
    pub(super) fn is_same_recording(&self, other: &Manifest) -> bool {
        if !self.sessions.iter().any(|session| other.sessions.contains(session)) {
            return false;
        }
        let (Some(mine), Some(others)) = (self.span(), other.span()) else { return true };
        let common = mine.1.min(others.1) - mine.0.max(others.0);
        let shorter = (mine.1 - mine.0).min(others.1 - others.0);
        common >= 0 && common * 2 >= shorter
    }

    /// From the first start to the last end.
    pub(super) fn span(&self) -> Option<(i128, i128)> {
        Some((self.first_ns?.into(), self.last_ns?.into()))
    }

    /// The file that it is in, of the folder of its rank's.
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", self.part))
    }
}

/// The manifests that can be read, by their paths, and those that cannot, with the reason.
pub(super) struct Manifests {
    pub(super) read: Vec<(PathBuf, Manifest)>,
    pub(super) damaged: Vec<(PathBuf, String)>,
}

impl Manifests {
    /// Those in `folder` and in the folders in it, in the order of their paths.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub(super) fn below(folder: &Path) -> Result<Manifests> {
        let mut found = Manifests { read: Vec::new(), damaged: Vec::new() };
        for path in files(folder)? {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match place::read(&path) {
                Ok(Some(manifest)) => found.read.push((path, manifest)),
                Ok(None) => {}
                Err(error) => found.damaged.push((path, format!("{:#}", error.root_cause()))),
            }
        }
        Ok(found)
    }
}

/// All files in `folder` and in the folders in it, sorted. A folder that is not there has none.
///
/// # Errors
/// When a folder cannot be read.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", shown(&folder))),
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", shown(&folder)))?;
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Where the manifests of a rank are.
pub(super) fn folder(place: &Place, partition: &Path) -> PathBuf {
    place.directory.join(FOLDER).join(partition)
}
