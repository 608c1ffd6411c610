//! `rpd top`: where GPU time goes.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rpd_escape::csv_field;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::markers::MarkerGpuTime;
use rpd_postprocess::report::rank_by::RankBy;
use rpd_postprocess::report::ranking::{Counted, NameGroup, Ranking};
use rpd_postprocess::report::utilisation::{GpuUtilisation, Utilisation};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// Show where GPU time goes: kernels and copies by total time
///
/// Operations are grouped by name, or by type where they have none (copies); calls by function, markers by text; or operations by where
/// they ran and who launched them. Below is how busy each GPU was, which rpd gaps explains. Dispatches of
/// instrumented kernels (`rpd probe -i`) are left out, as they take longer than the program's own, and barriers, as a GPU that waits does
/// no work.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  calls    how many
  total    sum of their durations; of calls and markers one inside another of its
           name counts once; operations that overlap count each
  self     for calls: without the calls inside them on their thread; for markers:
           without the markers inside; where two cross, the later one has the time
           from its begin on
  gpu, own for markers: time in which the GPU was busy with what was launched
           in them, and the part that was launched in no marker inside, as
           rpd markers has it
  average, min, max
           durations; a narrow terminal shows as many as have room
  p50, p90, p99
           --percentiles: durations that so many percent do not exceed
  replaced dispatches that ran another kernel in the place of this one, which
           rpd replacements compares; not shown where there are none, and
           without those of instrumented kernels
  %        share of all time (of all self time): adds up to 100
  name     or GPU, queue, stream, rank, session, thread; cut in the middle to the width of the terminal, or COLUMNS, but
           never so that two become equal; whole in a pipe
  gpu      in the second table, which --json and --csv leave to rpd gaps
  span     from its first start to its last end
  busy     time in which at least one operation ran; span without it is idle
  %        share of busy in the span
  longest  gap in which none ran, and the operation that followed

Control characters of names are escaped; --json has them exactly.

{REGION_HELP}

Example:
  rpd top -n 10 trace.rpd
  rpd top --by api trace.rpd
  rpd top --by stream --percentiles --in 'step 3' trace.rpd
  rpd top --csv trace.rpd > top.csv"))]
pub(crate) struct Top {
    /// The trace
    file: PathBuf,
    /// Only kernels or copies; the calls of the program or its markers instead; or what the GPU did by where and by whom
    #[arg(long, value_name = "WHAT", value_enum)]
    by: Option<What>,
    /// Count dispatches of instrumented kernels too
    #[arg(long)]
    instrumented: bool,
    /// Show the durations that 50, 90 and 99 percent do not exceed
    #[arg(long)]
    percentiles: bool,
    /// Show the first N rows only [default: 20 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
    /// Write a JSON array; times in nanoseconds
    #[arg(long, conflicts_with_all = ["csv", "wide"])]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long, conflicts_with = "wide")]
    csv: bool,
    /// Do not shorten names to the width of the terminal (in a pipe they are not)
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// [`RankBy`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Kernels, by name
    Kernel,
    /// Calls, by function
    Api,
    /// Copies, by direction
    Copy,
    /// Markers, by text
    Marker,
    /// Operations, by stream
    Stream,
    /// Operations, by queue
    Queue,
    /// Operations, by GPU
    Gpu,
    /// Operations, by rank
    Rank,
    /// Operations, by session
    Session,
    /// Operations, by the thread that launched them
    Thread,
}

impl From<What> for RankBy {
    fn from(what: What) -> RankBy {
        match what {
            What::Kernel => RankBy::Kernel,
            What::Api => RankBy::Api,
            What::Copy => RankBy::Copy,
            What::Marker => RankBy::Marker,
            What::Stream => RankBy::Stream,
            What::Queue => RankBy::Queue,
            What::Gpu => RankBy::Gpu,
            What::Rank => RankBy::Rank,
            What::Session => RankBy::Session,
            What::Thread => RankBy::Thread,
        }
    }
}

/// Rows of a table for people when nothing else is asked for.
const SCREENFUL: usize = 20;

