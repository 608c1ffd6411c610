//! The manifest of a part: which files it has, and what must be in them. It is written when they are all there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::check::{DatasetFinding, named_twice, unusable};
use super::partition;
use super::place::{self, DatasetPlace};
use crate::text;

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

    /// The file that it is in.
    pub(super) fn path(&self, place: &DatasetPlace) -> PathBuf {
        folder(place, &partition(&self.job, &self.node, self.rank)).join(format!("{}.json", self.part))
    }

    /// What no manifest has that was written whole and not changed.
    fn flaw(&self, place: &DatasetPlace) -> Option<String> {
        if u32::try_from(self.rank).is_err() {
            return Some(format!("rank {} is none", self.rank));
        }
        let times = self.files.iter().flat_map(|file| [file.first_ns, file.last_ns]);
        let mut times = times.chain([self.first_ns, self.last_ns]).flatten();
        let offset = self.offset_ns.unwrap_or(0);
        if times.any(|time| time.checked_sub(offset).is_none()) {
            return Some(format!("offset_ns {offset} does not fit to its times"));
        }
        let mut paths = BTreeSet::new();
        let mut rows: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        for file in &self.files {
            if !paths.insert(file.at(place)) {
                return Some(format!("it names {} twice", text::escape(&file.path)));
            }
            let sum = rows.entry(file.table()).or_insert(Some(0));
            *sum = sum.and_then(|sum| sum.checked_add(file.rows));
        }
        for (table, said) in &self.rows {
            if rows.remove(table.as_str()).unwrap_or(Some(0)) != Some(*said) {
                return Some(format!("its files of {} have other rows than it", text::escape(table)));
            }
        }
        let (table, _) = rows.first_key_value()?;
        Some(format!("it says no rows of {}", text::escape(table)))
    }
}

/// The manifests of some parts.
pub(super) struct Manifests {
    /// Those that can be used, in the order of their paths. No two of them name one file.
    pub(super) read: Vec<Manifest>,
    /// Those that name a file of one that can be used.
    pub(super) left: Vec<Manifest>,
    /// What is wrong with these, and with those that cannot be read.
    pub(super) findings: Vec<DatasetFinding>,
}

impl Manifests {
    /// Those of a dataset.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub(super) fn of(place: &DatasetPlace) -> Result<Manifests> {
        Manifests::below(place, &place.directory.join(FOLDER))
    }

    /// Those in `folder` and in the folders in it.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub(super) fn below(place: &DatasetPlace, folder: &Path) -> Result<Manifests> {
        let mut found = Manifests { read: Vec::new(), left: Vec::new(), findings: Vec::new() };
        let mut all: Vec<(PathBuf, Manifest)> = Vec::new();
        for path in files(folder)? {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match place::read::<Manifest>(&path) {
                Ok(Some(manifest)) => match manifest.flaw(place) {
                    Some(flaw) => {
                        found.findings.push(unusable(place, &path, &format!("is damaged ({flaw})")))
                    }
                    None => all.push((path, manifest)),
                },
                Ok(None) => {}
                Err(error) => {
                    let why = format!("cannot be read ({:#})", error.root_cause());
                    found.findings.push(unusable(place, &path, &why));
                }
            }
        }
        // A manifest that is where it was written comes before a copy of it.
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|at| all[*at].0 != all[*at].1.path(place));
        let mut owners: BTreeMap<PathBuf, usize> = BTreeMap::new();
        let mut is_left = vec![false; all.len()];
        for at in order {
            let (path, manifest) = &all[at];
            let files: Vec<PathBuf> = manifest.files.iter().map(|file| file.at(place)).collect();
            match files.iter().find_map(|file| Some((file, owners.get(file)?))) {
                Some((file, owner)) => {
                    is_left[at] = true;
                    found.findings.push(named_twice(place, path, &all[*owner].0, file));
                }
                None => owners.extend(files.into_iter().map(|file| (file, at))),
            }
        }
        for ((path, manifest), is_left) in all.into_iter().zip(is_left) {
            if is_left {
                found.left.push(manifest);
            } else if path == manifest.path(place) {
                found.read.push(manifest);
            } else {
                let what = "is damaged (the job, node, rank or part in it are not those of its place)";
                found.findings.push(unusable(place, &path, what));
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
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", text::escape_path(&folder)));
            }
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", text::escape_path(&folder)))?;
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
pub(super) fn folder(place: &DatasetPlace, partition: &Path) -> PathBuf {
    place.directory.join(FOLDER).join(partition)
}
