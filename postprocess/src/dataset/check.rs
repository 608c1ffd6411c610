//! What is wrong with a dataset: parts that are missing, double or damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::manifest::{self, Manifest, Manifests, PartFile, files};
use super::place::{DatasetPlace, TEMPORARY, length};
use super::table::TABLES;
use super::{hexadecimal, place_of};
use crate::notes::{SharedNotes, look};
use crate::text;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// Ranks that are named.
const SHOWN: usize = 5;

/// How a dataset is.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// The dataset, as it was named.
    pub dataset: String,
    /// Parts that have a manifest.
    pub parts: u64,
    /// Jobs of these.
    pub jobs: u64,
    /// Files that the manifests name.
    pub files: u64,
    /// Their bytes, as the manifests have them.
    pub bytes: u64,
    /// Rows by table, as the manifests have them.
    pub rows: BTreeMap<String, u64>,
    /// What is wrong.
    pub findings: Vec<DatasetFinding>,
}

/// What is wrong with a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DatasetFindingKind {
    /// A file or a rank is not there.
    Missing,
    /// A file is not as it was written.
    Damaged,
    /// A recording, a rank or a file is there twice.
    Double,
    /// A file is of no part.
    Leftover,
}

impl DatasetFindingKind {
    /// Its name, as `--json` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DatasetFindingKind::Missing => "missing",
            DatasetFindingKind::Damaged => "damaged",
            DatasetFindingKind::Double => "double",
            DatasetFindingKind::Leftover => "leftover",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Serialize)]
pub struct DatasetFinding {
    /// What it is.
    pub kind: DatasetFindingKind,
    /// The file or the rank.
    pub place: String,
    /// What is wrong with it, and what to do.
    pub what: String,
}

/// Reads a dataset and says what is wrong with it. `ranks` is how many each job has; otherwise sessions may say it, or the highest rank
/// that is there is the last.
///
/// # Errors
/// When there is no dataset, or it cannot be read.
pub fn check(directory: &Path, ranks: Option<i64>, notes: &SharedNotes) -> Result<Checked> {
    let place = DatasetPlace::open(directory)?;
    let Manifests { read, left, mut findings } = Manifests::of(&place)?;
    let mut named = BTreeSet::new();
    let mut bytes: u64 = 0;
    let mut rows: BTreeMap<String, u64> = BTreeMap::new();
    for manifest in &read {
        for file in &manifest.files {
            look(&**notes)?;
            notes.show(&file.path);
            bytes = bytes.saturating_add(file.bytes);
            findings.extend(wrong(&place, manifest, file)?);
            named.insert(file.at(&place));
        }
        for (table, count) in &manifest.rows {
            let sum = rows.entry(table.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    let files = named.len() as u64;
    named.extend(left.iter().flat_map(|manifest| &manifest.files).map(|file| file.at(&place)));
    findings.extend(leftovers(&place, &named)?);
    let read: Vec<&Manifest> = read.iter().collect();
    findings.extend(double(&read));
    let mut jobs: BTreeMap<&str, Vec<&Manifest>> = BTreeMap::new();
    for manifest in &read {
        jobs.entry(&manifest.job).or_default().push(manifest);
    }
    findings.extend(jobs.iter().filter_map(|(job, parts)| missing_ranks(job, parts, ranks)));
    Ok(Checked {
        dataset: directory.to_string_lossy().into_owned(),
        parts: read.len() as u64,
        jobs: jobs.len() as u64,
        files,
        bytes,
        rows,
        findings,
    })
}

/// A manifest that cannot be used, for this reason.
pub(super) fn unusable(place: &DatasetPlace, path: &Path, why: &str) -> DatasetFinding {
    DatasetFinding {
        kind: DatasetFindingKind::Damaged,
        place: place.relative(path),
        what: format!("the manifest {why}: remove it, and add its trace again with --append"),
    }
}

/// A manifest that names a file of another one.
pub(super) fn named_twice(place: &DatasetPlace, path: &Path, other: &Path, file: &Path) -> DatasetFinding {
    let [other, file] = [other, file].map(|path| text::escape(&place.relative(path)).into_owned());
    DatasetFinding {
        kind: DatasetFindingKind::Double,
        place: place.relative(path),
        what: format!(
            "the manifest is left out, because {other} names {file} too: remove the one that is wrong"
        ),
    }
}

/// What is wrong with a file that a manifest names.
pub(super) fn wrong(
    place: &DatasetPlace,
    manifest: &Manifest,
    file: &PartFile,
) -> Result<Option<DatasetFinding>> {
    let trace = text::escape(&manifest.trace);
    let path = file.at(place);
    let found = |kind, what: String| Ok(Some(DatasetFinding { kind, place: file.path.clone(), what }));
    let size = match length(&path) {
        Ok(size) => size,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return found(
                DatasetFindingKind::Missing,
                format!("the file is not there: add {trace} again with --append"),
            );
        }
        Err(error) => return found(DatasetFindingKind::Damaged, format!("the file cannot be read: {error}")),
    };
    if size != file.bytes {
        return found(
            DatasetFindingKind::Damaged,
            format!("it has {size} bytes in place of {}: add {trace} again with --append", file.bytes),
        );
    }
    match digest(&path) {
        Ok(digest) if digest == file.sha256 => Ok(None),
        Ok(_) => found(
            DatasetFindingKind::Damaged,
            format!("its SHA-256 is not the manifest's: add {trace} again with --append --force"),
        ),
        Err(error) => found(DatasetFindingKind::Damaged, format!("the file cannot be read: {error}")),
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hexadecimal(&digest.finalize())),
            length => digest.update(&piece[..length]),
        }
    }
}

