//! What instrumented kernels cost: a program whose kernels stream out a message for each access, against the same program as it is.

use std::time::Instant;

use crate::harness::{Dir, Loading, Run, program};
use crate::sample::{Samples, print_table};

/// How often the program launches its five kernels.
const ROUNDS: u32 = 400;
const VARIANTS: [(&str, &[(&str, &str)]); 4] = [
    ("recording", &[]),
    ("one in a hundred", &[("LOGDUR_INSTRUMENTED", "true"), ("LOGDUR_DISPATCHES", "random")]),
    ("all, one analyzer", &[("LOGDUR_INSTRUMENTED", "true"), ("LOGDUR_HANDLERS", "Heatmap")]),
    ("all, four analyzers", &[("LOGDUR_INSTRUMENTED", "true")]),
];

/// All of it.
pub(crate) fn probe(samples: &mut Samples) {
    for _ in 0..5 {
        for (variant, environment) in VARIANTS {
            let dir = Dir::new();
            let mut run = Run::new(&dir, program("probe")).recorded(Loading::Preload).arg(ROUNDS.to_string());
            for (name, value) in environment {
                run = run.env(name, *value);
            }
            let begin = Instant::now();
            run.run().expect(0);
            let us = begin.elapsed().as_secs_f64() * 1e6 / f64::from(5 * ROUNDS);
            samples.add("probe", "five kernels", variant, "wall", us);
        }
    }
    let of = |variant: &str| samples.spread("probe", "five kernels", variant, "wall");
    let row = |(variant, _): (&str, _)| {
        let times = of(variant).median / of("recording").median;
        vec![variant.to_string(), format!("{times:.2}"), of(variant).show(1.0, 0)]
    };
    print_table(
        "A dispatch of 512 work-items that streams out 16 to 96 messages, with its part of the program",
        &["", "against recording alone", "wall, us"],
        &VARIANTS.map(row),
    );
}
