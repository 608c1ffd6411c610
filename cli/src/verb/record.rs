//! `rpd record`: runs a command with the recorder in it and says what came of it.
//!
//! `HipCalls` and `Timing` are the values of options. The recorder gets their words in variables, and has types of these names for what it
//! makes of them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::{ArgGroup, Args, ValueEnum};
use rpd_duration_log::LogFormat;
use rpd_postprocess::text::{self, counted};
use rpd_settings::file_name;
use rpd_settings::rotation::Rotation;

use crate::args::libraries::{self, LibraryList};
use crate::args::monitor::{self, Monitored};
use crate::args::{apis, code, misunderstood, replacement, value};
use crate::output::note::note;
use crate::record::destination::{self, Destination, Existing};
use crate::record::duration_log::DurationLog;
use crate::record::empty_trace::{self, Start};
use crate::record::executable::{self, NotRunnable};
use crate::record::handlers::Handlers;
use crate::record::hip_library;
use crate::record::launch::{self, Ending, LaunchFailure};
use crate::record::preload;
use crate::record::recorded::RunCounts;
use crate::record::report::RunReport;
use crate::record::roctx;
use crate::system::signals::{self, HeldSignals};
use crate::tools::performance::{self, Watched};

/// Run a command and record what it does on the GPU
///
/// The command keeps its standard streams, its signals and its exit status. One line on standard error
/// says at the end what was recorded, or why nothing was.
#[derive(Args, Default)]
#[command(
    group = ArgGroup::new("selected").multiple(true),
    override_usage = "rpd record [OPTIONS] [--] COMMAND [ARGUMENT]...",
    after_help = "\
Exit status: the command's; 127 if it was not found, 126 if it cannot be executed; 1 if recording could
not be set up, in which case the command was not run.

