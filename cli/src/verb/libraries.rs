//! `rpd libraries`: what GPU libraries were called for, and how fast they were.

mod replay;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use rpd_escape::{csv_field, escape};
use rpd_postprocess::library::kernel_trace::{KernelTrace, WorkgroupSpan};
use rpd_postprocess::library::log;
use rpd_postprocess::report::libraries::{self, Configuration};
use rpd_postprocess::text::counted;
use rpd_postprocess::{text, trace};
use serde::Serialize;

use self::replay::{Replay, Replayed};
use crate::args::region::{REGION_HELP, RegionArgs};
use crate::args::value;
use crate::output;
use crate::output::note::{note, note_left_out};
use crate::output::progress::notes;
use crate::output::quantity::{duration, joules, size};
use crate::output::table::{Align, Table};

/// Show calls of GPU libraries by configuration: time, speed, kernels, and the command that runs one again
///
/// `rpd record --libraries rocblas,rccl,...` records these calls. Without such a recording, the libraries' own logs say what was called, but
/// not how long it took: --log.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  calls          how many with these arguments; addresses, handles and streams are left out
  CPU            time in them on their threads
  ops            kernels and copies that they launched
  GPU            sum of the durations of these
  J              their energy above the idle floor, as rpd energy has it; only where the trace has a sensor of energy or power
  GFLOP/s        floating point operations (2mnk of a product of matrices) over that time, 10^9 a second
  bytes          that a call must read and write; of a collective those that each rank has in the end or gives
  GB/s           these over that time; for collectives the algorithm bandwidth
  bus GB/s       for collectives: comparable with what the hardware can do, as rccl-tests have it
  configuration  library, function and arguments; below it the kernels chosen, and with --bench the command

With --replay:
  recorded       time on the GPU of a call that launched something, on average
  replayed       time of a call by rocblas-bench or hipblaslt-bench, which measure ten calls in a row
  ratio          replayed over recorded
  GFLOP/s        of the recorded calls; replayed GFLOP/s is what the program measures

--replay runs these programs where they are installed, on the first GPU of HIP_VISIBLE_DEVICES. It uses no shell, and no option that does
not describe the computation. The exit status is 1 where a command gave no time; its row says why.

With --channels:
  begin          when the kernel began with the collective, in seconds by the clock of its GPU
  duration       until it began with the next one or ended; empty where the log does not say
  rank           of the communicator
  block          the workgroup
  channel        that it serves; empty where RCCL does not say: then it is the block's number, unless channels are left out
  op             the collective's number as RCCL writes it; a send and a receive have one each
  GPU            its place on the PCI bus

Calls that a library makes of another library have rows of their own. Where a call of rocBLAS is inside one of hipBLAS, both rows have the
operations. ncclGroupEnd launches the operations of a group of collectives; the collectives on one stream share the time and the J of its operations.

With --gpu, --queue, --stream or --kernel a call counts if one of its operations is asked for, also where a call inside it launched that. ops,
GPU, J and the kernels are those of the operations asked for. The speed of a call is not known where it has other operations too, or goes on
behind the part.

A configuration whose operations ran for less than a step of the sensor of their GPU has no J.

{REGION_HELP}

Example:
  rpd libraries trace.rpd
  rpd libraries --bench --in 'step 3' trace.rpd
  rpd libraries --replay trace.rpd
  rpd libraries --json trace.rpd | jq -r '.[] | .bench // empty'
  rpd libraries --log run.log
  rpd libraries --channels --log rccl.log"))]
pub(crate) struct Libraries {
    /// The trace
    #[arg(required_unless_present = "log", conflicts_with = "log")]
    file: Option<PathBuf>,
    /// Read calls from what programs have printed with the libraries' logs on (ROCBLAS_LAYER, TENSILE_DB, MIOPEN_ENABLE_LOGGING_CMD,
    /// NCCL_DEBUG=INFO, ROCFFT_LAYER, ROCSPARSE_LAYER, CUBLAS_LOGINFO_DBG, CUBLASLT_LOG_LEVEL=5)
    #[arg(long, value_name = "LOG", value_hint = ValueHint::FilePath, num_args = 1.., conflicts_with_all = ["RegionArgs", "bench", "replay"])]
    log: Vec<PathBuf>,
    /// Show when each workgroup of RCCL's kernels began and ended each collective, from logs with RCCL's kernel trace (NCCL_DEBUG=INFO,
    /// NCCL_DEBUG_SUBSYS=COLL and RCCL_KERNEL_COLL_TRACE_ENABLE=1)
    #[arg(long, conflicts_with = "file")]
    channels: bool,
    /// Show the command that runs such a call by itself, for rocblas-bench, hipblaslt-bench, rccl-tests, rocfft-bench or MIOpenDriver
    #[arg(long)]
    bench: bool,
    /// Run the commands for rocblas-bench and hipblaslt-bench, and show their times beside the recorded ones
    #[arg(long)]
    replay: bool,
    /// End a command of --replay after this time
    #[arg(long, value_name = "TIME", value_parser = value::distance, default_value = "1m", requires = "replay")]
    timeout: Duration,
    /// Write a JSON array with an object for each configuration; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// A configuration, and what its command took.
#[derive(Serialize)]
struct WithReplay<'a> {
    #[serde(flatten)]
    configuration: &'a Configuration,
    replay: Option<&'a Replayed>,
}

