//! What passes, trimming and merging cost: beside inserting the same rows and nothing else (the floor), and beside the original's tools where
//! RPD_ORIGINAL names a checkout of rocmProfileData with schema 2. Nothing is asserted; docs/speed.md says what is measured.
//!
//! `cargo bench -p rpd-postprocess --bench passes [-- [--raw FILE] [CALLS...]]`: traces of that many calls, by default 100,000,
//! one million and five million (3 GB in the temporary directory).

// A panic is how a benchmark that cannot run ends.
#![allow(clippy::unwrap_used)]

mod floor;
mod measured;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use measured::Measured;

const RPD: &str = env!("CARGO_BIN_EXE_rpd");

/// A pass: its verb, the tables that it fills (of graph they are too small to compare), the original's module.
const PASSES: [(&str, &[&str], &str); 3] = [
    ("callstack", &["ext_callstack"], "rocpd.call_stacks"),
    ("graph", &[], "rocpd.graph"),
    ("autograd", &["ext_autogradapi", "ext_callstack"], "rocpd.autograd"),
];

fn main() {
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
    let machine = machine();
    println!("{machine}");
    let mut lines = vec![format!("# {machine}"), "calls\tpass\tvariant\tmeasure\tvalue".to_string()];
    println!(
        "{:>8} {:9} {:>8} {:>8} {:>7} {:>11} {:>14}",
        "calls", "pass", "wall s", "CPU s", "MB", "CPU/floor", "original/CPU"
    );
    for calls in sizes {
        let dir = tempfile::tempdir().unwrap();
        let trace = generate(dir.path(), calls);
        for (pass, tables, module) in PASSES {
            let mut record = |variant: &str, measured: &Measured| {
                for (measure, value) in measured.values() {
                    lines.push(format!("{calls}\t{pass}\t{variant}\t{measure}\t{value:.3}"));
                }
            };
            let made = copy(&trace, "made.rpd");
            let ours = measured::of(Command::new(RPD).arg(pass).arg(&made));
            record("rpd", &ours);
            let floor = (!tables.is_empty()).then(|| floor::of(&made, &copy(&trace, "floor.rpd"), tables));
            floor.iter().for_each(|floor| record("floor", floor));
            let original = std::env::var_os("RPD_ORIGINAL").map(|path| {
                let theirs = copy(&trace, "theirs.rpd");
                let mut command = Command::new("python3");
                command.env("PYTHONPATH", Path::new(&path).join("rocpd_python"));
                measured::of(command.args(["-m", module]).arg(&theirs))
            });
            original.iter().for_each(|original| record("original", original));
            println!(
                "{calls:>8} {pass:9} {:>8.2} {:>8.2} {:>7.0} {:>11} {:>14}",
                ours.wall,
                ours.cpu,
                ours.peak_mb,
                floor.map_or("-".into(), |floor| format!("{:.2}", ours.cpu / floor.cpu)),
                original.map_or("-".into(), |original| format!("{:.1}", original.cpu / ours.cpu))
            );
        }
        for (verb, ours, original) in derivations(&trace) {
            let record = |lines: &mut Vec<String>, variant: &str, measured: &Measured| {
                for (measure, value) in measured.values() {
                    lines.push(format!("{calls}\t{verb}\t{variant}\t{measure}\t{value:.3}"));
                }
            };
            record(&mut lines, "rpd", &ours);
            original.iter().for_each(|original| record(&mut lines, "original", original));
            println!(
                "{calls:>8} {verb:9} {:>8.2} {:>8.2} {:>7.0} {:>11} {:>14}",
                ours.wall,
                ours.cpu,
                ours.peak_mb,
                "-",
                original.map_or("-".into(), |original| format!("{:.1}", original.wall / ours.wall))
            );
        }
    }
    if let Some(path) = raw {
        fs::write(&path, lines.join("\n") + "\n")
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The middle half of the trace as a trace of its own, which the original makes in place, and two traces in one, for which it
/// has nothing.
fn derivations(trace: &Path) -> [(&'static str, Measured, Option<Measured>); 2] {
    let (other, out) = (copy(trace, "made.rpd"), trace.with_file_name("out.rpd"));
    let window = ["--start", "25%", "--end", "75%"];
    let trimmed = measured::of(Command::new(RPD).arg("trim").arg(trace).arg("-o").arg(&out).args(window));
    fs::remove_file(&out).unwrap();
    let original = std::env::var_os("RPD_ORIGINAL").map(|path| {
        let path = Path::new(&path);
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", path.join("rocpd_python")).arg(path.join("tools/rpd_trim.py"));
        measured::of(command.args(window).arg(copy(trace, "theirs.rpd")))
    });
    let files = [trace, &other];
    let merged = measured::of(Command::new(RPD).args(["merge", "--same-host", "-o"]).arg(&out).args(files));
    fs::remove_file(&out).unwrap();
    [("trim", trimmed, original), ("merge", merged, None)]
}

/// A trace of that many calls, by the generator of the tests.
fn generate(dir: &Path, calls: u64) -> PathBuf {
    let (empty, trace) = (dir.join("empty.rpd"), dir.join("trace.rpd"));
    assert!(Command::new(RPD).arg("create").arg(&empty).status().unwrap().success());
    let generator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/rpd/gen_rpd.py");
    let mut command = Command::new("python3");
    command.arg(generator).arg(&trace).args(["--events", &calls.to_string(), "--processes", "2"]);
    let made = command.arg("--template").arg(&empty).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    trace
}

/// A copy of the trace beside it, in place of an earlier one.
fn copy(trace: &Path, name: &str) -> PathBuf {
    let copy = trace.with_file_name(name);
    fs::copy(trace, &copy).unwrap();
    copy
}

/// Where and when: numbers of different machines do not compare.
fn machine() -> String {
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
