//! Doing what the command line asks for.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rpd_remote_block::{Command, DRAIN, RecorderState, RequestVerb};

use crate::attach::Process;
use crate::cli::{Acting, RemoteArguments, RemoteVerb, Start, Stop};
use crate::refusal::Refusal;
use crate::report::{self, Report};
use crate::request::{Done, PATIENCE};
use crate::signals;
use crate::targets::{self, Attached};

/// How often it is looked whether a process has its GPU by now, or has stopped recording.
const GLANCE: Duration = Duration::from_millis(50);

/// Does what the arguments say. `program` is in front of every line on standard error. The status is 0 when all was done, 1
/// when something failed for at least one process.
pub fn run(arguments: &RemoteArguments, program: &str) -> ExitCode {
    let done = reports(&arguments.verb, program).and_then(|reports| {
        let failed = reports.iter().any(Report::failed);
        show(&arguments.verb, &reports, program)?;
        Ok(failed)
    });
    match done {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::FAILURE,
        // A reader that closes the pipe has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note(program, &report::escape(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A standard error that cannot be written is no reason to fail.
fn note(program: &str, line: &str) {
    let _ = writeln!(io::stderr(), "{program}: {line}");
}

fn reports(verb: &RemoteVerb, program: &str) -> anyhow::Result<Vec<Report>> {
    match verb {
        RemoteVerb::Start(start) => act(&start.acting, &start_command(start)?, program),
        RemoteVerb::Stop(stop) => act(&stop.acting, &stop_command(stop), program),
        RemoteVerb::Flush(acting) => act(acting, &plain(RequestVerb::Flush), program),
        RemoteVerb::Status(looking) => Ok(look(targets::of(&looking.processes)?)),
        RemoteVerb::List(_) => Ok(look(targets::all()?)),
    }
}

fn plain(verb: RequestVerb) -> Command {
    Command { verb, duration_ns: 0, file: vec![] }
}

fn start_command(start: &Start) -> anyhow::Result<Command> {
    let duration = start.duration.map_or(0, |duration| duration.as_nanos() as u64);
    // Relative to where this command runs, not to where the process does.
    let file = start.output.as_deref().map(std::path::absolute).transpose()?.unwrap_or_default();
    let file = file.as_os_str().as_bytes().to_vec();
    anyhow::ensure!(file.len() < 4096, "the name of the file is too long");
    Ok(Command { verb: RequestVerb::Start, duration_ns: duration, file })
}

fn stop_command(stop: &Stop) -> Command {
    Command { verb: RequestVerb::Stop, duration_ns: stop.drain.as_nanos() as u64, file: vec![] }
}

/// What is done with each process, all at the same time: they start and stop together, and one that does not answer keeps nobody waiting
/// for the others.
fn each(targets: Vec<Attached>, act: impl Fn(u32, Result<Process, Refusal>) -> Report + Sync) -> Vec<Report> {
    std::thread::scope(|scope| {
        let act = &act;
        let start = |(pid, process): Attached| scope.spawn(move || act(pid, process));
        let threads: Vec<_> = targets.into_iter().map(start).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn act(acting: &Acting, command: &Command, program: &str) -> anyhow::Result<Vec<Report>> {
    let wait = acting.waits();
    Ok(each(targets::of(&acting.processes)?, |pid, process| {
        let process = if wait && command.verb == RequestVerb::Start {
            with_gpu(pid, process, program)
        } else {
            process
        };
        report(pid, process, command, wait)
    }))
}

/// A request on its way, or one that was waited for.
enum PendingRequest {
    Number(u64),
    Answered(Done),
}

fn ask(process: &Process, command: &Command, wait: bool) -> Result<PendingRequest, Refusal> {
    if process.takes_requests.load(Ordering::Relaxed) != 0 {
        return process.request(command).map(PendingRequest::Number);
    }
    if command.verb == RequestVerb::Start && command.duration_ns != 0 {
        return Err(Refusal::NeedsFlag("--for"));
    }
    if command.verb == RequestVerb::Stop && Duration::from_nanos(command.duration_ns) != DRAIN {
        return Err(Refusal::NeedsFlag("--drain"));
    }
    if !command.file.is_empty() {
        return Err(Refusal::NeedsFlag("-o"));
    }
    signals::ask(process, command.verb, wait).map(PendingRequest::Answered)
}

fn report(pid: u32, process: Result<Process, Refusal>, command: &Command, wait: bool) -> Report {
    let process = match process {
        Ok(process) => process,
        Err(refusal) => return Report::refused(pid, &refusal),
    };
    let patience = match command.verb {
        RequestVerb::Stop => PATIENCE.saturating_add(Duration::from_nanos(command.duration_ns)),
        _ => PATIENCE,
    };
    let result = ask(&process, command, wait).and_then(|pending| match pending {
        PendingRequest::Answered(done) => Ok(done),
        PendingRequest::Number(_) if !wait => Ok(Done::Asked),
        PendingRequest::Number(number) => process.outcome(number, patience),
    });
    if wait && command.verb == RequestVerb::Start && command.duration_ns != 0 && result.is_ok() {
        let ended = end_of_recording(&process);
        let done = result.ok().filter(|done| *done == Done::Partly).unwrap_or(Done::Now);
        return Report::of(&process, ended.map(|()| done));
    }
    Report::of(&process, result)
}

/// Waits until the process has stopped recording: by itself, or because another command said so.
fn end_of_recording(process: &Process) -> Result<(), Refusal> {
    while process.status.read().is_some_and(|known| known.state == RecorderState::Recording) {
        process.stat().ok_or(Refusal::Gone)?;
        std::thread::sleep(GLANCE);
    }
    Ok(())
}

/// Waits for a process with the loader to use a GPU.
fn with_gpu(pid: u32, mut process: Result<Process, Refusal>, program: &str) -> Result<Process, Refusal> {
    if matches!(process, Err(Refusal::NoRuntime)) {
        note(program, &format!("{pid}: waiting until the program uses its GPU (Ctrl-C ends the wait)"));
    }
    while matches!(process, Err(Refusal::NoRuntime)) {
        std::thread::sleep(GLANCE);
        process = Process::attach(pid);
        if matches!(process, Err(Refusal::NoSuchProcess)) {
            process = Err(Refusal::Gone);
        }
    }
    process
}

fn look(targets: Vec<Attached>) -> Vec<Report> {
    each(targets, |pid, process| report(pid, process, &plain(RequestVerb::Look), true))
}

fn show(verb: &RemoteVerb, reports: &[Report], program: &str) -> anyhow::Result<()> {
    let json = match verb {
        RemoteVerb::Start(start) => start.acting.json,
        RemoteVerb::Stop(stop) => stop.acting.json,
        RemoteVerb::Flush(acting) => acting.json,
        RemoteVerb::Status(looking) => looking.json,
        RemoteVerb::List(list) => list.json,
    };
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", ascii(&serde_json::to_string_pretty(reports)?))?;
        return Ok(out.flush()?);
    }
    if matches!(verb, RemoteVerb::List(_)) {
        write_table(&mut out, reports)?;
    } else {
        for line in reports.iter().filter_map(|report| report.line(verb)) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    for complaint in reports.iter().filter_map(Report::complaint) {
        note(program, &complaint);
    }
    Ok(())
}

/// A JSON text with everything outside ASCII written as `\uXXXX`: no byte of it disturbs a terminal.
fn ascii(json: &str) -> String {
    let mut units = [0; 2];
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        if c.is_ascii() && c != '\x7f' {
            out.push(c);
        } else {
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
        out
    })
}

fn write_table(out: &mut impl Write, reports: &[Report]) -> io::Result<()> {
    let header = ["pid", "state", "events", "file", "command"].map(str::to_string);
    let rows: Vec<[String; 5]> = std::iter::once(header).chain(reports.iter().map(Report::row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 5] = std::array::from_fn(width);
    for row in &rows {
        let [pid, state, events, file, command] = row;
        let [w0, w1, w2, w3, _] = widths;
        writeln!(out, "{pid:>w0$}  {state:<w1$}  {events:>w2$}  {file:<w3$}  {command}")?;
    }
    Ok(())
}
