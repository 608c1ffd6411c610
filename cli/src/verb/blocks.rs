//! `rpd blocks`: which basic blocks of kernels were executed, and how often.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use regex::Regex;
use rpd_postprocess::pattern::pattern;
use rpd_postprocess::report::blocks::{BlockGroup, BlockRow, KINDS, KernelBlocks, blocks};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::table::{Align, Table};

/// Rows of a kernel, unless told otherwise.
const ROWS: usize = 10;

/// Show which basic blocks of kernels were executed, and how often
///
/// The trace is one that rpd probe --auto recorded. Counts are of all dispatches that were counted, together.
#[derive(Args)]
#[command(after_help = "\
Columns:
  %         share of the ticks of the kernel, or without ticks of its executed instructions
  executed  instructions that wavefronts executed in the block
  waves     wavefronts that entered it
  lanes     lanes that were active on average, of 64: less where branches part them
            (--auto=lanes)
  ticks     of the device's clock, that a wavefront stayed on average (--auto=time)
  insns     instructions of the block
  block     where it begins in the code object and in the source, and the function
            that it is of, where the kernel calls some

Example:
  rpd probe --auto -o probed.rpd -- ./app
  rpd blocks probed.rpd gemm
  rpd blocks --line --json probed.rpd")]
pub(crate) struct Blocks {
    /// The trace
    file: PathBuf,
    /// Kernels only whose names match this regular expression
    #[arg(value_name = "KERNEL", value_parser = pattern)]
    kernel: Option<Regex>,
    /// Add the blocks of a line of the source together
    #[arg(long, conflicts_with = "function")]
    line: bool,
    /// Add the blocks of a function together
    #[arg(long)]
    function: bool,
    /// Show N rows of each kernel, 0 for all
    #[arg(short, value_name = "N", default_value_t = ROWS)]
    n: usize,
    /// Write a JSON array with an object for each kernel, with all rows
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line, all rows of all kernels
    #[arg(long)]
    csv: bool,
}

