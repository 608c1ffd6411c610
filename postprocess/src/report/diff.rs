//! Two runs against each other: what got slower, what got faster, what is new and what is gone.
//!
//! | file | owns |
//! |---|---|
//! | `source.rs` | the calls and markers of a file |
//! | `markers.rs` | what markers are called, and which of them is an iteration |
//! | `division.rs` | which iteration, or which block of the run, something is in |
//! | `read.rs` | what kernels, copies, calls and markers take in each |
//! | `shapes.rs` | which iterations are alike |
//! | `units.rs` | numbers of what is compared |
//! | `compare.rs` | the two sides of one kernel, copy, call or marker |
//! | `replaced.rs` | a kernel in the place of another one |
//! | `clocks.rs` | how fast the clocks of the GPUs ran |
//! | `rule.rs` | what a program that calls this wants to fail for |
//!
//! Launches are not independent: tested one by one, a run differs from itself. So the sample is one value for each iteration, the sum of what
//! something took in it, and iterations are compared with those that launch the same. With several files on each side the run is the
//! sample. Where no marker repeats, the run is cut into blocks, and the sample is the mean duration in each.

mod clocks;
mod compare;
mod division;
mod markers;
mod read;
mod replaced;
mod rule;
mod shapes;
mod source;
mod units;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use regex::Regex;
use rpd_schema::Version;
use rusqlite::Connection;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::gpu_time::LeftOut;
use crate::notes::Notes;
use crate::pass::sorted::Sorter;
use crate::region::Region;
pub use clocks::Clock;
use compare::Comparing;
pub use compare::{ChangeVerdict, DiffRow, RowModes};
pub use division::BLOCKS;
use division::{Division, Role, RunPart};
use markers::MarkerNames;
pub(super) use markers::family;
use read::{DiffSums, Whole};
pub use rule::{ChangeRule, Judged};
use source::ComparedTrace;
pub use units::UnitKind;
use units::Units;

/// Fewest values on each side for a verdict, unless told otherwise.
pub const LEAST: usize = 6;

/// Smallest change that is one, in percent, unless told otherwise.
pub const CHANGE_PERCENT: f64 = 2.0;

/// What a change must be of the busy time of the run (of calls, markers and wall times: of its length), in percent.
pub const EFFECT_PERCENT: f64 = 0.1;

/// Share of false ones among changes that is accepted.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// A file of one side.
pub struct DiffFile<'a> {
    /// For messages.
    pub name: String,
    /// The trace.
    pub trace: &'a Connection,
    /// Its schema.
    pub version: Version,
}

/// What is compared, and how.
pub struct DiffOptions<'a> {
    /// What part of each trace.
    pub region: &'a Region,
    /// The marker that is an iteration; none: the one that repeats and has most time.
    pub iteration: Option<&'a str>,
    /// How many iterations are left out at the beginning of each file.
    pub skip: usize,
    /// Fewest values on each side for a verdict.
    pub least: usize,
    /// Smallest change that is one, in percent.
    pub change_percent: f64,
    /// Names of kernels that communicate.
    pub communication: &'a Regex,
    /// Who is told how far this has come.
    pub notes: &'a dyn Notes,
}

/// What a value of a sample is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampled {
    /// An iteration.
    Iterations,
    /// A block of a run in which no marker repeats.
    Blocks,
    /// A run.
    Runs,
}

/// Iterations that are alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IterationGroup {
    /// Its number, from 1.
    pub group: String,
    /// How many A has.
    pub a_iterations: usize,
    /// How many B has.
    pub b_iterations: usize,
    /// Kernels that the most frequent of them launches, in A where it has any.
    pub kernels: u64,
}

/// What differs.
#[derive(Debug, Serialize)]
pub struct Diff {
    /// What a value of a sample is of.
    pub sampled: Sampled,
    /// The marker that is an iteration; digits in it are `#`. None where no marker repeats.
    pub iteration: Option<String>,
    /// Iterations by what they launch, most frequent first.
    pub groups: Vec<IterationGroup>,
    /// Clocks of the GPUs.
    pub clocks: Vec<Clock>,
    /// How many rows were tested.
    pub tested: usize,
    /// Totals, then what has most effect.
    pub rows: Vec<DiffRow>,
    /// Of each file what was left out.
    #[serde(skip)]
    pub left_out: Vec<FileLeftOut>,
}

