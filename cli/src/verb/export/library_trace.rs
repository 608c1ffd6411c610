//! `rpd export library-trace`, `rpd export library-perf`: calls of GPU libraries as madengine's users have them.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use chrono::Local;
use clap::{Args, ValueHint};
use rpd_escape::csv_field;
use rpd_postprocess::library::{log, trace_csv};
use rpd_postprocess::region::Region;
use rpd_postprocess::report::libraries::{self, Configuration};
use rpd_postprocess::trace;

use super::destination::OutputArgs;
use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output::note::note;
use crate::output::progress::notes;
use crate::verb::libraries::each_line;

/// What both have in each row, for the help of both.
const JOB_HELP: &str = "\
jobid, model and created_date are what --jobid, --model and --date say.";

/// Where the file goes, and what each of its rows has.
#[derive(Args)]
struct CsvArgs {
    #[command(flatten)]
    to: OutputArgs,
    /// Write this into jobid [default: $JENKINS_BUILD_NUMBER or 0]
    #[arg(long, value_name = "ID")]
    jobid: Option<String>,
    /// Write this into model [default: $MAD_MODEL_NAME or nothing]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Write this into created_date [default: the local time of writing]
    #[arg(long, value_name = "DATE")]
    date: Option<String>,
}

impl CsvArgs {
    fn job(&self) -> trace_csv::Job {
        let given = |option: &Option<String>, variable| {
            option.clone().or_else(|| std::env::var(variable).ok()).unwrap_or_default()
        };
        let id = Some(given(&self.jobid, "JENKINS_BUILD_NUMBER")).filter(|id| !id.is_empty());
        let now = || Local::now().format("%Y-%m-%d %H:%M:%S").to_string();
        trace_csv::Job {
            id: id.unwrap_or_else(|| "0".to_string()),
            created: self.date.clone().unwrap_or_else(now),
            model: given(&self.model, "MAD_MODEL_NAME"),
        }
    }
}

/// Write library_trace.csv, as madengine's library tracing tools do
///
/// Which configurations of rocBLAS, hipBLASLt, MIOpen and Tensile a program has used, and how often. From a trace recorded with --libraries,
/// or from the libraries' logs.
#[derive(Args)]
#[command(after_help = format!("\
Columns: jobid, created_date, model, library, config, calls; lines end with CR and LF.
{JOB_HELP}

From a trace: rocblas has the lines for rocblas-bench, hipblaslt those for hipblaslt-bench (its own where it emits them as ranges), miopen
those for MIOpenDriver of its convolutions, tensile the kernels that rocBLAS and hipBLASLt chose, rocblas_function the lines of rocBLAS's profile,
one for each process and configuration. From logs: what madengine finds in them.
With --gpu, --queue, --stream or --kernel a call counts if one of its operations is asked for, as in rpd libraries.

{REGION_HELP}

Example:
  rpd export library-trace trace.rpd -o library_trace.csv
  rpd export library-trace --log run.log -o library_trace.csv"))]
pub(super) struct LibraryTrace {
    /// The trace
    #[arg(required_unless_present = "log", conflicts_with = "log")]
    file: Option<PathBuf>,
    /// Read what a program has printed, with ROCBLAS_LAYER=6, TENSILE_DB=0x8000, HIPBLASLT_LOG_MASK=32 or MIOPEN_ENABLE_LOGGING_CMD=1
    #[arg(long, value_name = "LOG", value_hint = ValueHint::FilePath, num_args = 1.., conflicts_with = "RegionArgs")]
    log: Vec<PathBuf>,
    /// Only configurations of these: rocblas, hipblaslt, rocblas_function, miopen, tensile
    #[arg(long, value_name = "LIBRARIES", value_delimiter = ',', value_parser = trace_csv::LIBRARIES)]
    libraries: Vec<String>,
    #[command(flatten)]
    csv: CsvArgs,
    #[command(flatten)]
    region: RegionArgs,
}

/// Write library_perf.csv: what each configuration of a library took
///
/// From a trace recorded with --libraries: the time is that of the program's own calls, nothing is run a second time.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  jobid, created_date, model
  library, function, config
  calls          how many
  gpu_us         average time on the GPU of a call that launched something, microseconds
  gflops, bytes, gb_per_s, bus_gb_per_s
                 as rpd libraries has them; empty where they are not known
  bench          the command that runs such a call by itself
{JOB_HELP}

{REGION_HELP}

Example:
  rpd export library-perf trace.rpd -o library_perf.csv"))]
pub(super) struct LibraryPerf {
    /// The trace
    file: PathBuf,
    #[command(flatten)]
    csv: CsvArgs,
    #[command(flatten)]
    region: RegionArgs,
}

impl LibraryTrace {
    /// Writes the file.
    ///
    /// # Errors
    /// When the trace or a log cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let mut seen = trace_csv::Seen::default();
        match self.file {
            Some(file) => {
                let (trace, version) = trace::open(&file, &*notes())?;
                let selected = Region::from(self.region).select(&trace, version)?;
                libraries::configurations_seen((&trace, version), &selected, &mut seen)
                    .with_context(|| format!("cannot read the library calls of {}", file.display()))?;
            }
            None => {
                for file in &self.log {
                    each_line(file, |line| {
                        if let Some(logged) = log::madengine(line) {
                            seen.add(logged.library, &logged.configuration, logged.calls);
                        }
                    })?;
                }
            }
        }
        if !self.libraries.is_empty() {
            seen.retain(|library| self.libraries.iter().any(|wanted| wanted == library));
        }
        if seen.is_empty() {
            note(
                "no call of rocBLAS, hipBLASLt, MIOpen or Tensile was found: of library_trace.csv there is a header alone",
            );
        }
        let job = self.csv.job();
        self.csv.to.write(&*notes(), |out| Ok(seen.write(&job, out)?))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl LibraryPerf {
    /// Writes the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = self.region.select(&trace, version)?;
        let found = libraries::Libraries::of((&trace, version), &selected)
            .with_context(|| format!("cannot read the library calls of {}", self.file.display()))?;
        if !selected.is_everything() && found.configurations.is_empty() {
            note(self.region.nothing(&self.file, (&trace, version), "calls of libraries")?);
        } else if found.configurations.is_empty() {
            note(
                "the trace holds no such calls of libraries; they are recorded with: rpd record --libraries all -- COMMAND",
            );
        }
        drop(trace);
        let job = self.csv.job();
        self.csv.to.write(&*notes, |out| Ok(write_perf(&job, &found.configurations, out)?))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write_perf(job: &trace_csv::Job, configurations: &[Configuration], out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record([
        "jobid",
        "created_date",
        "model",
        "library",
        "function",
        "config",
        "calls",
        "gpu_us",
        "gflops",
        "bytes",
        "gb_per_s",
        "bus_gb_per_s",
        "bench",
    ])?;
    let number = |number: Option<f64>| number.map(|number| format!("{number:.6}")).unwrap_or_default();
    for of in configurations {
        writer.write_record([
            &*csv_field(&job.id),
            &csv_field(&job.created),
            &csv_field(&job.model),
            &csv_field(&of.library),
            &csv_field(&of.function),
            &csv_field(&of.configuration),
            &of.calls.to_string(),
            &number(of.gpu_us),
            &number(of.gflop_per_s),
            &of.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            &number(of.gb_per_s),
            &number(of.bus_gb_per_s),
            &csv_field(of.bench.as_deref().unwrap_or_default()),
        ])?;
    }
    writer.flush()
}