/// Files in the folders of the tables that no manifest names.
fn leftovers(place: &DatasetPlace, named: &BTreeSet<PathBuf>) -> Result<Vec<DatasetFinding>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in TABLES.iter().map(|table| table.name).chain([manifest::FOLDER, "_clock", "_node"]) {
        paths.extend(files(&place.directory.join(folder))?);
    }
    let mut found = Vec::new();
    for path in paths {
        let relative = place.relative(&path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let what = if name.starts_with(TEMPORARY) {
            "somebody is writing it, or was killed: remove it when nobody adds to the dataset"
        } else if relative.ends_with(".parquet") && !named.contains(&path) {
            "no manifest names it, but who reads all files sees its rows: add its trace again with --append, or remove it"
        } else {
            continue;
        };
        found.push(DatasetFinding {
            kind: DatasetFindingKind::Leftover,
            place: relative,
            what: what.to_string(),
        });
    }
    Ok(found)
}

/// Recordings that are there twice, and ranks that were in two places at one time.
pub(super) fn double(parts: &[&Manifest]) -> Vec<DatasetFinding> {
    let mut found = Vec::new();
    let mut of_session: BTreeMap<&str, Vec<&Manifest>> = BTreeMap::new();
    let mut of_rank: BTreeMap<(&str, i64), Vec<&Manifest>> = BTreeMap::new();
    let mut said = BTreeSet::new();
    let mut say = |one: &Manifest, other: &Manifest, what: &str| {
        if said.insert((one.part.clone(), other.part.clone())) {
            found.push(DatasetFinding {
                kind: DatasetFindingKind::Double,
                place: format!("{} (part {})", place_of(other), other.part),
                what: format!(
                    "{what} {} (part {}, of {}): remove the manifest and the files of one of the two",
                    place_of(one),
                    one.part,
                    text::escape(&one.trace)
                ),
            });
        }
    };
    for part in parts {
        for session in &part.sessions {
            let others = of_session.entry(session).or_default();
            for other in others.iter().filter(|other| other.is_same_recording(part)) {
                say(other, part, "it is of the same recording as");
            }
            others.push(part);
        }
        let others = of_rank.entry((&part.job, part.rank)).or_default();
        let overlaps = |other: &&&Manifest| match (other.span(), part.span()) {
            (Some(one), Some(other)) => one.0 < other.1 && other.0 < one.1,
            _ => false,
        };
        let is_elsewhere =
            |other: &&&Manifest| other.node != part.node && other.is_aligned && part.is_aligned;
        if !part.job.is_empty() {
            for other in others.iter().filter(is_elsewhere).filter(overlaps) {
                say(other, part, "its rank was at the same time at");
            }
        }
        others.push(part);
    }
    found
}

pub(super) fn missing_ranks(job: &str, parts: &[&Manifest], ranks: Option<i64>) -> Option<DatasetFinding> {
    let there: BTreeSet<i64> = parts.iter().map(|part| part.rank).collect();
    let said = ranks.or_else(|| parts.iter().filter_map(|part| part.ranks).max());
    let expected = said.unwrap_or_else(|| there.last().map_or(0, |last| last.saturating_add(1))).max(0);
    let missing = expected.unsigned_abs() - there.range(0..expected).count() as u64;
    if missing == 0 {
        return None;
    }
    // There may be more of them than fit into memory.
    let named = (0..expected).filter(|rank| !there.contains(rank)).take(SHOWN);
    let named: Vec<String> = named.map(|rank| rank.to_string()).collect();
    let more = missing.saturating_sub(SHOWN as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(DatasetFinding {
        kind: DatasetFindingKind::Missing,
        place: if job.is_empty() { "ranks".to_string() } else { format!("job {}", text::escape(job)) },
        what: format!(
            "of {expected} ranks {}{more} {} not there: add their traces with --append",
            named.join(", "),
            if missing == 1 { "is" } else { "are" }
        ),
    })
}

impl DatasetFinding {
    /// For people.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{}: {}: {}", self.kind.name(), text::escape(&self.place), self.what)
    }
}

impl Checked {
    /// The dataset for people.
    #[must_use]
    pub fn shown(&self) -> String {
        text::escape_path(Path::new(&self.dataset))
    }
}
