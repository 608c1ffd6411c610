//! `rpd record`: runs a command with the recorder in it and says what came of it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rpd_postprocess::text;
use rpd_postprocess::text::counted;
use rpd_settings::file_name;

use crate::output::note::note;
use crate::record::destination::{Destination, Existing};
use crate::record::empty_trace;
use crate::record::executable::{self, NotRunnable};
use crate::record::hip_library;
use crate::record::launch::{self, Ending, Failure};
use crate::record::preload;
use crate::record::recorded::Recorded;
use crate::record::report::Report;
use crate::record::roctx;
use crate::system::signals;

/// Traces that the line at the end names.
const NAMED: usize = 3;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The trace to record into; what RPDT_FILENAME says, or trace.rpd, if None.
    pub(crate) output: Option<PathBuf>,
    /// What may happen to recordings it already holds.
    pub(crate) existing: Existing,
    /// Whether recording starts with the program, or when the program says so.
    pub(crate) start: bool,
    /// Time from the start of the program to the beginning of recording.
    pub(crate) delay: Option<Duration>,
    /// Time of recording, after which it ends.
    pub(crate) duration: Option<Duration>,
    /// Size of the trace in bytes at which recording ends.
    pub(crate) max_bytes: Option<u64>,
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
    let written = written(request.output.as_deref())?;
    let destination = Destination::prepare(&written, request.existing)?;
    if executable::is_script_for_the_shell(&program) {
        note(format_args!(
            "{0} has no #! line, so /bin/sh runs it; if it is for another program: rpd record -- PROGRAM {0}",
            text::escape(&program.to_string_lossy())
        ));
    }

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
        ("RPDT_DELAY", request.delay.map(|time| format!("{}ns", time.as_nanos()))),
        ("RPDT_DURATION", request.duration.map(|time| format!("{}ns", time.as_nanos()))),
        ("RPDT_MAX_MB", request.max_bytes.map(|bytes| format!("{bytes}B"))),
        ("RPDT_TIMING", request.timing.map(str::to_string)),
        ("RPDT_HIP_APIS", request.hip_apis.clone()),
        ("RPDT_HIP_DOOR", request.hip_door.map(str::to_string)),
    ];
    environment.extend(choices.into_iter().filter_map(|(name, value)| Some((name, value?.into()))));
    let environment: Vec<(&OsStr, OsString)> =
        environment.into_iter().map(|(key, value)| (OsStr::new(key), value)).collect();
    let ended = match launch::run(&request.command, &environment) {
        Ok(ended) => ended,
        Err(failure) => {
            destination.abandon();
            return match failure {
                Failure::NotRunnable(why) => Ok(not_runnable(name, why)),
                Failure::Other(error) => Err(error),
            };
        }
    };

    let report = Report::parse(&fs::read(report_file.path()).unwrap_or_default());
    let run = report_file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    drop(report_file);
    let started = request.start && env::var_os("RPDT_AUTOSTART").is_none_or(|value| value != "0");
    // From here on only the command's own end counts: a trace that cannot be read back is a note.
    match Recorded::by_run(&destination, &run, &report) {
        Ok(recorded) => {
            let mut line = summary(&named(&destination, &written, &report), &recorded);
            if recorded.operations() == 0 {
                line.push_str(&format!("; {}", empty_trace::reason(&report, &program, &ended, started)));
            }
            for failure in &recorded.failures {
                line.push_str(&format!("; {}", text::escape(failure)));
            }
            line.push_str(&cut_off(ended.ending, recorded.cut_off));
            note(line);
        }
        Err(error) => note(format_args!("cannot read back what was recorded: {error:#}")),
    }
    Ok(ended.ending.repeat())
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
fn named(destination: &Destination, written: &Path, report: &Report) -> String {
    let made: Vec<PathBuf> = match destination {
        Destination::File(trace) if file_name::has(written, b'h') || file_name::has(written, b'r') => {
            return text::escape(&trace.path().to_string_lossy()).into_owned();
        }
        Destination::File(_) => return text::escape(&written.to_string_lossy()).into_owned(),
        Destination::PerProcess(_) => report.files().into_iter().filter(|file| file.exists()).collect(),
    };
    let names: Vec<String> =
        made.iter().take(NAMED).map(|file| text::escape(&file.to_string_lossy()).into_owned()).collect();
    match made.len().saturating_sub(NAMED) {
        _ if made.is_empty() => format!("{} (no file)", text::escape(&written.to_string_lossy())),
        0 => names.join(", "),
        more => format!("{} and {}", names.join(", "), counted(more as u64, "more file", "more files")),
    }
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
            let tip =
                if name.ends_with(".rpd") { "; the trace to record into is named with -o FILE" } else { "" };
            note(format_args!(
                "cannot run {name}: it is not an executable file, or may not be executed{tip}"
            ));
            ExitCode::from(126)
        }
    }
}

/// The line at the end: files, kernels, copies, lost records, the recorder's CPU time.
fn summary(files: &str, recorded: &Recorded) -> String {
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
    parts.push(format!("{} lost", counted(recorded.lost, "record", "records")));
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
