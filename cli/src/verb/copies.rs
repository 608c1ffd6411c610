//! `rpd copies`: what is copied, in which sizes, how fast.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_escape::csv_field;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::copies::{self, CopyKind, CopySums};
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::{duration, size, size_range};
use crate::output::table::{Align, Table};

/// Show copies and fills by kind and size, and how fast they are
///
/// Many small copies are slow by their number: each takes some microseconds, whatever it moves. Sizes are those that the calls say; a call
/// that became several copies shares its bytes out.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  copies   how many
  bytes    what they moved, as far as calls say it
  total    sum of their durations
  average  of the durations
  GB/s     bytes over the time of those whose sizes are known; GB is 10^9 bytes
  best     GB/s of the fastest one
  %        share of the time of all copies and fills
  kind     type of the operations; below it those of each size of one copy

{REGION_HELP}

Example:
  rpd copies trace.rpd
  rpd copies --in 'step 3' --gpu 0 trace.rpd
  rpd copies --json trace.rpd | jq '.[] | {{kind, gb_per_s}}'"))]
pub(crate) struct Copies {
    /// The trace
    file: PathBuf,
    /// Write a JSON array with an object for each kind; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line, and a line for each kind and size; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

impl Copies {
    /// Writes the copies to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region.clone()).select(&trace, version)?;
        notes.show("adding up copies");
        let found = copies::Copies::of(&trace, version, &selected)
            .with_context(|| format!("cannot read the copies of {name}"))?;
        let nothing = match found.kinds.is_empty() {
            true => Some(self.region.nothing(&self.file, (&trace, version), "copies")?),
            false => None,
        };
        drop((trace, notes));
        note_left_out(&self.file, found.left_out);
        if self.json {
            output::write_json(&found.kinds)?;
        } else if self.csv {
            write_csv(&found.kinds)?;
        } else if let Some(nothing) = nothing {
            note(nothing);
        } else {
            write_table(&found.kinds)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn speed(rate: Option<f64>) -> String {
    rate.map(|rate| format!("{rate:.3}")).unwrap_or_default()
}

fn write_table(kinds: &[CopyKind]) -> Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("copies", Right),
        ("bytes", Right),
        ("total", Right),
        ("average", Right),
        ("GB/s", Right),
        ("best", Right),
        ("%", Right),
        ("kind, size", Left),
    ])
    .sparing(&["best", "average", "%"]);
    let all: u128 = kinds.iter().map(|kind| u128::from(kind.all.total_ns)).sum();
    let mut row = |sums: &CopySums, of: String| {
        let bytes = if sums.sized_ns == 0 && sums.bytes == 0 { String::new() } else { size(sums.bytes) };
        let percent = if all == 0 { 0.0 } else { 100.0 * sums.total_ns as f64 / all as f64 };
        table.row(vec![
            sums.copies.to_string(),
            bytes,
            duration(sums.total_ns as f64),
            duration(sums.total_ns as f64 / sums.copies.max(1) as f64),
            speed(sums.gb_per_s),
            speed(sums.best_gb_per_s),
            format!("{percent:.1}"),
            of,
        ]);
    };
    for kind in kinds {
        row(&kind.all, kind.kind.clone());
        for of_size in &kind.sizes {
            row(&of_size.all, format!("  {}", size_range((of_size.from_bytes, of_size.to_bytes))));
        }
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

fn write_csv(kinds: &[CopyKind]) -> Result<()> {
    output::write(|out| {
        let header = [
            "kind",
            "from_bytes",
            "to_bytes",
            "copies",
            "bytes",
            "total_ns",
            "sized_ns",
            "gb_per_s",
            "best_gb_per_s",
        ];
        output::write_csv_record(out, header)?;
        for kind in kinds {
            for of_size in &kind.sizes {
                let CopySums { copies, bytes, total_ns, sized_ns, gb_per_s, best_gb_per_s } = of_size.all;
                let optional =
                    |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
                let rate = |rate: Option<f64>| rate.map(|rate| format!("{rate:.6}")).unwrap_or_default();
                output::write_csv_record(
                    out,
                    [
                        csv_field(&kind.kind).into_owned(),
                        optional(of_size.from_bytes),
                        optional(of_size.to_bytes),
                        copies.to_string(),
                        bytes.to_string(),
                        total_ns.to_string(),
                        sized_ns.to_string(),
                        rate(gb_per_s),
                        rate(best_gb_per_s),
                    ],
                )?;
            }
        }
        Ok(())
    })
}
