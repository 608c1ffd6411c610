//! `rpd overlap`: how much of communication and copies hides behind computing.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use regex::Regex;
use rpd_postprocess::pattern::pattern;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::overlap::{self, COMMUNICATION, GpuOverlap};
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// Show what each GPU does: computing, communicating, copying, nothing; and what hides behind what
///
/// Times are those in which at least one operation of the kind ran, on any queue: operations that overlap count once. Communication
/// that runs while the GPU computes costs no time; exposed communication does.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  what     compute        kernels that do not communicate, and operations
                          whose type rpd does not know
           communication  kernels whose names match --communication
           copies         copies and fills
           idle           nothing ran
           span           from the GPU's first start to its last end
  operations
           how many
  total    time in which at least one of them ran
  hidden   the part of total in which computing went on; for copies:
           computing or communication
  exposed  the part in which it did not; all rows add up to the span
  %        share of exposed in the span: adds up to 100

{REGION_HELP}

Example:
  rpd overlap trace.rpd
  rpd overlap --communication '^nccl|my_allreduce' trace.rpd
  rpd overlap --csv trace.rpd > overlap.csv"))]
pub(crate) struct Overlap {
    /// The trace
    file: PathBuf,
    /// Kernels whose names match communicate [default: those of NCCL, RCCL and MSCCL++, and all-reduce and the like by name]
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    communication: Option<Regex>,
    /// Write a JSON array with an object for each GPU; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line and a line for each GPU; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

impl Overlap {
    /// Writes the times to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let communication = match self.communication {
            Some(communication) => communication,
            None => Regex::new(COMMUNICATION)?,
        };
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region.clone()).select(&trace, version)?;
        notes.show("adding up what the GPUs did");
        let found = overlap::Overlap::of(&trace, &selected, &communication)
            .with_context(|| format!("cannot read the operations of {name}"))?;
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
            write_table(&found.gpus)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(gpus: &[GpuOverlap]) -> Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("gpu", Right),
        ("operations", Right),
        ("total", Right),
        ("hidden", Right),
        ("exposed", Right),
        ("%", Right),
        ("what", Left),
    ])
    .sparing(&["operations"]);
    for gpu in gpus {
        let time = |ns: u64| duration(ns as f64);
        let mut row = |operations: Option<u64>, total: u64, hidden: Option<u64>, exposed: u64, what: &str| {
            let percent = if gpu.span_ns == 0 { 0.0 } else { 100.0 * exposed as f64 / gpu.span_ns as f64 };
            table.row(vec![
                gpu.gpu.to_string(),
                operations.map(|number| number.to_string()).unwrap_or_default(),
                time(total),
                hidden.map(time).unwrap_or_default(),
                time(exposed),
                format!("{percent:.1}"),
                what.to_string(),
            ]);
        };
        row(Some(gpu.compute_operations), gpu.compute_ns, None, gpu.compute_ns, "compute");
        row(
            Some(gpu.communication_operations),
            gpu.communication_ns,
            Some(gpu.hidden_communication_ns),
            gpu.exposed_communication_ns,
            "communication",
        );
        row(
            Some(gpu.copies_operations),
            gpu.copies_ns,
            Some(gpu.hidden_copies_ns),
            gpu.exposed_copies_ns,
            "copies",
        );
        row(None, gpu.idle_ns, None, gpu.idle_ns, "idle");
        row(Some(gpu.operations), gpu.span_ns, None, gpu.span_ns, "span");
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

fn write_csv(gpus: &[GpuOverlap]) -> Result<()> {
    output::write(|out| {
        output::write_csv_record(
            out,
            [
                "gpu",
                "operations",
                "start_ns",
                "end_ns",
                "span_ns",
                "busy_ns",
                "idle_ns",
                "compute_operations",
                "compute_ns",
                "communication_operations",
                "communication_ns",
                "hidden_communication_ns",
                "exposed_communication_ns",
                "copies_operations",
                "copies_ns",
                "hidden_copies_ns",
                "exposed_copies_ns",
            ],
        )?;
        for gpu in gpus {
            let mut record = vec![
                gpu.gpu.to_string(),
                gpu.operations.to_string(),
                gpu.start_ns.to_string(),
                gpu.end_ns.to_string(),
            ];
            let numbers = [
                gpu.span_ns,
                gpu.busy_ns,
                gpu.idle_ns,
                gpu.compute_operations,
                gpu.compute_ns,
                gpu.communication_operations,
                gpu.communication_ns,
                gpu.hidden_communication_ns,
                gpu.exposed_communication_ns,
                gpu.copies_operations,
                gpu.copies_ns,
                gpu.hidden_copies_ns,
                gpu.exposed_copies_ns,
            ];
            record.extend(numbers.map(|number| number.to_string()));
            output::write_csv_record(out, record)?;
        }
        Ok(())
    })
}
