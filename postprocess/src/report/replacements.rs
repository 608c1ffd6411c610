//! Kernels that ran in place of others: which build of a kernel is faster, in one run or between two.
//!
//! | file | owns |
//! |---|---|
//! | `collect.rs` | the dispatches of a trace, by launch and by what ran |
//! | `candidates.rs` | the files of the kernel cache, and what became of them |
//! | `sample.rs` | which times of a build are kept |
//! | `interval.rs` | how sure a ratio of two medians is |
//! | `compare.rs` | two builds against each other |
//! | `runs.rs` | what else differs between two runs |
//! | `validated.rs` | what candidates and the program's kernels left in memory |
//!
//! A dispatch with a row in `ext_replacement` ran the candidate's kernel. One of the same name without a row ran the program's own.
//! Instrumented kernels are no builds to compare: they are left out.

mod candidates;
mod collect;
mod compare;
mod interval;
mod runs;
mod sample;
mod validated;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::mem;

use anyhow::Result;
use regex::Regex;
use rusqlite::Connection;
use serde::Serialize;

use self::collect::{Build, Collected, KernelLaunch, Scope, collect};
use self::compare::{Compared, compare};
use self::interval::{RESAMPLES, SEED};
use self::runs::{CacheFacts, differences};
use self::validated::validated;
use crate::notes::Notes;
use crate::region::Selected;

pub use self::candidates::CandidateFile;
pub use self::compare::BuildVerdict;
pub use self::interval::LEAST;
pub use self::runs::{Difference, Unreplaced};
pub use self::validated::ValidatedBuffer;

/// What `rpd replacements` tells.
#[derive(Debug, Serialize)]
pub struct Replacements {
    /// What the random numbers of the intervals begin with.
    pub seed: u64,
    /// Resamples of each interval.
    pub resamples: usize,
    /// How many of 100 intervals have the true value.
    pub confidence_percent: u32,
    /// How originals and candidates ran by turns, as the sessions say it: `ABAB`, `random, seed 7`, `blocks=100`.
    pub alternate: BTreeSet<String>,
    /// The directories that candidates are from, as the sessions say it.
    pub kernel_cache: BTreeSet<String>,
    /// The launches of kernels that were replaced, those that took most time first.
    pub launches: Vec<Comparison>,
    /// How many more launches there are.
    #[serde(skip)]
    pub more: u64,
    /// The files of the kernel cache, those that ran most first; of two runs those of both.
    pub candidates: Vec<CandidateFile>,
    /// Results that were compared with those of the program's kernels.
    pub validated: Vec<ValidatedBuffer>,
    /// For two runs: what else differs between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Runs>,
    /// Dispatches left out because of their times: those that `rpd check` has as impossible, negative, missing or far.
    pub impossible: u64,
    /// Dispatches left out because they ran instrumented kernels.
    pub instrumented: u64,
}

/// Two runs beyond the launches that are compared.
#[derive(Debug, Serialize)]
pub struct Runs {
    /// What the files say of the runs that is not the same.
    pub differences: Vec<Difference>,
    /// Kernels that were replaced in neither.
    pub unreplaced: Unreplaced,
    /// Launches of kernels that were replaced, and that only one of the runs has.
    pub in_one_only: u64,
    /// No kernel was replaced in either: all kernels are compared.
    pub nothing_replaced: bool,
}

/// What the program launched, and the builds that ran.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The kernel's name.
    pub kernel: String,
    /// Index of the GPU; none where those of all GPUs of a target count together.
    pub gpu: Option<i64>,
    /// The GPU's instruction set; empty where the file does not say it.
    pub target: String,
    /// In workgroups; none where the file does not say it.
    pub grid: Option<[i64; 3]>,
    /// In work-items.
    pub workgroup: Option<[i64; 3]>,
    /// Bytes of LDS of a workgroup that the launch adds to the kernel's own; all of them where the file does not say the kernel's own.
    pub dynamic_lds: Option<i64>,
    /// The first one is the baseline.
    pub builds: Vec<BuildRow>,
}

