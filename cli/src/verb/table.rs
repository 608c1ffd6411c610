//! `rpd table`: what the ranges of a marker launched, with the columns of rocmProfileData's rpd2table.py.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_escape::csv_field;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::marker_table::{MarkerKernel, MarkerTable};
use rpd_postprocess::text::{counted, escape};
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::chart::bar;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table as Rows};

/// Show the kernels that ranges of markers launched, by marker, GPU and kernel
///
/// A range has the operations of the calls that its thread began while it was open, whenever they ran. An operation in two ranges of one
/// marker, one inside the other, counts twice. Without MARKER the table is of the whole trace. --csv has the columns of rocmProfileData's
/// rpd2table.py under their names there.
#[derive(Args)]
#[command(after_help = format!("\
Columns (those of --json and --csv in brackets):
  ranges   ranges of the marker that launched it (marker_count)
  calls    how often in all of them (kernel_count)
  total    sum of the durations (total_dur, ns); average, min, max: durations
           (avg_dur, min_dur, max_dur)
  %        share of total in that of the marker on the GPU (kernel_percentage)
  gpu      where it ran (gpuid)
  marker   the marker's text (marker_name), empty without MARKER
  kernel   its name (kernel_name); for copies and fills, their kind

{REGION_HELP}

Example:
  rpd table trace.rpd
  rpd table trace.rpd 'forward' 'backward'
  rpd table --csv trace.rpd 'step 3' > step.csv"))]
pub(crate) struct Table {
    /// The trace
    file: PathBuf,
    /// The whole text of a marker
    #[arg(value_name = "MARKER")]
    markers: Vec<String>,
    /// Show N rows at most [default: 30 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
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
const SCREENFUL: usize = 30;
/// Columns of a bar.
const BAR: usize = 10;

impl Table {
    /// Writes the table to standard output.
    ///
    /// # Errors
    /// When no marker has such a text, the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(mut self) -> Result<ExitCode> {
        let name = self.file.display();
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region).select(&trace, version)?;
        notes.show("adding up what markers launched");
        let mut seen = std::collections::HashSet::new();
        self.markers.retain(|marker| seen.insert(marker.clone()));
        let found = MarkerTable::of((&trace, version), &self.markers, &selected)
            .with_context(|| format!("cannot make a table of {name}"))?;
        drop((trace, notes));
        note_left_out(&self.file, found.left_out);
        if found.impossible > 0 {
            let left = counted(found.impossible, "marker is", "markers are");
            note(format_args!("{name}: {left} left out: impossible times, which rpd check lists"));
        }
        for absent in &found.absent {
            note(format_args!("{name}: no marker has the text {}", escape(absent)));
        }
        let is_table = !self.json && !self.csv;
        let most = self.rows.map_or(if is_table { SCREENFUL } else { usize::MAX }, NonZeroUsize::get);
        let shown = &found.rows[..found.rows.len().min(most)];
        if self.json {
            output::write_json(&shown)?;
        } else if self.csv {
            write_csv(shown)?;
        } else if found.rows.is_empty() {
            note(format_args!(
                "{name} holds no operations that such markers launched; rpd top shows what ran"
            ));
        } else {
            write_table(shown)?;
            if shown.len() < found.rows.len() {
                let hidden = counted((found.rows.len() - shown.len()) as u64, "row", "rows");
                note(format_args!("{hidden} not shown; -n N shows more"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(rows: &[MarkerKernel]) -> Result<()> {
    use Align::{Left, Right};
    let mut table = Rows::new(&[
        ("ranges", Right),
        ("calls", Right),
        ("total", Right),
        ("average", Right),
        ("min", Right),
        ("max", Right),
        ("%", Right),
        ("", Left),
        ("gpu", Right),
        ("marker", Left),
        ("kernel", Left),
    ])
    .sparing(&["", "max", "min", "ranges", "average"]);
    let time = |ns: u64| duration(ns as f64);
    for row in rows {
        table.row(vec![
            row.marker_count.to_string(),
            row.kernel_count.to_string(),
            time(row.total_dur),
            duration(row.avg_dur),
            time(row.min_dur),
            time(row.max_dur),
            format!("{:.1}", row.kernel_percentage),
            bar((row.kernel_percentage * 100.0) as u128, 10_000, BAR),
            row.gpuid.to_string(),
            row.marker_name.chars().take(40).collect(),
            row.kernel_name.clone(),
        ]);
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

fn write_csv(rows: &[MarkerKernel]) -> Result<()> {
    output::write(|out| {
        let header = [
            "marker_name",
            "gpuid",
            "kernel_name",
            "marker_count",
            "kernel_count",
            "total_dur",
            "avg_dur",
            "min_dur",
            "max_dur",
            "kernel_percentage",
        ];
        output::write_csv_record(out, header)?;
        for row in rows {
            output::write_csv_record(
                out,
                [
                    csv_field(&row.marker_name).into_owned(),
                    row.gpuid.to_string(),
                    csv_field(&row.kernel_name).into_owned(),
                    row.marker_count.to_string(),
                    row.kernel_count.to_string(),
                    row.total_dur.to_string(),
                    format!("{:?}", row.avg_dur),
                    row.min_dur.to_string(),
                    row.max_dur.to_string(),
                    format!("{:?}", row.kernel_percentage),
                ],
            )?;
        }
        Ok(())
    })
}
