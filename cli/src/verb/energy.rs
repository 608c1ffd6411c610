//! `rpd energy`: joules by kernel, marker, rank and GPU.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rpd_escape::{csv_field, escape};
use rpd_postprocess::report::energy::{self, EnergyRow, GpuEnergy, PowerSensor};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::{duration, joules};
use crate::output::table::{Align, Table};

/// Show how many joules kernels, markers and ranks took
///
/// The trace must have been recorded with --monitor energy, or power where the GPU has no counter of joules. The idle
/// floor, which is what the GPU takes while it runs nothing, is taken off. The rest is shared out among the operations that ran meanwhile,
/// by time.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  J          energy above the idle floor; for a marker with those inside it
  own        for a marker: the part of J that no marker inside it has
  %          share of J in what the operations of all GPUs took
  each       J of one operation; for a marker, of one range
  W          J over the time that the operations ran
  total      sum of their durations while a sensor was read
  calls      how many operations while their sensor was read; for a marker, how many ranges
  measured   percent of J from steps of the sensor in which nothing else ran;
             the rest was worked out by time

A row that ran for less than a step of the sensor of its GPU has no J. Of a row
of several GPUs, the time on each counts in steps of that GPU's sensor. Lines
below the table say what each GPU took as a whole, in all of the trace.

{REGION_HELP}

Example:
  rpd record --monitor energy -o trace.rpd -- ./train
  rpd energy trace.rpd
  rpd energy --by marker trace.rpd          # joules of a step are in `each`
  rpd energy --floor 45 --in 'step 3' trace.rpd"))]
pub(crate) struct Energy {
    /// The trace
    file: PathBuf,
    /// What a row is
    #[arg(long, value_name = "WHAT", default_value = "kernel")]
    by: By,
    /// Show N rows at most [default: 20 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
    /// Take so many watts for the idle floor of each GPU, in the place of what is read while it runs nothing
    #[arg(long, value_name = "WATTS", value_parser = watts)]
    floor: Option<f64>,
    /// Write JSON: an object with rows and gpus; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// See [`energy::EnergyBy`].
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Kernel,
    Marker,
    Rank,
    Gpu,
}

impl From<By> for energy::EnergyBy {
    fn from(by: By) -> energy::EnergyBy {
        match by {
            By::Kernel => energy::EnergyBy::Kernel,
            By::Marker => energy::EnergyBy::Marker,
            By::Rank => energy::EnergyBy::Rank,
            By::Gpu => energy::EnergyBy::Gpu,
        }
    }
}

/// Rows of a table when nothing else is asked for.
const SCREENFUL: usize = 20;

fn watts(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "a number of watts is needed, 0 or above".to_string())
}

