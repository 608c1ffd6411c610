//! Running rpd in a directory of its own; traces to run it on.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use rusqlite::Connection;
use tempfile::TempDir;

#[path = "../../../tests/harness/skip.rs"]
mod skip;

pub(crate) use skip::{installed, not_installed, not_tested};

/// The program under test.
pub(crate) const RPD: &str = env!("CARGO_BIN_EXE_rpd");

/// A directory that goes away with the test, in which commands run.
pub(crate) struct Dir(TempDir);

impl Dir {
    pub(crate) fn new() -> Dir {
        Dir(tempfile::Builder::new().prefix("rpd-test-").tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// An executable file with this content.
    pub(crate) fn script(&self, name: &str, content: &str) {
        let content = self.write("content", content);
        self.install(&content, name);
        fs::remove_file(content).unwrap();
    }

    /// Copies a program here. Another process does it: a descriptor that is open for writing here may be
    /// inherited by a command that another test is just starting, and then the file cannot be executed.
    pub(crate) fn install(&self, program: impl AsRef<Path>, name: &str) {
        ran(self.command("install").arg("-Dm755").arg(program.as_ref()).arg(self.path(name))).expect(0);
    }

    /// Names of the files in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A command in this directory, with an environment of its own: nothing of the caller's changes what is tested, as LD_PRELOAD,
    /// RPDT_*, COLUMNS, NO_COLOR, a locale or a user's ~/.sqliterc would.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", "/dev/null")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "dumb");
        // rpd makes its temporary files here too, so that a test sees what is left behind.
        command.env("TMPDIR", self.0.path());
        command
    }

    /// rpd with these arguments.
    pub(crate) fn rpd(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(RPD);
        command.args(arguments);
        command
    }

    /// Runs rpd with these arguments to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.rpd(arguments))
    }

    /// Copies a trace of this project's fixtures here and says its name.
    pub(crate) fn fixture(&self, name: &str) -> String {
        fs::copy(fixtures().join(name), self.path(name)).unwrap();
        name.to_string()
    }

    /// The directory that Python imports `rpd` from: as it is installed, with the command that is tested.
    pub(crate) fn python(&self) -> String {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sources = repository.join("python/rpd");
        let package = self.path("python/rpd");
        if !package.exists() {
            fs::create_dir_all(package.join("native/bin")).unwrap();
            for file in fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path()) {
                if file.is_file() {
                    fs::copy(&file, package.join(file.file_name().unwrap())).unwrap();
                }
            }
            std::os::unix::fs::symlink(RPD, package.join("native/bin/rpd")).unwrap();
            std::os::unix::fs::symlink(repository.join("sql"), package.join("sql")).unwrap();
        }
        self.path("python").display().to_string()
    }

    /// Unpacks a trace of this project's fixtures here and says its name.
    pub(crate) fn unpacked(&self, name: &str) -> String {
        let packed = fixtures().join(format!("{name}.gz"));
        let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output().unwrap();
        assert!(unpacked.status.success(), "gzip {}", packed.display());
        self.write(name, unpacked.stdout);
        name.to_string()
    }

    /// A fresh trace with `rows` (SQL) in it.
    pub(crate) fn trace(&self, name: &str, rows: &str) -> String {
        rpd_schema::create(&self.path(name)).unwrap();
        self.open(name).execute_batch(rows).unwrap();
        name.to_string()
    }

    /// Makes a trace that nobody recorded, with these arguments of the generator, and says its name.
    pub(crate) fn generated(&self, name: &str, arguments: &[&str]) -> String {
        let mut generator = self.command("python3");
        ran(generator.arg(fixtures().join("gen_rpd.py")).arg(name).args(arguments)).expect(0);
        name.to_string()
    }

    /// A connection to a file here, with foreign keys unchecked, as recorders have it.
    pub(crate) fn open(&self, name: &str) -> Connection {
        let connection = Connection::open(self.path(name)).unwrap();
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        connection
    }

    /// The verbs that the command's help lists, and the verbs below them.
    pub(crate) fn verbs(&self) -> Vec<Verb> {
        let mut found = vec![];
        let mut names = vec![vec![]];
        while let Some(words) = names.pop() {
            let asked: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
            let help = self.run(&asked).expect(0).stdout.clone();
            let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
            let listed = listed.take_while(|line| !line.is_empty());
            let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
            let below =
                listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
            names.extend(below.map(|name| [&words[..], &[name.to_string()]].concat()));
            found.push(Verb { words, help });
        }
        found.retain(|verb| !verb.words.is_empty());
        assert!(found.len() > 60, "{} verbs", found.len());
        found
    }

    /// Compiles a C program to `name` with these options of the compiler.
    pub(crate) fn compile(&self, name: &str, source: &str, options: &[&str]) -> PathBuf {
        let source = self.write(&format!("{name}.c"), source);
        let compiler = ran(self.command("gcc").arg("-o").arg(self.path(name)).arg(&source).args(options));
        compiler.expect(0);
        fs::remove_file(source).unwrap();
        self.path(name)
    }
}

