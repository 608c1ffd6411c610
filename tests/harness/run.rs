//! Running a program in a directory of its own, on the software GPU, with the recorder or without.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rpd_simgpu::execlog::{self, Packet};
use tempfile::TempDir;

use super::artifacts::newer_rocm;
use super::patience::{PATIENCE, wait_for};
use super::tool::command;
use super::{Trace, hip_symbols, loader, recorder, rpd, software_gpu};

/// One program on the GPU at a time: two cores serve the program, the device and the recorder.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Debian's newer ROCr (built with assertions) says at its end, in some runs and not in others, how many signals HIP left behind.
fn without_leaks(stderr: String) -> String {
    if !newer_rocm() {
        return stderr;
    }
    let noise = |line: &&str| !line.starts_with("Warning: Resource leak detected by SharedSignalPool");
    stderr.split_inclusive('\n').filter(noise).collect()
}

/// A directory that goes away with the test.
pub(crate) struct Dir(TempDir);

impl Dir {
    pub(crate) fn new() -> Dir {
        Dir(tempfile::Builder::new().prefix("rpd-e2e-").tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The trace of that name.
    pub(crate) fn trace(&self, name: &str) -> Trace {
        Trace::open(&self.path(name))
    }

    /// trace.rpd, in which nothing is missing.
    #[track_caller]
    pub(crate) fn whole_trace(&self) -> Trace {
        let trace = self.trace("trace.rpd");
        assert!(trace.lost().is_empty(), "{:?}", trace.lost());
        trace.check_integrity();
        trace
    }

    /// The same, of a program that has ended well and without a word of the recorder.
    #[track_caller]
    pub(crate) fn succeeded(&self, ran: &Ran) -> Trace {
        ran.expect(0).expect_silent();
        self.whole_trace()
    }

    /// What the devices of all processes executed, by process id.
    pub(crate) fn logs(&self) -> Vec<(u32, Vec<Packet>)> {
        execlog::read_all(self.path("log")).unwrap()
    }

    /// Waits until a query counts at least `least` in the trace of that name, which is being written.
    #[track_caller]
    pub(crate) fn wait_for_rows(&self, trace: &str, sql: &str, least: i64) {
        let enough = || (Trace::count_so_far(&self.path(trace), sql) >= least).then_some(());
        wait_for(&format!("{least} from {sql} in {trace}"), enough);
    }

    /// Makes an empty file of that name, for which a program waits.
    pub(crate) fn touch(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    /// Names of the files in it but the device's logs, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = listing(self.0.path());
        names.retain(|name| !name.starts_with("log."));
        names
    }
}

fn listing(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return vec![] };
    let mut names: Vec<_> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The ways the recorder gets into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loading {
    /// LD_PRELOAD alone.
    Preload,
    /// LD_PRELOAD with librpd_hip.so, whose symbols stand in front of HIP's.
    Symbols,
    /// HSA_TOOLS_LIB alone.
    ToolsLib,
    /// Both.
    Both,
    /// `rpd record -o trace.rpd -- program`.
    RpdRecord,
    /// Not yet: LD_PRELOAD of the loader, which brings it when somebody asks.
    Remote,
}

impl Loading {
    pub(crate) const ALL: [Loading; 4] =
        [Loading::Preload, Loading::ToolsLib, Loading::Both, Loading::RpdRecord];
    /// HIP's calls by its callbacks, and by its symbols.
    pub(crate) const BOTH: [Loading; 2] = [Loading::Preload, Loading::Symbols];
}

/// A run to be made.
pub(crate) struct Run<'a> {
    dir: &'a Dir,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    loading: Option<Loading>,
    record_options: Vec<String>,
    timeout: Duration,
}

impl<'a> Run<'a> {
    /// `program` in `dir`, on one software GPU, without the recorder.
    pub(crate) fn new(dir: &'a Dir, program: impl Into<PathBuf>) -> Run<'a> {
        let run = Run {
            dir,
            program: program.into(),
            arguments: vec![],
            environment: vec![],
            loading: None,
            record_options: vec![],
            timeout: PATIENCE,
        };
        run.gpus(1).env("SIMGPU_EXECLOG", dir.path("log"))
    }

    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_string(), value.into()));
        self
    }

    pub(crate) fn gpus(self, count: u32) -> Self {
        self.env("SIMGPU_GPUS", count.to_string())
    }

    /// The software GPU's configuration file, as its text.
    pub(crate) fn config(self, toml: &str) -> Self {
        let path = self.dir.path("gpu.toml");
        fs::write(&path, toml).unwrap();
        self.env("SIMGPU_CONFIG", path)
    }

    /// With the recorder; writes trace.rpd unless the environment says otherwise.
    pub(crate) fn recorded(mut self, loading: Loading) -> Self {
        self.loading = Some(loading);
        self
    }

    /// With these libraries in LD_PRELOAD, in front of the software GPU.
    pub(crate) fn preload(self, libraries: &[PathBuf]) -> Self {
        self.env("LD_PRELOAD", joined(&[libraries, &[software_gpu()]].concat()))
    }

    /// Options of `rpd record` in front of `--`.
    pub(crate) fn record_option(mut self, option: &str) -> Self {
        self.record_options.push(option.to_string());
        self
    }

    /// How long its end may take before it counts as hanging, where that is longer than [`PATIENCE`].
    pub(crate) fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    fn command(&self) -> Command {
        let mut command = if self.loading == Some(Loading::RpdRecord) {
            let mut command = command(rpd());
            command
                .args(["record", "-o", "trace.rpd"])
                .args(&self.record_options)
                .arg("--")
                .arg(&self.program);
            command
        } else {
            command(&self.program)
        };
        command.args(&self.arguments).current_dir(self.dir.0.path());
        command.env("TMPDIR", self.dir.0.path());
        // The end of a recording takes as long as the machine needs.
        command.env("RPDT_EXIT_MS", PATIENCE.as_millis().to_string());
        let mut preload = vec![];
        if matches!(self.loading, Some(Loading::Preload | Loading::Symbols | Loading::Both)) {
            preload.push(recorder());
        }
        if self.loading == Some(Loading::Symbols) {
            preload.push(hip_symbols());
            command.env("RPDT_HIP_CALLS", "symbols");
        }
        if matches!(self.loading, Some(Loading::ToolsLib | Loading::Both)) {
            command.env("HSA_TOOLS_LIB", recorder());
        }
        if self.loading == Some(Loading::Remote) {
            preload.push(loader());
        }
        preload.push(software_gpu());
        command.env("LD_PRELOAD", joined(&preload));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it and returns at once.
    pub(crate) fn start(&self) -> Running {
        self.start_in(Some(turn()))
    }

    /// Starts all of them at the same time.
    pub(crate) fn start_all(runs: &[Run<'_>]) -> Vec<Running> {
        let mut turn = Some(turn());
        runs.iter().map(|run| run.start_in(turn.take())).collect()
    }

    /// Starts it beside one that the same test has started.
    pub(crate) fn start_beside(&self) -> Running {
        self.start_in(None)
    }

    fn start_in(&self, turn: Option<MutexGuard<'static, ()>>) -> Running {
        let mut command = self.command();
        // A group of its own, so that all of it can be killed.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Running {
            stdout: Some(Stream::new(child.stdout.take().unwrap())),
            stderr: Some(Stream::new(child.stderr.take().unwrap())),
            child,
            timeout: self.timeout,
            shown: format!("{command:?}"),
            directory: self.dir.0.path().to_path_buf(),
            finished: false,
            _turn: turn,
        }
    }

    /// Runs it to its end.
    pub(crate) fn run(&self) -> Ran {
        self.start().finish()
    }
}