Example:
  rpd record -o trace.rpd -- python3 train.py --epochs 1"
)]
pub(crate) struct Record {
    /// The file to record into [default: what RPDT_FILENAME says, otherwise trace.rpd]
    ///
    /// %p in it is the process, %h the host, %r the rank, %j the job: each process of the command records into a file of its own.
    #[arg(short, long, value_name = "FILE", value_parser = value::output())]
    pub(super) output: Option<PathBuf>,
    /// Add to the recordings that FILE already holds
    #[arg(long, conflicts_with = "force")]
    pub(super) append: bool,
    /// Replace FILE if it already holds recordings (a file that is no trace is never touched). Given twice, also while
    /// a program records into it, which loses what it has recorded so far
    #[arg(long, action = clap::ArgAction::Count)]
    pub(super) force: u8,
    /// Record nothing until the program calls rpdstart()
    #[arg(long)]
    pub(super) no_start: bool,
    /// Begin recording that long after the start of the program: 10s, 1.5ms; seconds without a unit
    #[arg(long, value_name = "TIME", value_parser = value::time, allow_negative_numbers = true)]
    pub(super) delay: Option<Duration>,
    /// End recording after that long; the program goes on
    #[arg(long, value_name = "TIME", value_parser = value::time, allow_negative_numbers = true)]
    pub(super) duration: Option<Duration>,
    /// End recording when FILE has reached that size: 512MiB, 1GB; MiB without a unit. The program goes on
    #[arg(long = "max-mb", visible_alias = "max-size", value_name = "SIZE", value_parser = value::size,
        allow_negative_numbers = true)]
    pub(super) max_bytes: Option<u64>,
    /// Go on in a next file when the present one has that size or was begun that long ago: 1GB, 10min. Behind trace.rpd come
    /// trace-2.rpd, trace-3.rpd and so on; `rpd merge` puts them together
    #[arg(long, value_name = "SIZE|TIME", value_parser = value::rotation, conflicts_with = "max_bytes")]
    pub(super) rotate: Option<Rotation>,
    /// Keep the call stack of every HIP call (table rocpd_stackframe)
    #[arg(long)]
    pub(super) stackframes: bool,
    /// How calls of HIP are observed; the trace says which it was
    #[arg(long, alias = "hip-door", value_name = "HOW", value_enum, default_value_t = HipCalls::Auto)]
    pub(super) hip_calls: HipCalls,
    /// What times kernels and copies: the runtime's queues, or HIP's own records of its commands
    #[arg(long, value_name = "TIMING", value_enum, default_value_t = Timing::Auto)]
    pub(super) timing: Timing,
    /// Which functions of HIP are recorded: all, none, or changes of the default, such as -hipMalloc,+hipEventQuery
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = apis::hip)]
    pub(super) hip_apis: Option<String>,
    /// Record calls of the HSA runtime with their arguments, for programs without HIP: all, or functions with commas between them.
    /// hsa_amd_memory_* stands for all that begin so; what has - in front is left out: all,-hsa_signal_load_*
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = apis::hsa)]
    pub(super) hsa_apis: Option<String>,
    /// Which functions of CUDA are recorded: all, none, or changes of the default, such as -cudaMalloc,+cudaEventQuery; args, by itself
    /// or in the list, adds the arguments of launches, copies and allocations
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = apis::cuda)]
    pub(super) cuda_apis: Option<String>,
    /// How graphs are recorded on NVIDIA's GPUs: each node, or each launch as a whole, which costs the program less [default: node]
    #[arg(long, value_name = "HOW", value_enum)]
    pub(super) cuda_graphs: Option<CudaGraphs>,
    /// Record calls of these GPU libraries with their arguments: rocblas, hipblas, hipblaslt, miopen, rccl, rocfft, rocsparse,
    /// rocsolver, cublas, cublaslt, cudnn, nccl and cufft, with commas between them, or all; `rpd libraries` says what they did
    #[arg(long, value_name = "LIBRARIES", value_parser = libraries::parse)]
    pub(super) libraries: Option<LibraryList>,
    /// Sample the sensors of GPUs into the table rocpd_monitor: power, energy, vram, vram_process (the memory of the command and
    /// its descendants), sclk, mclk, temp_edge, temp_hotspot, temp_mem, gpu_util and mem_util, with commas between them, or all, or
    /// available: what there is of them. PERIOD is the time from one sample to the next, from
    /// 1ms to 60s [default: 10ms]
    #[arg(long, value_name = "SENSORS[:PERIOD]", value_parser = monitor::parse)]
    pub(super) monitor: Option<Monitored>,
    /// Save the bytes of each code object that the program loads in DIR, where `rpd code` finds them, and name them in the
    /// trace [default of DIR: the trace's name with .code behind it]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "",
        value_parser = code::directory())]
    pub(super) save_code: Option<PathBuf>,
    /// Run kernels of the .hsaco files below DIR in the place of the program's own: those of the same name and parameters
    #[arg(long, value_name = "DIR", group = "selected", value_parser = replacement::directory,
        help_heading = "Replaced kernels")]
    pub(super) kernel_cache: Option<PathBuf>,
    /// Replace, and log, only kernels in whose demangled names this regular expression is found
    #[arg(long, value_name = "REGEX", requires = "selected", value_parser = replacement::regex,
        help_heading = "Replaced kernels")]
    pub(super) kernels: Option<String>,
    /// Replace only kernels of the libraries that this JSON file selects: arrays of patterns for their paths, include,
    /// include_with_deps (also what those libraries need) and exclude. * stands for anything but /, ** for anything
    #[arg(long, value_name = "FILE", requires = "kernel_cache", value_parser = replacement::library_filter(),
        help_heading = "Replaced kernels")]
    pub(super) library_filter: Option<PathBuf>,
    /// Let the program's kernel and the candidates run by turns [possible values: ABAB (the default), random, blocks=N];
    /// `rpd replacements` compares them
    #[arg(long, value_name = "HOW", requires = "kernel_cache", num_args = 0..=1, require_equals = true,
        default_missing_value = "ABAB", value_parser = replacement::alternate, help_heading = "Replaced kernels")]
    pub(super) alternate: Option<String>,
    /// Decides whose turn it is with --alternate=random
    #[arg(long, value_name = "NUMBER", requires = "alternate", help_heading = "Replaced kernels")]
    pub(super) seed: Option<u64>,
    /// Run the first dispatches of these kernels on copies of their buffers, once with the candidate and once with the program's
    /// kernel, and compare what both left. The queue waits meanwhile
    #[arg(long, value_name = "REGEX", requires = "kernel_cache", value_parser = replacement::regex,
        help_heading = "Replaced kernels")]
    pub(super) validate: Option<String>,
    /// How many dispatches of each candidate and kernel --validate compares [default: 10]
    #[arg(long, value_name = "N", requires = "validate", help_heading = "Replaced kernels")]
    pub(super) validate_calls: Option<NonZeroU32>,
    /// What the buffers are compared as: bytes, f16, bf16, f32 or f64; numbers with :TOLERANCE, such as f32:1e-5
    /// [default: bytes]
    #[arg(long, value_name = "TYPE", requires = "validate", value_parser = replacement::measure,
        help_heading = "Replaced kernels")]
    pub(super) validate_as: Option<String>,
    /// Write a line to FILE for each kernel that has completed, while the program runs: its name, when it was launched, began
    /// and ended, as `rpd durations` has them. `console` is standard output; %p, %h, %r and %j as in the trace's name
    #[arg(long, value_name = "FILE", group = "selected")]
    pub(super) log: Option<PathBuf>,
    /// How lines of the log are written: with commas (the default), or as JSON objects
    #[arg(long, value_name = "FORMAT", requires = "log", value_parser = value::log_format())]
    pub(super) log_format: Option<LogFormat>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
    /// What `rpd probe` adds.
    #[arg(skip)]
    pub(super) probing: Probing,
    /// What `rpd run` adds.
    #[arg(skip)]
    pub(super) tooled: Tooled,
}

