//! `rpd run`: a command under madengine's tools. One recording replaces these.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use rpd_postprocess::text;
use rpd_schema::session_fact;
use rpd_settings::file_name;

use super::record::{self, Record, Recorded, Tooled};
use crate::args::{libraries, monitor, value};
use crate::output::file::OutputFile;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::record::launch::{self, Ending, LaunchFailure};
use crate::tools::configuration::{Definitions, ToolConfiguration};
use crate::tools::configured::{self, ScriptFailure};
use crate::tools::ours::{self, Output, ToolPlan};
use crate::tools::therock;

/// Run a command under the tools that a configuration of madengine names
///
/// One recording replaces all of them. Afterwards the command writes the files that the tools would have written, where they would have
/// written them. The command keeps its arguments, its standard streams, its signals and its exit status.
#[derive(Args)]
#[command(
    override_usage = "rpd run --tools TOOLS [OPTIONS] [--] COMMAND [ARGUMENT]...",
    after_help = format!("\
Tools that a recording replaces, and the files that are written:
  rpd                      rpd_output/trace.rpd, rpd_output/trace.json
  rocm_trace_lite*         rocm_trace_lite_output/trace.db, trace.json.gz
  rocprof*, rocprofv3*     rocprof_output/HOST/PID_results.json and PID_kernel_trace.csv ..., or .pftrace
  rocprofv3_agent          rocprof_output/rocprofv3_output_kernel_trace.csv, _kernel_stats.csv ...
  *_trace                  library_trace.csv
  gpu_info_*_profiler      gpu_info_power_profiler_output.csv, gpu_info_vram_profiler_output.csv
  therock_check            none: the command runs only where ROCm comes from TheRock
That is: {}

Variables of the tools and docker_env_vars are the command's. Other commands and scripts of the configuration run only with --exec.
Exit status: the command's, as of `rpd record`; 1 if the tools could not be set up, in which case the command was not run.

Examples:
  rpd run --tools rocblas_trace,gpu_info_power_profiler -- python3 train.py
  rpd run --tools '{{\"tools\": [{{\"name\": \"rpd\"}}]}}' -- ./train.sh
  rpd run --tools context.json --exec -- bash run.sh", ours::recorded().collect::<Vec<_>>().join(", "))
)]
pub(crate) struct Run {
    /// The tools: a file, JSON or a Python literal with madengine's list "tools", or names with commas between them
    #[arg(long, value_name = "TOOLS")]
    tools: String,
    /// The file that says what each tool runs, where the configuration does not: madengine's scripts/common/tools.json [default: that
    /// file here or in the directory above]
    #[arg(long, value_name = "FILE")]
    definitions: Option<PathBuf>,
    /// The trace to record into [default: rpd_output/trace.rpd with the tool rpd, otherwise trace.rpd]
    #[arg(short, long, value_name = "FILE", value_parser = value::output(), conflicts_with = "exec")]
    output: Option<PathBuf>,
    /// Replace the trace and the files if they are there
    #[arg(long)]
    force: bool,
    /// Keep the first line `performance: NUMBER METRIC` that the command prints in the trace. Its output passes through rpd then: it writes
    /// to pipes
    #[arg(long, conflicts_with = "exec")]
    performance: bool,
    /// Record nothing: run the tools' own commands and scripts as configured
    #[arg(long)]
    exec: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    /// Runs the command.
    ///
    /// # Errors
    /// When the configuration is wrong, or the tools cannot be set up. The command has not run then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let definitions = Definitions::read(self.definitions.as_deref())?;
        let configuration = ToolConfiguration::read(&self.tools, &definitions, ours::is_known)?;
        match self.exec {
            true => run_as_configured(&configuration, &self.command),
            false => self.record(&configuration),
        }
    }

    /// Records, and writes the files.
    fn record(self, configuration: &ToolConfiguration) -> Result<ExitCode> {
        let ToolPlan { trace, libraries, sensors, outputs, notes: remarks, wants_therock } =
            ToolPlan::of(configuration)?;
        if wants_therock {
            match therock::found(&configured::variables(configuration)) {
                Some(found) => note(format_args!("therock_check: ROCm comes from TheRock: {found}")),
                None => bail!(
                    "therock_check: ROCm does not come from TheRock: there is no rocm-sdk in PATH, no Python package rocm_sdk, and no {} in ROCM_PATH, ROCM_HOME, HIP_PATH, /opt/rocm or /usr/local/rocm; name its directory with ROCM_PATH, or leave therock_check out",
                    therock::MANIFEST
                ),
            }
        }
        let trace = self.output.or(trace).unwrap_or_else(|| "trace.rpd".into());
        if trace.to_string_lossy().contains("%p") {
            bail!("{}: the tools' files are of one trace; leave %p out", text::escape_path(trace));
        }
        let is_recorded = |output: &Output| matches!(output, Output::Copy(path) if ours::place(path) == ours::place(&trace));
        let outputs: Vec<Output> = outputs.into_iter().filter(|output| !is_recorded(output)).collect();
        if outputs.iter().flat_map(Output::files).any(|file| ours::place(&file) == ours::place(&trace)) {
            bail!(
                "{}: the trace and a tool's file would have this name; name another trace with --output",
                text::escape_path(trace)
            );
        }
        if !self.force {
            let there = outputs.iter().flat_map(Output::files).find(|path| path.exists());
            if let Some(path) = there {
                bail!(
                    "{}: the file exists already; replace what is there with --force",
                    text::escape_path(path)
                );
            }
        }
        // What stands for a host or a rank in the name of the trace is written out by then.
        let expanded = file_name::of_process(&trace);
        for path in outputs.iter().map(Output::path).chain([expanded.as_path()]) {
            create_directory(path)?;
        }
        remarks.iter().for_each(note);
        let wanted = |names: String| Some(names).filter(|names| !names.is_empty());
        let parsed = |why: String| anyhow::anyhow!(why);
        let record = Record {
            output: Some(trace),
            force: u8::from(self.force),
            libraries: wanted(libraries).map(|names| libraries::parse(&names)).transpose().map_err(parsed)?,
            monitor: wanted(sensors).map(|names| monitor::parse(&names)).transpose().map_err(parsed)?,
            command: self.command,
            tooled: Tooled {
                environment: configured::variables(configuration),
                finds_performance: self.performance,
            },
            ..Record::default()
        };
        let Recorded { ending, trace } = record.record()?;
        // From here on only the command's own end counts.
        if let Some(trace) = trace {
            write_all(outputs, &trace);
        }
        Ok(ending.repeat())
    }
}