/// A verb as the command's own help describes it.
pub(crate) struct Verb {
    /// Its name, behind those of the verbs that it is below.
    pub(crate) words: Vec<String>,
    pub(crate) help: String,
}

impl Verb {
    /// What must be given and what may be, but for options.
    fn usage(&self) -> impl Iterator<Item = &str> {
        let usage = self.help.lines().find_map(|line| line.strip_prefix("Usage: rpd ")).unwrap();
        usage.split(' ').skip(self.words.len())
    }

    /// Whether it is given traces or a file of another kind, by the name FILE.
    pub(crate) fn has_a_file(&self) -> bool {
        self.usage().any(|word| word.trim_matches(['<', '>', '[', ']', '.']) == "FILE")
    }

    /// Whether one file is all that must be given.
    pub(crate) fn needs_a_file_alone(&self) -> bool {
        self.usage().filter(|word| !word.starts_with('[')).eq(["<FILE>"])
    }

    pub(crate) fn has_option(&self, option: &str) -> bool {
        let options = self.help.lines().filter_map(|line| {
            line.split_whitespace()
                .find(|word| word.starts_with("--"))
                .filter(|_| line.trim_start().starts_with('-'))
        });
        options.into_iter().any(|name| name == option)
    }

    /// The verb with these arguments.
    pub(crate) fn with<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        self.words.iter().map(String::as_str).chain(arguments.iter().copied()).collect()
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/rpd")
}

/// How a command ended and what it wrote.
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    command: String,
}

impl Ran {
    /// Fails the test, showing everything, unless the exit status is `code`.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &Ran {
        assert_eq!(self.status.code(), Some(code), "{self}");
        self
    }

    /// Fails the test, showing everything, unless signal `signal` ended the command.
    #[track_caller]
    pub(crate) fn expect_signal(&self, signal: i32) -> &Ran {
        assert_eq!(self.status.signal(), Some(signal), "{self}");
        self
    }

    /// Fails the test, showing everything, unless standard error is one line that holds all of `words`.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> &Ran {
        assert_eq!(self.stderr.lines().count(), 1, "not one line: {self}");
        assert!(self.stderr.starts_with("rpd: "), "{self}");
        for words in words {
            assert!(self.stderr.contains(words), "{words:?} is missing: {self}");
        }
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ran { status, stdout, stderr, command } = self;
        write!(f, "\n$ {command}\n{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

/// Runs a command to its end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output();
    let shown = format!("{command:?}");
    finished(output.unwrap_or_else(|error| panic!("{shown}: {error}")), shown)
}

/// What a command that was started earlier came to.
pub(crate) fn finished(output: Output, command: String) -> Ran {
    Ran {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        command,
    }
}

/// Compares with a file of `tests/golden`; with UPDATE=1 in the environment writes it instead.
#[track_caller]
pub(crate) fn golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == actual, "{name} differs; UPDATE=1 accepts this:\n{actual}");
}
