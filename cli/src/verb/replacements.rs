//! `rpd replacements`: which build of a kernel is faster.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rpd_escape::csv_field;
use rpd_postprocess::region::{Region, Selected};
use rpd_postprocess::report::replacements::{
    self, BuildRow, BuildVerdict, CandidateFile, CompareOptions, Comparison, Runs, Unreplaced,
    ValidatedBuffer,
};
use rpd_postprocess::text::{self, counted};
use rpd_postprocess::trace;
use rusqlite::Connection;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::candidate::{CacheDirectory, short};
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};
use crate::output::width::wrap;

/// Compare the builds of each kernel that was replaced, in one run or between two
///
/// A run of rpd record --kernel-cache DIR --alternate has the program's own kernels and the candidates by turns: give that one FILE.
/// For two runs, give the one without the candidates, and the one with them. Then launches of one kernel and geometry (grid, workgroup,
/// dynamic LDS) on GPUs of one target are compared; where no kernel was replaced in either run, all kernels. Dispatches of instrumented
/// kernels (rpd probe -i) are left out.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  calls     dispatches that ran the build
  median, p10, p90
            durations: half of the calls, a tenth, nine tenths were shorter
  total     sum of the durations
  speed-up  median of the baseline (the first line) over that of the build: above 1 it is faster
  95 % interval
            where the speed-up may lie: 95 of 100 such intervals have the true value. It is made of 2000
            resamples of the durations in blocks of consecutive calls. The random numbers begin with seed 1,
            so the same file gives the same interval. If a build has more than 5000 calls, it rests on 5000
  result    faster or slower: the interval is above or below 1. no difference shown: 1 is inside
            too few calls: fewer than 5. too short: a median of 0, below the resolution of the GPU's clock
  ran       original: the program's own kernel; else the candidate's file and the begin of its SHA-256

Lines below a build say what else may be the reason for a difference: it ran before or after the others,
not by turns; other kernels or an idle queue in front of it; operations beside it on the GPU.

Columns of the candidates:
  calls     dispatches that ran a kernel of the file, instrumented ones too
  outcome   loaded; unused: the program launched no kernel that it could replace, and the line below says
            why; other-target: for another GPU; refused: its kernels do not fit, and the line below says
            why; failed: it could not be read or loaded; removed: it was loaded, and then went or changed
  target    the processor that it is for
  file      (the program): instrumented kernels that the program itself has loaded

--csv has a line per build (median_ns ...), without the candidates; --json has all.

{REGION_HELP}

With a part of a trace (with two traces, that part of each) the dispatches in it are compared. What ran beside them and before
them may lie outside of the part. All candidates of the file are listed.

Example:
  rpd record --kernel-cache builds/ --alternate -- ./app && rpd replacements trace.rpd
  rpd replacements trace.rpd --kernel 'gemm.*float'
  rpd replacements trace.rpd --start 50% --gpu 0
  rpd replacements without.rpd with.rpd --json | jq '.launches[].builds[].speedup'"))]
