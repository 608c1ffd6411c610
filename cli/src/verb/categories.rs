//! `rpd categories`: GPU time by categories that a user names.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_escape::csv_field;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::categories::{self, Category, RULES, Rules};
use rpd_postprocess::text;
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// Show GPU time by category: GEMM, attention, copies, ..., idle
///
/// Categories are named by regular expressions, in files as raptor has them: a JSON object, each member a category with a list of patterns.
/// An operation is in the last category of the file that has a pattern which is found in its name or in its type (CopyHostToDevice).
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  names     different names of operations
  calls     operations
  total     sum of their durations
  busy      the part of total in which no operation that began before ran on the
            GPU: where two overlap, the later counts from the earlier's end
  %         share of busy in the spans of the GPUs: adds up to 100
  category  _Other is what no pattern matches, _GPU_Idle when nothing ran

Patterns are searched anywhere in a name. Look-around and references to groups,
which Python has, are refused.

{REGION_HELP}

Example:
  rpd categories trace.rpd
  rpd categories --show-rules > rules.json
  rpd categories --rules rules.json --in 'step 3' trace.rpd"))]
pub(crate) struct Categories {
    /// The trace
    #[arg(required_unless_present = "show_rules")]
    file: Option<PathBuf>,
    /// A JSON file with the categories [default: those of --show-rules]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Write the categories that are built in, as such a file
    #[arg(long, conflicts_with_all = ["file", "rules"])]
    show_rules: bool,
    /// Write a JSON array; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

impl Categories {
    /// Writes the categories to standard output.
    ///
    /// # Errors
    /// When the trace or the rules cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        use std::io::Write;
        let Some(file) = self.file else {
            output::write(|out| writeln!(out, "{RULES}"))?;
            return Ok(ExitCode::SUCCESS);
        };
        let name = file.display();
        let rules = match &self.rules {
            None => Rules::parse(RULES)?,
            Some(path) => {
                let shown = text::escape_path(path);
                let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
                Rules::parse(&text).context(shown)?
            }
        };
        let notes = notes();
        let (trace, version) = trace::open(&file, &*notes)?;
        let selected = Region::from(self.region.clone()).select(&trace, version)?;
        notes.show("putting operations into categories");
        let found = categories::Categories::of(&trace, &rules, &selected)
            .with_context(|| format!("cannot read the operations of {name}"))?;
        let nothing = match found.categories.is_empty() {
            true => Some(self.region.nothing(&file, (&trace, version), "GPU operations")?),
            false => None,
        };
        drop((trace, notes));
        note_left_out(&file, found.left_out);
        if self.json {
            output::write_json(&found.categories)?;
        } else if self.csv {
            write_csv(&found.categories)?;
        } else if let Some(nothing) = nothing {
            note(nothing);
        } else {
            write_table(&found.categories)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_table(categories: &[Category]) -> Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("names", Right),
        ("calls", Right),
        ("total", Right),
        ("busy", Right),
        ("%", Right),
        ("category", Left),
    ])
    .sparing(&["names"]);
    for category in categories {
        table.row(vec![
            category.names.to_string(),
            category.calls.to_string(),
            duration(category.total_ns as f64),
            duration(category.busy_ns as f64),
            format!("{:.1}", category.percent),
            category.category.clone(),
        ]);
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

fn write_csv(categories: &[Category]) -> Result<()> {
    output::write(|out| {
        output::write_csv_record(out, ["category", "names", "calls", "total_ns", "busy_ns", "percent"])?;
        for category in categories {
            output::write_csv_record(
                out,
                [
                    csv_field(&category.category).into_owned(),
                    category.names.to_string(),
                    category.calls.to_string(),
                    category.total_ns.to_string(),
                    category.busy_ns.to_string(),
                    format!("{:.4}", category.percent),
                ],
            )?;
        }
        Ok(())
    })
}
