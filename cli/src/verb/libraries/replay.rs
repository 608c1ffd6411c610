//! `rpd libraries --replay`: runs the commands of configurations again, and puts their times beside the recorded ones.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rpd_postprocess::library::replay::{Bench, BenchCommand, Timing};
use rpd_postprocess::notes::Notes;
use rpd_postprocess::report::libraries::Configuration;
use rpd_postprocess::text;
use serde::Serialize;

use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::quantity::duration;
use crate::record::executable;
use crate::system::signals::{die_by, kill_group};

/// Where ROCm has the programs, which does not change PATH.
const ROCM: &str = "/opt/rocm/bin";
/// Where Debian has them: each in a directory of its package.
const DEBIAN: &str = "/usr/libexec/rocm";
/// How much of what a program prints is read.
const MOST_PRINTED: usize = 1 << 20;
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(10);
/// How long what it has printed may take to arrive when it has ended. It may have left a process that holds its output.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a killed program may take to end. The GPU's driver may hold it.
const DYING: Duration = Duration::from_secs(5);

/// What a configuration takes when its command runs alone.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Replayed {
    /// A call, us, by the program's own measurement.
    pub(super) us: Option<f64>,
    /// Its floating point operations over that time, 10^9 a second.
    pub(super) gflop_per_s: Option<f64>,
    /// That time over the recorded one; none where one of them is not known.
    pub(super) ratio: Option<f64>,
    /// Why there is no time.
    pub(super) error: Option<String>,
}

/// What became of all configurations.
pub(super) struct Replay {
    /// One for each configuration; none where its command is for neither program.
    pub(super) rows: Vec<Option<Replayed>>,
    /// Whether each command that there is has a time.
    pub(super) is_whole: bool,
}

/// Runs the commands of `configurations`, one after the other, each for at most `limit`.
///
/// # Errors
/// When none can be run because no program for them is installed.
pub(super) fn replay(configurations: &[Configuration], limit: Duration) -> Result<Replay> {
    let commands: Vec<_> = configurations.iter().map(|of| BenchCommand::of(of.bench.as_deref()?)).collect();
    let mut programs = BTreeMap::new();
    for bench in [Bench::Rocblas, Bench::Hipblaslt] {
        let is_used = |command: &&BenchCommand| command.bench == bench;
        if commands.iter().flatten().flatten().find(is_used).is_some() {
            programs.insert(bench.program(), program(bench));
        }
    }
    let missing: Vec<&str> =
        programs.values().filter_map(|found| found.as_ref().err()).map(String::as_str).collect();
    if !missing.is_empty() && missing.len() == programs.len() {
        bail!("{}", missing.join("; "));
    }
    missing.iter().for_each(note);
    let progress = notes();
    let held = progress.hold_signals();
    let mut known: HashMap<&BenchCommand, Result<Timing, String>> = HashMap::new();
    let mut rows = Vec::new();
    let all = commands.iter().flatten().count();
    for (of, command) in configurations.iter().zip(&commands) {
        let Some(command) = command else {
            rows.push(None);
            continue;
        };
        let timing = match command {
            Err(why) => Err(why.clone()),
            Ok(command) => {
                let number = rows.iter().flatten().count() + 1;
                progress.show(&format!("running {} {number} of {all}", command.bench.program()));
                let run = || match &programs[command.bench.program()] {
                    Ok(program) => run(program, command, limit, &*progress),
                    Err(_) => Err(format!("{} is not installed", command.bench.program())),
                };
                known.entry(command).or_insert_with(run).clone()
            }
        };
        rows.push(Some(match timing {
            Ok(Timing { us, gflop_per_s }) => {
                let ratio = of.gpu_us.filter(|recorded| *recorded > 0.0).map(|recorded| us / recorded);
                Replayed { us: Some(us), gflop_per_s, ratio, error: None }
            }
            Err(why) => Replayed { error: Some(why), ..Replayed::default() },
        }));
        if let Some(signal) = progress.signal() {
            drop((held, progress));
            die_by(signal);
            bail!("interrupted");
        }
    }
    let is_whole = rows.iter().flatten().all(|row| row.error.is_none());
    Ok(Replay { rows, is_whole })
}

