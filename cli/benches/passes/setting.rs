//! Where benchmarks of traces run: the machine, the traces, the original's tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::RPD;
use crate::measured::{self, Measured};

/// What the command line asks for: a file for all numbers (`--raw FILE`), and calls of the traces.
pub(crate) fn arguments() -> (Option<PathBuf>, Vec<u64>) {
    let (mut raw, mut sizes) = (None, vec![]);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo's own.
            "--bench" => {}
            "--raw" => raw = arguments.next().map(PathBuf::from),
            calls => sizes.push(calls.parse().unwrap_or_else(|_| panic!("{calls}: not a number of calls"))),
        }
    }
    if sizes.is_empty() {
        sizes = vec![100_000, 1_000_000, 5_000_000];
    }
    (raw, sizes)
}

/// A tool of the original, as `prepare` has it run with the checkout, if there is one. None inside: it took too long.
pub(crate) fn original(prepare: impl FnOnce(&mut Command, &Path)) -> Option<Option<Measured>> {
    let checkout = PathBuf::from(std::env::var_os("RPD_ORIGINAL")?);
    let mut command = Command::new("python3");
    prepare(&mut command, &checkout);
    Some(measured::patiently(&command))
}

/// A trace of that many calls, by the generator of the tests.
pub(crate) fn generate(dir: &Path, calls: u64) -> PathBuf {
    let (empty, trace) = (dir.join("empty.rpd"), dir.join("trace.rpd"));
    assert!(Command::new(RPD).arg("create").arg(&empty).status().unwrap().success());
    let generator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/rpd/gen_rpd.py");
    let mut command = Command::new("python3");
    command.arg(generator).arg(&trace).args(["--events", &calls.to_string(), "--processes", "2"]);
    let made = command.arg("--template").arg(&empty).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    trace
}

/// Where and when: numbers of different machines do not compare.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo");
    let model = model.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let date = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]).output().unwrap().stdout;
    format!(
        "{}; {} x {}; Linux {}; load {}",
        String::from_utf8_lossy(&date).trim(),
        std::thread::available_parallelism().map_or(0, usize::from),
        model.trim_start_matches([' ', '\t', ':']),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or_default()
    )
}
