//! What the command line asks for, done.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rpd_remote_block::{State, Verb as Asked, Wish};

use crate::attach::Process;
use crate::cli::{Acting, Arguments, Start, Verb};
use crate::refusal::Refusal;
use crate::report::{self, Report};
use crate::request::Done;
use crate::signals;
use crate::targets::{self, Target};

/// How often it is looked whether a process has its GPU by now, or has stopped recording.
const GLANCE: Duration = Duration::from_millis(50);

/// Does what the arguments say. `program` stands in front of every line on standard error. The status is 0 when all was done, 1
/// when something failed for at least one process.
pub fn run(arguments: &Arguments, program: &str) -> ExitCode {
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

fn reports(verb: &Verb, program: &str) -> anyhow::Result<Vec<Report>> {
    match verb {
        Verb::Start(start) => act(&start.acting, &wish_of(start)?, program),
        Verb::Stop(acting) => act(acting, &plain(Asked::Stop), program),
        Verb::Flush(acting) => act(acting, &plain(Asked::Flush), program),
        Verb::Status(looking) => Ok(look(targets::of(&looking.processes)?)),
        Verb::List(_) => Ok(look(targets::all()?)),
    }
}

fn plain(verb: Asked) -> Wish {
    Wish { verb, duration_ns: 0, file: vec![] }
}

fn wish_of(start: &Start) -> anyhow::Result<Wish> {
    let duration = start.duration.map_or(0, |duration| duration.as_nanos() as u64);
    // Relative to where this command runs, not to where the process does.
    let file = start.output.as_deref().map(std::path::absolute).transpose()?.unwrap_or_default();
    let file = file.as_os_str().as_bytes().to_vec();
    anyhow::ensure!(file.len() < 4096, "the name of the file is too long");
    Ok(Wish { verb: Asked::Start, duration_ns: duration, file })
}

/// All are asked before the first is waited for, so that they start and stop together.
fn act(acting: &Acting, wish: &Wish, program: &str) -> anyhow::Result<Vec<Report>> {
    let wait = acting.waits();
    let mut targets = targets::of(&acting.processes)?;
    if wait && wish.verb == Asked::Start {
        targets = targets.into_iter().map(|target| with_gpu(target, program)).collect();
    }
    let asked: Vec<_> = targets
        .into_iter()
        .map(|(pid, process)| {
            let asked = process.map(|process| {
                let asked = ask(&process, wish, wait);
                (process, asked)
            });
            (pid, asked)
        })
        .collect();
    Ok(asked.into_iter().map(|(pid, asked)| finish(pid, asked, wish, wait)).collect())
}

/// A request on its way, or one that was waited for.
enum Pending {
    Number(u64),
    Settled(Done),
}

type Attempt = Result<(Process, Result<Pending, Refusal>), Refusal>;

fn ask(process: &Process, wish: &Wish, wait: bool) -> Result<Pending, Refusal> {
    if process.takes_requests.load(Ordering::Relaxed) != 0 {
        return process.request(wish).map(Pending::Number);
    }
    if wish.duration_ns != 0 {
        return Err(Refusal::NeedsFlag("--for"));
    }
    if !wish.file.is_empty() {
        return Err(Refusal::NeedsFlag("-o"));
    }
    signals::ask(process, wish.verb, wait).map(Pending::Settled)
}

fn finish(pid: u32, attempt: Attempt, wish: &Wish, wait: bool) -> Report {
    let (process, pending) = match attempt {
        Ok(both) => both,
        Err(refusal) => return Report::refused(pid, &refusal),
    };
    let result = pending.and_then(|pending| match pending {
        Pending::Settled(done) => Ok(done),
        Pending::Number(_) if !wait => Ok(Done::Asked),
        Pending::Number(number) => process.outcome(number),
    });
    if wait && wish.duration_ns != 0 && result.is_ok() {
        let ended = end_of_recording(&process);
        let done = result.ok().filter(|done| *done == Done::Partly).unwrap_or(Done::Now);
        return Report::of(&process, ended.map(|()| done));
    }
    Report::of(&process, result)
}

/// Waits until the process has stopped recording: by itself, or because another command said so.
fn end_of_recording(process: &Process) -> Result<(), Refusal> {
    while process.status.read().is_some_and(|known| known.state == State::Recording) {
        process.stat().ok_or(Refusal::Gone)?;
        std::thread::sleep(GLANCE);
    }
    Ok(())
}

/// Waits for a process with the loader to use a GPU.
fn with_gpu((pid, mut process): Target, program: &str) -> Target {
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
    (pid, process)
}

fn look(targets: Vec<Target>) -> Vec<Report> {
    let asked: Vec<_> = targets
        .into_iter()
        .map(|(pid, process)| {
            let asked = process.map(|process| {
                let asked = process.request(&plain(Asked::Look)).map(Pending::Number);
                (process, asked)
            });
            (pid, asked)
        })
        .collect();
    asked.into_iter().map(|(pid, asked)| finish(pid, asked, &plain(Asked::Look), true)).collect()
}

fn show(verb: &Verb, reports: &[Report], program: &str) -> anyhow::Result<()> {
    let json = match verb {
        Verb::Start(start) => start.acting.json,
        Verb::Stop(acting) | Verb::Flush(acting) => acting.json,
        Verb::Status(looking) => looking.json,
        Verb::List(list) => list.json,
    };
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", ascii(&serde_json::to_string_pretty(reports)?))?;
        return Ok(out.flush()?);
    }
    if matches!(verb, Verb::List(_)) {
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
