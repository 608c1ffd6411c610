//! `rpd diff`: what got slower between two runs.

mod markdown;
mod rows;
mod tables;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use regex::Regex;
use rpd_postprocess::pattern::pattern;
use rpd_postprocess::report::diff::{
    self, CHANGE_PERCENT, ChangeRule, Diff as Found, DiffFile, DiffOptions, FileLeftOut, Judged, LEAST,
};
use rpd_postprocess::report::overlap::COMMUNICATION;
use rpd_postprocess::text::{self, counted};
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;

/// Compare two runs: what got slower, faster, new and gone
///
/// Kernels, copies, calls and markers are compared by what they take in an iteration: in one occurrence of the marker that repeats. Iterations
/// are compared with those that launch the same kernels. Where no marker repeats, each run is cut into 20 blocks, and mean durations are compared.
/// With several files on each side (--a, --b) each run is one value.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  A, B     median of the values of each side: time in an iteration; with blocks, duration. A mean where a median is 0
  change   B less A; %: percent of A
  95 % interval
           where the change in percent may lie: 95 of 100 such intervals have the true one (bootstrap, 2000
           resamples, the same random numbers each time)
  effect   what the change makes of a whole run
  q        p-value of Mann and Whitney's test, after Benjamini and Hochberg: fewer than 5 in 100 changes with q
           below 0.05 are false
  delta    Cliff's delta, from -1 to 1: how often a value of B is the larger one; 0.15 is small, 0.47 large
  values   how many A and B have: iterations, blocks or runs
  group    iterations that launch the same; run: all of a run; outside: what is in no iteration
  result   slower, faster (of totals: more, less): q is below 0.05, the change is --min-change or more, and its
           effect is 0.1 % of the run or more: of the busy time of the GPUs, of calls, markers and totals of the
           run's length. new, gone: one side has none of it. too few: less than --min-samples values on a side
  exposed  time of communication or copies that no kernel hides

Lines below a row: the kernel that runs in its place in B (same neighbours, as often); more or fewer launches;
launches with two modes, where a median says little.

Rules of --fail-if: KIND:REGEX CHANGE. KIND is total, kernel, copy, call or marker; CHANGE is +5% (slower by 5 % or
more), -5%, 5% (either), new or gone. A change counts with q below 0.05. Exit status 1: a rule holds. 2: none holds, but
there were too few values to tell (in every group, or in one whose values changed as much), or nothing has such a name.

{REGION_HELP}

--csv has a line for each row, --json all; times in nanoseconds.

Example:
  rpd diff before.rpd after.rpd
  rpd diff --a a1.rpd a2.rpd a3.rpd --b b1.rpd b2.rpd b3.rpd --min-samples 3 --all
  rpd diff before.rpd after.rpd --iter 'train step' --skip 3 --fail-if 'kernel:gemm +5%'
  rpd diff before.rpd after.rpd --markdown > comment.md"))]
pub(crate) struct Diff {
    /// The traces: A, which is before, and B, which is after
    #[arg(value_name = "FILE", num_args = 2, required_unless_present_all = ["a", "b"], conflicts_with_all = ["a", "b"])]
    files: Vec<PathBuf>,
    /// Traces of A, of several runs
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "b")]
    a: Vec<PathBuf>,
    /// Traces of B
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "a")]
    b: Vec<PathBuf>,
    /// An iteration is a marker of this text, whatever numbers it has [default: the marker that repeats and takes most time]
    #[arg(long, value_name = "MARKER", allow_hyphen_values = true)]
    iter: Option<String>,
    /// Leave the first N iterations of each thread out: they warm up
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value::count_or_none, allow_negative_numbers = true)]
    skip: usize,
    /// Call nothing a change that has fewer values on a side
    #[arg(long, value_name = "N", default_value_t = LEAST, value_parser = value::count_or_none, allow_negative_numbers = true)]
    min_samples: usize,
    /// Call nothing a change that is smaller, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = CHANGE_PERCENT, value_parser = percent)]
    min_change: f64,
    /// Exit with status 1 if this rule holds; may be given several times
    #[arg(long, value_name = "RULE", allow_hyphen_values = true)]
    fail_if: Vec<ChangeRule>,
    /// Kernels whose names match communicate [default: as in rpd overlap]
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    communication: Option<Regex>,
    /// Show what did not change as well
    #[arg(long)]
    all: bool,
    /// Show the first N rows [default: 20 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
    /// Write Markdown, for a pull request
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    markdown: bool,
    /// Write one JSON object; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// Rows in a table for people when nothing else is asked for.
const SCREENFUL: usize = 20;

/// Exit status where a rule cannot be decided.
const UNDECIDED: u8 = 2;