/// What `rpd run` has beyond `rpd record`.
#[derive(Default)]
pub(super) struct Tooled {
    /// Variables that the tools' configuration has for the command.
    pub(super) environment: Vec<(String, OsString)>,
    /// What the command writes passes through rpd, which looks for the line that says how fast it was.
    pub(super) finds_performance: bool,
}

/// What came of it.
pub(super) struct Recorded {
    /// How the command ended.
    pub(super) ending: Ending,
    /// The trace, if the command ran and there is one for all of its processes.
    pub(super) trace: Option<PathBuf>,
}

impl Recorded {
    /// Of a command that has not run.
    fn nothing(ending: Ending) -> Recorded {
        Recorded { ending, trace: None }
    }
}

/// What `rpd probe` has beyond `rpd record`.
#[derive(Default)]
pub(super) struct Probing {
    /// Instrumented kernels were asked for.
    pub(super) instruments: bool,
    /// Kernels whose basic blocks are counted were.
    pub(super) counts_blocks: bool,
    /// Variables for the recorder.
    pub(super) variables: Vec<(&'static str, OsString)>,
    /// What the command gets is printed.
    pub(super) shows_variables: bool,
    /// Handlers of the user's own, which live as long as the command.
    pub(super) handlers: Option<Handlers>,
}

/// How calls of HIP are recorded.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(super) enum HipCalls {
    /// Whichever costs the program less: symbols where the dynamic loader finds HIP 5.0 to 5.2, otherwise callbacks
    #[default]
    Auto,
    /// By HIP callbacks: every caller, however it found the function
    Callbacks,
    /// By symbol interposition: also where another profiler has the callbacks
    Symbols,
}

/// How graphs are recorded on NVIDIA's GPUs.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum CudaGraphs {
    /// Each kernel and copy in them
    Node,
    /// Each launch as a whole
    Launch,
}

/// What times kernels and copies.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(super) enum Timing {
    /// The queues, and HIP's records where the recorder is loaded late
    #[default]
    Auto,
    /// The runtime's queues
    Hsa,
    /// HIP's records
    Hip,
}

impl Record {
    /// What may happen to recordings that the file already holds.
    fn existing(&self) -> Existing {
        Existing::of(self.append, self.force)
    }

