//! `rpd doctor`: what this machine has, what of it will be recorded, and what mends the rest.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use rpd_postprocess::text::counted;
use serde::Serialize;

use crate::machine::{self, MachineFinding, Status, System};
use crate::output;
use crate::output::table::{Align, Table};

/// Say what this machine has for a recording, what of it will be recorded, and what mends the rest
///
/// Drivers, permissions, runtimes and their versions, the recorder's own libraries, other profilers in the environment, limits, and the
/// directory that a trace would be written to. Nothing is changed; no GPU is used.
#[derive(Args)]
#[command(after_help = "\
Columns:
  status   ok: as it should be; warn: it may be recorded in part; missing: what
           it concerns will not be recorded
  subject  what was looked at
  found    what there is: versions are those in the names of the files. Below it:
           what mends it

Libraries are those that a program finds which brings none: LD_LIBRARY_PATH, the dynamic loader's cache, ROCm's and CUDA's folders.
With --root, devices and libraries are those below DIR, variables and the recorder those of this command.

Exit status: 0 what GPUs there are will be recorded; 1 something is missing; 2 wrong usage.

Example:
  rpd doctor
  rpd doctor --json | jq '.findings[] | select(.status == \"missing\")'
  sudo rpd doctor --root /proc/4711/root")]
pub(crate) struct Doctor {
    /// Look at the system below DIR instead: the root of a container's files, for example
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// What is written with `--json`.
#[derive(Serialize)]
struct DoctorObject<'a> {
    findings: &'a [MachineFinding],
    warnings: u64,
    missing: u64,
}

impl Doctor {
    /// Writes what was found. Succeeds if nothing is missing.
    ///
    /// # Errors
    /// When there is no such root, or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if let Some(root) = &self.root
            && !root.is_dir()
        {
            bail!("{} is no directory", root.display());
        }
        let system = System::new(self.root.as_deref(), std::env::vars_os());
        let findings = machine::examine(&system);
        let count = |status| findings.iter().filter(|finding| finding.status == status).count() as u64;
        let (warnings, missing) = (count(Status::Warn), count(Status::Missing));
        match self.json {
            true => output::write_json(&DoctorObject { findings: &findings, warnings, missing })?,
            false => output::write(|out| write_text(&findings, warnings, missing, out))?,
        }
        Ok(if missing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn write_text(
    findings: &[MachineFinding],
    warnings: u64,
    missing: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut table =
        Table::new(&[("status", Align::Left), ("subject", Align::Left), ("found", Align::Left)]).folding(1);
    for finding in findings {
        table.row(vec![finding.status.name().into(), finding.subject.into(), finding.found.clone()]);
        if let Some(mend) = &finding.mend {
            table.below_prose(&format!("mend: {mend}"));
        }
    }
    table.write(out, 0, output::line_width())?;
    writeln!(
        out,
        "{}, {} missing",
        counted(warnings, "warning", "warnings"),
        match missing {
            0 => "nothing".to_string(),
            n => counted(n, "thing", "things"),
        }
    )
}