/// The directory of a file that is to be written.
fn create_directory(file: &Path) -> Result<()> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    let Some(directory) = directory else { return Ok(()) };
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", text::escape_path(directory)))
}

/// Makes the tools' files of the trace, and says which of them cannot be made.
fn write_all(outputs: Vec<Output>, trace: &Path) {
    let processes = recorded_processes(trace);
    let write_one = |output: &Output, sessions: &[u32]| {
        if let Err(error) = write(output, trace, sessions) {
            note(format_args!("cannot make {}: {error:#}", text::escape_path(output.path())));
        }
    };
    for output in outputs {
        match (output.is_of_process(), &processes) {
            (false, _) => write_one(&output, &[]),
            (true, Ok(processes)) => processes
                .iter()
                .for_each(|process| write_one(&output.of_process(&process.pid), &process.sessions)),
            (true, Err(error)) => {
                let directory = output.path().parent().map(text::escape_path).unwrap_or_default();
                note(format_args!("no files in {directory}: {error:#}"));
            }
        }
    }
}

/// Makes a file of what these sessions of the trace recorded; of all of it where none is named.
fn write(output: &Output, trace: &Path, sessions: &[u32]) -> Result<()> {
    match output {
        Output::Copy(path) => {
            let mut copy = OutputFile::at(path, &*notes())?;
            io::copy(&mut File::open(trace)?, copy.file())?;
            Ok(copy.finish()?)
        }
        Output::Export(arguments, path) => {
            let words = ["export"].into_iter().chain(arguments.iter().map(String::as_str));
            let words = words.map(OsString::from).chain([trace.into()]);
            let sessions = sessions.iter().map(|session| format!("--session={session}").into());
            let words = words.chain(sessions).chain(["--force".into(), "-o".into(), path.into()]);
            super::run_line(words).map(|_| ())
        }
        Output::Tables(tables, begin) => {
            let arguments = vec!["rocprofv3-csv".to_string(), format!("--tables={}", tables.join(","))];
            write(&Output::Export(arguments, begin.clone()), trace, sessions)
        }
    }
}