impl Energy {
    /// Writes the rows to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = self.region.select(&trace, version)?;
        notes.show("sharing out the energy");
        let found = energy::Energy::of((&trace, version), &selected, self.by.into(), self.floor)
            .with_context(|| format!("cannot read the sensors and operations of {name}"))?;
        let nothing = match found.rows.is_empty() && !selected.is_everything() {
            true => Some(self.region.nothing(&self.file, (&trace, version), "GPU operations")?),
            false => None,
        };
        drop((trace, notes));
        note_left_out(&self.file, found.left_out);
        if found.gpus.is_empty() && found.is_read {
            note(format_args!(
                "{name}: no energy counter of a GPU changed while it was recorded, so there are no joules; record for longer, \
                 or read more often: --monitor energy:10ms"
            ));
        } else if found.gpus.is_empty() {
            note(format_args!(
                "{name} holds no readings of a GPU's energy or power; rpd record --monitor energy,power takes them"
            ));
        } else if found.unsampled > 0 {
            let left = counted(found.unsampled, "operation is", "operations are");
            note(format_args!("{name}: {left} left out: no sensor of their GPU was read meanwhile"));
        } else if let Some(nothing) = nothing {
            note(nothing);
        } else if found.rows.is_empty() {
            note(format_args!(
                "{name}: no operation was found, so that all energy counts as idle; rpd record --monitor has kernels and sensors in one file"
            ));
        }
        let is_table = !self.json && !self.csv;
        let most = self.rows.map_or(if is_table { SCREENFUL } else { usize::MAX }, NonZeroUsize::get);
        let shown = &found.rows[..found.rows.len().min(most)];
        let all: f64 = found.gpus.iter().map(|gpu| gpu.operations_joules).sum();
        if self.json {
            output::write_json(&serde_json::json!({ "rows": shown, "gpus": found.gpus }))?;
        } else if self.csv {
            output::write_csv_rows(&HEADER, shown.iter().map(|row| Ok(record(row))))?;
        } else if !found.gpus.is_empty() {
            write_table(shown, self.by, all)?;
            write_gpus(&found.gpus)?;
            let hidden = (found.rows.len() - shown.len()) as u64;
            if hidden > 0 {
                note(format_args!("{} not shown; -n N shows more", counted(hidden, "row", "rows")));
            }
            // The reason is nearly always the same.
            if let Some(refused) =
                shown.iter().find_map(|row| row.refused.as_ref().map(|why| (&row.name, why)))
            {
                note(format_args!("no J of {}: {}", escape(refused.0), refused.1));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(rows: &[EnergyRow], by: By, all: f64) -> Result<()> {
    use Align::{Left, Right};
    let is_marker = by == By::Marker;
    let columns = [
        ("J", Right),
        ("own", Right),
        ("%", Right),
        ("each", Right),
        ("W", Right),
        ("total", Right),
        ("calls", Right),
        ("measured", Right),
        (
            match by {
                By::Kernel => "kernel",
                By::Marker => "marker",
                By::Rank => "rank",
                By::Gpu => "GPU",
            },
            Left,
        ),
    ];
    let has = |name: &str| is_marker || name != "own";
    let shown: Vec<(&str, Align)> = columns.into_iter().filter(|(name, _)| has(name)).collect();
    let mut table = Table::new(&shown).sparing(&["each", "W", "calls", "own", "total"]);
    for row in rows {
        let calls = row.ranges.unwrap_or(row.operations);
        let text =
            |number: Option<f64>, text: &dyn Fn(f64) -> String| number.map_or_else(|| "-".to_string(), text);
        let percent = |joules: f64| format!("{:.1}", if all > 0.0 { 100.0 * joules / all } else { 0.0 });
        let mut cells = vec![text(row.joules, &joules)];
        if is_marker {
            cells.push(text(row.own_joules, &joules));
        }
        cells.extend([
            text(row.joules, &percent),
            text(row.joules.filter(|_| calls > 0), &|all| joules(all / calls as f64)),
            text(row.joules, &|all| format!("{:.1}", all / (row.gpu_ns as f64 / 1e9))),
            duration(row.gpu_ns as f64),
            calls.to_string(),
            text(row.measured_percent, &|percent| format!("{percent:.0}%")),
            format!("{}{}", "  ".repeat(row.depth), row.name),
        ]);
        table.row(cells);
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

fn write_gpus(gpus: &[GpuEnergy]) -> Result<()> {
    output::write(|out| {
        writeln!(out)?;
        for gpu in gpus {
            let seconds = gpu.measured_ns as f64 / 1e9;
            let sensor = match gpu.sensor {
                PowerSensor::Energy => "energy counter",
                PowerSensor::Power => "power sensor",
            };
            let idle = gpu.idle_watts.map_or_else(
                || "never idle for a whole step".to_string(),
                |watts| format!("idle floor {watts:.1} W"),
            );
            let watts = if seconds > 0.0 { gpu.joules / seconds } else { 0.0 };
            let (all, time) = (joules(gpu.joules), duration(gpu.measured_ns as f64));
            writeln!(out, "GPU {}: {all} J in {time}, {watts:.1} W", gpu.gpu)?;
            let (floor, operations) = (joules(gpu.idle_joules), joules(gpu.operations_joules));
            writeln!(out, "  {idle}: {floor} J; operations: {operations} J")?;
            writeln!(out, "  {sensor}, a step each {}", duration(gpu.step_ns as f64))?;
        }
        Ok(())
    })
}

/// Columns of comma-separated values.
const HEADER: [&str; 9] = [
    "name",
    "depth",
    "ranges",
    "operations",
    "gpu_ns",
    "joules",
    "own_joules",
    "measured_percent",
    "refused",
];

fn record(row: &EnergyRow) -> Vec<String> {
    let number = |number: Option<f64>| number.map(|number| format!("{number:.6}")).unwrap_or_default();
    vec![
        csv_field(&row.name).into_owned(),
        row.depth.to_string(),
        row.ranges.map(|ranges| ranges.to_string()).unwrap_or_default(),
        row.operations.to_string(),
        row.gpu_ns.to_string(),
        number(row.joules),
        number(row.own_joules),
        number(row.measured_percent),
        row.refused.clone().unwrap_or_default(),
    ]
}
