//! `rpd queues`: how full the queues are, and how long operations wait.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::queues::{self, Queue};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::chart::{bar, bar_room};
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::{duration, time_range};
use crate::output::table::{Align, Table};

/// Show how full each queue is, and how long operations wait from launch to start
///
/// A full queue hides the time that launches take. In an empty one each operation starts as late as its launch, and the delay is what the
/// runtime and the GPU take to start it: many small kernels lose most of their time in this way.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  gpu, queue  as the trace has them
  operations  how many
  depth       operations in the queue on average, from the begin of the call
              that launched one to its end; most: at most at once
  p50, p90    delays from the end of the launching call to the start of the
              operation that so many percent do not exceed; longest: of all
  at once     operations whose queue was empty when their launch returned
  start       median of their delays: what starting an operation takes
  delay       below, delays of all queues by length

{REGION_HELP}

Example:
  rpd queues trace.rpd
  rpd queues --gpu 0 --in 'step 3' trace.rpd
  rpd queues --json trace.rpd | jq '.[] | {{gpu, queue, depth_mean}}'"))]
pub(crate) struct Queues {
    /// The trace
    file: PathBuf,
    /// Write a JSON array with an object for each queue; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line and a line for each queue; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

impl Queues {
    /// Writes the queues to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region.clone()).select(&trace, version)?;
        notes.show("looking into the queues");
        let found = queues::Queues::of(&trace, &selected)
            .with_context(|| format!("cannot read the operations of {name}"))?;
        let nothing = match found.queues.is_empty() {
            true => Some(self.region.nothing(&self.file, (&trace, version), "GPU operations")?),
            false => None,
        };
        drop((trace, notes));
        note_left_out(&self.file, found.left_out);
        if found.far_launches > 0 {
            note(format_args!(
                "{}: {} left out: days away from nearly all calls; rpd check lists such calls",
                self.file.display(),
                counted(found.far_launches, "launch is", "launches are"),
            ));
        }
        if self.json {
            output::write_json(&found.queues)?;
        } else if self.csv {
            write_csv(&found.queues)?;
        } else if let Some(nothing) = nothing {
            note(nothing);
        } else {
            let room = output::line_width();
            output::write(|out| {
                queue_table(&found.queues).write(out, 0, room)?;
                let delays = delay_table(&found.queues, room);
                if delays.is_empty() {
                    return Ok(());
                }
                writeln!(out)?;
                delays.write(out, 0, room)
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn queue_table(queues: &[Queue]) -> Table {
    use Align::Right;
    let mut table = Table::new(&[
        ("gpu", Right),
        ("queue", Right),
        ("operations", Right),
        ("depth", Right),
        ("most", Right),
        ("p50", Right),
        ("p90", Right),
        ("longest", Right),
        ("at once", Right),
        ("start", Right),
    ])
    .sparing(&["operations", "p90", "most"]);
    for queue in queues {
        let time = |ns: u64, of: u64| if of == 0 { String::new() } else { duration(ns as f64) };
        let (delay, empty) = (&queue.delay, &queue.empty);
        table.row(vec![
            queue.gpu.to_string(),
            queue.queue.to_string(),
            queue.operations.to_string(),
            format!("{:.2}", queue.depth_mean),
            queue.depth_max.to_string(),
            time(delay.p50_ns, delay.operations),
            time(delay.p90_ns, delay.operations),
            time(delay.max_ns, delay.operations),
            empty.operations.to_string(),
            time(empty.p50_ns, empty.operations),
        ]);
    }
    table
}

/// The delays of all queues by length.
fn delay_table(queues: &[Queue], room: Option<usize>) -> Table {
    use Align::{Left, Right};
    let mut bins: BTreeMap<(u64, Option<u64>), u64> = BTreeMap::new();
    for bin in queues.iter().flat_map(|queue| &queue.bins) {
        *bins.entry((bin.from_ns, bin.to_ns)).or_default() += bin.operations;
    }
    let all: u64 = bins.values().sum();
    let greatest = bins.values().max().copied().unwrap_or(0);
    let widest = bins.keys().map(|range| time_range(*range).chars().count()).max().unwrap_or(0);
    let bars = bar_room(room, widest + 25);
    let mut table = Table::new(&[("delay", Left), ("operations", Right), ("%", Right), ("", Left)]);
    for (range, operations) in bins {
        table.row(vec![
            time_range(range),
            operations.to_string(),
            format!("{:.1}", 100.0 * operations as f64 / all.max(1) as f64),
            bar(operations.into(), greatest.into(), bars),
        ]);
    }
    table
}

fn write_csv(queues: &[Queue]) -> Result<()> {
    output::write(|out| {
        let header = [
            "gpu",
            "queue",
            "operations",
            "span_ns",
            "depth_mean",
            "depth_max",
            "delay_operations",
            "delay_total_ns",
            "delay_p50_ns",
            "delay_p90_ns",
            "delay_max_ns",
            "empty_operations",
            "empty_total_ns",
            "empty_p50_ns",
            "empty_p90_ns",
            "empty_max_ns",
        ];
        output::write_csv_record(out, header)?;
        for queue in queues {
            let mut record = vec![
                queue.gpu.to_string(),
                queue.queue.to_string(),
                queue.operations.to_string(),
                queue.span_ns.to_string(),
                format!("{:.6}", queue.depth_mean),
                queue.depth_max.to_string(),
            ];
            for delays in [&queue.delay, &queue.empty] {
                let numbers =
                    [delays.operations, delays.total_ns, delays.p50_ns, delays.p90_ns, delays.max_ns];
                record.extend(numbers.map(|number| number.to_string()));
            }
            output::write_csv_record(out, record)?;
        }
        Ok(())
    })
}
