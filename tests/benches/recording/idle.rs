//! The recorder's CPU time while nothing happens.

use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

const SECONDS: u32 = 4;

/// What the GPU does meanwhile, and for how many ns.
const CASES: [(&str, u32); 2] = [("nothing", 1000), ("one long kernel", 3_900_000_000)];

/// Percent of a core, without what the beginning and the end take.
pub(crate) fn idle(samples: &mut Samples) {
    for _ in 0..3 {
        for (case, kernel_ns) in CASES {
            let of = |seconds: u32, kernel_ns| {
                run("idle", &[seconds.to_string()], Company::Recorder, (1, kernel_ns), &[]).recorder_cpu_ns
            };
            let idle = of(SECONDS, kernel_ns) - of(0, 1000);
            samples.add("idle", case, "recorder", "percent", idle / f64::from(SECONDS) / 1e7);
        }
    }
    let rows: Vec<_> = CASES
        .iter()
        .map(|(case, _)| {
            vec![case.to_string(), samples.spread("idle", case, "recorder", "percent").show(1.0, 2)]
        })
        .collect();
    print_table("A program that sleeps", &["the GPU does", "recorder's threads, percent of a core"], &rows);
}