    /// What was asked for that is there for AMD's GPUs alone.
    fn for_amd_alone(&self) -> Vec<&'static str> {
        let asked = [
            ("--stackframes", self.stackframes),
            ("--hip-calls", self.hip_calls.name().is_some()),
            ("--timing", self.timing.name().is_some()),
            ("--hip-apis", self.hip_apis.is_some()),
            ("--hsa-apis", self.hsa_apis.is_some()),
            ("--kernel-cache", self.kernel_cache.is_some()),
            ("rpd probe", self.probing.instruments || self.probing.counts_blocks),
        ];
        asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name).collect()
    }
}

impl HipCalls {
    /// As RPDT_HIP_CALLS has it; none where the recorder chooses.
    fn name(self) -> Option<&'static str> {
        match self {
            HipCalls::Auto => None,
            HipCalls::Callbacks => Some("callbacks"),
            HipCalls::Symbols => Some("symbols"),
        }
    }
}

impl CudaGraphs {
    /// As RPDT_CUDA_GRAPHS has it.
    fn name(self) -> &'static str {
        match self {
            CudaGraphs::Node => "node",
            CudaGraphs::Launch => "launch",
        }
    }
}

impl Timing {
    /// As RPDT_TIMING has it; none where the recorder chooses.
    fn name(self) -> Option<&'static str> {
        match self {
            Timing::Auto => None,
            Timing::Hsa => Some("hsa"),
            Timing::Hip => Some("hip"),
        }
    }
}

/// Traces that the line at the end names.
const NAMED: usize = 3;

