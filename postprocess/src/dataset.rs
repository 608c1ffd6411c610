//! A dataset: the traces of jobs as Parquet files in folders by job, node, rank and time slice, which DuckDB, Spark and pyarrow read as
//! tables.
//!
//! | file | owns |
//! |---|---|
//! | `place.rs` | the directory: names in it, files that appear whole |
//! | `clock.rs` | nodes, and what their times are moved by |
//! | `alignment.rs` | the same by a marker that all hosts of a job set at one moment |
//! | `source.rs` | a trace that is added: its ranks and their ids |
//! | `table.rs` | the tables, their columns and encodings |
//! | `rows.rs` | rows on their way from the trace into files |
//! | `links.rs`, `texts.rs` | what other tables say of a block of rows |
//! | `cells.rs` | columns of a block, as arrays |
//! | `files.rs` | Parquet files that have no name yet |
//! | `manifest.rs` | what a part has |
//! | `views.rs` | the same tables over one trace, for queries |
//! | `check.rs` | missing, double and damaged parts |
//! | `contents.rs` | the ranks that are there |
//! | `columns.rs` | columns of Parquet files, read back |
//! | `utilisation.rs` | how busy the GPUs of a rank were, over time |
//! | `restore.rs` | a rank as a trace again |
//!
//! A *part* is what one rank recorded into one trace. Its files get their names when they are all complete, then its manifest is written.
//! Whoever is interrupted between the two leaves files that no manifest names; the next one who adds the trace gives the same names to the
//! same bytes.

mod alignment;
mod cells;
pub mod check;
mod clock;
mod columns;
pub mod contents;
mod files;
mod links;
pub mod manifest;
mod place;
pub mod restore;
mod rows;
mod source;
mod table;
mod texts;
pub mod utilisation;
pub(crate) mod views;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use serde::Serialize;

use crate::notes::{SharedNotes, undone};
use crate::text::{self, counted};
use alignment::Alignment;
use files::Files;
use manifest::{Manifest, Manifests};
use place::{DatasetPlace, TEMPORARY, encoded};
use rows::Copy;
use source::{RankPart, TraceSource, identities, ranks_of_job};
use table::{API, MONITOR, OP, TABLES};

/// How traces are added.
#[derive(Debug, Default)]
pub struct AddOptions {
    /// The dataset may be there already.
    pub append: bool,
    /// Parts that are there already are written anew.
    pub force: bool,
    /// Length of a time slice, ns; 0 for one slice.
    pub slice_ns: Option<i64>,
    /// The marker that begins at one time on all hosts of a job.
    pub align: Option<String>,
    /// Job, node and rank of all sessions, whatever they say.
    pub job: Option<String>,
    /// See `job`.
    pub node: Option<String>,
    /// See `job`.
    pub rank: Option<i64>,
}

/// What became of one rank of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AddOutcome {
    /// It was not in the dataset.
    Added,
    /// The dataset had less of it.
    Replaced,
    /// The dataset has it.
    Left,
    /// The dataset has more of it.
    Shorter,
}

/// One rank of a trace that was to be added.
#[derive(Debug, Serialize)]
pub struct AddedRank {
    /// What became of it.
    pub outcome: AddOutcome,
    /// What the dataset has of it.
    #[serde(flatten)]
    pub manifest: Manifest,
}

/// Adds traces to the dataset in `directory`.
///
/// # Errors
/// What failed and what to do about it. What was added before stays; of the trace that failed nothing is named by a manifest.
pub fn add(
    directory: &Path,
    traces: &[PathBuf],
    options: &AddOptions,
    notes: &SharedNotes,
) -> Result<Vec<AddedRank>> {
    let _held = notes.hold_signals().context("cannot hold signals back")?;
    let mut added = Vec::new();
    let mut all = || -> Result<()> {
        let place = DatasetPlace::prepare(directory, options.append, options.slice_ns)?;
        for trace in traces {
            let source = TraceSource::open(trace, notes)?;
            let align = options.align.as_deref();
            let alignment = align
                .map(|marker| Alignment::of(&place, marker, &source, options.job.as_deref()))
                .transpose()?;
            for rank in source.ranks(&place, alignment.as_ref(), options, notes)? {
                added.push(add_rank(&place, &source, &rank, options, notes)?);
            }
        }
        Ok(())
    };
    let result = all();
    let parts = counted(added.len() as u64, "part is", "parts are");
    let shown = text::escape_path(directory);
    match result {
        Ok(()) => Ok(added),
        Err(error) if notes.signal().is_some() => {
            let outcome = format!("{parts} in {shown}; the same command with --append goes on");
            Err(undone(error, &**notes, outcome))
        }
        Err(error) if is_out_of_room(&error) => Err(error.context(format!(
            "{parts} in {shown}, and there is no room for more: make room, then go on by the same command with --append"
        ))),
        Err(error) => Err(error),
    }
}

