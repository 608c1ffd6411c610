//! What counted basic blocks cost: a launch, and a program whose kernels the software GPU executes.

use std::time::Instant;

use crate::harness::{Dir, Loading, Run, program};
use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

const LAUNCHES: u32 = 20_000;
/// How often the other program runs a kernel that loops and branches.
const DISPATCHES: u32 = 300;
const VARIANTS: [(&str, &[(&str, &str)]); 5] = [
    ("recording", &[]),
    ("waves", &[("RPDT_COUNT_BLOCKS", "count")]),
    ("waves, one in ten", &[("RPDT_COUNT_BLOCKS", "count"), ("LOGDUR_DISPATCHES", "1/10")]),
    ("waves and work-items", &[("RPDT_COUNT_BLOCKS", "lanes")]),
    ("waves and time", &[("RPDT_COUNT_BLOCKS", "time")]),
];

/// All of it.
pub(crate) fn blocks(samples: &mut Samples) {
    for _ in 0..5 {
        for (variant, environment) in VARIANTS {
            let arguments = [1, 1, LAUNCHES].map(|number| number.to_string());
            let outcome = run("launches", &arguments, Company::Recorder, (1, 200), environment);
            let mut add = |measure, value: f64| {
                samples.add("blocks", "launches", variant, measure, value / f64::from(LAUNCHES));
            };
            add("launch CPU", outcome.number("launch"));
            add("recorder CPU", outcome.recorder_cpu_ns);
            let dir = Dir::new();
            let mut run = Run::new(&dir, program("blocks")).recorded(Loading::Preload);
            for (name, value) in environment {
                run = run.env(name, *value);
            }
            let begin = Instant::now();
            run.arg(format!("collatz={DISPATCHES}")).run().expect(0);
            let us = begin.elapsed().as_secs_f64() * 1e6 / f64::from(DISPATCHES);
            samples.add("blocks", "collatz", variant, "wall", us);
        }
    }
    let of = |of, variant, measure| samples.spread("blocks", of, variant, measure);
    let row = |(variant, _): (&'static str, _)| {
        let wall = |variant| of("collatz", variant, "wall").median;
        vec![
            variant.to_string(),
            of("launches", variant, "launch CPU").show(1.0, 0),
            of("launches", variant, "recorder CPU").show(1.0, 0),
            format!("{:.2}", wall(variant) / wall("recording")),
            of("collatz", variant, "wall").show(1.0, 0),
        ]
    };
    print_table(
        "A dispatch whose basic blocks are counted; on the right, one that the software GPU executes",
        &["", "launch, CPU ns", "recorder's threads", "against recording", "wall, us"],
        &VARIANTS.map(row),
    );
}