/// A number of percent, with the sign or without.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    number
        .filter(|percent: &f64| (0.0..=1e6).contains(percent))
        .ok_or_else(|| "not a number of percent: 2, 0.5%".to_string())
}

/// What the output is made of.
struct Shown<'a> {
    /// Names of the files of each side.
    files: [Vec<String>; 2],
    found: &'a Found,
    /// Rows that are shown at most.
    most: usize,
    /// Whether rows that did not change are shown.
    all: bool,
    least: usize,
    /// Smallest change that is shown where there are too few values, in percent.
    least_percent: f64,
}

impl Diff {
    /// Writes the comparison to standard output.
    ///
    /// # Errors
    /// When a trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let notes = notes();
        let (a, b) = match &self.files[..] {
            [a, b] => (std::slice::from_ref(a), std::slice::from_ref(b)),
            _ => (&self.a[..], &self.b[..]),
        };
        let open = |file: &PathBuf| Ok((name(file), trace::open(file, &*notes)?));
        let [of_a, of_b] = [a, b].map(|files| files.iter().map(open).collect::<Result<Vec<_>>>());
        let (of_a, of_b) = (of_a?, of_b?);
        let [for_a, for_b] = [&of_a, &of_b].map(|traces| traces.iter().map(diff_file).collect::<Vec<_>>());
        let communication = match self.communication {
            Some(communication) => communication,
            None => Regex::new(COMMUNICATION)?,
        };
        let region = self.region.into();
        let options = DiffOptions {
            region: &region,
            iteration: self.iter.as_deref(),
            skip: self.skip,
            least: self.min_samples.max(1),
            change_percent: self.min_change,
            communication: &communication,
            notes: &*notes,
        };
        let mut found = diff::diff(&for_a, &for_b, &options).context("cannot compare")?;
        let least = options.least;
        drop((for_a, for_b));
        drop((of_a, of_b, notes));
        a.iter().chain(b).zip(&found.left_out).for_each(|(file, left_out)| tell(file, *left_out));
        let is_table = !self.json && !self.csv;
        let most = self.rows.map_or(if is_table { SCREENFUL } else { usize::MAX }, NonZeroUsize::get);
        let files = [a, b].map(|files| files.iter().map(|file| name(file)).collect());
        let status = judge(&self.fail_if, &found);
        if !is_table {
            found.rows.truncate(most);
        }
        let shown =
            Shown { files, found: &found, most, all: self.all, least, least_percent: self.min_change };
        if self.json {
            rows::write_json(&shown)?;
        } else if self.csv {
            rows::write_csv(&shown)?;
        } else if self.markdown {
            output::write(|out| markdown::write(out, &shown))?;
        } else {
            output::write(|out| tables::write(out, &shown, output::line_width()))?;
        }
        Ok(status)
    }
}

fn diff_file<'a>(
    (name, (trace, version)): &'a (String, (rusqlite::Connection, rpd_schema::Version)),
) -> DiffFile<'a> {
    DiffFile { name: name.clone(), trace, version: *version }
}

fn name(file: &Path) -> String {
    text::escape_path(file)
}

/// Says what of a file counts nowhere.
fn tell(file: &Path, FileLeftOut { ops, calls, is_empty }: FileLeftOut) {
    note_left_out(file, ops);
    let name = name(file);
    if calls > 0 {
        let calls = counted(calls, "call or marker is", "calls and markers are");
        note(format_args!("{name}: {calls} left out: impossible times, which rpd check lists"));
    }
    if is_empty {
        note(format_args!("{name} has no such call and no such operation; rpd info shows what it holds"));
    }
}

/// Says which rules hold.
fn judge(rules: &[ChangeRule], found: &Found) -> ExitCode {
    let (mut holds, mut undecided) = (false, false);
    for rule in rules {
        let (names, what) = match rule.judge(&found.rows) {
            Judged::HoldsNot => continue,
            Judged::Holds(names) => {
                holds = true;
                (names, "holds for")
            }
            Judged::TooFew(names) => {
                undecided = true;
                (names, "is undecided, too few values of")
            }
            Judged::NoMatch => {
                undecided = true;
                (Vec::new(), "is undecided: nothing has such a name")
            }
        };
        let names: Vec<String> =
            names.iter().map(|name| text::shorten(&text::escape(name), 60).into_owned()).collect();
        let more = names.len().saturating_sub(NAMES);
        let mut list = names[..names.len().min(NAMES)].join(", ");
        if more > 0 {
            list += &format!(" and {}", counted(more as u64, "other", "others"));
        }
        let rule = text::escape(rule.text());
        note(format!("--fail-if '{rule}' {what} {list}").trim_end());
    }
    match (holds, undecided) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => ExitCode::from(UNDECIDED),
        (false, false) => ExitCode::SUCCESS,
    }
}

/// Names that are said of a rule.
const NAMES: usize = 3;