/// Calls that a log tells of.
#[derive(Serialize)]
struct LoggedCalls {
    library: &'static str,
    configuration: String,
    calls: u64,
}

impl Libraries {
    /// Writes the calls to standard output.
    ///
    /// # Errors
    /// When the trace or a log cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Some(file) = &self.file else {
            return if self.channels { self.of_channels() } else { self.of_logs() };
        };
        let name = file.display();
        let notes = notes();
        let (trace, version) = trace::open(file, &*notes)?;
        let selected = self.region.select(&trace, version)?;
        notes.show("adding up calls of libraries");
        let found = libraries::Libraries::of((&trace, version), &selected)
            .with_context(|| format!("cannot read the library calls of {name}"))?;
        let nothing = match found.configurations.is_empty() && !selected.is_everything() {
            true => self.region.nothing(file, (&trace, version), "calls of libraries")?,
            false => format!(
                "{name} holds no such calls of libraries; they are recorded with: rpd record --libraries all -- COMMAND"
            ),
        };
        drop((trace, notes));
        note_left_out(file, found.left_out);
        if found.impossible > 0 {
            let calls = counted(found.impossible, "call is", "calls are");
            note(format_args!("{name}: {calls} left out: impossible times, which rpd check lists"));
        }
        if found.unsampled > 0 {
            let left = counted(found.unsampled, "operation is", "operations are");
            note(format_args!("{name}: {left} left out of J: no sensor of their GPU was read meanwhile"));
        }
        if self.replay {
            if found.configurations.is_empty() && !self.json && !self.csv {
                note(nothing);
                return Ok(ExitCode::SUCCESS);
            }
            return self.of_replay(&found.configurations);
        }
        if self.json {
            output::write_json(&found.configurations)?;
        } else if self.csv {
            write_csv(&found.configurations, None)?;
        } else if found.configurations.is_empty() {
            note(nothing);
        } else {
            write_table(&found, self.bench)?;
            // The reason is nearly always the same.
            if let Some((of, why)) =
                found.configurations.iter().find_map(|of| of.joules_refused.as_ref().map(|why| (of, why)))
            {
                note(format_args!(
                    "no J of {}: {why}",
                    escape(format!("{} {}", called(of), of.configuration).trim_end())
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Runs commands again.
    fn of_replay(&self, configurations: &[Configuration]) -> Result<ExitCode> {
        let replay = replay::replay(configurations, self.timeout)?;
        if self.json {
            let rows = configurations.iter().zip(&replay.rows);
            let rows = rows.map(|(configuration, row)| WithReplay { configuration, replay: row.as_ref() });
            output::write_json(&rows.collect::<Vec<_>>())?;
        } else if self.csv {
            write_csv(configurations, Some(&replay))?;
        } else {
            let without = replay.rows.iter().filter(|row| row.is_none()).count();
            if without < configurations.len() {
                write_replayed(configurations, &replay, self.bench)?;
            }
            if without > 0 {
                let left = counted(without as u64, "configuration has", "configurations have");
                note(format_args!("{left} no command for rocblas-bench or hipblaslt-bench"));
            }
        }
        Ok(if replay.is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn of_channels(&self) -> Result<ExitCode> {
        let (mut spans, mut without_begin) = (Vec::new(), 0);
        for file in &self.log {
            let mut trace = KernelTrace::default();
            each_line(file, |line| spans.extend(trace.line(line)))?;
            without_begin += trace.without_begin;
            spans.extend(trace.rest());
        }
        let without_end = spans.iter().filter(|span| span.end_us.is_none()).count() as u64;
        if self.json {
            output::write_json(&spans)?;
        } else if self.csv {
            write_channels_csv(&spans)?;
        } else if spans.is_empty() {
            note(
                "these logs have no lines of RCCL's kernel trace; it writes them with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL RCCL_KERNEL_COLL_TRACE_ENABLE=1 where it was built with them",
            );
        } else {
            write_channels(&spans)?;
        }
        for (count, what) in [(without_end, "end"), (without_begin, "begin")] {
            if count > 0 {
                let count = counted(count, "collective of a workgroup has", "collectives of workgroups have");
                note(format_args!("{count} no {what} in the logs"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn of_logs(&self) -> Result<ExitCode> {
        let mut calls: Vec<LoggedCalls> = Vec::new();
        let mut places: HashMap<(&str, String), usize> = HashMap::new();
        for file in &self.log {
            each_line(file, |line| {
                let Some(log::Logged { library, configuration, calls: more }) = log::call(line) else {
                    return;
                };
                let place = *places.entry((library, configuration.clone())).or_insert(calls.len());
                if place == calls.len() {
                    calls.push(LoggedCalls { library, configuration, calls: 0 });
                }
                calls[place].calls += more;
            })?;
        }
        if self.json {
            output::write_json(&calls)?;
        } else if self.csv {
            output::write(|out| {
                output::write_csv_record(out, ["library", "configuration", "calls"])?;
                for LoggedCalls { library, configuration, calls } in &calls {
                    let configuration = csv_field(configuration);
                    output::write_csv_record(out, [*library, &configuration, &calls.to_string()])?;
                }
                Ok(())
            })?;
        } else if calls.is_empty() {
            note(
                "no line of these logs is one that a GPU library writes of a call; rpd libraries --help names the variables",
            );
        } else {
            let mut table = Table::new(&[
                ("calls", Align::Right),
                ("library", Align::Left),
                ("configuration", Align::Left),
            ]);
            for LoggedCalls { library, configuration, calls } in calls {
                table.row(vec![calls.to_string(), library.to_string(), configuration]);
            }
            output::write(|out| table.write(out, 0, output::line_width()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Goes through what a program has printed, line by line: logs are larger than memory. Bytes that are no UTF-8 are replaced.
///
/// # Errors
/// When the log cannot be read.
pub(super) fn each_line(file: &Path, mut take: impl FnMut(&str)) -> Result<()> {
    let cannot_read = || format!("cannot read the log {}", text::escape_path(file));
    let log = File::open(file).with_context(cannot_read)?;
    for line in BufReader::new(log).split(b'\n') {
        let line = line.with_context(cannot_read)?;
        take(String::from_utf8_lossy(&line).trim_end_matches('\r'));
    }
    Ok(())
}

fn rate(rate: Option<f64>) -> String {
    rate.map(|rate| format!("{rate:.3}")).unwrap_or_default()
}

/// Numbers of comma-separated values.
fn number(number: Option<f64>) -> String {
    number.map(|number| format!("{number:.6}")).unwrap_or_default()
}

/// The library and the function.
fn called(of: &Configuration) -> String {
    let words = [&*of.library, &of.function].into_iter().filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// How a table has a configuration; `failed` says how many of its calls failed.
fn shown(of: &Configuration, failed: &str) -> String {
    format!("{}{failed} {}", called(of), of.configuration.replace(" | ", " "))
}

fn write_table(found: &libraries::Libraries, bench: bool) -> Result<()> {
    use Align::{Left, Right};
    let columns = [
        ("calls", Right),
        ("CPU", Right),
        ("ops", Right),
        ("GPU", Right),
        ("J", Right),
        ("GFLOP/s", Right),
        ("bytes", Right),
        ("GB/s", Right),
        ("bus GB/s", Right),
        ("configuration", Left),
    ];
    let columns: Vec<(&str, Align)> =
        columns.into_iter().filter(|(name, _)| found.has_sensors || *name != "J").collect();
    let mut table = Table::new(&columns).sparing(&["bytes", "bus GB/s", "GB/s", "CPU"]);
    let below = |text: String| {
        let mut cells = vec![String::new(); columns.len() - 1];
        cells.push(text);
        cells
    };
    for of in &found.configurations {
        let failed = if of.failed > 0 { format!(" ({} failed)", of.failed) } else { String::new() };
        let mut cells = vec![
            of.calls.to_string(),
            duration(of.cpu_ns as f64),
            of.operations.to_string(),
            duration(of.gpu_ns as f64),
        ];
        if found.has_sensors {
            cells.push(of.joules.map(joules).unwrap_or_default());
        }
        cells.push(rate(of.gflop_per_s));
        cells.push(of.bytes.map(size).unwrap_or_default());
        cells.extend([rate(of.gb_per_s), rate(of.bus_gb_per_s), shown(of, &failed)]);
        table.row(cells);
        for kernel in &of.kernels {
            table.row(below(format!("  {} x {}", kernel.operations, kernel.name)));
        }
        if let Some(command) = of.bench.as_ref().filter(|_| bench) {
            table.row(below(format!("  $ {command}")));
        }
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

fn write_replayed(configurations: &[Configuration], replay: &Replay, bench: bool) -> Result<()> {
    use Align::{Left, Right};
    let columns = [
        ("calls", Right),
        ("recorded", Right),
        ("replayed", Right),
        ("ratio", Right),
        ("GFLOP/s", Right),
        ("replayed GFLOP/s", Right),
        ("configuration", Left),
    ];
    let mut table = Table::new(&columns);
    let time = |us: Option<f64>| us.map(|us| duration(us * 1e3)).unwrap_or_default();
    for (of, row) in configurations.iter().zip(&replay.rows) {
        let Some(row) = row else { continue };
        table.row(vec![
            of.calls.to_string(),
            time(of.gpu_us),
            time(row.us),
            row.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            rate(of.gflop_per_s),
            rate(row.gflop_per_s),
            shown(of, ""),
        ]);
        if let Some(why) = &row.error {
            table.below_prose(why);
        }
        if let Some(command) = of.bench.as_ref().filter(|_| bench) {
            table.below(&format!("$ {command}"));
        }
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

/// When a collective began, in seconds as RCCL writes them.
fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn write_channels(spans: &[WorkgroupSpan]) -> Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("begin", Right),
        ("duration", Right),
        ("rank", Right),
        ("block", Right),
        ("channel", Right),
        ("op", Right),
        ("GPU", Left),
        ("function", Left),
    ]);
    for of in spans {
        table.row(vec![
            seconds(of.begin_us),
            of.end_us.map(|end| duration((end - of.begin_us) as f64 * 1e3)).unwrap_or_default(),
            of.rank.to_string(),
            of.block.to_string(),
            of.channel.map(|channel| channel.to_string()).unwrap_or_default(),
            of.op.clone(),
            of.pci.clone().unwrap_or_default(),
            of.function.clone(),
        ]);
    }
    output::write(|out| table.write(out, 0, output::line_width()))
}

fn write_channels_csv(spans: &[WorkgroupSpan]) -> Result<()> {
    output::write(|out| {
        output::write_csv_record(
            out,
            ["process", "rank", "block", "channel", "thread", "pci", "op", "function", "begin_us", "end_us"],
        )?;
        let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        for of in spans {
            output::write_csv_record(
                out,
                [
                    csv_field(&of.process).into_owned(),
                    of.rank.to_string(),
                    of.block.to_string(),
                    number(of.channel),
                    number(of.thread),
                    of.pci.clone().unwrap_or_default(),
                    of.op.clone(),
                    csv_field(&of.function).into_owned(),
                    of.begin_us.to_string(),
                    number(of.end_us),
                ],
            )?;
        }
        Ok(())
    })
}

/// `replay`: what the commands took, where they were run.
fn write_csv(configurations: &[Configuration], replay: Option<&Replay>) -> Result<()> {
    output::write(|out| {
        let mut header = vec![
            "library",
            "function",
            "configuration",
            "calls",
            "failed",
            "cpu_ns",
            "operations",
            "gpu_ns",
            "joules",
            "gflop_per_s",
            "bytes",
            "gb_per_s",
            "bus_gb_per_s",
            "kernels",
            "bench",
        ];
        if replay.is_some() {
            header.extend(["replay_us", "replay_gflop_per_s", "replay_ratio", "replay_error"]);
        }
        output::write_csv_record(out, header)?;
        for (at, of) in configurations.iter().enumerate() {
            let kernels: Vec<&str> = of.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let mut cells = vec![
                csv_field(&of.library).into_owned(),
                csv_field(&of.function).into_owned(),
                csv_field(&of.configuration).into_owned(),
                of.calls.to_string(),
                of.failed.to_string(),
                of.cpu_ns.to_string(),
                of.operations.to_string(),
                of.gpu_ns.to_string(),
                number(of.joules),
                number(of.gflop_per_s),
                of.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                number(of.gb_per_s),
                number(of.bus_gb_per_s),
                csv_field(&kernels.join("; ")).into_owned(),
                csv_field(of.bench.as_deref().unwrap_or_default()).into_owned(),
            ];
            if let Some(replay) = replay {
                let row = replay.rows[at].clone().unwrap_or_default();
                cells.extend([number(row.us), number(row.gflop_per_s), number(row.ratio)]);
                cells.push(csv_field(row.error.as_deref().unwrap_or_default()).into_owned());
            }
            output::write_csv_record(out, cells)?;
        }
        Ok(())
    })
}
