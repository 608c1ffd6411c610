//! `rpd sql`: questions in SQL, ready-made or of one's own.

mod answer;

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use rpd_postprocess::check::Outliers;
use rpd_postprocess::query::Questioned;
use rpd_postprocess::region::Region;
use rpd_sql::query;
use serde::Serialize;

use self::answer::{Answer, Form};
use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::table::{Align, Table};
use crate::system::signals::die_by;

/// Ask a trace a ready-made question, or one of your own in SQL
///
/// The query can only read. Views of the format that the file of another tool lacks are there for it all the same. An answer is
/// written when the whole of it is known: a query that fails or takes too long writes nothing.
#[derive(Args)]
#[command(after_help = format!("\
Columns are the query's; those of --list:
  query    its name, for rpd sql FILE NAME
  answers  the question that it answers

A table shows numbers with three digits behind the point, small ones with more,
and NULL as nothing; where rows are wider than the terminal, or COLUMNS, long
texts are cut in the middle, but never so that two become equal, and rows that
are too wide even then have a line per column. --json and --csv have all
digits; where two columns have one name, the second is name:1. Bytes that are no
text are x'0a0b'. Control characters are escaped; --json has them exactly.

Queries named job_... are of the ranks of jobs: rpd sql asks one trace, also a
merged one, and docs/dataset.md says how DuckDB and Spark ask a dataset the same.

docs/format.md explains the tables and views; rpd sql FILE 'pragma table_list'
and 'pragma table_info(kernel)' list them and their columns.

{REGION_HELP}
With a part, tables and views have its calls and operations alone, and what
refers to such; texts, metadata and sensors stay whole, and so does main.TABLE.

Example:
  rpd sql --list
  rpd sql trace.rpd busy
  rpd sql trace.rpd 'select kernelName, gridX, duration from kernel limit 10'
  rpd sql --csv trace.rpd 'select * from op' > op.csv
  rpd sql --in 'step 3' trace.rpd busy
  rpd sql after.rpd topDiff --before before.rpd"))]
pub(crate) struct Sql {
    /// The trace
    #[arg(required_unless_present = "list")]
    file: Option<PathBuf>,
    /// Name of a ready-made query, or a statement
    #[arg(value_name = "NAME|QUERY", required_unless_present = "list", allow_hyphen_values = true)]
    query: Option<String>,
    /// Show the ready-made queries; with --json their statements too
    #[arg(long, conflicts_with_all = ["file", "before", "rows"])]
    list: bool,
    /// A second trace, which the query has as "before"
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
    /// End the query after this time; 0: never
    #[arg(long, value_name = "TIME", value_parser = value::time, default_value = "1m")]
    timeout: Duration,
    /// The first N rows only [default: 1000 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
    /// Write a JSON array with an object for each row
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// A ready-made query in `--list --json`.
#[derive(Serialize)]
struct Listed {
    query: &'static str,
    answers: String,
    description: String,
    statement: &'static str,
}

impl Sql {
    /// Writes the answer to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read, the query is wrong, not allowed or takes too long, or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (Some(file), Some(written)) = (&self.file, &self.query) else {
            return self.list().map(|()| ExitCode::SUCCESS);
        };
        let limit = Some(self.timeout).filter(|limit| !limit.is_zero());
        let notes = notes();
        // What SQLite puts beside a file in WAL mode goes when the connection is closed, not when the process is ended.
        let held = notes.hold_signals()?;
        let mut trace = Questioned::open(file, self.before.as_deref(), limit, &notes)?;
        let region = Region::from(self.region);
        if !region.is_everything() {
            if self.before.is_some() {
                bail!("--before: of two traces no part can be named; a query says WHERE");
            }
            let (read, version) = rpd_schema::open_read(file)?;
            trace.restrict(region.select(&read, version)?)?;
        }
        let name = written.trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
        let statement = match is_name {
            false => Cow::Borrowed(written.as_str()),
            true => match trace.ready_made(name)? {
                Some(statement) => {
                    let (read, _) = rpd_schema::open_read(file)?;
                    if region.is_everything() && !Outliers::of(&read)?.is_empty() {
                        note(format_args!(
                            "{}: some calls or operations are days away from nearly all others; this query counts them, reports leave them \
                             out; rpd check lists them",
                            file.display()
                        ));
                    }
                    statement
                }
                None => {
                    note(trace.no_such_query(name)?);
                    return Ok(ExitCode::from(2));
                }
            },
        };
        notes.show("running the query");
        let query = trace.prepare(&statement)?;
        let form = match (self.json, self.csv) {
            (true, _) => Form::Json,
            (false, true) => Form::Csv,
            (false, false) => Form::Table,
        };
        let most = self.rows.map_or(form.most_rows(), NonZeroUsize::get);
        let mut answer = Answer::new(form, query.columns())?;
        let mut is_cut = false;
        query.each(|row| {
            is_cut = answer.rows() == most;
            if !is_cut {
                answer.add(row)?;
            }
            Ok(!is_cut)
        })?;
        drop(trace);
        if let Some(signal) = notes.signal() {
            die_by(signal);
        }
        // The line about the progress goes with the last who may write it.
        drop((held, notes));
        let shown = answer.rows();
        answer.write()?;
        if form == Form::Table && shown == 0 {
            note("the answer has no rows");
        }
        if is_cut && self.rows.is_none() {
            note(format_args!(
                "only the first {shown} rows are shown; -n N shows more, --csv and --json have all"
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn list(&self) -> Result<()> {
        if self.json {
            let all: Vec<Listed> = query::every()
                .map(|query| Listed {
                    query: query.name,
                    answers: query.question(),
                    description: query.description(),
                    statement: query.text,
                })
                .collect();
            return output::write_json(&all);
        }
        if self.csv {
            return output::write(|out| {
                output::write_csv_record(out, ["query", "answers"])?;
                query::every()
                    .try_for_each(|query| output::write_csv_record(out, [query.name, &query.question()]))
            });
        }
        let mut table = Table::new(&[("query", Align::Left), ("answers", Align::Left)]).folding(1);
        for query in query::every() {
            table.row(vec![query.name.to_string(), query.question()]);
        }
        output::write(|out| table.write(out, 0, output::line_width()))
    }
}
