//! What the loader costs a HIP program that does nothing but launch: before anybody has asked for a recording, and after one.

use std::process::Command;

use crate::harness::{Dir, Loading, Run, Running, rpd_remote};
use crate::program::{compiled, numbers};
use crate::sample::{Samples, print_table};

const LAUNCHES: u32 = 50_000;
const ROUNDS: usize = 9;
/// Without the loader; with it; with it, when a recording has been started and stopped.
const VARIANTS: [&str; 3] = ["plain", "before", "after"];
const MEASURES: [&str; 2] = ["wall", "launch CPU"];

/// In turn, so that what slows down one slows down all.
pub(crate) fn remote(samples: &mut Samples) {
    for _ in 0..ROUNDS {
        for variant in VARIANTS {
            measure(samples, variant);
        }
    }
    let row = |measure| {
        let ratio =
            |variant| samples.ratio("remote", "launches", (variant, measure), ("plain", measure)).times();
        let plain = samples.spread("remote", "launches", "plain", measure).show(1.0, 0);
        vec![measure.to_string(), ratio("before"), ratio("after"), plain]
    };
    let rows: Vec<_> = MEASURES.into_iter().map(row).collect();
    let columns = ["ns per launch", "before the first start / plain", "after a stop / plain", "plain"];
    print_table("A HIP program with librpd_remote.so", &columns, &rows);
}

fn measure(samples: &mut Samples, variant: &'static str) {
    let dir = Dir::new();
    let config = "[timing]\nkernel_ns = 200\n[execution]\ninterpret = false\n";
    let mut run = Run::new(&dir, compiled("launches")).config(config).env("SIMGPU_EXECLOG", "");
    for argument in ["1", "1", &LAUNCHES.to_string(), "go"] {
        run = run.arg(argument);
    }
    if variant != "plain" {
        run = run.recorded(Loading::Remote);
    }
    let mut running = run.start();
    running.wait_for_output("ready");
    if variant == "after" {
        ask("start", &running);
        ask("stop", &running);
    }
    std::fs::write(dir.path("go"), "").unwrap();
    let ran = running.finish();
    ran.expect(0).expect_silent();
    let printed = numbers(&ran.stdout);
    for (measure, name) in MEASURES.into_iter().zip(["wall", "launch"]) {
        samples.add("remote", "launches", variant, measure, printed[name][0] / f64::from(LAUNCHES));
    }
}

fn ask(verb: &str, running: &Running) {
    let pid = running.pid().to_string();
    let status =
        Command::new(rpd_remote()).args([verb, "--wait", &pid]).stdout(std::process::Stdio::null()).status();
    assert!(status.unwrap().success(), "rpdRemote {verb}");
}
