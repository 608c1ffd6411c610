//! `rpd top`: where GPU time goes.

use std::path::PathBuf;

use anyhow::{Context, Result};
use rpd_postprocess::report::ranking::{By, Group, Ranking};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;

use crate::output;
use crate::output::csv_field::csv_field;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The trace.
    pub(crate) file: PathBuf,
    /// What is ranked.
    pub(crate) by: By,
    /// At most so many rows; all if None.
    pub(crate) rows: Option<usize>,
    /// How to write them.
    pub(crate) form: Form,
}

/// How the rows are written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// For people.
    Table {
        /// Names uncut, however long the lines get.
        wide: bool,
    },
    /// A JSON array of objects.
    Json,
    /// A header line and one line per row.
    Csv,
}

/// Writes the ranking to standard output.
///
/// # Errors
/// When the trace cannot be read or standard output cannot be written.
pub(crate) fn run(request: &Request) -> Result<()> {
    let name = request.file.display();
    let (trace, version) = trace::open(&request.file, &*notes())?;
    let (one, many) = request.by.noun();
    let ranking = Ranking::of(&trace, version, request.by)
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
    let shown = request.rows.unwrap_or(usize::MAX).min(ranking.groups.len());
    let (groups, rest) = ranking.groups.split_at(shown);
    match request.form {
        Form::Json => output::write_json(&groups),
        Form::Csv => write_csv(request.by, groups),
        Form::Table { .. } if groups.is_empty() => {
            note(format_args!("{name} holds no {many}; rpd info shows what it holds"));
            Ok(())
        }
        Form::Table { wide } => {
            write_table(request.by, groups, if wide { None } else { output::line_width() })?;
            if !rest.is_empty() {
                let percent: f64 = rest.iter().map(|group| group.percent).sum();
                note(format_args!(
                    "{} with {percent:.1} % of the time not shown; -n N shows more",
                    counted(rest.len() as u64, "name", "names")
                ));
            }
            Ok(())
        }
    }
}

fn write_table(by: By, groups: &[Group], room: Option<usize>) -> Result<()> {
    use Align::{Left, Right};
    let mut columns = vec![
        ("calls", Right),
        ("total", Right),
        ("self", Right),
        ("average", Right),
        ("min", Right),
        ("max", Right),
        ("%", Right),
        ("name", Left),
    ];
    columns.retain(|(title, _)| by.nests() || *title != "self");
    let mut table = Table::new(&columns).sparing(&["min", "max", "average"]);
    for group in groups {
        let mut cells = vec![group.calls.to_string(), duration(group.total_ns as f64)];
        cells.extend(group.self_ns.map(|ns| duration(ns as f64)));
        cells.extend([
            duration(group.average_ns),
            duration(group.min_ns as f64),
            duration(group.max_ns as f64),
            format!("{:.1}", group.percent),
            group.name.clone(),
        ]);
        table.row(cells);
    }
    output::write(|out| table.write(out, 0, room))
}

fn write_csv(by: By, groups: &[Group]) -> Result<()> {
    output::write(|out| {
        let mut header =
            vec!["name", "calls", "total_ns", "self_ns", "average_ns", "min_ns", "max_ns", "percent"];
        header.retain(|title| by.nests() || *title != "self_ns");
        output::write_csv_record(out, header)?;
        groups.iter().try_for_each(|group| output::write_csv_record(out, record(group)))
    })
}

fn record(group: &Group) -> Vec<String> {
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
