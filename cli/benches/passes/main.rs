//! What passes, trimming and merging cost: beside inserting the same rows and nothing else (the floor), and beside the original's tools where
//! RPD_ORIGINAL names a checkout of rocmProfileData with schema 2. Nothing is asserted; docs/speed.md says what is measured.
//!
//! `cargo bench -p rpd-cli --bench passes [-- [--raw FILE] [CALLS...]]`: traces of that many calls, by default 100,000,
//! one million and five million (3 GB in the temporary directory).

// A panic is how a benchmark that cannot run ends.
#![allow(clippy::unwrap_used)]

mod floor;
mod measured;
mod setting;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use measured::{Measured, PATIENCE, median};
use setting::{arguments, generate, machine, original};

const RPD: &str = env!("CARGO_BIN_EXE_rpd");

/// A pass: its verb, the tables that it fills (of graph they are too small to compare), the original's module.
const PASSES: [(&str, &[&str], &str); 3] = [
    ("callstack", &["ext_callstack"], "rocpd.call_stacks"),
    ("graph", &[], "rocpd.graph"),
    ("autograd", &["ext_autogradapi", "ext_callstack"], "rocpd.autograd"),
];

fn main() {
    let (raw, sizes) = arguments();
    let machine = machine();
    println!("{machine}");
    let mut report =
        Report { lines: vec![format!("# {machine}"), "calls\tpass\tvariant\tmeasure\tvalue".to_string()] };
    println!(
        "{:>8} {:9} {:>8} {:>8} {:>7} {:>11} {:>14}",
        "calls", "pass", "wall s", "CPU s", "MB", "CPU/floor", "original/CPU"
    );
    for calls in sizes {
        let dir = tempfile::tempdir().unwrap();
        let trace = generate(dir.path(), calls);
        // What takes a quarter of a second varies by more than is looked for.
        let runs = if calls > 100_000 { 1 } else { 5 };
        for (pass, tables, module) in PASSES {
            let ours =
                median(runs, || measured::of(Command::new(RPD).arg(pass).arg(copy(&trace, "made.rpd"))));
            let made = dir.path().join("made.rpd");
            let floor = (!tables.is_empty())
                .then(|| median(runs, || floor::of(&made, &copy(&trace, "floor.rpd"), tables)));
            let original = original(|command, checkout| {
                command.env("PYTHONPATH", checkout.join("rocpd_python"));
                command.args(["-m", module]).arg(copy(&trace, "theirs.rpd"));
            });
            report.line(calls, pass, &ours, floor.as_ref(), original.as_ref());
        }
        let (other, out) = (copy(&trace, "made.rpd"), dir.path().join("out.rpd"));
        let made = |arguments: &mut Command| {
            let measured = measured::of(arguments);
            fs::remove_file(&out).unwrap();
            measured
        };
        // The middle half of the trace, which the original makes in place.
        let window = ["--start", "25%", "--end", "75%"];
        let trimmed =
            median(runs, || made(Command::new(RPD).arg("trim").arg(&trace).arg("-o").arg(&out).args(window)));
        let original = original(|command, checkout| {
            command.env("PYTHONPATH", checkout.join("rocpd_python")).arg(checkout.join("tools/rpd_trim.py"));
            command.args(window).arg(copy(&trace, "theirs.rpd"));
        });
        report.line(calls, "trim", &trimmed, None, original.as_ref());
        // Two traces in one, for which it has nothing.
        let merged = median(runs, || {
            made(Command::new(RPD).args(["merge", "--same-host", "-o"]).arg(&out).args([&trace, &other]))
        });
        report.line(calls, "merge", &merged, None, None);
    }
    if let Some(path) = raw {
        fs::write(&path, report.lines.join("\n") + "\n")
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// What was measured: printed as it comes, and every value for the file.
struct Report {
    lines: Vec<String>,
}

impl Report {
    fn line(
        &mut self,
        calls: u64,
        pass: &str,
        ours: &Measured,
        floor: Option<&Measured>,
        original: Option<&Option<Measured>>,
    ) {
        let ended = original.and_then(Option::as_ref);
        for (variant, measured) in [("rpd", Some(ours)), ("floor", floor), ("original", ended)] {
            for (measure, value) in measured.into_iter().flat_map(Measured::values) {
                self.lines.push(format!("{calls}\t{pass}\t{variant}\t{measure}\t{value:.3}"));
            }
        }
        println!(
            "{calls:>8} {pass:9} {:>8.2} {:>8.2} {:>7.0} {:>11} {:>14}",
            ours.wall,
            ours.cpu,
            ours.peak_mb,
            floor.map_or("-".into(), |floor| format!("{:.2}", ours.cpu / floor.cpu)),
            match original {
                None => "-".into(),
                Some(Some(original)) => format!("{:.1}", original.cpu / ours.cpu),
                Some(None) => format!("> {PATIENCE} s"),
            }
        );
    }
}

/// A copy of the trace beside it, in place of an earlier one.
fn copy(trace: &Path, name: &str) -> PathBuf {
    let copy = trace.with_file_name(name);
    fs::copy(trace, &copy).unwrap();
    copy
}
