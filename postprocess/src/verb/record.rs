//! `rpd record`: runs a command with the recorder in it and says what came of it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::destination::{Destination, Existing};
use crate::executable::{self, NotRunnable};
use crate::launch::{self, Failure};
use crate::note::note;
use crate::quantity::counted;
use crate::recorded::Recorded;
use crate::report::Report;
use crate::{empty_trace, hip_library, preload, roctx, text};

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The trace to record into.
    pub(crate) output: PathBuf,
    /// What may happen to recordings it already holds.
    pub(crate) existing: Existing,
    /// Whether recording starts with the program, or when the program says so.
    pub(crate) start: bool,
    /// Seconds from the start of the program to the beginning of recording.
    pub(crate) delay: Option<f64>,
    /// Seconds of recording, after which it ends.
    pub(crate) duration: Option<f64>,
    /// Size of the trace in MiB at which recording ends.
    pub(crate) max_mb: Option<u64>,
    /// Whether the call stack of every HIP call is kept.
    pub(crate) stack_frames: bool,
    /// By which door calls of HIP are recorded, as RPDT_HIP_DOOR has it; the recorder's choice if None.
    pub(crate) hip_door: Option<&'static str>,
    /// What times kernels and copies, as RPDT_TIMING has it; the recorder's choice if None.
    pub(crate) timing: Option<&'static str>,
    /// Which functions of HIP are recorded, as RPDT_HIP_APIS has it.
    pub(crate) hip_apis: Option<String>,
    /// The program and its arguments; not empty.
    pub(crate) command: Vec<OsString>,
}

/// Runs the command and returns its exit status: 126 or 127, as a shell does, if it cannot be run. Does
/// not return if a signal ended the command: rpd ends by the same one.
///
/// # Errors
/// When recording cannot be set up. The command has not run then.
pub(crate) fn run(request: &Request) -> Result<ExitCode> {
    let name = request.command.first().map(OsString::as_os_str).unwrap_or_default();
    let library = preload::find_library()?;
    let library_path = env::var_os("LD_LIBRARY_PATH");
    let given_door = env::var("RPDT_HIP_DOOR").unwrap_or_default();
    let symbols = match request.hip_door.unwrap_or(&given_door) {
        "symbols" => Some(preload::beside_library(&library, preload::SYMBOLS)?),
        "callbacks" => None,
        // A risk for the program, taken where it is of use.
        _ if hip_library::is_old(library_path.as_deref()) => {
            preload::beside_library(&library, preload::SYMBOLS).ok()
        }
        _ => None,
    };
    let libraries: Vec<&Path> = [Some(library.as_path()), symbols.as_deref()].into_iter().flatten().collect();
    let program = match executable::resolve(name, env::var_os("PATH").as_deref()) {
        Ok(program) => program,
        Err(why) => return Ok(not_runnable(name, why)),
    };
    let report_file = tempfile::Builder::new()
        .prefix("rpd-report-")
        .tempfile()
        .with_context(|| format!("cannot create a file in {}", env::temp_dir().display()))?;
    // A trace is replaced only for a command that can be run.
    let destination = Destination::prepare(&request.output, request.existing)?;

    let mut environment = vec![
        ("LD_PRELOAD", preload::ld_preload(&libraries, env::var_os("LD_PRELOAD").as_deref())),
        ("RPDT_FILENAME", destination.for_recorder()),
        // Absolute, because the command may change its directory.
        ("RPDT_REPORT", std::path::absolute(report_file.path())?.into()),
    ];
    if let Some(path) = roctx::library_path(&library, library_path.as_deref()) {
        environment.push(("LD_LIBRARY_PATH", path));
    }
    if !request.start {
        environment.push(("RPDT_AUTOSTART", "0".into()));
    }
    if request.stack_frames {
        environment.push(("RPDT_STACKFRAMES", "1".into()));
    }
    let choices = [
        ("RPDT_DELAY", request.delay.map(|seconds| seconds.to_string())),
        ("RPDT_DURATION", request.duration.map(|seconds| seconds.to_string())),
        ("RPDT_MAX_MB", request.max_mb.map(|mebibytes| mebibytes.to_string())),
        ("RPDT_TIMING", request.timing.map(str::to_string)),
        ("RPDT_HIP_APIS", request.hip_apis.clone()),
        ("RPDT_HIP_DOOR", request.hip_door.map(str::to_string)),
    ];
    environment.extend(choices.into_iter().filter_map(|(name, value)| Some((name, value?.into()))));
    let environment: Vec<(&OsStr, OsString)> =
        environment.into_iter().map(|(key, value)| (OsStr::new(key), value)).collect();
    let ending = match launch::run(&request.command, &environment) {
        Ok(ending) => ending,
        Err(failure) => {
            destination.abandon();
            return match failure {
                Failure::NotRunnable(why) => Ok(not_runnable(name, why)),
                Failure::Other(error) => Err(error),
            };
        }
    };

    let report = Report::parse(&fs::read(report_file.path()).unwrap_or_default());
    drop(report_file);
    let started = request.start && env::var_os("RPDT_AUTOSTART").is_none_or(|value| value != "0");
    // From here on only the command's own end counts: a trace that cannot be read back is a note.
    match Recorded::by_run(&destination, &report) {
        Ok(recorded) => note(summary(&request.output, &recorded, &report, &program, started)),
        Err(error) => note(format_args!("cannot read back what was recorded: {error:#}")),
    }
    Ok(ending.repeat())
}

fn not_runnable(name: &OsStr, why: NotRunnable) -> ExitCode {
    let name = name.to_string_lossy();
    let name = text::escape(&name);
    match why {
        NotRunnable::Missing => {
            note(format_args!("cannot run {name}: command not found"));
            ExitCode::from(127)
        }
        NotRunnable::Denied => {
            note(format_args!("cannot run {name}: it is not an executable file, or may not be executed"));
            ExitCode::from(126)
        }
    }
}

/// The line at the end: file, kernels, copies, lost records, the recorder's CPU time; and why, if there
/// was no operation at all.
fn summary(file: &Path, recorded: &Recorded, report: &Report, program: &Path, started: bool) -> String {
    let mut parts =
        vec![counted(recorded.kernels, "kernel", "kernels"), counted(recorded.copies, "copy", "copies")];
    if recorded.fills > 0 {
        parts.push(counted(recorded.fills, "fill", "fills"));
    }
    if recorded.others > 0 {
        parts.push(counted(recorded.others, "other operation", "other operations"));
    }
    if recorded.markers > 0 {
        parts.push(counted(recorded.markers, "marker", "markers"));
    }
    // A killed process reports nothing but left its counts in the file; one that could not write to the
    // file any more reports what the file does not have.
    let lost = recorded.lost.max(report.lost());
    let cpu_ns = recorded.cpu_ns.max(report.cpu_ns());
    parts.push(format!("{} lost", counted(lost, "record", "records")));
    parts.push(format!("{:.2} s recorder CPU", cpu_ns as f64 / 1e9));
    let mut line = format!("{}: {}", text::escape(&file.to_string_lossy()), parts.join(", "));
    if recorded.operations() == 0 {
        line.push_str("; ");
        line.push_str(&empty_trace::reason(report, program, started));
    }
    line
}
