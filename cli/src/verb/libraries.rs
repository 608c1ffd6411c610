//! `rpd libraries`: what GPU libraries were called for, and how fast they were.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use rpd_escape::{csv_field, escape};
use rpd_postprocess::library::log;
use rpd_postprocess::report::libraries::{self, Configuration};
use rpd_postprocess::text::counted;
use rpd_postprocess::{text, trace};
use serde::Serialize;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::left_out::note_left_out;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::{duration, joules};
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
  GB/s           bytes that must be read and written over that time; for collectives the algorithm bandwidth
  bus GB/s       for collectives: comparable with what the hardware can do, as rccl-tests have it
  configuration  library, function and arguments; below it the kernels chosen, and with --bench the command

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
  rpd libraries --json trace.rpd | jq -r '.[] | .bench // empty'
  rpd libraries --log run.log"))]
pub(crate) struct Libraries {
    /// The trace
    #[arg(required_unless_present = "log", conflicts_with = "log")]
    file: Option<PathBuf>,
    /// Read calls from what programs have printed with the libraries' logs on (ROCBLAS_LAYER, TENSILE_DB, MIOPEN_ENABLE_LOGGING_CMD,
    /// NCCL_DEBUG=INFO, ROCFFT_LAYER, ROCSPARSE_LAYER, CUBLAS_LOGINFO_DBG, CUBLASLT_LOG_LEVEL=5)
    #[arg(long, value_name = "LOG", value_hint = ValueHint::FilePath, num_args = 1.., conflicts_with_all = ["RegionArgs", "bench"])]
    log: Vec<PathBuf>,
    /// Show the command that runs such a call by itself, for rocblas-bench, hipblaslt-bench, rccl-tests or rocfft-bench
    #[arg(long)]
    bench: bool,
    /// Write a JSON array with an object for each configuration; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
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
        let Some(file) = &self.file else { return self.of_logs() };
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
        if self.json {
            output::write_json(&found.configurations)?;
        } else if self.csv {
            write_csv(&found.configurations)?;
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
                    escape(&format!("{} {}", called(of), of.configuration))
                ));
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
    let cannot_read = || format!("cannot read the log {}", text::escape(&file.to_string_lossy()));
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

/// The library and the function.
fn called(of: &Configuration) -> String {
    let words = [&*of.library, &of.function].into_iter().filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
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
        ("GB/s", Right),
        ("bus GB/s", Right),
        ("configuration", Left),
    ];
    let shown: Vec<(&str, Align)> =
        columns.into_iter().filter(|(name, _)| found.has_sensors || *name != "J").collect();
    let mut table = Table::new(&shown).sparing(&["bus GB/s", "GB/s", "CPU"]);
    let below = |text: String| {
        let mut cells = vec![String::new(); shown.len() - 1];
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
        cells.extend([
            rate(of.gflop_per_s),
            rate(of.gb_per_s),
            rate(of.bus_gb_per_s),
            format!("{}{failed} {}", called(of), of.configuration.replace(" | ", " ")),
        ]);
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

fn write_csv(configurations: &[Configuration]) -> Result<()> {
    output::write(|out| {
        let header = [
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
            "gb_per_s",
            "bus_gb_per_s",
            "kernels",
            "bench",
        ];
        output::write_csv_record(out, header)?;
        for of in configurations {
            let number =
                |number: Option<f64>| number.map(|number| format!("{number:.6}")).unwrap_or_default();
            let kernels: Vec<&str> = of.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            output::write_csv_record(
                out,
                [
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
                    number(of.gb_per_s),
                    number(of.bus_gb_per_s),
                    csv_field(&kernels.join("; ")).into_owned(),
                    csv_field(of.bench.as_deref().unwrap_or_default()).into_owned(),
                ],
            )?;
        }
        Ok(())
    })
}
