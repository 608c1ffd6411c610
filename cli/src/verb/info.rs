//! `rpd info`: what a trace holds.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_postprocess::region::Region;
use rpd_postprocess::text::{self, counted};
use rpd_postprocess::trace::contents::{Contents, Session};
use rpd_postprocess::trace::instrumented::Instrumented;
use rpd_postprocess::trace::replaced::Replaced;
use rpd_schema::session_fact;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::note::note;
use crate::output::quantity::{duration, size};
use crate::output::table::{Align, Table};

/// Show what a trace contains: sessions, GPUs, operations, time span, lost records
///
/// For a part of a trace, the command shows the sessions and GPUs that have calls and operations in it, and how many. Lost records are those of
/// the whole session, and the size is the file's. Numbers of rows in tables are shown for a whole trace only.
#[derive(Args)]
#[command(after_help = format!("\
{REGION_HELP}

Example:
  rpd info trace.rpd
  rpd info trace.rpd --json | jq .operations
  rpd info trace.rpd --in 'step 3' --gpu 0"))]
pub(crate) struct Info {
    /// The trace
    file: PathBuf,
    /// Write one JSON object; times in nanoseconds
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// Blanks before the rows of a section.
const INDENT: usize = 2;
/// Shown where a trace does not say.
const UNKNOWN: &str = "-";

impl Info {
    /// Writes what `file` holds to standard output: for people, or as one JSON object.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        // Lost records are part of what is printed, so there is no note about them.
        let file = &self.file;
        let (trace, version) = rpd_schema::open_read(file)?;
        let selected = Region::from(self.region).select(&trace, version)?;
        let contents = Contents::of(file, &trace, version, &selected);
        let contents = contents.with_context(|| format!("cannot read {}", file.display()))?;
        drop(trace);
        let name = file.display();
        if contents.far > 0 {
            let rows = counted(contents.far, "call or operation is", "calls and operations are");
            note(format_args!(
                "{name}: {rows} left out of the span: days away from nearly all others; rpd check lists them"
            ));
        }
        if contents.without_place > 0 {
            let operations = counted(contents.without_place, "operation has", "operations have");
            note(format_args!("{name}: {operations} a GPU or queue that is no number; rpd check lists them"));
        }
        if !selected.is_everything() && contents.span.is_none() {
            note(format_args!("{} has no such call and no such operation", file.display()));
        }
        if self.json {
            output::write_json(&contents)?;
        } else {
            output::write(|out| write_text(&contents, out))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_text(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "file    {}", text::escape(&contents.file))?;
    writeln!(out, "schema  {}", contents.schema)?;
    writeln!(out, "size    {}", size(contents.size_bytes))?;
    let span = contents.span.map(|span| duration(span.duration_ns() as f64));
    let sensors =
        contents.tables.iter().any(|tables| tables.get("rocpd_monitor").is_some_and(|rows| *rows > 0));
    let nothing = if sensors { "no calls and no operations" } else { "nothing recorded" };
    writeln!(out, "span    {}", span.as_deref().unwrap_or(nothing))?;
    writeln!(out, "lost    {}", losses(&contents.lost))?;
    if contents.launches_without_op > 0 {
        let launches = counted(contents.launches_without_op, "launch", "launches");
        writeln!(
            out,
            "open    {launches} without an operation: their kernels were not known to have completed"
        )?;
    }
    if let Some(links) = links(contents) {
        writeln!(out, "links   {links}")?;
    }
    if let Some(Replaced { dispatches, kernels, candidates }) = &contents.replaced {
        let dispatches = counted(*dispatches, "dispatch", "dispatches");
        let kernels = counted(*kernels, "kernel", "kernels");
        let candidates = counted(*candidates, "candidate", "candidates");
        writeln!(
            out,
            "code    {dispatches} of {kernels} ran another in its place, of {candidates}: rpd replacements"
        )?;
    }
    if let Some(Instrumented { dispatches, kernels }) = &contents.instrumented {
        let dispatches = counted(*dispatches, "dispatch", "dispatches");
        let kernels = counted(*kernels, "kernel", "kernels");
        writeln!(out, "probe   {dispatches} of {kernels} ran instrumented; rpd top leaves them out")?;
    }
    let room = output::line_width();
    for (title, table) in [
        ("sessions", sessions(contents)),
        ("GPUs", gpus(contents)),
        ("queues", queues(contents)),
        ("operations", operations(contents)),
        ("tables", tables(contents)),
    ] {
        if !table.is_empty() {
            writeln!(out, "\n{title}")?;
            table.write(out, INDENT, room)?;
        }
    }
    Ok(())
}

/// How many operations are linked to no call, where calls of HIP were recorded and some are.
fn links(contents: &Contents) -> Option<String> {
    let unlinked = |session: &Session| -> Option<(u64, u64)> {
        Some((session.facts.get("ops_without_call")?.parse().ok()?, session.operations))
    };
    let sums = contents.sessions.iter().filter_map(unlinked);
    let (without, all) = sums.fold((0, 0), |sums: (u64, u64), (without, all)| {
        (sums.0.saturating_add(without), sums.1.saturating_add(all))
    });
    let operations = counted(all, "operation", "operations");
    (without > 0).then(|| format!("{without} of {operations} are linked to no call of HIP"))
}

/// `0 records`, or how many and why.
fn losses(lost: &std::collections::BTreeMap<String, u64>) -> String {
    let total = lost.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let causes: Vec<String> =
        lost.iter().map(|(cause, count)| format!("{count} {}", text::escape(cause))).collect();
    let records = counted(total, "record", "records");
    if causes.is_empty() { records } else { format!("{records}: {}", causes.join(", ")) }
}

fn or_unknown(fact: Option<&str>) -> String {
    fact.filter(|fact| !fact.is_empty()).unwrap_or(UNKNOWN).to_string()
}

fn sessions(contents: &Contents) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("session", Right),
        ("host", Left),
        ("pid", Right),
        ("rank", Right),
        ("started", Left),
        ("duration", Right),
        ("calls", Right),
        ("operations", Right),
        ("lost", Right),
    ])
    .sparing(&["started", "host", "rank", "calls"]);
    for session in &contents.sessions {
        table.row(vec![
            session.session.to_string(),
            or_unknown(session.host.as_deref()),
            session.pid.map_or(UNKNOWN.into(), |pid| pid.to_string()),
            or_unknown(session.rank.as_deref()),
            or_unknown(session.started.as_deref()),
            session.duration_ns.map_or(UNKNOWN.into(), |ns| duration(ns as f64)),
            session.calls.to_string(),
            session.operations.to_string(),
            session.lost.values().fold(0, |sum: u64, count| sum.saturating_add(*count)).to_string(),
        ]);
        if let Some(command) = session.command.as_deref().filter(|command| !command.is_empty()) {
            table.below(command);
        }
        if let Some(part) = part(session) {
            table.below(&part);
        }
        if let Some(cuda) = cuda(session) {
            table.below(&cuda);
        }
    }
    table
}

