//! The arguments of the verbs that make a trace out of others.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::merge::Options;
use rpd_postprocess::moment::{Moment, Stretch, duration_ns};

use super::value;
use crate::verb::{merge, trim};

/// Make a part of a trace a trace of its own
///
/// What stays: calls and markers that start in the window, the operations they caused, and the rows that refer
/// to those; sensors are cut to that time.
#[derive(Args)]
#[command(after_help = "\
Times of --start and --end:
  1500, 20us, 1.5ms, 2s     on the trace's clock, in ns without a unit
  +2s, -500ms               from the first call's start, before the last call's end
  25%                       of the time between the two
  marker:NAME, marker:NAME:2
                            where the markers with this text begin (--start) or end (--end); the second of them
  kernel:REGEX              where the first operation of such a name was launched, or the last one ended

FILE is never half changed: the result appears when it is complete.

Example:
  rpd trim trace.rpd -o middle.rpd --start 25% --end 75%
  rpd trim trace.rpd -o step.rpd --start 'marker:step 3' --end 'marker:step 5'
  rpd trim trace.rpd --dry-run --start +2s --end kernel:^gemm")]
pub(super) struct Trim {
    /// The trace
    file: PathBuf,
    /// The new trace
    #[arg(short, long, value_name = "OUT", value_parser = value::output(),
          required_unless_present_any = ["in_place", "dry_run"])]
    output: Option<PathBuf>,
    /// Replace FILE by the result; the other rows are gone
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
    /// Where the window begins [default: at the first call]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// Where it ends [default: after the last call]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
    /// Write nothing, say what would remain
    #[arg(long, conflicts_with_all = ["output", "in_place"])]
    dry_run: bool,
    /// Write one JSON object about it; times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// Put traces of several ranks and hosts into one
///
/// Sessions are renumbered, texts written once. Process and GPU numbers of a second host get strides (views
/// napi and nop take them apart); times are moved to the first trace's host by what the sessions say of
/// their clocks.
#[derive(Args)]
#[command(after_help = "\
Sessions of one boot of a host share its clock, and are not moved. Traces that do not say where they
were recorded, as those of other recorders, need one of --same-host, --align and --offset.

Example:
  rpd merge -o all.rpd rank0.rpd rank1.rpd
  rpd merge -o all.rpd --align 'marker:step 0' node1.rpd node2.rpd
  rpd merge -o all.rpd --offset node2.rpd=-1.5ms node1.rpd node2.rpd
  sqlite3 all.rpd 'select node, count(*) from nop group by 1'")]
pub(super) struct Merge {
    /// The traces
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The new trace
    #[arg(short, long, value_name = "OUT", value_parser = value::output())]
    output: PathBuf,
    /// All were recorded on one host
    #[arg(long)]
    same_host: bool,
    /// Let the first marker of that text begin at one time everywhere
    #[arg(long, value_name = "marker:NAME", value_parser = marker_name)]
    align: Option<String>,
    /// Add that to the times of FILE, which are not aligned then; ns without a unit
    #[arg(long = "offset", value_name = "FILE=TIME", value_parser = file_and_shift)]
    offsets: Vec<(PathBuf, i64)>,
    /// Write one JSON object about it
    #[arg(long)]
    json: bool,
}

impl Trim {
    pub(super) fn run(self) -> Result<()> {
        let destination = match self.output {
            Some(out) => trim::Destination::New(out),
            None if self.in_place => trim::Destination::InPlace,
            None => trim::Destination::DryRun,
        };
        let Trim { file, start, end, json, .. } = self;
        trim::run(&trim::Request { file, destination, stretch: Stretch { start, end }, json })
    }
}

impl Merge {
    pub(super) fn run(self) -> Result<()> {
        let Merge { files, output, same_host, align, offsets, json } = self;
        let options = Options { is_same_host: same_host, align, offsets };
        merge::run(&merge::Request { output, files, options, json })
    }
}

fn marker_name(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("marker:").filter(|name| !name.is_empty());
    name.map(str::to_string).ok_or_else(|| "not marker:NAME".to_string())
}

fn file_and_shift(text: &str) -> Result<(PathBuf, i64), String> {
    let (file, shift) = text.rsplit_once('=').ok_or_else(|| "not FILE=TIME".to_string())?;
    let (sign, duration) = match shift.strip_prefix('-') {
        Some(duration) => (-1, duration),
        None => (1, shift.strip_prefix('+').unwrap_or(shift)),
    };
    let ns =
        duration_ns(duration).ok_or_else(|| format!("{shift} is no time: write 1500 (ns), -1.5ms, 2s"))?;
    Ok((PathBuf::from(file), sign * ns))
}
