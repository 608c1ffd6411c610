//! The recorder's own libraries, and whether one loads into a program of this machine.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rpd_postprocess::text::counted;

use super::finding::MachineFinding;
use super::system::System;
use crate::record::preload::{self, LIBRARY, LIBRARY_SYMBOLS, SYMBOLS};
use crate::record::report::RunReport;
use crate::record::roctx;

/// Programs that do nothing, in which the recorder is tried.
const TRIED: [&str; 2] = ["/bin/true", "/usr/bin/true"];
const REMOTE: &str = "librpd_remote.so";
const ANEW: &str = "install rpd anew: make install, or pip install ./python";

/// The libraries beside the command, and whether one loads.
pub(crate) fn examine(system: &System) -> Vec<MachineFinding> {
    let library = match preload::find_library() {
        Ok(library) => library,
        Err(error) => return vec![MachineFinding::missing("recorder", format!("{error:#}"), ANEW)],
    };
    let mut findings = vec![loads(system, &library)];
    let mut absent: Vec<&str> = [SYMBOLS, LIBRARY_SYMBOLS, REMOTE]
        .into_iter()
        .filter(|name| preload::beside_library(&library, name).is_err())
        .collect();
    if roctx::directory(&library).is_none() {
        absent.push("libroctx64.so.4");
    }
    findings.push(match absent.is_empty() {
        true => MachineFinding::ok(
            "its other libraries",
            format!("{SYMBOLS}, {LIBRARY_SYMBOLS}, {REMOTE}, libroctx64.so.4"),
        ),
        false => MachineFinding::warn(
            "its other libraries",
            format!(
                "{} beside {LIBRARY}: {}",
                counted(absent.len() as u64, "library is not", "libraries are not"),
                absent.join(", ")
            ),
            ANEW,
        ),
    });
    findings
}

/// Runs a program that does nothing with the recorder in it: it reports that it was loaded.
fn loads(system: &System, library: &Path) -> MachineFinding {
    let subject = "recorder";
    let program = TRIED.into_iter().find(|program| Path::new(program).exists());
    let (true, Some(program)) = (system.is_here(), program) else {
        return MachineFinding::ok(subject, format!("{}, which was not tried", library.display()));
    };
    let tried = || -> std::io::Result<(RunReport, String)> {
        let report = tempfile::Builder::new().prefix("rpd-report-").tempfile()?;
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", preload::ld_preload(&[library], system.variable("LD_PRELOAD")));
        command.env("RPDT_REPORT", report.path()).stdin(Stdio::null());
        let output = command.output()?;
        Ok((
            RunReport::parse(&fs::read(report.path())?),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ))
    };
    match tried() {
        Err(error) => MachineFinding::warn(
            subject,
            format!("{}, which could not be tried: {error}", library.display()),
            "TMPDIR has to name a directory that can be written to",
        ),
        Ok((report, _)) if !report.loaded.is_empty() => {
            MachineFinding::ok(subject, format!("{} loads into programs", library.display()))
        }
        Ok((_, said)) => {
            let name = library.file_name().unwrap_or(OsStr::new(LIBRARY)).to_string_lossy();
            let line = said
                .lines()
                .find(|line| line.contains(&*name))
                .unwrap_or("the loader does not say why")
                .trim();
            MachineFinding::missing(
                subject,
                format!("{} does not load into {program}: {line}", library.display()),
                "build rpd on this machine or an older one; where SELinux denies it, sudo ausearch -m avc says so",
            )
        }
    }
}
