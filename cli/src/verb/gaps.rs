//! `rpd gaps`: when GPUs are idle, and why.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_escape::csv_field;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::gaps::{self, Cause, CauseTime, Gap, GpuGaps};
use rpd_postprocess::report::utilisation::BusyPart;
use rpd_postprocess::text::{counted, escape};
use rpd_postprocess::trace;
use rpd_postprocess::trim::window::span;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::chart::{bar, bar_room, columns_of};
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::{duration, time_range};
use crate::output::table::{Align, Table};
use crate::output::width::shorten_apart;

/// Show when GPUs are idle, and why
///
/// A gap is a time between a GPU's first and last operation in which none ran on it, whichever queue it is of. The cause is what the
/// thread that launched the operation behind the gap did meanwhile; a gap with several causes counts with its part for each, so that
/// the causes add up to the idle time.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  span     from the first start of the GPU's operations to their last end
  busy     time in which at least one ran; span minus busy is idle
  idle     time in which none ran: in all gaps, or in those of the row
  gaps     number of gaps; for a cause: gaps of which it is the largest part
  longest  the longest of them
  %        share of the idle time; in the GPUs' rows, share of the span
  busy over time
           the run of all GPUs from left to right: a full block is a part in
           which the GPU was busy all the time, a blank one in which it was idle
           (over_time in --json, in 200 parts)
  gap      how long it is; the bar shows the idle time
  after    the operation in front of it; before: the one behind it
  cause    launch  inside calls that launch kernels: the launch came late
           sync    inside calls that wait for the GPU
           copy    inside calls that copy or fill memory
           call    inside other calls of HIP, HSA, CUDA, NCCL or RCCL
           host    inside no call: the program itself
           queued  the launch had returned, and the operation waited for
                   others or for the GPU to start it: not the host's doing
           unknown no call in the file launched the operation
           unrecorded
                   recording was stopped, records were lost, or no process was
                   recorded, so that nobody knows what ran
  at       when it began, from the first call on, as --in of rpd api takes it

Tables below that of the GPUs are of all of them together; --json has each.
--csv has a row for each GPU (by gpu), and for each of its bins, causes and
operations in front of gaps (by gap, cause, after).

{REGION_HELP}

Example:
  rpd gaps trace.rpd
  rpd gaps --json trace.rpd | jq '.[] | {{gpu, idle_ns, causes}}'
  rpd api --in +1.2s..+1.3s trace.rpd   # what the program did then"))]