/// A build of a kernel in a run.
#[derive(Debug, Serialize)]
pub struct BuildRow {
    /// `A` or `B` of two runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<char>,
    /// The candidate's file; none for the program's own kernel.
    pub candidate: Option<String>,
    /// SHA-256 of it.
    pub sha256: Option<String>,
    /// Dispatches.
    pub calls: u64,
    /// How many of them the interval rests on, drawn at random.
    pub sampled: usize,
    /// Median duration, ns; the quantiles lie between two durations by their distance.
    pub median_ns: f64,
    /// A tenth was shorter, ns.
    pub p10_ns: f64,
    /// A tenth was longer, ns.
    pub p90_ns: f64,
    /// Sum of the durations, ns.
    pub total_ns: u64,
    /// Median of the baseline over that of this build.
    pub speedup: Option<f64>,
    /// Begin of the interval of the speed-up.
    pub low: Option<f64>,
    /// Its end; none also where it has none.
    pub high: Option<f64>,
    /// Which is faster.
    pub verdict: BuildVerdict,
    /// It and the baseline ran by turns.
    pub by_turns: bool,
    /// Calls before which its queue did something else, in percent.
    pub after_other_percent: f64,
    /// How long its queue was idle before, ns (median).
    pub idle_before_ns: Option<f64>,
    /// Calls during which the GPU did something else too, in percent.
    pub overlapped_percent: f64,
    /// What else may be the reason for a difference.
    pub remarks: Vec<String>,
}

/// What is to be compared.
#[derive(Clone, Copy)]
pub struct CompareOptions<'a> {
    /// Only kernels in whose names this is found.
    pub kernel: Option<&'a Regex>,
    /// So many launches at most, those that took most time.
    pub most: usize,
    /// Gets what there is to say while it takes long.
    pub notes: &'a dyn Notes,
}

/// A trace, and the part of it whose dispatches count. What ran beside them and before them is all of the trace's.
pub type TracePart<'a> = (&'a Connection, &'a Selected);

/// Compares the builds of each kernel that was replaced in the trace.
///
/// # Errors
/// When the trace cannot be read.
pub fn within(part: TracePart<'_>, options: CompareOptions<'_>) -> Result<Replacements> {
    let Collected { launches, candidates, impossible, instrumented, .. } =
        collect(part, Scope::Replaced, options.notes)?;
    let launches = launches.into_iter().filter(|(launch, _)| options.wants(&launch.kernel));
    let launches = launches.map(|(launch, builds)| (launch, vec![(None, builds)])).collect();
    let mut report = report(launches, options, CacheFacts::of(&[part.0])?, candidates, impossible);
    report.instrumented = instrumented;
    report.validated = validated(part, None)?;
    report.validated.retain(|buffer| options.wants(&buffer.kernel));
    Ok(report)
}

/// Compares the builds of each kernel that was replaced in run `a` or `b` (of each kernel where none was) between the two: launches
/// of one kernel and geometry on GPUs of one target.
///
/// # Errors
/// When one of the traces cannot be read.
pub fn between(a: TracePart<'_>, b: TracePart<'_>, options: CompareOptions<'_>) -> Result<Replacements> {
    let mut collected = [collect(a, Scope::All, options.notes)?, collect(b, Scope::All, options.notes)?];
    let replaced: HashSet<String> =
        collected.iter_mut().flat_map(|run| mem::take(&mut run.replaced)).collect();
    let nothing_replaced = replaced.is_empty();
    let [mut of_a, mut of_b] = collected.each_mut().map(|run| mem::take(&mut run.launches));
    let unreplaced = match nothing_replaced {
        true => Unreplaced::default(),
        false => Unreplaced::of(&of_a, &of_b, &replaced),
    };
    let is_compared = |launch: &KernelLaunch| {
        (nothing_replaced || replaced.contains(&launch.kernel)) && options.wants(&launch.kernel)
    };
    of_a.retain(|launch, _| is_compared(launch));
    of_b.retain(|launch, _| is_compared(launch));
    let mut launches = Vec::new();
    let mut in_one_only = 0;
    for (launch, builds) in of_a {
        match of_b.remove(&launch) {
            Some(others) => launches.push((launch, vec![(Some('A'), builds), (Some('B'), others)])),
            None => in_one_only += 1,
        }
    }
    in_one_only += of_b.len() as u64;
    let mut candidates = Vec::new();
    for (run, name) in collected.iter_mut().zip(['A', 'B']) {
        candidates.extend(
            mem::take(&mut run.candidates)
                .into_iter()
                .map(|candidate| CandidateFile { run: Some(name), ..candidate }),
        );
    }
    let impossible = collected.iter().map(|run| run.impossible).sum();
    let instrumented = collected.iter().map(|run| run.instrumented).sum();
    let mut report = report(launches, options, CacheFacts::of(&[a.0, b.0])?, candidates, impossible);
    report.instrumented = instrumented;
    report.validated = validated(a, Some('A'))?;
    report.validated.extend(validated(b, Some('B'))?);
    report.validated.retain(|buffer| options.wants(&buffer.kernel));
    report.runs =
        Some(Runs { differences: differences(a.0, b.0)?, unreplaced, in_one_only, nothing_replaced });
    Ok(report)
}

