//! `rpd import`: what other tools recorded, as a trace.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand};
use rpd_postprocess::import::tinygrad::{self, Imported};
use rpd_postprocess::notes::SharedNotes;
use rpd_postprocess::text::{self, counted};

use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// Writes the events of a tinygrad profile as lines of JSON.
const TINYGRAD: &str = include_str!("import/tinygrad.py");

/// Make a trace of what another tool recorded
#[derive(Args)]
#[command(after_help = "\
Example:
  PROFILE=1 python3 train.py
  rpd import tinygrad /tmp/profile.pkl.$USER -o trace.rpd
  rpd top trace.rpd")]
pub(crate) struct Import {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Subcommand)]
enum Tool {
    Tinygrad(Tinygrad),
}

/// Make a trace of a tinygrad profile, which a program writes that runs with PROFILE=1
///
/// Kernels and copies that tinygrad has times of become operations, launches calls (exec), functions of tinygrad and of
/// the program markers. tinygrad has no times of kernels on HIP and CUDA: rpd record has them. Nothing in the profile is
/// run, and tinygrad need not be installed; python3 must be.
#[derive(Args)]
#[command(after_help = "\
Devices become GPUs by their kind and number, AMD:1 behind AMD; CPU, DISK, NPY, PYTHON and TINYFS come last. The fact name
of each GPU says its device.

Example:
  PROFILE=1 python3 train.py
  rpd import tinygrad /tmp/profile.pkl.$USER -o trace.rpd")]
struct Tinygrad {
    /// The profile: profile.pkl.USER in the directory for temporary files
    profile: PathBuf,
    /// The new trace
    #[arg(short, long, value_name = "FILE", default_value = "trace.rpd", value_parser = value::output())]
    output: PathBuf,
    /// Write one JSON object about it
    #[arg(long)]
    json: bool,
}

impl Import {
    /// Writes the trace and says what it has.
    ///
    /// # Errors
    /// What failed; there is no new trace then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Tool::Tinygrad(Tinygrad { profile, output, json }) = self.tool;
        let shown = text::escape(&profile.to_string_lossy()).into_owned();
        let imported = read(&profile, &output, &notes()).with_context(|| format!("cannot import {shown}"))?;
        if json {
            output::write_json(&imported)?;
        } else {
            say(&output, &imported);
        }
        for (device, launches) in &imported.untimed {
            let has_them = ["HIP", "CUDA"].iter().any(|kind| device.starts_with(kind));
            note(format_args!(
                "tinygrad has no times of {} on {}: they are calls without an operation{}",
                counted(*launches, "launch", "launches"),
                text::escape(device),
                if has_them { "; rpd record -- COMMAND has them" } else { "" }
            ));
        }
        if imported.impossible > 0 {
            let left = counted(imported.impossible, "range", "ranges");
            note(format_args!("{left} left out: the end is before the start"));
        }
        if imported.others > 0 {
            let left = counted(imported.others, "event", "events");
            note(format_args!("{left} left out: a trace has no place for such"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn say(output: &Path, imported: &Imported) {
    note(format_args!(
        "{}: {}, {}, {}",
        text::escape(&output.to_string_lossy()),
        counted(imported.operations, "operation", "operations"),
        counted(imported.launches, "launch", "launches"),
        counted(imported.markers, "marker", "markers")
    ));
}

/// Lets Python read the profile, and makes a trace of what it writes.
fn read(profile: &Path, output: &Path, notes: &SharedNotes) -> Result<Imported> {
    notes.show("reading the profile");
    let mut python = Command::new("python3");
    // What is in the current directory is not a part of Python.
    python.args(["-I", "-c", TINYGRAD]).arg(profile);
    python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut python = python.spawn().context("python3 cannot be run")?;
    let (lines, mut complaint) = (python.stdout.take(), python.stderr.take());
    let lines = BufReader::new(lines.context("python3 has no output")?);
    // It has at most a line to say of what is wrong.
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        let _ = complaint.as_mut().map(|complaint| complaint.read_to_string(&mut said));
        said
    });
    let whole = || -> Result<()> {
        let status = python.wait()?;
        let said = said.join().unwrap_or_default();
        match said.trim().lines().next_back() {
            _ if status.success() => Ok(()),
            Some(why) => Err(anyhow!(text::escape(why).into_owned())),
            None => Err(anyhow!("python3 ended with {status}")),
        }
    };
    tinygrad::import(lines, whole, output, notes)
}