/// A process that has rows, by whose number rocprofv3 names its files.
struct RecordedProcess {
    pid: String,
    /// Its part of the trace; empty where all of the trace is its own.
    sessions: Vec<u32>,
}

/// The processes that have calls or operations, in the order in which they began; where none has, the first one.
fn recorded_processes(trace: &Path) -> Result<Vec<RecordedProcess>> {
    let (trace, _) = rpd_schema::open_read(trace)?;
    let mut has_rows = trace.prepare(
        "SELECT EXISTS (SELECT 1 FROM rocpd_api WHERE id BETWEEN ?1 << 32 AND ((?1 + 1) << 32) - 1) \
         OR EXISTS (SELECT 1 FROM rocpd_op WHERE id BETWEEN ?1 << 32 AND ((?1 + 1) << 32) - 1)",
    )?;
    let mut processes: Vec<RecordedProcess> = Vec::new();
    let mut first = None;
    for session in rpd_schema::sessions(&trace).context("cannot read the sessions")? {
        let Some(pid) = session.get(session_fact::PID).map(str::to_string) else { continue };
        let number = session.session;
        let process = || RecordedProcess { pid: pid.clone(), sessions: vec![number] };
        first.get_or_insert_with(process);
        if !has_rows.query_row([number], |row| row.get(0))? {
            continue;
        }
        match processes.iter_mut().find(|known| known.pid == pid) {
            Some(known) => known.sessions.push(number),
            None => processes.push(process()),
        }
    }
    if processes.is_empty() {
        processes.extend(first);
    }
    match processes.as_mut_slice() {
        [] => bail!("nothing was recorded"),
        [only] => only.sessions.clear(),
        _ => {}
    }
    Ok(processes)
}

/// Runs the tools' own commands and scripts.
fn run_as_configured(configuration: &ToolConfiguration, command: &[OsString]) -> Result<ExitCode> {
    let before = configured::found(configured::before(configuration))?;
    let after = configured::found(configured::after(configuration))?;
    let does_nothing = |tool: &&crate::tools::configuration::Tool| {
        tool.command.is_none()
            && tool.environment.is_empty()
            && tool.before.is_empty()
            && tool.after.is_empty()
    };
    if let Some(tool) = configuration.tools.iter().find(does_nothing) {
        bail!(
            "the configuration does not say what {:?} runs; madengine's scripts/common/tools.json does: name it with --definitions",
            tool.name
        );
    }
    let variables = configured::variables(configuration);
    for script in &before {
        match configured::run(script, &variables) {
            Ok(()) => {}
            Err(ScriptFailure::Interrupted(signal)) => return Ok(Ending::Killed(signal).repeat()),
            Err(ScriptFailure::Other(error)) => return Err(error),
        }
    }
    let line = configured::command(configuration, command);
    let environment: Vec<_> = variables.iter().map(|(name, value)| (name.as_ref(), value.clone())).collect();
    let pass_on = |pid, signal| configured::pass_on(command, pid, signal);
    let ended = launch::run_passing(&line, &environment, None, |_| Ok(()), pass_on);
    for script in &after {
        match configured::run(script, &variables) {
            Ok(()) => {}
            Err(ScriptFailure::Interrupted(_)) => break,
            Err(ScriptFailure::Other(error)) => note(format_args!("{error:#}")),
        }
    }
    match ended {
        Ok(ended) => Ok(match (ended.ending, ended.asked_to_end) {
            // As a shell says that a signal ended its command.
            (Ending::Exited(status), Some(signal)) if i32::from(status) == 128 + signal => {
                Ending::Killed(signal)
            }
            (ending, _) => ending,
        }
        .repeat()),
        Err(LaunchFailure::NotRunnable(why)) => {
            let program = line.first().context("there is no command")?;
            Ok(record::not_runnable(program, why).repeat())
        }
        Err(LaunchFailure::Other(error)) => Err(error),
    }
}