/// Which part of a recording it is, and where the process was before and went on.
fn part(session: &Session) -> Option<String> {
    let fact = |name: &str| session.facts.get(name);
    let number = fact(session_fact::PART)?;
    let before = fact(session_fact::PART_BEFORE).map(|file| format!(", from {file}"));
    let next = fact(session_fact::NEXT_PART).map(|file| format!(", goes on in {file}"));
    Some(format!("part {number}{}{}", before.unwrap_or_default(), next.unwrap_or_default()))
}

/// By what CUDA was recorded, or why it was not.
fn cuda(session: &Session) -> Option<String> {
    let fact = |name: &str| session.facts.get(name).map(String::as_str);
    let version = |of: &str| fact(&session_fact::version(of));
    if let Some(why) = fact("cuda_unavailable") {
        return Some(format!("CUDA was not recorded: {why}"));
    }
    let driver = version("nvidia_driver").map(|driver| format!(", driver {driver}")).unwrap_or_default();
    Some(format!("CUDA {}, CUPTI {}{driver}", version("cuda")?, version("cupti")?))
}

fn gpus(contents: &Contents) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("gpu", Right),
        ("target", Left),
        ("bdf", Left),
        ("queues", Right),
        ("operations", Right),
        ("name", Left),
    ])
    .sparing(&["bdf", "queues"]);
    for gpu in &contents.gpus {
        table.row(vec![
            gpu.gpu.to_string(),
            or_unknown(gpu.target.as_deref()),
            or_unknown(gpu.bdf.as_deref()),
            gpu.queues.len().to_string(),
            gpu.queues.iter().map(|queue| queue.operations).sum::<u64>().to_string(),
            or_unknown(gpu.name.as_deref()),
        ]);
    }
    table
}

fn queues(contents: &Contents) -> Table {
    use Align::Right;
    let mut table = Table::new(&[("gpu", Right), ("queue", Right), ("operations", Right)]);
    for gpu in &contents.gpus {
        for queue in &gpu.queues {
            table.row(vec![gpu.gpu.to_string(), queue.queue.to_string(), queue.operations.to_string()]);
        }
    }
    table
}

fn operations(contents: &Contents) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[("count", Right), ("type", Left)]);
    for op_type in &contents.operations {
        table.row(vec![op_type.count.to_string(), or_unknown(Some(&op_type.name))]);
    }
    table
}

/// Only tables with rows: which ones exist is the schema's business.
fn tables(contents: &Contents) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[("rows", Right), ("table", Left)]);
    for (name, rows) in contents.tables.iter().flatten().filter(|(_, rows)| **rows > 0) {
        table.row(vec![rows.to_string(), name.clone()]);
    }
    table
}
