//! `rpd memory`: what is allocated, over time, and what is never freed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::memory::{self, MemoryPlace, ProcessMemory};
use rpd_postprocess::report::process_label::ProcessLabels;
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;
use rpd_postprocess::trim::window::span;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::chart::{bar, bar_room};
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::size;
use crate::output::table::{Align, Table};

/// Show the memory that a program allocates: over time, at its peak, and what is never freed
///
/// The numbers come from the arguments of calls such as hipMalloc, hipHostMalloc and hipFree. Memory that a framework keeps in a pool of its
/// own counts as allocated. Allocations from before the recording, or from outside of the region, are not known. Calls that allocate run nothing
/// on a GPU, so --gpu, --queue, --stream and --kernel do not serve here.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  pid        process, with its first session where several have one id
  where      device: on a GPU; host: pinned memory
  allocations, frees
             how many; frees of what is not known do not count
  allocated  sizes of all allocations together
  peak       most that was allocated at once; at: when that was first so, from
             the first call on
  left       sizes of what is never freed; the last table has the largest
  from       when a part of the run begins; most: allocated at once in it

{REGION_HELP}

Example:
  rpd memory trace.rpd
  rpd memory --start 50% trace.rpd
  rpd memory --json trace.rpd | jq '.[] | {{pid, place, peak_bytes}}'"))]
pub(crate) struct Memory {
    /// The trace
    file: PathBuf,
    /// Write a JSON array with an object for each process and place; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line and a line for each process and place
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

impl Memory {
    /// Writes the memory to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        if let Some(option) = self.region.first_about_operations() {
            note(format_args!(
                "{option} does not serve here: calls that allocate run nothing on a GPU; name a time, a marker, a process, a thread, a session or a rank"
            ));
            return Ok(ExitCode::from(2));
        }
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region).select(&trace, version)?;
        notes.show("adding up allocations");
        let found = memory::Memory::of((&trace, version), &selected)
            .with_context(|| format!("cannot read the calls of {name}"))?;
        let zero = span(&trace).map_or(0, |span| span.start_ns);
        drop((trace, notes));
        if found.unknown > 0 {
            note(format_args!(
                "{name}: {} left out: no address, no size or impossible times",
                counted(found.unknown, "call is", "calls are")
            ));
        }
        if self.json {
            output::write_json(&found.processes)?;
        } else if self.csv {
            write_csv(&found.processes)?;
        } else if found.processes.is_empty() {
            note(format_args!("{name} holds no such allocations; rpd top --by api shows what was called"));
        } else {
            output::write(|out| write_tables(out, &found.processes, zero, output::line_width()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn word(place: MemoryPlace) -> &'static str {
    match place {
        MemoryPlace::Device => "device",
        MemoryPlace::Host => "host",
    }
}

fn write_tables(
    out: &mut impl Write,
    processes: &[ProcessMemory],
    zero: i64,
    room: Option<usize>,
) -> io::Result<()> {
    use Align::{Left, Right};
    let at = |ns: i64| format!("{:+.6}s", ns.saturating_sub(zero) as f64 / 1e9);
    let mut table = Table::new(&[
        ("allocations", Right),
        ("frees", Right),
        ("allocated", Right),
        ("peak", Right),
        ("at", Right),
        ("left", Right),
        ("pid", Right),
        ("where", Left),
    ])
    .sparing(&["allocated", "frees"]);
    let labels = ProcessLabels::of(processes.iter().map(|of| (of.session, of.pid)));
    let is_any_ambiguous = processes.iter().any(|of| labels.is_ambiguous(of.pid));
    let pid = |of: &ProcessMemory| match labels.is_ambiguous(of.pid) {
        true => labels.process(of.session, of.pid),
        false => of.pid.to_string(),
    };
    for of in processes {
        table.row(vec![
            of.allocations.to_string(),
            of.freed.to_string(),
            size(of.allocated_bytes),
            size(of.peak_bytes),
            at(of.peak_ns),
            size(of.left_bytes),
            pid(of),
            word(of.place).to_string(),
        ]);
    }
    table.write(out, 0, room)?;
    for of in processes {
        let greatest = of.over_time.iter().map(|part| part.most_bytes).max().unwrap_or(0);
        let bars = bar_room(room, 32);
        let mut table = Table::new(&[("from", Right), ("most", Right), ("", Left)]);
        for part in &of.over_time {
            table.row(vec![
                at(part.start_ns),
                size(part.most_bytes),
                bar(part.most_bytes.into(), greatest.into(), bars),
            ]);
        }
        writeln!(out, "\n{}, {}", labels.process(of.session, of.pid), word(of.place))?;
        table.write(out, 0, room)?;
    }
    let mut table = Table::new(&[
        ("never freed", Right),
        ("at", Right),
        ("pid", Right),
        ("tid", Right),
        ("address", Right),
        ("function", Left),
    ])
    .sparing(if is_any_ambiguous { &["tid"] } else { &["pid", "tid"] });
    for of in processes {
        for left in &of.largest_left {
            table.row(vec![
                size(left.bytes),
                at(left.time_ns),
                pid(of),
                left.tid.to_string(),
                left.address.clone(),
                left.function.clone(),
            ]);
        }
    }
    if table.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    table.write(out, 0, room)
}

fn write_csv(processes: &[ProcessMemory]) -> Result<()> {
    output::write(|out| {
        let header = [
            "pid",
            "session",
            "where",
            "allocations",
            "allocated_bytes",
            "freed",
            "freed_bytes",
            "unmatched_frees",
            "peak_bytes",
            "peak_ns",
            "left",
            "left_bytes",
        ];
        output::write_csv_record(out, header)?;
        for of in processes {
            output::write_csv_record(
                out,
                [
                    of.pid.to_string(),
                    of.session.to_string(),
                    word(of.place).to_string(),
                    of.allocations.to_string(),
                    of.allocated_bytes.to_string(),
                    of.freed.to_string(),
                    of.freed_bytes.to_string(),
                    of.unmatched_frees.to_string(),
                    of.peak_bytes.to_string(),
                    of.peak_ns.to_string(),
                    of.left.to_string(),
                    of.left_bytes.to_string(),
                ],
            )?;
        }
        Ok(())
    })
}