impl Blocks {
    /// Writes the blocks to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read, has no counts or no kernel that was asked for, or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let group = match (self.line, self.function) {
            (true, _) => BlockGroup::Line,
            (_, true) => BlockGroup::Function,
            _ => BlockGroup::Block,
        };
        let notes = notes();
        let (trace, _) = trace::open(&self.file, &*notes)?;
        notes.show("adding up what the blocks were counted");
        let cannot = || format!("cannot read the basic blocks of {name}");
        let kernels = blocks(&trace, self.kernel.as_ref(), group).with_context(cannot)?;
        if kernels.is_empty()
            && self.kernel.is_some()
            && !blocks(&trace, None, group).with_context(cannot)?.is_empty()
        {
            bail!("{name} has basic blocks of no kernel whose name matches");
        }
        drop((trace, notes));
        if self.json {
            output::write_json(&kernels)?;
        } else if self.csv {
            write_csv(&kernels)?;
        } else if kernels.is_empty() {
            note(format_args!("{name} has no counts of basic blocks; rpd probe --auto records them"));
        } else {
            output::write(|out| {
                use std::io::Write;
                for (place, kernel) in kernels.iter().enumerate() {
                    if place > 0 {
                        writeln!(out)?;
                    }
                    for line in head(kernel) {
                        writeln!(out, "{line}")?;
                    }
                    table(kernel, self.n).write(out, 2, output::line_width())?;
                    let hidden = kernel.rows.len() - shown(kernel, self.n).len();
                    if hidden > 0 {
                        writeln!(
                            out,
                            "  {}: -n 0 shows all",
                            counted(hidden as u64, "more row", "more rows")
                        )?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(kernel: &KernelBlocks, most: usize) -> &[BlockRow] {
    &kernel.rows[..if most == 0 { kernel.rows.len() } else { most.min(kernel.rows.len()) }]
}

/// What is known of the kernel as a whole.
fn head(kernel: &KernelBlocks) -> Vec<String> {
    let mut lines = vec![rpd_postprocess::text::escape(&kernel.kernel).into_owned()];
    let mut parts = vec![format!("{} counted", counted(kernel.dispatches, "dispatch", "dispatches"))];
    if let Some(executed) = kernel.executed {
        parts.push(format!("{executed} instructions executed by waves"));
    }
    if let (Some(executed), Some(items)) =
        (kernel.executed_by_lanes, kernel.work_items.filter(|items| *items > 0))
    {
        parts.push(format!(
            "{:.1} instructions by each of {items} work-items",
            executed as f64 / items as f64
        ));
    }
    lines.push(format!("  {}", parts.join(", ")));
    if let (Some(kinds), Some(executed)) = (&kernel.executed_kinds, kernel.executed.filter(|all| *all > 0)) {
        let share = |kind: &&str| {
            let count = kinds.get(kind).copied().unwrap_or_default();
            let name =
                if ["branch", "other"].contains(kind) { kind.to_string() } else { kind.to_uppercase() };
            (count > 0).then(|| format!("{name} {:.1} %", 100.0 * count as f64 / executed as f64))
        };
        lines.push(format!("  {}", KINDS.iter().filter_map(share).collect::<Vec<_>>().join(", ")));
    }
    lines
}

fn table(kernel: &KernelBlocks, most: usize) -> Table {
    use Align::{Left, Right};
    let has = |what: fn(&BlockRow) -> Option<u64>| kernel.rows.iter().any(|row| what(row).is_some());
    let (has_waves, has_lanes, has_ticks) =
        (has(|row| row.waves), has(|row| row.lanes), has(|row| row.ticks));
    let columns = [
        ("%", Right, true),
        ("executed", Right, has_waves),
        ("waves", Right, has_waves),
        ("lanes", Right, has_lanes),
        ("ticks", Right, has_ticks),
        ("insns", Right, true),
        ("block", Left, true),
    ];
    let columns: Vec<(&'static str, Align)> =
        columns.iter().filter(|(_, _, there)| *there).map(|(title, align, _)| (*title, *align)).collect();
    let spare: Vec<&'static str> = ["insns", "executed"]
        .into_iter()
        .filter(|spare| columns.iter().any(|(title, _)| title == spare))
        .collect();
    let has_several_functions = kernel.rows.iter().any(|row| row.function != kernel.rows[0].function);
    let weight =
        |row: &BlockRow| if has_ticks { row.ticks } else { row.executed.or(row.lanes) }.unwrap_or(0) as f64;
    let all: f64 = kernel.rows.iter().map(weight).sum();
    let mut table = Table::new(&columns).sparing(&spare);
    for row in shown(kernel, most) {
        let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let per_wave = |value: Option<u64>| match (value, row.waves) {
            (Some(value), Some(waves)) if waves > 0 => format!("{:.1}", value as f64 / waves as f64),
            (value, None) => number(value),
            _ => String::new(),
        };
        let percent = if all > 0.0 { 100.0 * weight(row) / all } else { 0.0 };
        let mut cells = vec![format!("{percent:.1}")];
        if has_waves {
            cells.extend([number(row.executed), number(row.waves)]);
        }
        if has_lanes {
            cells.push(per_wave(row.lanes));
        }
        if has_ticks {
            cells.push(per_wave(row.ticks));
        }
        cells.push(row.instructions.to_string());
        let mut words = Vec::new();
        if row.blocks == 1 {
            words.push(format!("{:#x}", row.offset));
        }
        if !row.file.is_empty() {
            words.push(format!("{}:{}", row.file, row.line));
        }
        if has_several_functions {
            words.push(row.function.clone());
        }
        if row.blocks > 1 {
            words.push(format!("({} blocks)", row.blocks));
        }
        cells.push(words.join(" "));
        table.row(cells);
    }
    table
}

fn write_csv(kernels: &[KernelBlocks]) -> Result<()> {
    output::write(|out| {
        let names = [
            "kernel",
            "blocks",
            "function",
            "offset",
            "size",
            "file",
            "line",
            "instructions",
            "waves",
            "lanes",
            "ticks",
            "executed",
        ];
        output::write_csv_record(out, names.iter().chain(&KINDS))?;
        for (kernel, row) in
            kernels.iter().flat_map(|kernel| kernel.rows.iter().map(move |row| (kernel, row)))
        {
            let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            let mut record = vec![
                kernel.kernel.clone(),
                row.blocks.to_string(),
                row.function.clone(),
                row.offset.to_string(),
                row.size.to_string(),
                row.file.clone(),
                row.line.to_string(),
                row.instructions.to_string(),
            ];
            record.extend([row.waves, row.lanes, row.ticks, row.executed].map(number));
            let kind = |kind: &&'static str| {
                number(row.executed_kinds.as_ref().and_then(|kinds| kinds.get(kind).copied()))
            };
            record.extend(KINDS.iter().map(kind));
            output::write_csv_record(out, record)?;
        }
        Ok(())
    })
}
