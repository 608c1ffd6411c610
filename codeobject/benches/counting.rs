//! What it costs that kernels count their basic blocks: executed instructions and bytes of code, the interpreter's time, and how many instructions a
//! second the rewriter takes, of the processor's time of one thread: of librocrand's kernels where the library is, or of those of the libraries and
//! code objects that are named.
//!
//! `cargo bench -p rpd-codeobject --bench counting [-- [--raw FILE] [FILE...]]`: the number of every kernel and sample goes to FILE.

// A panic is how a benchmark that cannot run ends.
#![allow(clippy::unwrap_used)]

#[path = "../tests/counting/costs.rs"]
mod costs;
#[path = "../tests/counting/cpu.rs"]
mod cpu;
#[allow(dead_code, reason = "the benchmark uses a part of what tests need")]
#[path = "../tests/counting/launch.rs"]
mod launch;
#[path = "../tests/counting/machine.rs"]
mod machine;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use launch::VARIANTS;
use rpd_codeobject::container::code_objects;
use rpd_codeobject::counting::{Options, rewrite};

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/librocrand.so.1";
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/counting-gfx906-o0.co");
/// So much of the processor's time is a sample; the median of so many is shown.
const LEAST: Duration = Duration::from_millis(200);
const SAMPLES: usize = 5;
/// Of each kernel the least time of so many runs counts.
const RUNS: usize = 9;

fn main() {
    let (mut file, mut named) = (None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo's own.
            "--bench" => {}
            "--raw" => file = arguments.next(),
            _ => named.push(argument),
        }
    }
    let mut raw = format!("# {}\nsection\tcase\tvariant\tmeasure\tvalue\n", machine());
    counting(&mut raw);
    let found = if Path::new(LIBRARY).exists() { LIBRARY } else { OWN };
    rewriting(if named.is_empty() { vec![found.to_string()] } else { named }, &mut raw);
    if let Some(file) = file {
        std::fs::write(&file, raw).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

/// What counting costs kernels, each value with it over that without.
fn counting(raw: &mut String) {
    println!(
        "Kernels that count their basic blocks, against those that do not: executed instructions, the interpreter's time, bytes of code"
    );
    println!(
        "| variant | unit | executed, median | executed, most | interpreter's time, median | bytes of code |"
    );
    println!("|---|---|---|---|---|---|");
    for (variant, scalar_first) in VARIANTS {
        let costs = costs::of(variant, scalar_first, RUNS);
        let (what, unit) = costs.name();
        let variant = format!("{what}, {unit} unit");
        let row = costs.row();
        println!("{}{} {:.2} {}", row.begin, &row.executed[1..], costs.time()[1], row.bytes);
        let mut add = |case: &str, measure: &str, value: f64| {
            writeln!(raw, "cost\t{case}\t{variant}\t{measure}\t{value:.3}").unwrap();
        };
        for kernel in &costs.kernels {
            for (with, (executed, time)) in [("plain", kernel.plain), ("counting", kernel.counting)] {
                add(&kernel.name, &format!("executed, {with}"), executed as f64);
                if let Some(time) = time {
                    add(&kernel.name, &format!("interpreter_us, {with}"), time.as_secs_f64() * 1e6);
                }
            }
        }
        add("all", "bytes, plain", costs.plain_bytes as f64);
        add("all", "bytes, counting", costs.counting_bytes as f64);
        for (measure, spread) in [("executed", costs.executed()), ("interpreter's time", costs.time())] {
            for (which, ratio) in ["least", "median", "most"].into_iter().zip(spread) {
                add("all", &format!("{measure}, ratio, {which}"), ratio);
            }
        }
        add("all", "bytes, ratio", costs.counting_bytes as f64 / costs.plain_bytes as f64);
    }
}

/// How fast the rewriter is.
fn rewriting(files: Vec<String>, raw: &mut String) {
    println!("\nKernels made to count their basic blocks: instructions a second of one core");
    for file in files {
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let parts = code_objects(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
        let name = Path::new(&file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("{name}");
        for (variant, scalar_first) in VARIANTS {
            let options = Options { variant, scalar_first, slots: 4, ..Options::default() };
            let all = || {
                let made = parts.iter().filter_map(|part| rewrite(&part.bytes, &options, &|_| true).ok());
                let blocks = made.flat_map(|made| made.blocks);
                blocks.map(|block| u64::from(block.instructions)).sum::<u64>()
            };
            let sample = |_| {
                let (begin, mut instructions) = (cpu::time(), 0);
                while cpu::time() - begin < LEAST {
                    instructions += all();
                }
                instructions as f64 / (cpu::time() - begin).as_secs_f64() / 1e6
            };
            let mut rates: Vec<f64> = (0..SAMPLES).map(sample).collect();
            let (what, unit) = costs::name(variant, scalar_first);
            let variant = format!("{what}, {unit} unit");
            for rate in &rates {
                writeln!(raw, "rewriting\t{name}\t{variant}\tmillion_instructions_per_s\t{rate:.3}").unwrap();
            }
            rates.sort_by(f64::total_cmp);
            println!(
                "  {variant:34} {:.1} M (from {:.1} to {:.1})",
                rates[SAMPLES / 2],
                rates[0],
                rates[SAMPLES - 1]
            );
        }
    }
}

/// When, and on what, this runs.
fn machine() -> String {
    let first = |path: &str, start: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
        line.trim_start_matches([' ', '\t', ':']).to_string()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let date = std::process::Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]).output();
    let date = date.map(|date| String::from_utf8_lossy(&date.stdout).trim().to_string()).unwrap_or_default();
    format!(
        "{date}; {cores} x {}; Linux {}; load {}",
        first("/proc/cpuinfo", "model name"),
        first("/proc/sys/kernel/osrelease", ""),
        first("/proc/loadavg", "").split(' ').next().unwrap_or_default()
    )
}