pub(crate) struct Replacements {
    /// The trace, or the two traces
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show the first N launches and candidates only [default: 20 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N", value_parser = value::count, allow_negative_numbers = true)]
    rows: Option<NonZeroUsize>,
    /// Write one JSON object; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// Launches in a table for people when nothing else is asked for.
const SCREENFUL: usize = 20;

impl Replacements {
    /// Writes the comparison to standard output.
    ///
    /// # Errors
    /// When a trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let names: Vec<String> = self.files.iter().map(text::escape_path).collect();
        let failed = || format!("cannot read the dispatches of {}", names.join(" and "));
        let notes = notes();
        let is_table = !self.json && !self.csv;
        let most = self.rows.map_or(if is_table { SCREENFUL } else { usize::MAX }, NonZeroUsize::get);
        let mut region = Region::from(self.region);
        // Kernels that are not asked for tell how much the runs differ without another build.
        let kernel = region.kernel.take();
        let is_part = kernel.is_some() || !region.is_everything();
        let options = CompareOptions { kernel: kernel.as_ref(), most, notes: &*notes };
        let opened = |file: &PathBuf| -> Result<(Connection, Selected)> {
            let (trace, version) = trace::open(file, &*notes)?;
            let selected = region.select(&trace, version).with_context(|| file.display().to_string())?;
            Ok((trace, selected))
        };
        let traces: Vec<_> = self.files.iter().map(opened).collect::<Result<_>>()?;
        let report = match &traces[..] {
            [(a, of_a), (b, of_b)] => replacements::between((a, of_a), (b, of_b), options),
            [(trace, selected), ..] => replacements::within((trace, selected), options),
            [] => unreachable!("clap wants a file"),
        }
        .with_context(failed)?;
        drop((traces, notes));
        if report.impossible > 0 {
            note(format_args!(
                "{}: {} left out: impossible times, which rpd check lists",
                names.join(", "),
                counted(report.impossible, "dispatch is", "dispatches are")
            ));
        }
        if report.instrumented > 0 {
            note(format_args!(
                "{}: {} left out: they ran instrumented kernels; the view instrumentationCost says how long they took",
                names.join(", "),
                counted(report.instrumented, "dispatch is", "dispatches are")
            ));
        }
        if self.json {
            output::write_json(&report)?;
        } else if self.csv {
            write_csv(&report.launches)?;
        } else {
            let room = output::line_width();
            output::write(|out| write_text(out, &report, &names, most, room))?;
        }
        if report.launches.is_empty() {
            explain_nothing(&report, &names, is_part);
        } else if is_table {
            explain(&report);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Says why there is nothing to compare, and how to get it.
fn explain_nothing(report: &replacements::Replacements, names: &[String], is_part: bool) {
    let which = if is_part { "no such kernel" } else { "no kernel" };
    let what = match names {
        [_] if report.instrumented > 0 => "was replaced in any other dispatch",
        [_] => "was replaced in any dispatch",
        _ => "ran in both with the same geometry",
    };
    let how = match names {
        [_] if report.candidates.is_empty() => {
            "; rpd record --kernel-cache DIR --alternate -- COMMAND replaces them"
        }
        [_] if report.instrumented > 0 => "",
        [_] if !is_part => "; the list of candidates says what became of them",
        _ => "",
    };
    note(format_args!("{}: {which} {what}{how}", names.join(" and ")));
}

/// Says what is not shown.
fn explain(report: &replacements::Replacements) {
    let is_alone = |launch: &&Comparison| matches!(&launch.builds[..], [line] if line.candidate.is_some());
    let alone = report.launches.iter().filter(is_alone).count();
    if alone > 0 {
        note(format_args!(
            "the program's own kernel did not run in {}: record with --alternate, or give a trace without the candidates as well",
            counted(alone as u64, "launch", "launches")
        ));
    }
    if report.more > 0 {
        note(format_args!("{} not shown; -n N shows more", counted(report.more, "launch", "launches")));
    }
}

fn write_text(
    out: &mut impl Write,
    report: &replacements::Replacements,
    names: &[String],
    most: usize,
    room: Option<usize>,
) -> io::Result<()> {
    if let Some(runs) = &report.runs {
        write_runs(out, runs, names, room)?;
    }
    let cache = CacheDirectory::of(&report.kernel_cache);
    for launch in &report.launches {
        write_launch(out, launch, &cache, room)?;
    }
    if report.launches.iter().flat_map(|launch| &launch.builds).any(|line| line.low.is_some()) {
        let how = format!(
            "speed-up: median of the baseline / median of the build. Intervals: {} % of {} resamples of blocks of consecutive calls{}, seed {}{}",
            report.confidence_percent,
            report.resamples,
            sampled(report),
            report.seed,
            by_turns(report)
        );
        write_prose(out, &how, "", room)?;
        writeln!(out)?;
    }
    write_validated(out, &report.validated, &cache, room)?;
    write_candidates(out, &report.candidates, &cache, most, room)
}

/// That some intervals rest on a part of the calls.
fn sampled(report: &replacements::Replacements) -> String {
    let mut lines = report.launches.iter().flat_map(|launch| &launch.builds);
    let is_part = |line: &&BuildRow| (line.sampled as u64) < line.calls;
    lines
        .find(is_part)
        .map(|line| format!(" (of {} drawn at random, where there are more)", line.sampled))
        .unwrap_or_default()
}

/// How the builds ran by turns, as the file says it.
fn by_turns(report: &replacements::Replacements) -> String {
    let modes: Vec<String> =
        report.alternate.iter().map(|mode| format!("; recorded with --alternate={mode}")).collect();
    text::escape(&modes.concat()).into_owned()
}

/// A sentence in as many lines as it takes, `begin` in front of the first.
fn write_prose(out: &mut impl Write, prose: &str, begin: &str, room: Option<usize>) -> io::Result<()> {
    let Some(room) = room else { return writeln!(out, "{begin}{prose}") };
    let mut begin = begin.to_string();
    for line in wrap(prose, room.saturating_sub(begin.len()).max(20)) {
        writeln!(out, "{begin}{line}")?;
        begin = " ".repeat(begin.len());
    }
    Ok(())
}

fn write_runs(out: &mut impl Write, runs: &Runs, names: &[String], room: Option<usize>) -> io::Result<()> {
    for (run, name) in ["A", "B"].iter().zip(names) {
        writeln!(out, "{run}  {name}")?;
    }
    if runs.nothing_replaced {
        writeln!(out, "No kernel was replaced in either: all kernels are compared.")?;
    }
    if !runs.differences.is_empty() {
        writeln!(out, "\nMore differs between the runs than the kernels:")?;
        let mut table = Table::new(&[("what", Align::Left), ("A", Align::Left), ("B", Align::Left)]);
        for difference in &runs.differences {
            let values = [&difference.a, &difference.b]
                .map(|values| values.iter().cloned().collect::<Vec<_>>().join(", "));
            table.row([vec![difference.what.clone()], values.to_vec()].concat());
        }
        table.write(out, 2, room)?;
    }
    let Unreplaced { launches, speedup, least, most } = &runs.unreplaced;
    if let (Some(speedup), Some(least), Some(most)) = (speedup, least, most) {
        let kernels =
            counted(*launches as u64, "launch of a kernel that was", "launches of kernels that were");
        let range = if *launches > 1 {
            format!(", from {} to {}", ratio(*least), ratio(*most))
        } else {
            String::new()
        };
        let sentence = format!(
            "{kernels} replaced in neither: speed-up {}{range}. That much differs without another build.",
            ratio(*speedup)
        );
        writeln!(out)?;
        write_prose(out, &sentence, "", room)?;
    }
    if runs.in_one_only > 0 {
        let launches =
            counted(runs.in_one_only, "launch of these kernels is", "launches of these kernels are");
        writeln!(out, "{launches} in one of the runs only.")?;
    }
    let one = "One run each: what differs from one run to the next (clocks, memory, neighbours) is in no interval. \
        A run with rpd record --alternate has both.";
    write_prose(out, one, "", room)?;
    writeln!(out)
}

fn write_launch(
    out: &mut impl Write,
    launch: &Comparison,
    cache: &CacheDirectory<'_>,
    room: Option<usize>,
) -> io::Result<()> {
    use Align::{Left, Right};
    let name = text::escape(&launch.kernel);
    writeln!(out, "{}", room.map_or(name.clone(), |room| text::shorten(&name, room)))?;
    let mut place = launch.gpu.map_or("GPUs".to_string(), |gpu| format!("gpu {gpu}"));
    if !launch.target.is_empty() {
        let _ = write!(place, " {}", text::escape(&launch.target));
    }
    for (what, size) in [("grid", launch.grid), ("workgroup", launch.workgroup)] {
        if let Some([x, y, z]) = size {
            let _ = write!(place, ", {what} {x},{y},{z}");
        }
    }
    if let Some(bytes) = launch.dynamic_lds.filter(|bytes| *bytes > 0) {
        let _ = write!(place, ", {bytes} bytes of dynamic LDS");
    }
    writeln!(out, "{place}")?;
    let mut table = Table::new(&[
        ("calls", Right),
        ("median", Right),
        ("p10", Right),
        ("p90", Right),
        ("total", Right),
        ("speed-up", Right),
        ("95 % interval", Left),
        ("result", Left),
        ("ran", Left),
    ])
    .sparing(&["total", "p10", "p90", "calls", "95 % interval"]);
    for line in &launch.builds {
        table.row(vec![
            line.calls.to_string(),
            duration(line.median_ns),
            duration(line.p10_ns),
            duration(line.p90_ns),
            duration(line.total_ns as f64),
            line.speedup.map(ratio).unwrap_or_default(),
            interval(line),
            verdict(line, &launch.builds[0]),
            ran(line, cache),
        ]);
    }
    table.write(out, 0, room)?;
    for line in &launch.builds {
        for remark in &line.remarks {
            let which =
                if launch.builds.len() > 2 { format!("{}: ", ran(line, cache)) } else { String::new() };
            write_prose(out, &text::escape(&format!("{which}{remark}")), "  - ", room)?;
        }
    }
    writeln!(out)
}

/// What ran, for people.
fn ran(line: &BuildRow, cache: &CacheDirectory<'_>) -> String {
    let run = line.run.map(|run| format!("{run} ")).unwrap_or_default();
    match (&line.candidate, &line.sha256) {
        (None, _) => format!("{run}original"),
        (Some(path), sha256) => {
            format!("{run}{}", cache.named(path, sha256.as_deref().unwrap_or_default()))
        }
    }
}

fn ratio(ratio: f64) -> String {
    match ratio {
        small if small < 9.9995 => {
            // What is not 1 does not look like it.
            let digits = (3..9).find(|digits| (ratio - 1.0).abs() >= 0.5 * 0.1_f64.powi(*digits));
            format!("{ratio:.0$}x", digits.map_or(3, |digits| digits as usize))
        }
        middle if middle < 99.995 => format!("{ratio:.2}x"),
        _ => format!("{ratio:.0}x"),
    }
}

fn interval(line: &BuildRow) -> String {
    match (line.low, line.high) {
        (Some(low), Some(high)) => format!("{} to {}", ratio(low), ratio(high)),
        (Some(low), None) => format!("{} or more", ratio(low)),
        _ => String::new(),
    }
}

fn verdict(line: &BuildRow, base: &BuildRow) -> String {
    match line.verdict {
        BuildVerdict::TooFewCalls => format!("too few calls ({})", line.calls.min(base.calls)),
        verdict => verdict.name().replace('-', " "),
    }
}

/// What candidates and the program's kernels left in copies of the same buffers.
fn write_validated(
    out: &mut impl Write,
    validated: &[ValidatedBuffer],
    cache: &CacheDirectory<'_>,
    room: Option<usize>,
) -> io::Result<()> {
    use Align::{Left, Right};
    if validated.is_empty() {
        return Ok(());
    }
    let different = validated.iter().filter(|buffer| buffer.different > 0).count();
    let verdict = match different {
        0 if validated.iter().all(|buffer| buffer.argument.is_none()) => "none could be compared".to_string(),
        0 => "no difference".to_string(),
        _ => counted(different as u64, "buffer differs", "buffers differ"),
    };
    writeln!(
        out,
        "results, compared with those of the program's kernels on copies of the buffers: {verdict}"
    )?;
    let mut table = Table::new(&[
        ("dispatches", Right),
        ("argument", Right),
        ("compared", Right),
        ("written", Right),
        ("different", Right),
        ("file", Left),
        ("kernel", Left),
    ])
    .sparing(&["compared"]);
    for buffer in validated {
        let run = buffer.run.map(|run| format!("{run} ")).unwrap_or_default();
        let is_compared = buffer.argument.is_some();
        let number = |number: i64| if is_compared { number.to_string() } else { String::new() };
        table.row(vec![
            buffer.dispatches.to_string(),
            buffer.argument.map(|argument| argument.to_string()).unwrap_or_default(),
            if is_compared { format!("{} {}", buffer.elements, buffer.compared) } else { String::new() },
            number(buffer.written),
            number(buffer.different),
            format!("{run}{}", cache.within(&buffer.candidate)),
            buffer.kernel.clone(),
        ]);
        if let Some(first) = buffer.first {
            table.below_prose(&format!(
                "{}: first at {first}, {} instead of {}",
                counted(buffer.different_dispatches.unsigned_abs(), "dispatch", "dispatches"),
                buffer.candidate_value,
                buffer.original_value
            ));
        }
        if !buffer.reason.is_empty() {
            table.below_prose(&buffer.reason);
        }
    }
    table.write(out, 0, room)?;
    writeln!(out)
}

fn write_candidates(
    out: &mut impl Write,
    candidates: &[CandidateFile],
    cache: &CacheDirectory<'_>,
    most: usize,
    room: Option<usize>,
) -> io::Result<()> {
    use Align::{Left, Right};
    if candidates.is_empty() {
        return Ok(());
    }
    let mut outcomes: Vec<(&str, u64)> = Vec::new();
    for candidate in candidates {
        match outcomes.iter_mut().find(|(outcome, _)| *outcome == candidate.outcome) {
            Some((_, count)) => *count += 1,
            None => outcomes.push((&candidate.outcome, 1)),
        }
    }
    let outcomes: Vec<String> =
        outcomes.iter().map(|(outcome, count)| format!("{count} {}", text::escape(outcome))).collect();
    let place = cache.0.map(|directory| format!(" of {}", text::escape(directory))).unwrap_or_default();
    writeln!(out, "candidates{place}: {}", outcomes.join(", "))?;
    let mut table = Table::new(&[
        ("calls", Right),
        ("outcome", Left),
        ("target", Left),
        ("sha256", Left),
        ("file", Left),
    ])
    .sparing(&["sha256", "target"]);
    for candidate in candidates.iter().take(most) {
        let run = candidate.run.map(|run| format!("{run} ")).unwrap_or_default();
        table.row(vec![
            candidate.calls.to_string(),
            candidate.outcome.clone(),
            candidate.target.clone(),
            short(&candidate.sha256),
            format!("{run}{}", cache.within(&candidate.path)),
        ]);
        if !candidate.reason.is_empty() {
            table.below_prose(&candidate.reason);
        }
    }
    table.write(out, 0, room)?;
    let more = candidates.len().saturating_sub(most);
    if more > 0 {
        writeln!(out, "... and {}", counted(more as u64, "more file", "more files"))
    } else {
        Ok(())
    }
}

fn write_csv(launches: &[Comparison]) -> Result<()> {
    output::write(|out| {
        let header = [
            "kernel",
            "gpu",
            "target",
            "grid",
            "workgroup",
            "dynamic_lds",
            "run",
            "candidate",
            "sha256",
            "calls",
            "sampled",
            "median_ns",
            "p10_ns",
            "p90_ns",
            "total_ns",
            "speedup",
            "low",
            "high",
            "verdict",
            "by_turns",
            "after_other_percent",
            "idle_before_ns",
            "overlapped_percent",
            "remarks",
        ];
        output::write_csv_record(out, header)?;
        for launch in launches {
            for line in &launch.builds {
                output::write_csv_record(out, record(launch, line))?;
            }
        }
        Ok(())
    })
}

fn record(launch: &Comparison, line: &BuildRow) -> Vec<String> {
    let size = |size: Option<[i64; 3]>| size.map(|[x, y, z]| format!("{x},{y},{z}")).unwrap_or_default();
    let number = |number: Option<f64>| number.map(|number| format!("{number:.6}")).unwrap_or_default();
    let field = |text: &str| csv_field(text).into_owned();
    let optional = |text: &Option<String>| text.as_deref().map(field).unwrap_or_default();
    vec![
        field(&launch.kernel),
        launch.gpu.map(|gpu| gpu.to_string()).unwrap_or_default(),
        field(&launch.target),
        size(launch.grid),
        size(launch.workgroup),
        launch.dynamic_lds.map(|bytes| bytes.to_string()).unwrap_or_default(),
        line.run.map(String::from).unwrap_or_default(),
        optional(&line.candidate),
        optional(&line.sha256),
        line.calls.to_string(),
        line.sampled.to_string(),
        format!("{:.1}", line.median_ns),
        format!("{:.1}", line.p10_ns),
        format!("{:.1}", line.p90_ns),
        line.total_ns.to_string(),
        number(line.speedup),
        number(line.low),
        number(line.high),
        line.verdict.name().to_string(),
        line.by_turns.to_string(),
        format!("{:.2}", line.after_other_percent),
        line.idle_before_ns.map(|ns| format!("{ns:.1}")).unwrap_or_default(),
        format!("{:.2}", line.overlapped_percent),
        field(&line.remarks.join("; ")),
    ]
}
