//! What reports cost, beside the original's rpd2table.py and raptor where RPD_ORIGINAL names a checkout of rocmProfileData with schema 2.
//! Nothing is asserted; docs/speed.md says what is measured.
//!
//! `cargo bench -p rpd-cli --bench reports [-- [--raw FILE] [CALLS...]]`: traces of that many calls, by default 100,000,
//! one million and five million (2 GB in the temporary directory).

// A panic is how a benchmark that cannot run ends.
#![allow(clippy::unwrap_used)]

#[path = "../passes/measured.rs"]
mod measured;
#[path = "../passes/setting.rs"]
mod setting;

use std::fs;
use std::process::Command;

use measured::{Measured, PATIENCE, median};
use setting::{arguments, generate, machine, original};

const RPD: &str = env!("CARGO_BIN_EXE_rpd");

/// A marker that the generator's traces have.
const MARKER: &str = "step 5";

/// The reports, and the tool of the original that each is compared with.
const REPORTS: [(&[&str], Option<&str>); 16] = [
    (&["top"], None),
    (&["top", "--by", "api"], None),
    (&["top", "--by", "stream", "--percentiles"], None),
    (&["gaps"], Some("raptor")),
    (&["overlap"], None),
    (&["categories"], Some("raptor")),
    (&["variability"], Some("raptor")),
    (&["markers"], None),
    (&["copies"], None),
    (&["queues"], None),
    (&["memory"], None),
    (&["table", MARKER], Some("rpd2table")),
    (&["kernel", "."], None),
    (&["api", "--json"], None),
    (&["durations"], None),
    (&["info"], None),
];

fn main() {
    let (raw, sizes) = arguments();
    let machine = machine();
    println!("{machine}");
    let mut lines = vec![format!("# {machine}"), "calls\treport\tvariant\tmeasure\tvalue".to_string()];
    println!(
        "{:>8} {:30} {:>8} {:>8} {:>7} {:>14} {:>14}",
        "calls", "report", "wall s", "CPU s", "MB", "original/wall", "original/CPU"
    );
    for calls in sizes {
        let dir = tempfile::tempdir().unwrap();
        let trace = generate(dir.path(), calls);
        // The original adds indexes to the file that it asks.
        let theirs = dir.path().join("theirs.rpd");
        let tool = |tool: &str| {
            fs::copy(&trace, &theirs).unwrap();
            let measured = original(|command, checkout| {
                match tool {
                    "raptor" => command.arg(checkout.join("raptor/raptor.py")).arg("-c").arg(&theirs),
                    _ => command
                        .arg(checkout.join("tools/rpd2table.py"))
                        .arg(&theirs)
                        .arg(MARKER)
                        .arg(dir.path().join("theirs.csv")),
                };
            });
            fs::remove_file(&theirs).unwrap();
            measured
        };
        let originals = ["raptor", "rpd2table"].map(|name| (name, tool(name)));
        let runs = if calls > 1_000_000 { 1 } else { 5 };
        for (report, compared) in REPORTS {
            let name = report.join(" ");
            let ours = median(runs, || {
                measured::of(Command::new(RPD).arg(report[0]).arg(&trace).args(&report[1..]))
            });
            let original = originals
                .iter()
                .find(|(tool, _)| compared == Some(*tool))
                .and_then(|(_, measured)| measured.as_ref());
            for (variant, measured) in [("rpd", Some(&ours)), ("original", original.and_then(Option::as_ref))]
            {
                for (measure, value) in measured.into_iter().flat_map(Measured::values) {
                    lines.push(format!("{calls}\t{name}\t{variant}\t{measure}\t{value:.3}"));
                }
            }
            let ratio = |of: fn(&Measured) -> f64| match original {
                None => "-".into(),
                Some(Some(original)) => format!("{:.1}", of(original) / of(&ours)),
                Some(None) => format!("> {PATIENCE} s"),
            };
            println!(
                "{calls:>8} {name:30} {:>8.2} {:>8.2} {:>7.0} {:>14} {:>14}",
                ours.wall,
                ours.cpu,
                ours.peak_mb,
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