fn is_out_of_room(error: &Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let is_room = |kind| {
        matches!(
            kind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    };
    kinds.into_iter().any(is_room)
}

/// `job=.../node=.../rank=...`.
fn partition(job: &str, node: &str, rank: i64) -> PathBuf {
    // Spark and DuckDB take digits alone for a number: a letter keeps job 00123 from becoming 123.
    [format!("job=j{}", encoded(job)), format!("node=n{}", encoded(node)), format!("rank={rank}")]
        .iter()
        .collect()
}

fn add_rank(
    place: &DatasetPlace,
    source: &TraceSource,
    rank: &RankPart,
    options: &AddOptions,
    notes: &SharedNotes,
) -> Result<AddedRank> {
    let partition = partition(&rank.job, &rank.node, rank.rank);
    let folder = manifest::folder(place, &partition);
    let mut found = Manifest {
        part: String::new(),
        trace: source.path.to_string_lossy().into_owned(),
        job: rank.job.clone(),
        node: rank.node.clone(),
        rank: rank.rank,
        ranks: ranks_of_job(&rank.sessions),
        sessions: identities(&rank.sessions),
        first_ns: None,
        last_ns: None,
        is_aligned: rank.offset_ns.is_some(),
        offset_ns: rank.offset_ns,
        rows: BTreeMap::new(),
        files: Vec::new(),
    };
    let mut part =
        source.part(rank).with_context(|| format!("cannot read {}", text::escape_path(&source.path)))?;
    let known = Manifests::below(place, &folder)?.read;
    if !known.is_empty() {
        let (rows, first_ns, last_ns) = source.extent(rank)?;
        (found.rows, found.first_ns, found.last_ns) = (rows, first_ns, last_ns);
    }
    let is_it = |known: &Manifest| known.part == digits(part) || found.is_same_recording(known);
    let known = known.into_iter().find(is_it);
    if let Some(known) = &known {
        let own: BTreeMap<_, _> =
            known.rows.iter().filter(|(table, _)| found.rows.contains_key(*table)).collect();
        let is_equal = own.iter().all(|(table, rows)| found.rows.get(*table) == Some(rows));
        let is_less = !is_equal && !own.iter().all(|(table, rows)| found.rows.get(*table) >= Some(rows));
        let is_whole = known
            .files
            .iter()
            .all(|file| fs::metadata(file.at(place)).is_ok_and(|there| there.len() == file.bytes));
        if is_less || is_equal && is_whole && !options.force {
            let outcome = if is_less { AddOutcome::Shorter } else { AddOutcome::Left };
            return Ok(AddedRank { outcome, manifest: known.clone() });
        }
        part = i64::from_str_radix(&known.part, 16).unwrap_or(part);
    }
    found.part = digits(part);
    let mut files = Files::new(place, partition.clone(), found.part.clone());
    let not_written = Copy::new(source, rank, part, &mut files, &**notes)?.all()?;
    let shown = text::escape_path(&source.path);
    for ((table, column), cells) in not_written.odd {
        notes.note(format_args!(
            "{shown}: {} of another type in {table}.{column} than the format has there: NULL in the dataset",
            counted(cells, "value is", "values are")
        ));
    }
    for (table, rows) in not_written.impossible {
        notes.note(format_args!(
            "{shown}: {} of {table} left out, with a time that no trace can have; rpd check {shown} says which",
            counted(rows, "row", "rows")
        ));
    }
    found.rows = TABLES.iter().map(|table| (table.name.to_string(), files.summary(table).0)).collect();
    let spans = [&OP, &API].map(|table| files.summary(table));
    found.first_ns = spans.iter().filter_map(|(_, first, _)| *first).min();
    found.last_ns = spans.iter().filter_map(|(_, _, last)| *last).max();
    if spans.iter().all(|(rows, ..)| *rows == 0) {
        let (_, first, last) = files.summary(&MONITOR);
        (found.first_ns, found.last_ns) = (first, last);
    }
    found.files = files.publish()?;
    place::write(&found.path(place), &found)?;
    remove_others(place, &partition, &found)?;
    let outcome = if known.is_some() { AddOutcome::Replaced } else { AddOutcome::Added };
    Ok(AddedRank { outcome, manifest: found })
}

/// Removes files of a part that its manifest does not name: those of an earlier, shorter recording, and what somebody left who was killed.
fn remove_others(place: &DatasetPlace, partition: &Path, manifest: &Manifest) -> Result<()> {
    let (whole, temporary) = (format!("part-{}-", manifest.part), format!("{TEMPORARY}{}-", manifest.part));
    for table in TABLES {
        for path in manifest::files(&place.directory.join(table.name).join(partition))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Somebody may be adding the same trace at this moment.
            let is_own =
                name.starts_with(&whole) || name.starts_with(&temporary) && place::is_abandoned(&path);
            let relative = place.relative(&path);
            if is_own && !manifest.files.iter().any(|file| file.path == relative) {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(error)
                            .with_context(|| format!("cannot remove {}", text::escape_path(&path)));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// The number of a part as its files have it.
fn digits(part: i64) -> String {
    format!("{part:016x}")
}

/// Bytes in hexadecimal digits.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A part for people: job, node and rank.
fn place_of(manifest: &Manifest) -> String {
    let named = |what: &str, name: &str| match name {
        "" => String::new(),
        name => format!("{what} {}, ", text::escape(name)),
    };
    format!("{}{}rank {}", named("job", &manifest.job), named("node", &manifest.node), manifest.rank)
}

impl AddedRank {
    /// What became of it, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let place = place_of(&self.manifest);
        let rows = self.manifest.rows.values().copied().fold(0, u64::saturating_add);
        let rows = counted(rows, "row", "rows");
        match self.outcome {
            AddOutcome::Added => format!("{place}: {rows} added"),
            AddOutcome::Replaced => {
                format!("{place}: {rows} in place of what was there of the same recording")
            }
            AddOutcome::Left => format!("{place} is there already: {rows}"),
            AddOutcome::Shorter => {
                format!("{place}: the dataset has more of the same recording, and keeps that: {rows}")
            }
        }
    }
}
