//! Starting and stopping recordings in programs that run.

mod awkward;
mod behind;
mod cuda;
mod cycles;
mod family;
mod first;
mod full;
mod moments;
mod python;
mod signals;

use std::path::Path;
use std::process::Command;

use crate::harness::{Dir, Loading, PATIENCE, Run, Running, Trace, program, rpd_remote, tool};

/// What rpdRemote said.
#[derive(Debug)]
pub(crate) struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Said {
    /// Fails the test, showing everything, unless all was done.
    #[track_caller]
    pub(crate) fn done(self) -> Said {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""), "{self:#?}");
        self
    }

    /// Fails the test, showing everything, unless it failed and said that.
    #[track_caller]
    fn failed(self, why: &str) -> Said {
        assert_eq!(self.code, Some(1), "{self:#?}");
        assert!(self.stderr.contains(why), "{why:?}: {self:#?}");
        self
    }
}

/// rpdRemote with these arguments; one that hangs is ended.
fn command(arguments: &[&str]) -> Command {
    limited(&rpd_remote(), arguments)
}

fn limited(program: &Path, arguments: &[&str]) -> Command {
    let mut command = crate::harness::command("timeout");
    command.arg(PATIENCE.as_secs().to_string()).arg(program).args(arguments);
    command
}

fn said(mut command: Command) -> Said {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs rpdRemote to its end.
fn remote(arguments: &[&str]) -> Said {
    said(command(arguments))
}

/// Runs `rpdRemote VERB OPTIONS PID` to its end.
pub(crate) fn ask(verb: &str, options: &[&str], running: &Running) -> Said {
    let pid = running.pid().to_string();
    remote(&[&[verb], options, &[&pid]].concat())
}

/// The object that `rpdRemote status --json` writes about the process.
#[track_caller]
fn status(running: &Running) -> serde_json::Value {
    let said = ask("status", &["--json"], running).done();
    let reports: Vec<serde_json::Value> = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(reports.len(), 1);
    reports[0].clone()
}

/// A program with the loader.
fn with_loader<'a>(dir: &'a Dir, program: impl Into<std::path::PathBuf>) -> Run<'a> {
    Run::new(dir, program).recorded(Loading::Remote)
}

/// The program of that name that uses no GPU, and can be controlled from its start.
fn early<'a>(dir: &'a Dir, name: &str) -> Run<'a> {
    with_loader(dir, program(name)).env("RPD_REMOTE_FROM", "start")
}

/// The service, launching from four threads.
fn service<'a>(dir: &'a Dir) -> Run<'a> {
    with_loader(dir, program("service")).arg("4").arg("end").arg("steps")
}

/// Tells a program that waits for the file `end`.
fn end(dir: &Dir) {
    std::fs::write(dir.path("end"), "").unwrap();
}

/// The trace is sound: as everywhere, but that a recorder that came late knows nothing of the kernels' code objects.
#[track_caller]
fn check(trace: &Trace) {
    // By a connection that may write: a process that was killed has left its journal.
    assert_eq!(tool("sqlite3", &[trace.path.as_os_str(), "pragma integrity_check".as_ref()]), "ok\n");
    let dangling = trace.texts("select \"table\" || ' -> ' || parent from pragma_foreign_key_check where parent != 'rocpd_kernelcodeobject'");
    assert_eq!(dangling, Vec::<String>::new());
    let objects = "select count(*) from rocpd_kernelapi where codeObject_id != 0 and codeObject_id not in (select id from \
         rocpd_kernelcodeobject)";
    assert_eq!(trace.number(objects), 0);
}

fn maps(running: &Running) -> String {
    std::fs::read_to_string(format!("/proc/{}/maps", running.pid())).unwrap()
}

/// Names of a process's threads.
fn threads(running: &Running) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap();
    // A thread may end between the two.
    let name =
        |task: &Path| std::fs::read_to_string(task.join("comm")).unwrap_or_default().trim_end().to_string();
    let mut names: Vec<_> = tasks.map(|task| name(&task.unwrap().path())).collect();
    names.sort();
    names
}

/// How many descriptors a process has.
fn descriptors(running: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", running.pid())).unwrap().count()
}
