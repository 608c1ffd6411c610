//! `rpd top`: where GPU time goes.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rpd_escape::csv_field;
use rpd_postprocess::report::ranking::{By, NameGroup, Ranking};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// Show where GPU time goes: kernels and copies by total time
///
/// Operations are grouped by name, or by type where they have none (copies); calls by function, markers by text. Dispatches of
/// instrumented kernels (`rpd probe -i`) are left out, as they take longer than the program's own.
#[derive(Args)]
#[command(after_help = "\
Columns:
  calls    how many
  total    sum of their durations; of one inside another of its name: once
  self     of calls and markers: without those inside them on their thread
  average, min, max
           of the durations; a narrow terminal shows as many as have room
  replaced dispatches that ran another kernel in the place of this one, which
           rpd replacements compares; not shown where there are none, and
           without those of instrumented kernels
  %        share of all time (of all self time): adds up to 100
  name     cut in the middle to the width of the terminal, or COLUMNS, but
           never so that two become equal; whole in a pipe

Control characters of names are escaped; --json has them exactly.

Example:
  rpd top -n 10 trace.rpd
  rpd top --by api trace.rpd
  rpd top --csv trace.rpd > top.csv")]
pub(crate) struct Top {
    /// The trace
    file: PathBuf,
    /// Only kernels or copies; or the calls of the program, or its markers, instead of what the GPU did
    #[arg(long, value_name = "WHAT", value_enum)]
    by: Option<What>,
    /// Count dispatches of instrumented kernels too
    #[arg(long)]
    instrumented: bool,
    /// Show the first N rows only [default: 20 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N")]
    rows: Option<NonZeroUsize>,
    /// Write a JSON array; times in nanoseconds
    #[arg(long, conflicts_with_all = ["csv", "wide"])]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long, conflicts_with = "wide")]
    csv: bool,
    /// Do not shorten names to the width of the terminal (in a pipe they are not)
    #[arg(long)]
    wide: bool,
}

/// [`By`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Kernels, by name
    Kernel,
    /// Calls, by function
    Api,
    /// Copies, by direction
    Copy,
    /// Markers, by text
    Marker,
}

impl From<What> for By {
    fn from(what: What) -> By {
        match what {
            What::Kernel => By::Kernel,
            What::Api => By::Api,
            What::Copy => By::Copy,
            What::Marker => By::Marker,
        }
    }
}

/// Rows of a table for people when nothing else is asked for.
const SCREENFUL: usize = 20;

impl Top {
    /// Writes the ranking to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (name, by) = (self.file.display(), self.by.map_or(By::Operation, By::from));
        let (trace, version) = trace::open(&self.file, &*notes())?;
        let (one, many) = by.noun();
        let ranking = Ranking::of(&trace, version, by, self.instrumented)
            .with_context(|| format!("cannot read the {many} of {name}"))?;
        drop(trace);
        if ranking.impossible > 0 {
            note(format_args!(
                "{name}: {} left out: impossible times, which rpd check lists",
                counted(ranking.impossible, &format!("{one} is"), &format!("{many} are"))
            ));
        }
        if ranking.nameless > 0 {
            note(format_args!(
                "{name}: {} a name that is not in the file",
                counted(ranking.nameless, &format!("{one} has"), &format!("{many} have"))
            ));
        }
        if ranking.instrumented > 0 {
            note(format_args!(
                "{name}: {} left out: they ran instrumented kernels; --instrumented counts them",
                counted(ranking.instrumented, "dispatch is", "dispatches are")
            ));
        }
        let is_table = !self.json && !self.csv;
        let most = self.rows.map_or(if is_table { SCREENFUL } else { usize::MAX }, NonZeroUsize::get);
        let shown = most.min(ranking.groups.len());
        let (groups, rest) = ranking.groups.split_at(shown);
        if self.json {
            output::write_json(&groups)?;
        } else if self.csv {
            write_csv(by, groups)?;
        } else if groups.is_empty() {
            if ranking.instrumented == 0 {
                note(format_args!("{name} holds no {many}; rpd info shows what it holds"));
            }
        } else {
            write_table(by, groups, if self.wide { None } else { output::line_width() })?;
            let replaced: u64 = groups.iter().map(|group| group.replaced).sum();
            if replaced > 0 {
                note(format_args!(
                    "{} another kernel in the place of the program's own: rpd replacements {name}",
                    counted(replaced, "dispatch ran", "dispatches ran")
                ));
            }
            if !rest.is_empty() {
                let percent: f64 = rest.iter().map(|group| group.percent).sum();
                note(format_args!(
                    "{} with {percent:.1} % of the time not shown; -n N shows more",
                    counted(rest.len() as u64, "name", "names")
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(by: By, groups: &[NameGroup], room: Option<usize>) -> Result<()> {
    use Align::{Left, Right};
    let mut columns = vec![
        ("calls", Right),
        ("total", Right),
        ("self", Right),
        ("average", Right),
        ("min", Right),
        ("max", Right),
        ("replaced", Right),
        ("%", Right),
        ("name", Left),
    ];
    let any_replaced = groups.iter().any(|group| group.replaced > 0);
    columns.retain(|(title, _)| match *title {
        "self" => by.nests(),
        "replaced" => any_replaced,
        _ => true,
    });
    let mut table = Table::new(&columns).sparing(&["min", "max", "average"]);
    for group in groups {
        let mut cells = vec![group.calls.to_string(), duration(group.total_ns as f64)];
        cells.extend(group.self_ns.map(|ns| duration(ns as f64)));
        cells.extend([
            duration(group.average_ns),
            duration(group.min_ns as f64),
            duration(group.max_ns as f64),
        ]);
        cells.extend(any_replaced.then(|| group.replaced.to_string()));
        cells.extend([format!("{:.1}", group.percent), group.name.clone()]);
        table.row(cells);
    }
    output::write(|out| table.write(out, 0, room))
}

fn write_csv(by: By, groups: &[NameGroup]) -> Result<()> {
    output::write(|out| {
        let mut header =
            vec!["name", "calls", "total_ns", "self_ns", "average_ns", "min_ns", "max_ns", "percent"];
        header.retain(|title| by.nests() || *title != "self_ns");
        output::write_csv_record(out, header)?;
        groups.iter().try_for_each(|group| output::write_csv_record(out, record(group)))
    })
}

fn record(group: &NameGroup) -> Vec<String> {
    let mut record =
        vec![csv_field(&group.name).into_owned(), group.calls.to_string(), group.total_ns.to_string()];
    record.extend(group.self_ns.map(|ns| ns.to_string()));
    record.extend([
        format!("{:.3}", group.average_ns),
        group.min_ns.to_string(),
        group.max_ns.to_string(),
        format!("{:.4}", group.percent),
    ]);
    record
}