impl CompareOptions<'_> {
    fn wants(&self, kernel: &str) -> bool {
        self.kernel.is_none_or(|pattern| pattern.is_match(kernel))
    }
}

/// A launch, and the builds of it in each run.
type Launched = (KernelLaunch, Vec<(Option<char>, Vec<Build>)>);

fn report(
    mut launches: Vec<Launched>,
    options: CompareOptions<'_>,
    CacheFacts { alternate, kernel_cache }: CacheFacts,
    candidates: Vec<CandidateFile>,
    impossible: u64,
) -> Replacements {
    let total = |launched: &Launched| {
        let builds = launched.1.iter().flat_map(|(_, builds)| builds);
        Reverse(builds.fold(0_u64, |sum, build| sum.saturating_add(build.total_ns)))
    };
    launches.sort_by(|a, b| (total(a), &a.0).cmp(&(total(b), &b.0)));
    let more = launches.len().saturating_sub(options.most) as u64;
    launches.truncate(options.most);
    let comparison = |launched: Launched| {
        options.notes.show(&format!("comparing {}", launched.0.kernel));
        comparison(launched)
    };
    Replacements {
        seed: SEED,
        resamples: RESAMPLES,
        confidence_percent: 95,
        alternate,
        kernel_cache,
        launches: launches.into_iter().map(comparison).collect(),
        more,
        candidates,
        validated: Vec::new(),
        runs: None,
        impossible,
        instrumented: 0,
    }
}

/// Compares every other build with the first one.
fn comparison((launch, runs): Launched) -> Comparison {
    let builds: Vec<(Option<char>, &Build)> =
        runs.iter().flat_map(|(run, builds)| builds.iter().map(|build| (*run, build))).collect();
    let (first_run, first) = builds[0];
    let lines = builds.iter().enumerate().map(|(number, (run, build))| {
        let compared = match number {
            0 => Compared::alone(if builds.len() > 1 {
                BuildVerdict::Baseline
            } else {
                BuildVerdict::NothingToCompareWith
            }),
            _ => compare(first, build, *run == first_run),
        };
        BuildRow::of(*run, build, compared)
    });
    let geometry = launch.geometry;
    Comparison {
        kernel: launch.kernel,
        gpu: launch.gpu,
        target: launch.target,
        grid: geometry.map(|sizes| sizes.grid),
        workgroup: geometry.map(|sizes| sizes.workgroup),
        dynamic_lds: geometry.map(|sizes| sizes.dynamic_lds),
        builds: lines.collect(),
    }
}

impl BuildRow {
    fn of(run: Option<char>, build: &Build, compared: Compared) -> BuildRow {
        let percent = |count: u64| 100.0 * count as f64 / build.calls as f64;
        let Compared { speedup, interval, by_turns, verdict, remarks } = compared;
        BuildRow {
            run,
            candidate: build.candidate.as_ref().map(|(path, _)| path.clone()),
            sha256: build.candidate.as_ref().map(|(_, sha256)| sha256.clone()),
            calls: build.calls,
            sampled: build.taken.len(),
            median_ns: build.median_ns,
            p10_ns: build.p10_ns,
            p90_ns: build.p90_ns,
            total_ns: build.total_ns,
            speedup,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high).filter(|high| high.is_finite()),
            verdict,
            by_turns,
            after_other_percent: percent(build.after_other),
            idle_before_ns: build.gap_ns(),
            overlapped_percent: percent(build.overlapped),
            remarks,
        }
    }
}
