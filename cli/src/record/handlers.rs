//! Handlers of the user's own for `rpd probe`, each in a process that lives as long as the command.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rpd_postprocess::text;
use tempfile::TempDir;

use crate::output::note::note;
use crate::system::signals;

/// Runs handlers that are written in Python.
const PYTHON: &str = include_str!("../../../python/rpd/handler.py");
/// How long a handler may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks at whether it has.
const GLANCE: Duration = Duration::from_millis(2);
/// Memory with the names of files, where there is some.
const SHARED_MEMORY: &str = "/dev/shm";

/// See the module. They end when this goes.
pub(crate) struct Handlers {
    directory: TempDir,
    files: Vec<PathBuf>,
    /// Those of the first files that have been started.
    running: Vec<Child>,
}

impl Handlers {
    /// None of them runs yet.
    ///
    /// # Errors
    /// Where there is no place for their sockets.
    pub(crate) fn new(files: Vec<PathBuf>) -> Result<Handlers> {
        let shared = Path::new(SHARED_MEMORY);
        let place = if shared.is_dir() { shared.to_path_buf() } else { env::temp_dir() };
        let directory = tempfile::Builder::new()
            .prefix("rpd-handlers-")
            .tempdir_in(&place)
            .with_context(|| format!("cannot create a directory in {}", place.display()))?;
        Ok(Handlers { directory, files, running: Vec::new() })
    }

    /// Starts them.
    ///
    /// # Errors
    /// Where one does not begin; it has said why.
    pub(crate) fn start(&mut self) -> Result<()> {
        self.files.clone().iter().try_for_each(|file| self.add(file))
    }

    fn add(&mut self, file: &Path) -> Result<()> {
        let socket = self.socket(self.running.len());
        let shown = text::escape_path(file);
        let is_python = file.extension().is_some_and(|extension| extension == "py");
        let program = if is_python { PathBuf::from("python3") } else { env::current_exe()? };
        let mut command = Command::new(&program);
        command.args(if is_python { &["-c", PYTHON][..] } else { &["handler"] });
        // A name without a directory would be looked for elsewhere.
        command.arg(&socket).arg(std::path::absolute(file)?);
        // What it prints is no output of the command's, and an interrupt is for the command.
        let output = io::stderr().as_fd().try_clone_to_owned()?;
        command.stdin(Stdio::null()).stdout(output).process_group(0);
        let program = program.display();
        let child =
            command.spawn().with_context(|| format!("cannot run {program} for the handler {shown}"))?;
        self.running.push(child);
        let begin = Instant::now();
        while !socket.exists() {
            let Some(child) = self.running.last_mut() else { break };
            if child.try_wait()?.is_some() {
                bail!("the handler {shown} cannot be used");
            }
            if begin.elapsed() > PATIENCE {
                bail!("the handler {shown} does not begin within {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    fn socket(&self, number: usize) -> PathBuf {
        self.directory.path().join(number.to_string())
    }

    /// Where recorders reach them.
    pub(crate) fn sockets(&self) -> OsString {
        let sockets: Vec<String> =
            (0..self.files.len()).map(|number| self.socket(number).display().to_string()).collect();
        sockets.join(":").into()
    }

    /// The command has ended: says which of them have ended before.
    pub(crate) fn end(mut self) {
        for (file, child) in self.files.iter().zip(&mut self.running) {
            let Ok(Some(status)) = child.try_wait() else { continue };
            let how = match status.signal() {
                Some(signal) => format!("{} ended it", signals::signal_name(signal)),
                None => format!("it ended with status {}", status.code().unwrap_or_default()),
            };
            let file = file.to_string_lossy();
            note(format_args!("the handler {} has not seen all messages: {how}", text::escape(&file)));
        }
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for child in &mut self.running {
            // It may have children of its own.
            signals::kill_group(child);
            let _ = child.wait();
        }
    }
}
