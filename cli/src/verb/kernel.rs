//! `rpd kernel`: one kernel from all sides.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use regex::Regex;
use rpd_escape::csv_field;
use rpd_postprocess::code::{KernelFacts, KernelNeeds, TraceCode};
use rpd_postprocess::pattern::pattern;
use rpd_postprocess::region::Region;
use rpd_postprocess::report::kernel::{FoundKernel, Geometry, KernelReport, KernelSums, Launcher};
use rpd_postprocess::report::process_label::ProcessLabels;
use rpd_postprocess::text::{counted, escape};
use rpd_postprocess::trace;
use rpd_postprocess::trim::window::span;
use serde::Serialize;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::candidate::CacheDirectory;
use crate::output::chart::{bar, bar_room};
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::{duration, size};
use crate::output::table::{Align, Table};
use crate::verb::code::rows::{KernelRows, RowsColumns, RowsForm};

/// Show one kernel: how long it takes, with which grids, who launches it, and whether it changes over the run
///
/// NAME is its whole name or a regular expression. If several kernels match, the one with the most time is shown.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  calls      dispatches: all, or those of the row
  total      sum of their durations; average, min, max, p50, p90, p99: of these
             durations
  duration   how many took so long; the last row is what is longer than p99
  grid       workgroups, workgroup: work-items by dimension
  lds        bytes of a workgroup, scratch: bytes of a work-item
  vgpr, sgpr vector registers of a work-item, scalar ones of a wave, where the
             trace has them
  occupancy  waves that a SIMD holds of those it could hold, and what allows no
             more, for each build of the kernel and size of its workgroups and
             LDS: the row of rpd code, whose help says what its columns are
  launched by
             the call that launched it, with its process and thread, and its
             session where several processes have one id (session in --json)
  from       when a part of the run begins, counted from the first call; the
             bar shows the average

{REGION_HELP}

Example:
  rpd kernel trace.rpd saxpy
  rpd kernel pytorch.rpd '^Cijk.*MT256' --in 'step 3'
  rpd kernel --json trace.rpd saxpy | jq .geometries
  rpd kernel --json trace.rpd saxpy | jq '.code[].occupancy'"))]
