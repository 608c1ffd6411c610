//! `rpd markers`: where the time of markers goes, as a tree.

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_escape::csv_field;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::markers::{self, MarkerNode};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// Show the markers of a program as a tree, with their CPU and GPU time
///
/// Ranges with the same text inside of the same others are one row. GPU time is that of what was launched while the range was the innermost
/// one of the launching thread, whenever it ran. Times of rows below a row are part of it. Where two ranges of a thread overlap without one
/// inside the other, the time in which both are open is the later one's alone, and so is what is launched then.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  ranges   how many
  ops      operations launched in them
  cpu      time in them on their threads
  own      the part of cpu that is in no range inside
  cpu %    share of cpu in the time of all threads with markers
  gpu      time in which the GPU was busy with what was launched in them: where
           operations overlap, the later counts from the earlier one's end
  own      the part of gpu that was launched in no range inside
  gpu %    share of gpu in the time of all GPUs
  marker   its text, below the one around it; (no marker) is all else.
           PyTorch's operators have their name, without op_id and the like.
           Where more than 64 texts differ in numbers alone, # is any number

Times of threads and GPUs are counted from the first marker or operation to the
last end. The table has the N rows with the most time.

{REGION_HELP}

Example:
  rpd markers trace.rpd
  rpd markers --depth 2 --in 25%..75% trace.rpd
  rpd markers --csv trace.rpd > markers.csv"))]
pub(crate) struct Markers {
    /// The trace
    file: PathBuf,
    /// Show N rows at most [default: 30 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
    /// Show N levels of the tree
    #[arg(long, value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    depth: Option<NonZeroUsize>,
    /// Keep markers apart that differ in numbers alone, PyTorch's operators also in id and sizes
    #[arg(long)]
    exact: bool,
    /// Write a JSON array, parents before their children; times in nanoseconds
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
/// Levels that are shown by indentation.
const LEVELS: usize = 16;

impl Markers {
    /// Writes the tree to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region.clone()).select(&trace, version)?;
        notes.show("adding up markers");
        let found = markers::Markers::of((&trace, version), &selected, self.exact)
            .with_context(|| format!("cannot read the markers of {name}"))?;
        drop(notes);
        note_left_out(&self.file, found.left_out);
        if found.impossible > 0 {
            note(format_args!(
                "{name}: {} left out: impossible times, which rpd check lists",
                counted(found.impossible, "marker is", "markers are")
            ));
        }
        if found.cut > 0 {
            note(format_args!(
                "{name}: {} inside of a later one of the thread, which has the time from its begin on",
                counted(found.cut, "range ends", "ranges end")
            ));
        }
        if found.alike > 0 {
            note(format_args!(
                "{} in numbers alone and count as one each, with # for a number; --exact tells them apart",
                counted(found.alike, "text differs", "texts differ")
            ));
        }
        let is_table = !self.json && !self.csv;
        let most = self.rows.map_or(if is_table { SCREENFUL } else { usize::MAX }, NonZeroUsize::get);
        let all = found.nodes.count;
        let depth = self.depth.map_or(usize::MAX, NonZeroUsize::get);
        let nodes = found.nodes.filter(|node| node.as_ref().map_or(true, |node| node.depth < depth));
        if !is_table && self.rows.is_none() {
            write_rows(nodes, self.json)?;
        } else if !is_table {
            write_rows(largest(nodes, most)?.into_iter().map(Ok), self.json)?;
        } else if found.threads == 0 {
            note(self.region.nothing(&self.file, (&trace, version), "markers")?);
        } else {
            let shown = largest(nodes, most)?;
            write_table(&shown)?;
            if shown.len() < all {
                let hidden = counted((all - shown.len()) as u64, "row", "rows");
                note(format_args!("{hidden} not shown; -n N and --depth N show more"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The nodes with the most time, in their order. What is around one has no less, so it is among them.
fn largest(nodes: impl Iterator<Item = Result<MarkerNode>>, most: usize) -> Result<Vec<MarkerNode>> {
    let time = |node: &MarkerNode| (Reverse(u128::from(node.cpu_ns) + u128::from(node.gpu_ns)), node.node);
    let mut found: Vec<MarkerNode> = Vec::new();
    for node in nodes {
        found.push(node?);
        // Not for each node, and never more than twice those that are asked for.
        if found.len() / 2 >= most {
            found.select_nth_unstable_by_key(most, time);
            found.truncate(most);
        }
    }
    found.sort_by_key(time);
    found.truncate(most);
    found.sort_by_key(|node| node.node);
    Ok(found)
}

fn write_table(nodes: &[MarkerNode]) -> Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("ranges", Right),
        ("ops", Right),
        ("cpu", Right),
        ("cpu own", Right),
        ("cpu %", Right),
        ("gpu", Right),
        ("gpu own", Right),
        ("gpu %", Right),
        ("marker", Left),
    ])
    .sparing(&["ops", "cpu own", "gpu own", "cpu %"]);
    for node in nodes {
        let name = match &node.name {
            None => "(no marker)".to_string(),
            Some(name) if node.depth > LEVELS => {
                format!("{}({} deep) {name}", "  ".repeat(LEVELS), node.depth)
            }
            Some(name) => format!("{}{name}", "  ".repeat(node.depth)),
        };
        let time = |ns: u64| duration(ns as f64);
        table.row(vec![
            node.ranges.to_string(),
            node.operations.to_string(),
            time(node.cpu_ns),
            time(node.cpu_own_ns),
            format!("{:.1}", node.cpu_percent),
            time(node.gpu_ns),
            time(node.gpu_own_ns),
            format!("{:.1}", node.gpu_percent),
            name,
        ]);
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

/// Columns of comma-separated values.
const HEADER: [&str; 12] = [
    "node",
    "parent",
    "depth",
    "name",
    "ranges",
    "operations",
    "cpu_ns",
    "cpu_own_ns",
    "cpu_percent",
    "gpu_ns",
    "gpu_own_ns",
    "gpu_percent",
];

fn write_rows(nodes: impl Iterator<Item = Result<MarkerNode>>, as_json: bool) -> Result<()> {
    match as_json {
        true => output::write_json_rows(nodes),
        false => output::write_csv_rows(&HEADER, nodes.map(|node| Ok(record(&node?)))),
    }
}

fn record(node: &MarkerNode) -> Vec<String> {
    vec![
        node.node.to_string(),
        node.parent.map(|parent| parent.to_string()).unwrap_or_default(),
        node.depth.to_string(),
        node.name.as_deref().map(|name| csv_field(name).into_owned()).unwrap_or_default(),
        node.ranges.to_string(),
        node.operations.to_string(),
        node.cpu_ns.to_string(),
        node.cpu_own_ns.to_string(),
        format!("{:.4}", node.cpu_percent),
        node.gpu_ns.to_string(),
        node.gpu_own_ns.to_string(),
        format!("{:.4}", node.gpu_percent),
    ]
}