pub(crate) struct Gaps {
    /// The trace
    file: PathBuf,
    /// Show the first N operations and the N longest gaps (10 at most) [default: 5]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true, conflicts_with_all = ["json", "csv"])]
    rows: Option<NonZeroUsize>,
    /// Write a JSON array with an object for each GPU; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// Rows of the tables of operations and of the longest gaps.
const ROWS: usize = 5;

impl Gaps {
    /// Writes the idle time to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region.clone()).select(&trace, version)?;
        notes.show("looking for idle times");
        let found = gaps::Gaps::of(&trace, &selected)
            .with_context(|| format!("cannot read the operations of {name}"))?;
        let zero = span(&trace).map_or(0, |span| span.start_ns);
        let nothing = match found.gpus.is_empty() {
            true => Some(self.region.nothing(&self.file, (&trace, version), "GPU operations")?),
            false => None,
        };
        drop((trace, notes));
        note_left_out(&self.file, found.left_out);
        if self.json {
            output::write_json(&found.gpus)?;
        } else if self.csv {
            write_csv(&found.gpus)?;
        } else if let Some(nothing) = nothing {
            note(nothing);
        } else {
            let rows = self.rows.map_or(ROWS, NonZeroUsize::get);
            output::write(|out| write_tables(out, &found.gpus, (rows, zero), output::line_width()))?;
            if found.gpus.iter().all(|gpu| gpu.gaps == 0) {
                note(format_args!("{name}: no GPU was idle between its first and its last operation"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Percent that `part` is of `whole`.
fn percent(part: impl Into<u128>, whole: impl Into<u128>) -> f64 {
    let (part, whole) = (part.into(), whole.into());
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn share(part: impl Into<u128>, whole: impl Into<u128>) -> String {
    format!("{:.1}", percent(part, whole))
}

fn time(ns: impl Into<u128>) -> String {
    duration(ns.into() as f64)
}

/// Writes all tables, with `rows` rows of what is many, and times counted from `zero`, ns.
fn write_tables(
    out: &mut impl Write,
    gpus: &[GpuGaps],
    (rows, zero): (usize, i64),
    room: Option<usize>,
) -> io::Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("gpu", Right),
        ("operations", Right),
        ("span", Right),
        ("busy", Right),
        ("idle", Right),
        ("%", Right),
        ("gaps", Right),
        ("longest", Right),
    ])
    .sparing(&["operations", "busy"]);
    for gpu in gpus {
        table.row(vec![
            gpu.gpu.to_string(),
            gpu.operations.to_string(),
            time(gpu.span_ns),
            time(gpu.busy_ns),
            time(gpu.idle_ns),
            share(gpu.idle_ns, gpu.span_ns),
            gpu.gaps.to_string(),
            time(gpu.longest_ns),
        ]);
    }
    table.write(out, 0, room)?;
    write_over_time(out, gpus, room)?;
    let idle: u128 = gpus.iter().map(|gpu| u128::from(gpu.idle_ns)).sum();
    if idle == 0 {
        return Ok(());
    }

    let bins = gpus.iter().flat_map(|gpu| &gpu.bins);
    let bins = together(bins.map(|bin| ((bin.from_ns, bin.to_ns), bin.gaps, bin.idle_ns, 0)));
    let greatest = bins.values().map(|bin| bin.idle_ns).max().unwrap_or(0);
    let labels: Vec<String> = bins.keys().map(|range| time_range(*range)).collect();
    let widest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let bars = bar_room(room, widest + 30);
    let mut table = Table::new(&[("gap", Left), ("gaps", Right), ("idle", Right), ("%", Right), ("", Left)]);
    for (bin, label) in bins.values().zip(labels) {
        table.row(vec![
            label,
            bin.gaps.to_string(),
            time(bin.idle_ns),
            share(bin.idle_ns, idle),
            bar(bin.idle_ns, greatest, bars),
        ]);
    }
    writeln!(out)?;
    table.write(out, 0, room)?;

    let causes = gpus.iter().flat_map(|gpu| &gpu.causes).filter(|cause| cause.idle_ns > 0);
    let causes = most_first(causes.map(|cause| (cause.cause, cause.gaps, cause.idle_ns, 0)));
    let mut table =
        Table::new(&[("gaps", Right), ("idle", Right), ("%", Right), ("cause", Left), ("that is", Left)])
            .folding(1);
    for (cause, sum) in causes {
        table.row(vec![
            sum.gaps.to_string(),
            time(sum.idle_ns),
            share(sum.idle_ns, idle),
            word(cause).to_string(),
            meaning(cause).to_string(),
        ]);
    }
    writeln!(out)?;
    table.write(out, 0, room)?;

    let after = gpus.iter().flat_map(|gpu| &gpu.after);
    let after =
        most_first(after.map(|after| (after.name.as_str(), after.gaps, after.idle_ns, after.longest_ns)));
    let mut table =
        Table::new(&[("gaps", Right), ("idle", Right), ("%", Right), ("longest", Right), ("after", Left)])
            .sparing(&["longest"]);
    for (name, sum) in after.iter().take(rows) {
        table.row(vec![
            sum.gaps.to_string(),
            time(sum.idle_ns),
            share(sum.idle_ns, idle),
            time(sum.longest_ns),
            (*name).to_string(),
        ]);
    }
    writeln!(out)?;
    table.write(out, 0, room)?;
    if let Some(hidden) = after.get(rows..).filter(|hidden| !hidden.is_empty()) {
        let left: u128 = hidden.iter().map(|(_, sum)| sum.idle_ns).sum();
        writeln!(
            out,
            "... and {} with {} %",
            counted(hidden.len() as u64, "other", "others"),
            share(left, idle)
        )?;
    }

    let mut longest: Vec<(i64, &Gap)> =
        gpus.iter().flat_map(|gpu| gpu.longest.iter().map(|gap| (gpu.gpu, gap))).collect();
    longest.sort_by_key(|(gpu, gap)| (Reverse(gap.idle_ns), *gpu, gap.start_ns));
    let mut table = Table::new(&[("gpu", Right), ("longest", Right), ("at", Right), ("cause", Left)]);
    longest.truncate(rows);
    let names: Vec<Cow<'_, str>> =
        longest.iter().flat_map(|(_, gap)| [escape(&gap.after), escape(&gap.before)]).collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let names = match room {
        Some(room) => shorten_apart(&names, room.saturating_sub("  before ".len())),
        None => names.into_iter().map(Cow::Borrowed).collect(),
    };
    for ((gpu, gap), names) in longest.into_iter().zip(names.chunks(2)) {
        table.row(vec![
            gpu.to_string(),
            time(gap.idle_ns),
            seconds(gap.start_ns.saturating_sub(zero)),
            word(gap.cause).to_string(),
        ]);
        for (place, name) in ["after", "before"].iter().zip(names) {
            table.below(&format!("{place} {name}"));
        }
    }
    writeln!(out)?;
    table.write(out, 0, room)
}

/// Columns of the chart over time at most.
const WIDEST: usize = 100;

/// A line for each GPU: how busy it was in each part of the run.
fn write_over_time(out: &mut impl Write, gpus: &[GpuGaps], room: Option<usize>) -> io::Result<()> {
    let parts = gpus.first().map_or(0, |gpu| gpu.over_time.len());
    if parts == 0 {
        return Ok(());
    }
    let columns = room.map_or(WIDEST, |room| room.saturating_sub(8).clamp(10, WIDEST));
    let together = parts.div_ceil(columns);
    let length = |of: &[BusyPart]| of.iter().map(|part| part.end_ns.abs_diff(part.start_ns)).sum::<u64>();
    let widest = gpus[0].over_time.chunks(together).map(length).max().unwrap_or(0);
    let mut table = Table::new(&[("gpu", Align::Right), ("busy over time", Align::Left)]);
    for gpu in gpus {
        // The last column may be of a shorter time.
        let height = |of: &[BusyPart]| {
            let busy = of.iter().map(|part| part.busy_ns).sum::<u64>();
            (u128::from(busy) * u128::from(widest) / u128::from(length(of).max(1))) as u64
        };
        let heights: Vec<u64> = gpu.over_time.chunks(together).map(height).collect();
        table.row(vec![gpu.gpu.to_string(), columns_of(&heights, widest)]);
    }
    writeln!(out)?;
    table.write(out, 0, room)?;
    writeln!(out, "a column is {}", time(widest))
}

/// A time from the first call on, as `--in` takes it, to the microsecond.
fn seconds(ns: i64) -> String {
    let (sign, us) = (if ns < 0 { '-' } else { '+' }, ns.unsigned_abs() / 1_000);
    format!("{sign}{}.{:06}s", us / 1_000_000, us % 1_000_000)
}

/// Gaps of all GPUs that have something in common.
#[derive(Default)]
struct Together {
    gaps: u64,
    /// Of many GPUs, a u64 may not hold it.
    idle_ns: u128,
    longest_ns: u64,
}

/// Adds up what all GPUs have of the same kind: rows of the kind, how many gaps, their time and the longest, ns.
fn together<K: Ord>(rows: impl Iterator<Item = (K, u64, u64, u64)>) -> BTreeMap<K, Together> {
    let mut all: BTreeMap<K, Together> = BTreeMap::new();
    for (kind, gaps, idle_ns, longest_ns) in rows {
        let sum = all.entry(kind).or_default();
        sum.gaps += gaps;
        sum.idle_ns += u128::from(idle_ns);
        sum.longest_ns = sum.longest_ns.max(longest_ns);
    }
    all
}

/// [`together`], most time first.
fn most_first<K: Ord>(rows: impl Iterator<Item = (K, u64, u64, u64)>) -> Vec<(K, Together)> {
    let mut all: Vec<(K, Together)> = together(rows).into_iter().collect();
    all.sort_by_key(|(_, sum)| Reverse(sum.idle_ns));
    all
}

fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::Launch => "launch",
        Cause::Sync => "sync",
        Cause::Copy => "copy",
        Cause::Call => "call",
        Cause::Host => "host",
        Cause::Queued => "queued",
        Cause::Unknown => "unknown",
        Cause::Unrecorded => "unrecorded",
    }
}

fn meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::Launch => "the launch came late: inside calls that launch kernels",
        Cause::Sync => "inside calls that wait for the GPU",
        Cause::Copy => "inside calls that copy or fill memory",
        Cause::Call => "inside other calls: allocating memory, loading code",
        Cause::Host => "inside no call: the program itself",
        Cause::Queued => "launched already, waiting for others or the GPU",
        Cause::Unknown => "no call in the file launched what came next",
        Cause::Unrecorded => "not recorded: stopped, records lost, or no process recorded",
    }
}