/// The file of a program, or what to install.
fn program(bench: Bench) -> Result<PathBuf, String> {
    let name = bench.program();
    let found = executable::resolve(OsStr::new(name), env::var_os("PATH").as_deref()).ok();
    let packed = || {
        fs::read_dir(DEBIAN)
            .ok()?
            .flatten()
            .map(|package| package.path().join(name))
            .find(|file| file.is_file())
    };
    let installed = || Some(PathBuf::from(ROCM).join(name)).filter(|file| file.is_file());
    found.or_else(installed).or_else(packed).ok_or_else(|| {
        format!("--replay needs {name}, which is not on PATH and not in {ROCM}: {}", bench.packages())
    })
}

/// Runs a command, without a shell, in a process group of its own: nothing of it goes on when it takes too long.
fn run(
    program: &PathBuf,
    command: &BenchCommand,
    limit: Duration,
    progress: &dyn Notes,
) -> Result<Timing, String> {
    let shown = text::escape_path(program);
    let mut started = process::Command::new(program);
    started.args(&command.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cannot = |error: std::io::Error| format!("{shown} cannot be run: {error}");
    let mut child =
        std::os::unix::process::CommandExt::process_group(&mut started, 0).spawn().map_err(cannot)?;
    let (printed, complaint) = (Printed::by(child.stdout.take()), Printed::by(child.stderr.take()));
    let status = wait(&mut child, limit, progress);
    // What it has started goes with it.
    kill_group(&child);
    let status = match status.map_err(cannot)? {
        Some(status) => status,
        None => {
            let ended = wait(&mut child, DYING, progress).map_err(cannot)?;
            let more = if ended.is_none() { ", and cannot be ended" } else { "" };
            return Err(format!("not done within {}{more}", duration(limit.as_nanos() as f64)));
        }
    };
    let (printed, complaint) = (printed.text(), complaint.text());
    if !status.success() {
        let line = [complaint, printed].into_iter().find_map(|said| last_line(&said));
        return Err(format!(
            "it failed ({status}){}",
            line.map(|line| format!(": {line}")).unwrap_or_default()
        ));
    }
    command.bench.timing(&printed).ok_or_else(|| "it printed no time".to_string())
}

/// None where it takes too long, or a signal came.
fn wait(child: &mut Child, limit: Duration, progress: &dyn Notes) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() >= limit || progress.signal().is_some() {
            return Ok(None);
        }
        progress.tick();
        std::thread::sleep(LOOK);
    }
}

/// What a program prints. A thread reads it while the program runs, so that it never waits for a reader.
struct Printed {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Closed at the end of the output.
    end: Receiver<()>,
}

impl Printed {
    fn by(mut from: Option<impl Read + Send + 'static>) -> Printed {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (open, end) = mpsc::channel();
        let read = Arc::clone(&bytes);
        std::thread::spawn(move || {
            // Dropped with this thread, which closes it.
            let _open: Sender<()> = open;
            let mut piece = [0; 4096];
            while let Some(from) = &mut from {
                match from.read(&mut piece) {
                    Ok(0) => break,
                    Ok(size) => {
                        let mut kept = read.lock().unwrap_or_else(PoisonError::into_inner);
                        let room = MOST_PRINTED - kept.len();
                        kept.extend_from_slice(&piece[..size.min(room)]);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        });
        Printed { bytes, end }
    }

    /// What there is at its end, or after the patience.
    fn text(self) -> String {
        let _ = self.end.recv_timeout(PATIENCE);
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

fn last_line(said: &str) -> Option<String> {
    let line = said.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(text::shorten(line, MOST_SAID).into_owned())
}

/// Characters of a program's last line.
const MOST_SAID: usize = 200;