impl Record {
    /// Runs the command and returns its exit status: 126 or 127, as a shell does, if it cannot be run. Does
    /// not return if a signal ended the command: rpd ends by the same one.
    ///
    /// # Errors
    /// When recording cannot be set up. The command has not run then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        Ok(self.record()?.ending.repeat())
    }

    /// Runs the command; how it ended.
    ///
    /// # Errors
    /// When recording cannot be set up. The command has not run then.
    pub(super) fn record(self) -> Result<Recorded> {
        let name = self.command.first().map(OsString::as_os_str).unwrap_or_default();
        let library = preload::find_library()?;
        // As the command would have it without the recorder.
        let inherited = |name: &str| {
            let of_tools = self.tooled.environment.iter().find(|(of_tools, _)| of_tools == name);
            of_tools.map(|(_, value)| OsString::from(value)).or_else(|| env::var_os(name))
        };
        let library_path = inherited("LD_LIBRARY_PATH");
        let given = |name| env::var(name).ok().filter(|value| !value.is_empty());
        // The second is the name of an earlier version.
        let given = given("RPDT_HIP_CALLS").or_else(|| given("RPDT_HIP_DOOR")).unwrap_or_default();
        let symbols = match self.hip_calls.name().unwrap_or(&given) {
            "symbols" => Some(preload::beside_library(&library, preload::SYMBOLS)?),
            "callbacks" => None,
            // A risk for the program, taken where it is of use.
            _ if hip_library::is_old(library_path.as_deref()) => {
                preload::beside_library(&library, preload::SYMBOLS).ok()
            }
            _ => None,
        };
        let wants_libraries = self.libraries.is_some() || asks_for("RPDT_LIBRARIES");
        let library_symbols = match wants_libraries {
            true => Some(preload::beside_library(&library, preload::LIBRARY_SYMBOLS)?),
            false => None,
        };
        let preloaded = [Some(library.as_path()), symbols.as_deref(), library_symbols.as_deref()];
        let preloaded: Vec<&Path> = preloaded.into_iter().flatten().collect();
        let program = executable::resolve(name, env::var_os("PATH").as_deref());
        let words: Vec<OsString> = env::args_os().collect();
        if let Some(meant) = misunderstood::value_without_equals(&words, name, program.is_ok()) {
            note(meant);
            return Ok(Recorded::nothing(Ending::Exited(2)));
        }
        let program = match program {
            Ok(program) => program,
            Err(why) => return Ok(Recorded::nothing(not_runnable(name, why))),
        };
        // What is made from here on is removed or filled, also where a signal comes: it is the command's.
        let held = HeldSignals::hold().context("cannot hold signals back")?;
        let report_file = tempfile::Builder::new()
            .prefix("rpd-report-")
            .tempfile()
            .with_context(|| format!("cannot create a file in {}", env::temp_dir().display()))?;
        // A trace is replaced only for a command that can be run.
        let written = written(self.output.as_deref())?;
        let log = self.log.as_deref().map(|log| DurationLog::prepare(log, self.existing())).transpose()?;
        // What is wrong with the variable is said by the recorder.
        let rotation = || Rotation::parse(inherited("RPDT_ROTATE")?.to_str()?).ok();
        let is_rotated = self.rotate.or_else(rotation).is_some();
        let destination = Destination::prepare(&written, self.existing(), is_rotated)?;
        if executable::is_script_for_the_shell(&program) {
            note(format_args!(
                "{0} has no #! line, so /bin/sh runs it; if it is for another program: rpd record -- PROGRAM {0}",
                text::escape_path(&program)
            ));
        }

        let mut environment = vec![
            ("LD_PRELOAD", preload::ld_preload(&preloaded, inherited("LD_PRELOAD").as_deref())),
            ("RPDT_FILENAME", destination.for_recorder()),
            // Absolute, because the command may change its directory.
            ("RPDT_REPORT", std::path::absolute(report_file.path())?.into()),
        ];
        if let Some(path) = roctx::library_path(&library, library_path.as_deref()) {
            environment.push(("LD_LIBRARY_PATH", path));
        }
        match destination {
            Destination::PerProcess(_) if self.existing() == Existing::Refuse => {
                environment.push(("RPDT_APPEND", "0".into()));
            }
            // What was prepared is this run's, whatever a rpd record above this one has said.
            _ if env::var_os("RPDT_APPEND").is_some() => environment.push(("RPDT_APPEND", "1".into())),
            _ => {}
        }
        if self.no_start {
            environment.push(("RPDT_AUTOSTART", "0".into()));
        }
        if self.stackframes {
            environment.push(("RPDT_STACKFRAMES", "1".into()));
        }
        let choices = [
            ("RPDT_DELAY", self.delay.map(|time| format!("{}ns", time.as_nanos()))),
            ("RPDT_DURATION", self.duration.map(|time| format!("{}ns", time.as_nanos()))),
            ("RPDT_ROTATE", self.rotate.map(|rotation| rotation.to_string())),
            ("RPDT_MAX_MB", self.max_bytes.map(|bytes| format!("{bytes}B"))),
            ("RPDT_TIMING", self.timing.name().map(str::to_string)),
            ("RPDT_HIP_APIS", self.hip_apis.clone()),
            ("RPDT_HSA_APIS", self.hsa_apis.clone()),
            ("RPDT_CUDA_APIS", self.cuda_apis.clone()),
            ("RPDT_CUDA_GRAPHS", self.cuda_graphs.map(|how| how.name().to_string())),
            ("RPDT_HIP_CALLS", self.hip_calls.name().map(str::to_string)),
            ("RPDT_LIBRARIES", self.libraries.as_ref().map(LibraryList::variable)),
            ("RPDT_MONITOR", self.monitor.as_ref().map(|monitored| monitored.sensors.clone())),
            // The command and what it starts are its descendants.
            ("RPDT_MONITOR_PROCESS", self.monitor.as_ref().map(|_| std::process::id().to_string())),
            ("RPDT_MONITOR_PERIOD", self.monitor.as_ref().and_then(|monitored| monitored.period.clone())),
            ("LOGDUR_FILTER", self.kernels.clone()),
            ("LOGDUR_LOG_FORMAT", self.log_format.map(|format| format.to_string())),
            ("RPDT_ALTERNATE", self.alternate.clone()),
            ("RPDT_VALIDATE", self.validate.clone()),
            ("RPDT_VALIDATE_CALLS", self.validate_calls.map(|calls| calls.to_string())),
            ("RPDT_VALIDATE_AS", self.validate_as.clone()),
            ("RPDT_SEED", self.seed.map(|seed| seed.to_string())),
        ];
        let ranges = self.libraries.iter().flat_map(LibraryList::ranges);
        environment.extend(ranges.map(|(name, value)| (name, OsString::from(value))));
        if let Some(directory) = &self.save_code {
            let directory = match directory.as_os_str().is_empty() {
                true => {
                    let mut beside = destination.for_recorder();
                    beside.push(".code");
                    beside
                }
                false => destination::absolute(directory)?,
            };
            environment.push(("RPDT_SAVE_CODE", directory));
        }
        if let Some(directory) = &self.kernel_cache {
            environment.push(("LOGDUR_KERNEL_CACHE", std::path::absolute(directory)?.into()));
        }
        if let Some(file) = &self.library_filter {
            environment.push(("LOGDUR_LIBRARY_FILTER", std::path::absolute(file)?.into()));
        }
        if let Some(log) = &log {
            log.begin()?;
            environment.push(("LOGDUR_LOG_LOCATION", log.for_recorder()));
        }
        environment.extend(choices.into_iter().filter_map(|(name, value)| Some((name, value?.into()))));
        let for_amd_alone = self.for_amd_alone();
        let Probing { instruments, variables, shows_variables, mut handlers, .. } = self.probing;
        environment.extend(variables);
        let Tooled { environment: of_tools, finds_performance } = self.tooled;
        let of_tools = of_tools.iter().map(|(name, value)| (OsStr::new(name), OsString::from(value)));
        let environment: Vec<(&OsStr, OsString)> =
            of_tools.chain(environment.into_iter().map(|(key, value)| (OsStr::new(key), value))).collect();
        if shows_variables {
            for (name, value) in &environment {
                note(text::escape(&format!("{}={}", name.to_string_lossy(), value.to_string_lossy())));
            }
        }
        let mut watched = None;
        let prepare = |command: &mut Command| {
            if finds_performance {
                watched = Some(Watched::streams(command)?);
            }
            handlers.as_mut().map_or(Ok(()), Handlers::start)
        };
        let ended = match launch::run(&self.command, &environment, Some(held), prepare) {
            Ok(ended) => ended,
            Err(failure) => {
                destination.abandon();
                return match failure {
                    LaunchFailure::NotRunnable(why) => Ok(Recorded::nothing(not_runnable(name, why))),
                    LaunchFailure::Other(error) => Err(error),
                };
            }
        };

        if let Some(handlers) = handlers {
            handlers.end();
        }
        let trace = destination.trace().map(|trace| trace.path().to_path_buf());
        let mut ending = ended.ending;
        if let Some((found, passed_on)) = watched.map(Watched::end) {
            if let Some(Err(error)) = trace.as_ref().map(|trace| performance::keep(found.as_ref(), trace)) {
                note(format_args!("cannot keep what the command said of its performance: {error:#}"));
            }
            if let Err(error) = passed_on {
                note(format_args!("cannot write what the command printed: {error}"));
                if ending == Ending::Exited(0) {
                    ending = Ending::Exited(1);
                }
            }
        }
        let report = RunReport::parse(&fs::read(report_file.path()).unwrap_or_default());
        let run = report_file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        drop(report_file);
        let wants_sensors =
            self.monitor.is_some() || ["RPDT_MONITOR", "RPDT_SMI_METRICS"].into_iter().any(asks_for);
        let wants_code = self.save_code.is_some() || asks_for("RPDT_SAVE_CODE");
        let waits = self.no_start || env::var_os("RPDT_AUTOSTART").is_some_and(|value| value == "0");
        let is_later = self.delay.is_some() || env::var_os("RPDT_DELAY").is_some();
        let start = match (waits, is_later) {
            (true, _) => Start::ByProgram,
            (false, true) => Start::Later,
            (false, false) => Start::AtOnce,
        };
        // From here on only the command's own end counts: a trace that cannot be read back is a note.
        let killed = matches!(ended.ending, Ending::Killed(_)).then_some(ended.pid);
        match RunCounts::by_run(&destination, is_rotated, &run, &report, killed) {
            Ok(recorded) => {
                let mut files = named(&destination, &written, &report);
                if recorded.later_parts > 0 {
                    files.push_str(&format!(
                        " and {}",
                        counted(recorded.later_parts, "more part", "more parts")
                    ));
                }
                let mut line = summary(&files, &recorded, instruments);
                if recorded.operations() == 0 && recorded.launches_without_op == 0 {
                    line.push_str(&format!("; {}", empty_trace::reason(&report, &program, &ended, start)));
                }
                if wants_sensors && !recorded.has_sensors {
                    line.push_str("; no sensor was read");
                }
                if wants_code && !recorded.has_code {
                    line.push_str("; no code object was saved");
                }
                for failure in &recorded.failures {
                    line.push_str(&format!("; {}", text::escape(failure)));
                }
                if let Some(useless) = recorded.replaced.useless_files() {
                    let trace = match (&destination, &recorded.replaced.trace) {
                        (Destination::PerProcess(_), Some(trace)) => text::escape_path(trace),
                        _ => files,
                    };
                    line.push_str(&format!("; {useless}: rpd replacements {trace} says why"));
                }
                if !for_amd_alone.is_empty() && recorded.is_of_nvidia_alone() {
                    line.push_str(&format!("; for AMD's GPUs alone: {}", for_amd_alone.join(", ")));
                }
                for pid in recorded.unwritten.iter().take(NAMED) {
                    line.push_str(&format!("; nothing that process {pid} recorded is in the file"));
                }
                line.push_str(&cut_off(ended.ending, recorded.cut_off));
                note(line);
            }
            Err(error) => note(format_args!("cannot read back what was recorded: {error:#}")),
        }
        Ok(Recorded { ending, trace })
    }
}

