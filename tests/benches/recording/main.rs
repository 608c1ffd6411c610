//! What recording costs, in ratios: every table compares things that ran in turn in this one run. Nothing is asserted; what
//! is measured, and how, is in docs/speed.md.
//!
//! `cargo bench -p rpd-tests --bench recording [-- [--raw FILE] [SECTION...]]`: the number of every single run goes to FILE.

// A panic is how a benchmark that cannot run ends.
#![allow(clippy::unwrap_used)]

// What the tests share: libraries built once, programs run in directories of their own, traces.
#[allow(dead_code, unused_imports, reason = "the benchmark uses a part of what tests need")]
#[path = "../.."]
mod tests {
    pub(crate) mod harness;
}
use tests::harness;

// Programs of tests/programs/bench and what they print.
mod program;

// Numbers of all runs, their medians and spreads.
mod sample;

// One section each.
mod blocks;
mod dispatch;
mod frames;
mod hip_call;
mod hsa_call;
mod idle;
mod insert;
mod library_call;
mod log;
mod marker;
mod memory;
mod probe;
mod remote;
mod replace;
mod startup;

use std::path::PathBuf;

use sample::Samples;

type Section = (&'static str, fn(&mut Samples));

const SECTIONS: [Section; 16] = [
    ("producer", marker::producer),
    ("rows", insert::rows),
    ("dispatch", dispatch::dispatch),
    ("hip_call", hip_call::hip_call),
    ("hsa_call", hsa_call::hsa_call),
    ("library_call", library_call::library_call),
    ("replace", replace::replace),
    ("log", log::log),
    ("probe", probe::probe),
    ("blocks", blocks::blocks),
    ("frames", frames::frames),
    ("stall", marker::stall),
    ("memory", memory::memory),
    ("idle", idle::idle),
    ("startup", startup::startup),
    ("remote", remote::remote),
];

fn main() {
    let (mut raw, mut wanted) = (None, vec![]);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo's own.
            "--bench" => {}
            "--raw" => raw = arguments.next().map(PathBuf::from),
            name if SECTIONS.iter().any(|(section, _)| *section == name) => wanted.push(argument),
            other => panic!("no section is called {other}: {:?}", SECTIONS.map(|(name, _)| name)),
        }
    }
    println!("{}", machine());
    let mut samples = Samples::default();
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|one| one == name) {
            section(&mut samples);
        }
    }
    if let Some(path) = raw {
        let text = format!("# {}\n{}", machine(), samples.tab_separated());
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Where and when: numbers of different machines do not compare.
fn machine() -> String {
    let first = |path: &str, start: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
        line.trim_start_matches([' ', '\t', ':']).to_string()
    };
    let load = first("/proc/loadavg", "");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let date = harness::tool("date", &["-u", "+%Y-%m-%d %H:%M UTC"]);
    format!(
        "{}; {cores} x {}; Linux {}; load {}",
        date.trim(),
        first("/proc/cpuinfo", "model name"),
        first("/proc/sys/kernel/osrelease", ""),
        load.split(' ').next().unwrap_or_default()
    )
}
