//! What exports cost, beside the original's tools where RPD_ORIGINAL names a checkout of rocmProfileData with schema 2. Nothing is
//! asserted; docs/speed.md says what is measured.
//!
//! `cargo bench -p rpd-cli --bench exports [-- [--raw FILE] [CALLS...]]`: traces of that many calls, by default 100,000,
//! one million and five million (8 GB in the temporary directory).

// A panic is how a benchmark that cannot run ends.
#![allow(clippy::unwrap_used)]

#[path = "../passes/measured.rs"]
mod measured;
#[path = "../passes/setting.rs"]
mod setting;

use std::fs;
use std::process::Command;

use measured::{PATIENCE, median};
use setting::{arguments, generate, machine, original};

const RPD: &str = env!("CARGO_BIN_EXE_rpd");

/// Name, format and file of each export. What an export writes is measured where its name is its format.
const EXPORTS: [(&str, &str, &str); 9] = [
    ("chrome", "chrome", "out.json"),
    ("chrome.gz", "chrome", "out.json.gz"),
    ("chrome, null", "chrome", "/dev/null"),
    ("perfetto", "perfetto", "out.pftrace"),
    ("kineto", "kineto", "out.json"),
    ("rocprofv3", "rocprofv3", "out.json"),
    ("collapsed", "collapsed", "out.txt"),
    ("speedscope", "speedscope", "out.json"),
    ("html", "html", "out.html"),
];

fn main() {
    let (raw, sizes) = arguments();
    let machine = machine();
    println!("{machine}");
    let mut lines = vec![format!("# {machine}"), "calls\texport\tvariant\tmeasure\tvalue".to_string()];
    println!(
        "{:>8} {:12} {:>8} {:>8} {:>7} {:>9} {:>7} {:>14} {:>14}",
        "calls", "export", "wall s", "CPU s", "MB", "file MB", "MB/s", "original/wall", "original/CPU"
    );
    for calls in sizes {
        let dir = tempfile::tempdir().unwrap();
        let trace = generate(dir.path(), calls);
        let runs = if calls > 1_000_000 { 1 } else { 5 };
        let theirs = dir.path().join("theirs.json");
        let original = original(|command, checkout| {
            command.arg(checkout.join("tools/rpd2tracing.py")).arg(&trace).arg(&theirs);
        });
        let _ = fs::remove_file(&theirs);
        for (name, format, file) in EXPORTS {
            let out = dir.path().join(file);
            let ours = median(runs, || {
                measured::of(
                    Command::new(RPD).args(["export", format, "--force", "-o"]).arg(&out).arg(&trace),
                )
            });
            let bytes = if name == format { fs::metadata(&out).unwrap().len() as f64 } else { f64::NAN };
            let original = original.as_ref().filter(|_| format == "chrome");
            let variants = [("rpd", Some(&ours)), ("original", original.and_then(Option::as_ref))];
            for (variant, measured) in variants {
                for (measure, value) in measured.into_iter().flat_map(|measured| measured.values()) {
                    lines.push(format!("{calls}\t{name}\t{variant}\t{measure}\t{value:.3}"));
                }
            }
            let ratio = |of: fn(&measured::Measured) -> f64| match original {
                None => "-".into(),
                Some(Some(original)) => format!("{:.1}", of(original) / of(&ours)),
                Some(None) => format!("> {PATIENCE} s"),
            };
            let size = |number: f64| if number.is_nan() { "-".to_string() } else { format!("{number:.0}") };
            println!(
                "{calls:>8} {name:12} {:>8.2} {:>8.2} {:>7.0} {:>9} {:>7} {:>14} {:>14}",
                ours.wall,
                ours.cpu,
                ours.peak_mb,
                size(bytes / 1e6),
                size(bytes / 1e6 / ours.wall),
                ratio(|measured| measured.wall),
                ratio(|measured| measured.cpu)
            );
        }
    }
    if let Some(path) = raw {
        fs::write(&path, lines.join("\n") + "\n")
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
