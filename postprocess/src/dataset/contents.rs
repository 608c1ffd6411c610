//! The ranks that a dataset has, as the manifests of their parts say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::check::{DatasetFinding, double, missing_ranks};
use super::manifest::{Manifest, Manifests, PartFile};
use super::place::DatasetPlace;
use crate::text::counted;
use crate::text::escape_path;

/// A dataset as it was when it was opened.
#[derive(Debug)]
pub struct DatasetContents {
    pub(super) place: DatasetPlace,
    /// In the order of job, node and rank.
    pub ranks: Vec<Rank>,
    /// What the manifests say is wrong; files are not looked at.
    pub findings: Vec<DatasetFinding>,
}

/// What a rank of a job recorded on a node: into one trace or several.
#[derive(Debug, Clone)]
pub struct Rank {
    /// The job's id; empty where none is known.
    pub job: String,
    /// The host's name; empty where none is known.
    pub node: String,
    /// The rank.
    pub rank: i64,
    /// Its parts, in the order of their starts.
    pub parts: Vec<Manifest>,
}

impl DatasetContents {
    /// Opens the dataset in `directory`.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(directory: &Path) -> Result<DatasetContents> {
        let place = DatasetPlace::open(directory)?;
        let Manifests { read, mut findings, .. } = Manifests::of(&place)?;
        let parts: Vec<&Manifest> = read.iter().collect();
        findings.extend(double(&parts));
        let mut jobs: BTreeMap<&str, Vec<&Manifest>> = BTreeMap::new();
        for part in &parts {
            jobs.entry(&part.job).or_default().push(part);
        }
        findings.extend(jobs.iter().filter_map(|(job, parts)| missing_ranks(job, parts, None)));
        let mut ranks: BTreeMap<(String, i64, String), Vec<Manifest>> = BTreeMap::new();
        for part in read {
            ranks.entry((part.job.clone(), part.rank, part.node.clone())).or_default().push(part);
        }
        let ranks = ranks.into_iter().map(|((job, rank, node), mut parts)| {
            parts.sort_by(|one, other| (one.first_ns, &one.part).cmp(&(other.first_ns, &other.part)));
            Rank { job, node, rank, parts }
        });
        Ok(DatasetContents { place, ranks: ranks.collect(), findings })
    }

    /// Its name, for people.
    #[must_use]
    pub fn shown(&self) -> String {
        escape_path(&self.place.directory)
    }

    /// Its directory as a word of a shell's line.
    #[must_use]
    pub fn in_shell(&self) -> String {
        self.place.in_shell()
    }

    /// Why it has no ranks, where it has none.
    #[must_use]
    pub fn without_ranks(&self) -> String {
        let (shown, directory) = (self.shown(), self.in_shell());
        let Some(first) = self.findings.first() else {
            return format!("{shown} has no ranks yet: rpd dataset {directory} --append FILE... adds some");
        };
        let more = match self.findings.len() as u64 - 1 {
            0 => String::new(),
            more => {
                format!("; {}: rpd dataset check {directory}", counted(more, "more finding", "more findings"))
            }
        };
        format!("{shown} has no rank that can be read: {}{more}", first.in_words())
    }

    /// Length of a time slice, ns; 0 where there is one slice.
    #[must_use]
    pub fn slice_ns(&self) -> i64 {
        self.place.slice_ns
    }
}

impl Rank {
    /// First start and last end of its calls and operations, ns.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        let first = self.parts.iter().filter_map(|part| part.first_ns).min()?;
        Some((first, self.parts.iter().filter_map(|part| part.last_ns).max()?.max(first)))
    }

    /// Whether its times are ns since 1970.
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        self.parts.iter().all(|part| part.is_aligned)
    }

    /// How many rows a table has of it.
    #[must_use]
    pub fn rows(&self, table: &str) -> u64 {
        self.parts.iter().filter_map(|part| part.rows.get(table)).copied().fold(0, u64::saturating_add)
    }

    /// The numbers of the time slices that have something of it.
    #[must_use]
    pub fn slices(&self) -> BTreeSet<i64> {
        let files = self.parts.iter().flat_map(|part| &part.files);
        files.filter(|file| file.first_ns.is_some()).filter_map(PartFile::slice).collect()
    }
}

impl PartFile {
    /// The table that it has rows of.
    pub(super) fn table(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    /// The time slice that it has rows of.
    pub(super) fn slice(&self) -> Option<i64> {
        self.path.split('/').find_map(|folder| folder.strip_prefix("slice="))?.parse().ok()
    }

    /// Where it is. A manifest cannot lead out of the dataset.
    pub(super) fn at(&self, place: &DatasetPlace) -> PathBuf {
        let inside =
            Path::new(&self.path).components().filter(|part| matches!(part, std::path::Component::Normal(_)));
        place.directory.join(inside.collect::<PathBuf>())
    }
}