/// Whether a variable of the environment names something that is to be recorded.
fn asks_for(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "none")
}

/// The name of the trace as it was written.
fn written(output: Option<&Path>) -> Result<PathBuf> {
    match (output, env::var_os("RPDT_FILENAME").filter(|name| !name.is_empty())) {
        (Some(output), _) => Ok(output.to_path_buf()),
        (None, Some(name)) => file_name::of_output(&name).map_err(|why| anyhow!("RPDT_FILENAME: {why}")),
        (None, None) => Ok(PathBuf::from("trace.rpd")),
    }
}

/// The trace, or the traces, for people.
fn named(destination: &Destination, written: &Path, report: &RunReport) -> String {
    let made: Vec<PathBuf> = match destination {
        Destination::File(trace)
            if file_name::LETTERS.iter().any(|letter| file_name::has(written, *letter)) =>
        {
            return text::escape_path(trace.path());
        }
        Destination::File(_) => return text::escape_path(written),
        Destination::PerProcess(_) => report.files().into_iter().filter(|file| file.exists()).collect(),
    };
    let names: Vec<String> = made.iter().take(NAMED).map(text::escape_path).collect();
    match made.len().saturating_sub(NAMED) {
        _ if made.is_empty() => format!("{} (no file)", text::escape_path(written)),
        0 => names.join(", "),
        more => format!("{} and {}", names.join(", "), counted(more as u64, "more file", "more files")),
    }
}