impl Top {
    /// Writes the ranking to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (name, by) = (self.file.display(), self.by.map_or(RankBy::Operation, RankBy::from));
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let (one, many) = by.noun();
        let selected = Region::from(self.region.clone()).select(&trace, version)?;
        let counted_too = Counted {
            instrumented: self.instrumented,
            percentiles: self.percentiles,
            gpu_times: by == RankBy::Marker,
        };
        notes.show("adding up durations");
        let mut ranking = Ranking::of((&trace, version), by, &selected, counted_too)
            .with_context(|| format!("cannot read the {many} of {name}"))?;
        let is_table = !self.json && !self.csv;
        let (gpus, left_out) = match is_table && ranking.count > 0 && !by.nests() {
            true => {
                notes.show("adding up what the GPUs did");
                let found = Utilisation::of(&trace, &selected)
                    .with_context(|| format!("cannot read the operations of {name}"))?;
                (found.gpus, found.left_out.impossible)
            }
            false => (Vec::new(), ranking.left_out_of_gpu.impossible),
        };
        drop(notes);
        if ranking.impossible > 0 {
            let what = if by.is_place() { "times or places" } else { "times" };
            note(format_args!(
                "{name}: {} left out: impossible {what}, which rpd check lists",
                counted(ranking.impossible, &format!("{one} is"), &format!("{many} are"))
            ));
        }
        if left_out > 0 && (by.nests() || left_out != ranking.impossible) {
            note(format_args!(
                "{name}: {} in no GPU's time: impossible times or places, which rpd check lists",
                counted(left_out, "operation is", "operations are")
            ));
        }
        if ranking.nameless > 0 {
            note(format_args!(
                "{name}: {} a name that is not in the file",
                counted(ranking.nameless, &format!("{one} has"), &format!("{many} have"))
            ));
        }
        if ranking.instrumented > 0 {
            note(format_args!(
                "{name}: {} left out: they ran instrumented kernels; --instrumented counts them",
                counted(ranking.instrumented, "dispatch is", "dispatches are")
            ));
        }
        if ranking.barriers > 0 {
            note(format_args!(
                "{name}: {} left out: a GPU that waits does no work",
                counted(ranking.barriers, "barrier is", "barriers are")
            ));
        }
        let most = self.rows.map_or(if is_table { SCREENFUL } else { usize::MAX }, NonZeroUsize::get);
        if self.json {
            output::write_json_rows(ranking.by_ref().take(most))?;
        } else if self.csv {
            write_csv((by, self.percentiles), ranking.by_ref().take(most))?;
        } else if ranking.count == 0 {
            if ranking.instrumented == 0 {
                note(self.region.nothing(&self.file, (&trace, version), many)?);
            }
        } else {
            let groups = ranking.by_ref().take(most).collect::<Result<Vec<NameGroup>>>()?;
            let room = if self.wide { None } else { output::line_width() };
            write_table((by, self.percentiles), &groups, &gpus, room)?;
            let replaced: u64 = groups.iter().map(|row| row.replaced).sum();
            if replaced > 0 {
                note(format_args!(
                    "{} another kernel in the place of the program's own: rpd replacements {name}",
                    counted(replaced, "dispatch ran", "dispatches ran")
                ));
            }
            let rest = ranking.count - groups.len() as u64;
            if rest > 0 {
                let shown: f64 = groups.iter().map(|row| row.percent).sum();
                let percent = if shown > 0.0 { (100.0 - shown).max(0.0) } else { 0.0 };
                note(format_args!(
                    "{} with {percent:.1} % of the time not shown; -n N shows more",
                    if by.is_place() { counted(rest, "row", "rows") } else { counted(rest, "name", "names") }
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(
    (by, percentiles): (RankBy, bool),
    groups: &[NameGroup],
    gpus: &[GpuUtilisation],
    room: Option<usize>,
) -> Result<()> {
    use Align::{Left, Right};
    let mut columns = vec![
        ("calls", Right),
        ("total", Right),
        ("self", Right),
        ("gpu", Right),
        ("own", Right),
        ("average", Right),
        ("min", Right),
        ("max", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("replaced", Right),
        ("%", Right),
        ("name", Left),
    ];
    let any_replaced = groups.iter().any(|row| row.replaced > 0);
    columns.retain(|(title, _)| match *title {
        "self" => by.nests(),
        "gpu" | "own" => by == RankBy::Marker,
        "replaced" => any_replaced,
        "p50" | "p90" | "p99" => percentiles,
        _ => true,
    });
    let mut table = Table::new(&columns).sparing(&["min", "max", "average", "own", "p90", "p50"]);
    for group in groups {
        let mut cells = vec![group.calls.to_string(), duration(group.total_ns as f64)];
        cells.extend(group.self_ns.map(|ns| duration(ns as f64)));
        if let Some(MarkerGpuTime { gpu_ns, gpu_own_ns }) = group.gpu {
            cells.extend([gpu_ns, gpu_own_ns].map(|ns| duration(ns as f64)));
        }
        cells.extend([
            duration(group.average_ns),
            duration(group.min_ns as f64),
            duration(group.max_ns as f64),
        ]);
        if let Some(found) = group.percentiles {
            cells.extend([found.p50_ns, found.p90_ns, found.p99_ns].map(|ns| duration(ns as f64)));
        }
        cells.extend(any_replaced.then(|| group.replaced.to_string()));
        cells.extend([format!("{:.1}", group.percent), group.name.clone()]);
        table.row(cells);
    }
    output::write(|out| {
        table.write(out, 0, room)?;
        if gpus.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        busy_table(gpus).write(out, 0, room)
    })
}

/// How busy each GPU was.
fn busy_table(gpus: &[GpuUtilisation]) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("gpu", Right),
        ("span", Right),
        ("busy", Right),
        ("%", Right),
        ("idle", Right),
        ("longest", Right),
        ("followed by", Left),
    ])
    .sparing(&["span", "idle"]);
    for gpu in gpus {
        let percent = if gpu.span_ns == 0 { 0.0 } else { 100.0 * gpu.busy_ns as f64 / gpu.span_ns as f64 };
        let (longest, before) = match &gpu.longest {
            Some(gap) => (duration(gap.idle_ns as f64), gap.before.clone()),
            None => (String::new(), "(no gap)".to_string()),
        };
        table.row(vec![
            gpu.gpu.to_string(),
            duration(gpu.span_ns as f64),
            duration(gpu.busy_ns as f64),
            format!("{percent:.1}"),
            duration(gpu.idle_ns as f64),
            longest,
            before,
        ]);
    }
    table
}

fn write_csv((by, percentiles): (RankBy, bool), rows: impl Iterator<Item = Result<NameGroup>>) -> Result<()> {
    let mut header = vec![
        "name",
        "calls",
        "total_ns",
        "self_ns",
        "gpu_ns",
        "gpu_own_ns",
        "average_ns",
        "min_ns",
        "max_ns",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "percent",
    ];
    header.retain(|title| match *title {
        "self_ns" => by.nests(),
        "gpu_ns" | "gpu_own_ns" => by == RankBy::Marker,
        "p50_ns" | "p90_ns" | "p99_ns" => percentiles,
        _ => true,
    });
    output::write_csv_rows(&header, rows.map(|row| Ok(record(&row?))))
}

fn record(group: &NameGroup) -> Vec<String> {
    let mut record =
        vec![csv_field(&group.name).into_owned(), group.calls.to_string(), group.total_ns.to_string()];
    record.extend(group.self_ns.map(|ns| ns.to_string()));
    if let Some(MarkerGpuTime { gpu_ns, gpu_own_ns }) = group.gpu {
        record.extend([gpu_ns, gpu_own_ns].map(|ns| ns.to_string()));
    }
    record.extend([format!("{:.3}", group.average_ns), group.min_ns.to_string(), group.max_ns.to_string()]);
    if let Some(found) = group.percentiles {
        record.extend([found.p50_ns, found.p90_ns, found.p99_ns].map(|ns| ns.to_string()));
    }
    record.push(format!("{:.4}", group.percent));
    record
}