fn write_csv(gpus: &[GpuGaps]) -> Result<()> {
    output::write(|out| {
        output::write_csv_record(out, ["gpu", "by", "name", "gaps", "idle_ns", "longest_ns", "percent"])?;
        for gpu in gpus {
            let mut row = |by: &str, name: &str, gaps: u64, idle: u64, longest: Option<u64>, percent: f64| {
                let number = gpu.gpu.to_string();
                let longest = longest.map(|ns| ns.to_string()).unwrap_or_default();
                let (name, percent) = (csv_field(name), format!("{percent:.4}"));
                output::write_csv_record(
                    out,
                    [number.as_str(), by, &name, &gaps.to_string(), &idle.to_string(), &longest, &percent],
                )
            };
            let idle = gpu.idle_ns;
            row("gpu", "", gpu.gaps, idle, Some(gpu.longest_ns), percent(idle, gpu.span_ns))?;
            for bin in &gpu.bins {
                row(
                    "gap",
                    &time_range((bin.from_ns, bin.to_ns)),
                    bin.gaps,
                    bin.idle_ns,
                    None,
                    percent(bin.idle_ns, idle),
                )?;
            }
            for CauseTime { cause, gaps, idle_ns } in &gpu.causes {
                row("cause", word(*cause), *gaps, *idle_ns, None, percent(*idle_ns, idle))?;
            }
            for after in &gpu.after {
                let longest = Some(after.longest_ns);
                row("after", &after.name, after.gaps, after.idle_ns, longest, percent(after.idle_ns, idle))?;
            }
        }
        Ok(())
    })
}
