//! `rpd import`: what other tools recorded, as a trace.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
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

/// Bytes that are read of what Python says on standard error.
const MOST_SAID: u64 = 64 << 10;

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

/// Make a trace of the profile that a tinygrad program writes
///
/// A program that runs with PROFILE=1 writes the profile when it ends. In the trace, kernels and copies of which tinygrad has times are
/// operations. Launches are calls of the name exec. Functions of tinygrad and of the program are markers. tinygrad has no times of kernels on
/// HIP and CUDA; rpd record has them. rpd import runs nothing that is in the profile. It needs python3, and not tinygrad.
#[derive(Args)]
#[command(after_help = "\
Each device is a GPU of the trace, numbered by its kind and its number: AMD:1 comes after AMD. CPU, DISK, NPY, PYTHON and
TINYFS come last. rpd info shows the name of each.

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
        let shown = text::escape_path(&profile);
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
        if imported.unlinked > 0 {
            note(format_args!(
                "{} no launch: the profile has more or fewer launches of the same name than times",
                counted(imported.unlinked, "operation has", "operations have")
            ));
        }
        for (left_out, one, many, why) in [
            (
                imported.impossible,
                "range",
                "ranges",
                "a range that ends before it starts is left out with its graph",
            ),
            (imported.unknown, "event", "events", "tinygrad writes no such events"),
        ] {
            if left_out > 0 {
                note(format_args!("{} left out: {why}", counted(left_out, one, many)));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn say(output: &Path, imported: &Imported) {
    note(format_args!(
        "{}: {}, {}, {}",
        text::escape_path(output),
        counted(imported.operations, "operation", "operations"),
        counted(imported.launches, "launch", "launches"),
        counted(imported.markers, "marker", "markers")
    ));
}

/// Lets Python read the profile, and makes a trace of what it writes.
fn read(profile: &Path, output: &Path, notes: &SharedNotes) -> Result<Imported> {
    tinygrad::check_place(output)?;
    notes.show("reading the profile");
    let mut python = Command::new("python3");
    // What is in the current directory is not a part of Python.
    python.args(["-I", "-c", TINYGRAD]).arg(profile);
    python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut python = Python(python.spawn().context("python3 cannot be run")?);
    let (lines, complaint) = (python.0.stdout.take(), python.0.stderr.take());
    let lines = BufReader::new(lines.context("python3 has no output")?);
    // Read meanwhile, so that Python does not wait for a full pipe.
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = complaint.map(|mut complaint| complaint.by_ref().take(MOST_SAID).read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    });
    let profile = tinygrad::Profile::read(lines)?;
    if !profile.is_whole {
        let said = said.join().unwrap_or_default();
        match said.trim().lines().next_back() {
            Some(why) => bail!("{}", text::escape(why)),
            None => bail!("it was not read to its end: python3 ended with {}", python.0.wait()?),
        }
    }
    profile.import(output, notes)
}

/// A process of Python, which is killed when this goes.
struct Python(Child);

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