fn joined(libraries: &[PathBuf]) -> OsString {
    libraries.iter().map(|path| path.as_os_str()).collect::<Vec<&OsStr>>().join(OsStr::new(":"))
}

/// One stream of a running program.
struct Stream {
    read: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn new(mut stream: impl Read + Send + 'static) -> Stream {
        let read = Arc::new(Mutex::new(vec![]));
        let sink = read.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A stream that cannot be read to its end is short, and the test says what it missed.
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                sink.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Stream { read, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.read.lock().unwrap()).into_owned()
    }

    fn all(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8(std::mem::take(&mut self.read.lock().unwrap())).unwrap()
    }
}

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    timeout: Duration,
    shown: String,
    directory: PathBuf,
    finished: bool,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until its standard output holds `text`.
    #[track_caller]
    pub(crate) fn wait_for_output(&mut self, text: &str) {
        self.wait_for_text(text, "standard output", |running| running.stdout.as_ref());
    }

    /// Waits until its standard error holds `text`.
    #[track_caller]
    pub(crate) fn wait_for_error(&mut self, text: &str) {
        self.wait_for_text(text, "standard error", |running| running.stderr.as_ref());
    }

    #[track_caller]
    fn wait_for_text(&mut self, text: &str, name: &str, stream: fn(&Running) -> Option<&Stream>) {
        wait_for(&format!("{text:?} on {name}"), || {
            // What it wrote is read a moment later, also when it has ended.
            let alive = self.is_alive();
            let stream = stream(self).unwrap();
            let more = alive || !stream.reader.is_finished();
            let there = stream.so_far().contains(text);
            assert!(more || there, "it ended without {text:?} on {name}: {}", self.shown);
            there.then_some(())
        });
    }

    /// Sends a signal to it alone.
    pub(crate) fn signal(&self, signal: libc::c_int) {
        // SAFETY: a child that has not been waited for: the id is its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Waits for its end; kills it and fails the test when it hangs.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ran {
        let (begin, mut hung) = (Instant::now(), false);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begin.elapsed() > self.timeout {
                hung = true;
                self.kill();
                break self.child.wait().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // Whatever it left running holds its streams open.
        self.kill();
        self.finished = true;
        let ran = Ran {
            status,
            pid: self.child.id(),
            stdout: self.stdout.take().map(Stream::all).unwrap_or_default(),
            stderr: without_leaks(self.stderr.take().map(Stream::all).unwrap_or_default()),
            shown: std::mem::take(&mut self.shown),
            listing: listing(&self.directory),
            directory: std::mem::take(&mut self.directory),
        };
        assert!(!hung, "did not end in time and was killed:{ran}");
        ran
    }

    fn kill(&self) {
        // SAFETY: the group was made for this child, and this is the only place that kills it.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
    }
}

/// A test that fails leaves nothing running.
impl Drop for Running {
    fn drop(&mut self) {
        if !self.finished {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// How a program ended and what it wrote.
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) pid: u32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    shown: String,
    directory: PathBuf,
    listing: Vec<String>,
}

impl Ran {
    /// Fails the test, showing everything, unless the exit status is `code`.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &Ran {
        assert_eq!(self.status.code(), Some(code), "{self}");
        self
    }

    /// Fails the test, showing everything, unless that signal ended it.
    #[track_caller]
    pub(crate) fn expect_signal(&self, signal: libc::c_int) -> &Ran {
        assert_eq!(self.status.signal(), Some(signal), "{self}");
        self
    }

    /// Fails the test, showing everything, unless standard error is empty.
    #[track_caller]
    pub(crate) fn expect_silent(&self) -> &Ran {
        assert_eq!(self.stderr, "", "{self}");
        self
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ran { status, stdout, stderr, shown, directory, listing, pid } = self;
        write!(f, "\n$ cd {}; {shown}\nprocess {pid}, {status}\n", directory.display())?;
        write!(f, "--- files\n{}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", listing.join("  "))
    }
}