/// What could not be counted of a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileLeftOut {
    /// Operations.
    pub ops: LeftOut,
    /// Calls and markers with times that cannot be.
    pub calls: u64,
    /// Whether there was anything to compare.
    pub is_empty: bool,
}

/// Compares the runs of A with those of B.
///
/// # Errors
/// When a trace, or a temporary file, cannot be read, when a moment or a marker is not in one, or when a signal came.
pub fn diff(a: &[DiffFile<'_>], b: &[DiffFile<'_>], options: &DiffOptions<'_>) -> Result<Diff> {
    let notes = options.notes;
    let sides = a.iter().map(|file| (file, 0)).chain(b.iter().map(|file| (file, 1)));
    let sources: Vec<ComparedTrace<'_>> = sides
        .map(|(file, side)| {
            let select = |region: &Region| {
                let selected = region.select(file.trace, file.version);
                selected.with_context(|| format!("cannot read {}", file.name))
            };
            let selected = select(options.region)?;
            let alike = select(&options.region.of_all_operations())?;
            Ok(ComparedTrace {
                name: &file.name,
                trace: file.trace,
                version: file.version,
                side,
                selected,
                alike,
            })
        })
        .collect::<Result<_>>()?;
    notes.show("looking for a marker that repeats");
    let names = MarkerNames::of(&sources, options.least as u64)?;
    let iteration = names.iteration(&sources, options.iteration)?;
    let mut sums = DiffSums {
        units: Units::default(),
        samples: Sorter::new(),
        shapes: Default::default(),
        spent: FxHashMap::default(),
        launches: FxHashMap::default(),
        communication: options.communication,
        notes,
    };
    let (mut parts, mut runs, mut left_out): (Vec<RunPart>, Vec<_>, Vec<_>) = Default::default();
    for (file, source) in sources.iter().enumerate() {
        let failed = || format!("cannot read {}", source.name);
        notes.show(&format!("reading {}", source.name));
        let whole = Whole::of(source, options.communication).with_context(failed)?;
        let is_empty = whole.starts.1 == 0;
        let division = match &iteration {
            Some(marker) => Division::of_marker((source, file), marker, options.skip, &mut parts),
            None => Division::of_blocks(file, whole.starts, &mut parts),
        };
        let division = division.with_context(failed)?;
        let calls = sums.add(source, &division, (&names, iteration.as_deref())).with_context(failed)?;
        runs.push(whole.spent);
        left_out.push(FileLeftOut { ops: whole.left_out, calls, is_empty });
    }
    notes.show("comparing");
    let samples = std::mem::replace(&mut sums.samples, Sorter::new()).sorted()?;
    let clocks = clocks::clocks(&sources)?;
    let sampled = match &iteration {
        _ if a.len() > 1 && b.len() > 1 => Sampled::Runs,
        Some(_) => Sampled::Iterations,
        None => Sampled::Blocks,
    };
    let of_side: Vec<usize> = sources.iter().map(|source| source.side).collect();
    let groups = match &iteration {
        Some(_) => groups(&sums, &parts, &of_side, options.least),
        None => Vec::new(),
    };
    let comparing = Comparing::new((&sums, &parts, &runs, &of_side), &groups, sampled, options);
    let shown = |(at, shapes): (usize, &Vec<u32>)| {
        let [a_iterations, b_iterations] = comparing.iterations(at);
        let kernels = sums.shapes.launches(shapes[0]);
        IterationGroup { group: (at + 1).to_string(), a_iterations, b_iterations, kernels }
    };
    let shown = groups.iter().enumerate().map(shown).collect();
    let (rows, tested) = comparing.rows(samples)?;
    Ok(Diff { sampled, iteration, groups: shown, clocks, tested, rows, left_out })
}

/// The iterations that count, by their shapes, in groups that are alike.
fn groups(sums: &DiffSums<'_>, parts: &[RunPart], of_side: &[usize], often: usize) -> Vec<Vec<u32>> {
    let mut counts: BTreeMap<u32, [usize; 2]> = BTreeMap::new();
    for (part, RunPart { file, role, .. }) in parts.iter().enumerate() {
        if *role == Role::Counts {
            counts.entry(sums.shape_of(part as u32)).or_default()[of_side[*file]] += 1;
        }
    }
    sums.shapes.groups(&counts, often)
}