/// Says why; what a shell makes of it.
pub(super) fn not_runnable(name: &OsStr, why: NotRunnable) -> Ending {
    let name = name.to_string_lossy();
    let name = text::escape(&name);
    match why {
        NotRunnable::Missing => {
            note(format_args!("cannot run {name}: command not found"));
            Ending::Exited(127)
        }
        NotRunnable::NoInterpreter => {
            note(format_args!(
                "cannot run {name}: the interpreter that it names is not there (the program of its #! line, which a line end of Windows \
                 changes, or its dynamic loader)"
            ));
            Ending::Exited(127)
        }
        NotRunnable::Denied => {
            let tip =
                if name.ends_with(".rpd") { "; the trace to record into is named with -o FILE" } else { "" };
            note(format_args!(
                "cannot run {name}: it is not an executable file, or may not be executed{tip}"
            ));
            Ending::Exited(126)
        }
    }
}

/// The line at the end: files, kernels, how many of them were instrumented (where that was asked for) and how many replaced, copies, lost
/// records, the recorder's CPU time.
fn summary(files: &str, recorded: &RunCounts, instruments: bool) -> String {
    let mut parts = vec![counted(recorded.kernels, "kernel", "kernels")];
    let replaced = &recorded.replaced;
    if instruments || replaced.instrumented > 0 {
        parts.push(format!("{} of them instrumented", replaced.instrumented));
    }
    if replaced.dispatches > 0 || replaced.was_asked_for && !instruments {
        parts.push(format!("{} of them replaced", replaced.dispatches));
    }
    parts.push(counted(recorded.copies, "copy", "copies"));
    if recorded.fills > 0 {
        parts.push(counted(recorded.fills, "fill", "fills"));
    }
    if recorded.others > 0 {
        parts.push(counted(recorded.others, "other operation", "other operations"));
    }
    if recorded.markers > 0 {
        parts.push(counted(recorded.markers, "marker", "markers"));
    }
    parts.push(format!("{} lost", counted(recorded.lost, "record", "records")));
    if recorded.log_lost > 0 {
        parts.push(format!("{} of the log lost", counted(recorded.log_lost, "line", "lines")));
    }
    if recorded.launches_without_op > 0 {
        let launches = counted(recorded.launches_without_op, "launch", "launches");
        parts.push(format!("{launches} without an operation (not known to have completed)"));
    }
    parts.push(format!("{:.2} s recorder CPU", recorded.cpu_ns as f64 / 1e9));
    format!("{files}: {}", parts.join(", "))
}

