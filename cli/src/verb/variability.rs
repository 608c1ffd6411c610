//! `rpd variability`: how much the durations of a kernel differ where it runs between the same operations.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_escape::csv_field;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::variability::{self, KernelSpread, MOST_BEFORE, Neighbourhood};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::chart::columns;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// Show which kernels take different times behind the same operations
///
/// A row is a kernel with the names of the operations that began in front of it on its GPU: calls with other sizes or at other places of a
/// program are rows of their own. So a row seldom varies because its calls do different work. Rows that vary by most time come first.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  calls    dispatches of the kernel behind these operations
  total    sum of their durations; average, min, p50, p90, p99, max: durations
  cv       standard deviation in percent of the average
  varying  by how much all of them together took longer than the shortest: what
           there is to be won at most if each were as fast as the fastest
  %        share of varying in the total time of all kernels
  outliers calls at least --outlier standard deviations from the average
  spread   histogram of durations from min to max; each step is longer by the same factor
  kernel   its name; below it the operations in front of it, the earliest first

{REGION_HELP}

Example:
  rpd variability trace.rpd
  rpd variability --before 0 trace.rpd      # by the kernel's name alone
  rpd variability --kernel '^Cijk' --in 'step 3' trace.rpd"))]
pub(crate) struct Variability {
    /// The trace
    file: PathBuf,
    /// Show N rows at most [default: 20 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
    /// Tell calls apart by the N operations in front of them, 8 at most
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = before)]
    before: usize,
    /// How many standard deviations from the average make a call an outlier
    #[arg(long, value_name = "Z", default_value_t = 3.0, value_parser = outlier)]
    outlier: f64,
    /// Write a JSON array; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// Rows of a table when nothing else is asked for.
const SCREENFUL: usize = 20;

fn before(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number <= MOST_BEFORE);
    number.ok_or_else(|| format!("a number from 0 to {MOST_BEFORE} is needed"))
}

fn outlier(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above 0 is needed".to_string())
}

impl Variability {
    /// Writes the groups to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region).select(&trace, version)?;
        notes.show("comparing the calls of kernels");
        let by = Neighbourhood { before: self.before, outlier: self.outlier };
        let mut found = variability::Variability::of(&trace, &selected, by)
            .with_context(|| format!("cannot read the operations of {name}"))?;
        drop((trace, notes));
        note_left_out(&self.file, found.left_out);
        if found.instrumented > 0 {
            let left = counted(found.instrumented, "dispatch is", "dispatches are");
            note(format_args!("{name}: {left} left out: they ran instrumented kernels"));
        }
        let is_table = !self.json && !self.csv;
        let most = self.rows.map_or(if is_table { SCREENFUL } else { usize::MAX }, NonZeroUsize::get);
        if self.json {
            output::write_json_rows(found.take(most))?;
        } else if self.csv {
            output::write_csv_rows(&HEADER, found.take(most).map(|group| Ok(record(&group?))))?;
        } else if found.count == 0 {
            note(format_args!("{name} holds no such kernels; rpd info shows what it holds"));
        } else {
            let shown = found.by_ref().take(most).collect::<Result<Vec<KernelSpread>>>()?;
            write_table(&shown)?;
            let hidden = found.count - shown.len() as u64;
            if hidden > 0 {
                note(format_args!("{} not shown; -n N shows more", counted(hidden, "row", "rows")));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(groups: &[KernelSpread]) -> Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("calls", Right),
        ("total", Right),
        ("average", Right),
        ("min", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("max", Right),
        ("cv", Right),
        ("varying", Right),
        ("%", Right),
        ("outliers", Right),
        ("spread", Left),
        ("kernel", Left),
    ])
    .sparing(&["p90", "p99", "average", "total", "outliers", "p50", "cv", "%", "min"]);
    let time = |ns: u64| duration(ns as f64);
    for group in groups {
        table.row(vec![
            group.calls.to_string(),
            time(group.total_ns),
            duration(group.average_ns),
            time(group.min_ns),
            time(group.percentiles.p50_ns),
            time(group.percentiles.p90_ns),
            time(group.percentiles.p99_ns),
            time(group.max_ns),
            format!("{:.1}%", group.deviation_percent),
            time(group.varying_ns),
            format!("{:.1}", group.varying_percent),
            group.outliers.to_string(),
            columns(&group.histogram),
            group.name.to_string(),
        ]);
        for (at, name) in group.after.iter().enumerate() {
            table.below(&format!("{} {name}", if at == 0 { "after" } else { "then " }));
        }
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

/// Columns of comma-separated values.
const HEADER: [&str; 16] = [
    "name",
    "after",
    "calls",
    "total_ns",
    "average_ns",
    "min_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "max_ns",
    "max_start_ns",
    "deviation_ns",
    "deviation_percent",
    "varying_ns",
    "varying_percent",
    "outliers",
];

fn record(group: &KernelSpread) -> Vec<String> {
    vec![
        csv_field(&group.name).into_owned(),
        csv_field(&group.after.join(", ")).into_owned(),
        group.calls.to_string(),
        group.total_ns.to_string(),
        format!("{:.1}", group.average_ns),
        group.min_ns.to_string(),
        group.percentiles.p50_ns.to_string(),
        group.percentiles.p90_ns.to_string(),
        group.percentiles.p99_ns.to_string(),
        group.max_ns.to_string(),
        group.max_start_ns.to_string(),
        format!("{:.1}", group.deviation_ns),
        format!("{:.4}", group.deviation_percent),
        group.varying_ns.to_string(),
        format!("{:.4}", group.varying_percent),
        group.outliers.to_string(),
    ]
}