pub(crate) struct Kernel {
    /// The trace
    file: PathBuf,
    /// The name of a kernel, or a regular expression that is found in it
    name: String,
    /// Count dispatches of instrumented kernels too
    #[arg(long)]
    instrumented: bool,
    /// Write a JSON object; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line, and a line for each row of the tables; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

impl Kernel {
    /// Writes the kernel to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read, has no such kernel, or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = Region::from(self.region.clone()).select(&trace, version)?;
        notes.show("looking at the kernel");
        // A name need not be a regular expression: `f(int*` is one that nothing closes.
        let exact = || Regex::new(&regex::escape(&self.name));
        let wanted = pattern(&self.name).or_else(|_| exact().map_err(|error| error.to_string()));
        let wanted = wanted.map_err(anyhow::Error::msg)?;
        let found = FoundKernel::of((&trace, version), (&self.name, &wanted), &selected, self.instrumented)
            .with_context(|| format!("cannot read the kernels of {name}"))?;
        let zero = span(&trace).map_or(0, |span| span.start_ns);
        let mut missing = Vec::new();
        let (mut code, mut caches) = (Vec::new(), BTreeSet::new());
        if let Some(kernel) = &found.kernel {
            notes.show("looking at its code");
            // Damaged facts of the code hide nothing of the rest.
            let read = TraceCode::of(&trace, &self.file, None, &selected).and_then(|of_trace| {
                caches.clone_from(of_trace.kernel_caches());
                of_trace.rows_of(&kernel.name, |why| missing.push(why))
            });
            match read {
                Ok(rows) => code = rows,
                Err(error) => missing.push(format!("{error:#}")),
            }
        }
        let nothing = match found.kernel.is_none() && !selected.is_everything() {
            true => Some(self.region.nothing(&self.file, (&trace, version), "such kernel")?),
            false => None,
        };
        drop((trace, notes));
        note_left_out(&self.file, found.left_out);
        if found.instrumented > 0 {
            note(format_args!(
                "{name}: {} left out: they ran instrumented kernels; --instrumented counts them",
                counted(found.instrumented, "dispatch is", "dispatches are")
            ));
        }
        let Some(kernel) = found.kernel else {
            if let Some(nothing) = nothing {
                anyhow::bail!("{nothing}");
            }
            let option = if found.instrumented > 0 { " --instrumented" } else { "" };
            anyhow::bail!(
                "{name} has no such kernel as {}; rpd top --by kernel{option} shows those there are",
                escape(&self.name)
            );
        };
        if found.others > 0 {
            note(format_args!(
                "{} too; this is the one with the most time, and rpd top --kernel lists all",
                counted(found.others, "other kernel matches", "other kernels match")
            ));
        }
        missing.iter().for_each(note);
        if code.is_empty() {
            note(format_args!(
                "{name} does not say what the kernel's code needs, so its occupancy is not known: rpd record writes that of AMD's kernels"
            ));
        } else if code.iter().all(|row| row.occupancy.is_none()) {
            note(format_args!(
                "{name}: the occupancy of the kernel is not known: it is reckoned for AMD's GPUs from gfx9 on, from registers and LDS"
            ));
        }
        if self.json {
            output::write_json(&KernelWithCode { kernel: &kernel, code: &code })?;
        } else if self.csv {
            write_csv(&kernel, &code)?;
        } else {
            let room = output::line_width();
            output::write(|out| {
                write_tables(out, &kernel, zero, room)?;
                write_occupancy(out, &code, &caches, room)
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The object of `--json`.
#[derive(Serialize)]
struct KernelWithCode<'a> {
    #[serde(flatten)]
    kernel: &'a KernelReport,
    /// As rpd code --json has it.
    code: &'a [KernelFacts],
}

/// The rows of rpd code.
fn write_occupancy(
    out: &mut impl Write,
    code: &[KernelFacts],
    caches: &BTreeSet<String>,
    room: Option<usize>,
) -> io::Result<()> {
    if code.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let is_candidate = |row: &KernelFacts| row.launches.as_ref().is_some_and(|ran| ran.candidate.is_some());
    let columns = RowsColumns {
        arguments: false,
        says_unknown_arguments: false,
        launches: true,
        ran: code.iter().any(is_candidate).then(|| CacheDirectory::of(caches)),
        directory: None,
    };
    let mut rows = KernelRows::begin(out, RowsForm::Table { room }, columns)?;
    code.iter().try_for_each(|row| rows.row(row))?;
    rows.end()
}

fn time(ns: u64) -> String {
    duration(ns as f64)
}

fn average(sums: &KernelSums) -> f64 {
    sums.total_ns as f64 / sums.calls.max(1) as f64
}

/// `64 x 2 x 1`, without what is 1 at the end.
fn dimensions(sizes: Option<[i64; 3]>) -> String {
    match sizes {
        None => String::new(),
        Some([x, 1, 1]) => x.to_string(),
        Some([x, y, 1]) => format!("{x}x{y}"),
        Some([x, y, z]) => format!("{x}x{y}x{z}"),
    }
}

/// What each launcher is called.
fn launcher_labels(launchers: &[Launcher]) -> Vec<String> {
    let labels = ProcessLabels::of(launchers.iter().filter_map(|of| of.session.zip(of.pid)));
    let label = |of: &Launcher| match (&of.function, of.session, of.pid, of.tid) {
        (Some(function), Some(session), Some(pid), Some(tid)) => {
            format!("{function}, {}", labels.thread(session, pid, tid))
        }
        _ => "(no call in the file)".to_string(),
    };
    launchers.iter().map(label).collect()
}

fn write_tables(
    out: &mut impl Write,
    kernel: &KernelReport,
    zero: i64,
    room: Option<usize>,
) -> io::Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("calls", Right),
        ("total", Right),
        ("average", Right),
        ("min", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("max", Right),
        ("name", Left),
    ])
    .sparing(&["p90", "min", "p50", "average"]);
    table.row(vec![
        kernel.calls.to_string(),
        time(kernel.total_ns),
        duration(kernel.average_ns),
        time(kernel.min_ns),
        time(kernel.percentiles.p50_ns),
        time(kernel.percentiles.p90_ns),
        time(kernel.percentiles.p99_ns),
        time(kernel.max_ns),
        kernel.name.clone(),
    ]);
    table.write(out, 0, room)?;

    let greatest = kernel.histogram.iter().map(|bin| bin.calls).max().unwrap_or(0);
    let bars = bar_room(room, 40);
    let mut table = Table::new(&[("duration", Left), ("calls", Right), ("%", Right), ("", Left)]);
    for bin in &kernel.histogram {
        table.row(vec![
            match bin.to_ns {
                Some(to) => format!("{} to {}", time(bin.from_ns), time(to)),
                None => format!("{} and more", time(bin.from_ns)),
            },
            bin.calls.to_string(),
            format!("{:.1}", 100.0 * bin.calls as f64 / kernel.calls.max(1) as f64),
            bar(bin.calls.into(), greatest.into(), bars),
        ]);
    }
    writeln!(out)?;
    table.write(out, 0, room)?;

    let mut table = Table::new(&[
        ("calls", Right),
        ("total", Right),
        ("average", Right),
        ("max", Right),
        ("lds", Right),
        ("scratch", Right),
        ("vgpr", Right),
        ("sgpr", Right),
        ("workgroup", Left),
        ("grid", Left),
    ])
    .sparing(&["scratch", "max", "sgpr", "total"]);
    for Geometry { grid, workgroup, lds_bytes, scratch_bytes, vgprs, sgprs, sums } in &kernel.geometries {
        let bytes = |bytes: &Option<i64>| {
            bytes.and_then(|bytes| u64::try_from(bytes).ok()).map(size).unwrap_or_default()
        };
        let registers = |number: &Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        table.row(vec![
            sums.calls.to_string(),
            time(sums.total_ns),
            duration(average(sums)),
            time(sums.max_ns),
            bytes(lds_bytes),
            bytes(scratch_bytes),
            registers(vgprs),
            registers(sgprs),
            dimensions(*workgroup),
            if grid.is_some() { dimensions(*grid) } else { "(not in the file)".to_string() },
        ]);
    }
    writeln!(out)?;
    table.write(out, 0, room)?;

    let mut table = Table::new(&[
        ("calls", Right),
        ("total", Right),
        ("average", Right),
        ("max", Right),
        ("launched by", Left),
    ])
    .sparing(&["max"]);
    for (of, label) in kernel.launchers.iter().zip(launcher_labels(&kernel.launchers)) {
        let sums = &of.sums;
        table.row(vec![
            sums.calls.to_string(),
            time(sums.total_ns),
            duration(average(sums)),
            time(sums.max_ns),
            label,
        ]);
    }
    writeln!(out)?;
    table.write(out, 0, room)?;

    let greatest = kernel.trend.iter().map(|part| average(&part.sums)).fold(0.0, f64::max) as u128;
    let mut table =
        Table::new(&[("from", Right), ("calls", Right), ("average", Right), ("max", Right), ("", Left)]);
    for part in &kernel.trend {
        let from = part.start_ns.saturating_sub(zero) as f64 / 1e9;
        let sums = &part.sums;
        table.row(vec![
            format!("{from:+.6}s"),
            sums.calls.to_string(),
            if sums.calls == 0 { String::new() } else { duration(average(sums)) },
            if sums.calls == 0 { String::new() } else { time(sums.max_ns) },
            bar(average(sums) as u128, greatest, bars),
        ]);
    }
    writeln!(out)?;
    table.write(out, 0, room)
}

fn write_csv(kernel: &KernelReport, code: &[KernelFacts]) -> Result<()> {
    output::write(|out| {
        output::write_csv_record(
            out,
            [
                "by",
                "what",
                "start_ns",
                "calls",
                "total_ns",
                "max_ns",
                "lds_bytes",
                "scratch_bytes",
                "vgprs",
                "sgprs",
                "waves",
                "hardware_waves",
                "limited_by",
                "session",
            ],
        )?;
        let optional = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        let mut row = |by: &str,
                       what: &str,
                       start: Option<i64>,
                       session: Option<i64>,
                       sums: &KernelSums,
                       facts: [Option<i64>; 4]| {
            let mut record = vec![
                by.to_string(),
                csv_field(what).into_owned(),
                optional(start),
                sums.calls.to_string(),
                sums.total_ns.to_string(),
                sums.max_ns.to_string(),
            ];
            record.extend(facts.map(optional));
            record.extend([const { String::new() }; 3]);
            record.push(optional(session));
            output::write_csv_record(out, record)
        };
        let KernelReport { calls, total_ns, max_ns, .. } = *kernel;
        row("kernel", &kernel.name, None, None, &KernelSums { calls, total_ns, max_ns }, [None; 4])?;
        for Geometry { grid, workgroup, lds_bytes, scratch_bytes, vgprs, sgprs, sums } in &kernel.geometries {
            let what = format!("{} of {}", dimensions(*grid), dimensions(*workgroup));
            row("geometry", &what, None, None, sums, [*lds_bytes, *scratch_bytes, *vgprs, *sgprs])?;
        }
        for (of, label) in kernel.launchers.iter().zip(launcher_labels(&kernel.launchers)) {
            row("launcher", &label, None, of.session, &of.sums, [None; 4])?;
        }
        for part in &kernel.trend {
            row("part", "", Some(part.start_ns), None, &part.sums, [None; 4])?;
        }
        for KernelFacts { needs, occupancy, launches, .. } in code {
            let Some(ran) = launches else { continue };
            let candidate = ran.candidate.as_ref().map(|candidate| candidate.path.as_str());
            let of_needs = |number: fn(&KernelNeeds) -> u32| needs.as_ref().map(|needs| number(needs).into());
            let facts = [
                ran.lds.map(i64::from),
                of_needs(|needs| needs.scratch),
                of_needs(|needs| needs.vgpr),
                of_needs(|needs| needs.sgpr),
            ];
            let mut record = vec![
                "build".to_string(),
                csv_field(&format!(
                    "{} of {}",
                    candidate.unwrap_or("original"),
                    dimensions(Some(ran.workgroup.map(i64::from)))
                ))
                .into_owned(),
                String::new(),
                ran.calls.to_string(),
                ran.total_ns.to_string(),
                String::new(),
            ];
            record.extend(facts.map(optional));
            let fit = occupancy.as_ref();
            record.extend(
                [fit.map(|fit| fit.waves), fit.map(|fit| fit.hardware)]
                    .map(|waves| optional(waves.map(i64::from))),
            );
            record.push(fit.map(|fit| fit.limited_by.join("+")).unwrap_or_default());
            record.push(String::new());
            output::write_csv_record(out, record)?;
        }
        Ok(())
    })
}