/// What is to be said of processes that gave the recorder no chance to write its last rows.
fn cut_off(ending: Ending, processes: u64) -> String {
    let interval = format!("{} s", 1.0 / commits_per_second());
    let missing = match processes {
        0 => String::new(),
        1 => format!("up to {interval} before its end may be missing"),
        more => format!("up to {interval} before the ends of {more} processes may be missing"),
    };
    match ending {
        Ending::Killed(signal) if processes == 0 => format!("; {} ended it", signals::signal_name(signal)),
        Ending::Killed(signal) => format!("; {} ended it: {missing}", signals::signal_name(signal)),
        Ending::Exited(_) if processes == 0 => String::new(),
        Ending::Exited(_) => {
            format!("; not all ended by their exit handlers (killed?): {missing}")
        }
    }
}

/// RPDT_AUTOFLUSH as the recorder reads it.
fn commits_per_second() -> f64 {
    let value = env::var("RPDT_AUTOFLUSH").ok().and_then(|value| value.trim().parse::<u8>().ok());
    f64::from(value.filter(|hertz| (1..=100).contains(hertz)).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        record: Record,
    }

    fn record(arguments: &[&str]) -> Record {
        Alone::try_parse_from(["record"].iter().chain(arguments))
            .unwrap_or_else(|error| panic!("{error}"))
            .record
    }

    #[test]
    fn the_commands_options_are_its_own() {
        for arguments in
            [&["-o", "x.rpd", "--", "prog", "-o", "--force"][..], &["-o", "x.rpd", "prog", "-o", "--force"]]
        {
            let request = record(arguments);
            assert_eq!(request.output, Some(PathBuf::from("x.rpd")));
            assert_eq!(request.command, ["prog", "-o", "--force"]);
            assert_eq!(request.existing(), Existing::Refuse);
        }
        assert_eq!(record(&["--", "a", "--", "b"]).command, ["a", "--", "b"]);
    }

    #[test]
    fn times_and_sizes_have_units() {
        let request = record(&["--delay", "250ms", "--duration", "10", "--max-size", "1GB", "x"]);
        let ms = std::time::Duration::from_millis;
        assert_eq!((request.delay, request.duration), (Some(ms(250)), Some(ms(10_000))));
        assert_eq!(request.max_bytes, Some(1_000_000_000));
        assert_eq!(record(&["--max-mb", "3", "x"]).max_bytes, Some(3 << 20));
        assert_eq!(record(&["--rotate", "1GB", "x"]).rotate, Some(Rotation::Size(1_000_000_000)));
        assert_eq!(record(&["--rotate", "10min", "x"]).rotate, Some(Rotation::Time(ms(600_000))));
    }
}
