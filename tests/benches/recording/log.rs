//! What the duration log costs: a dispatch with it and without.

use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

const LAUNCHES: u32 = 100_000;
/// Where the log goes, and how it is written.
const VARIANTS: [(&str, &str, &str); 4] = [
    ("recording", "", ""),
    ("/dev/null, CSV", "/dev/null", "csv"),
    ("file, CSV", "log.csv", "csv"),
    ("file, JSON", "log.json", "json"),
];
const MEASURES: [&str; 3] = ["launch CPU", "wall", "recorder CPU"];

/// All of it.
pub(crate) fn log(samples: &mut Samples) {
    for _ in 0..5 {
        for (variant, location, format) in VARIANTS {
            let environment = [("LOGDUR_LOG_LOCATION", location), ("LOGDUR_LOG_FORMAT", format)];
            let arguments = [1, 1, LAUNCHES].map(|number| number.to_string());
            let outcome = run("launches", &arguments, Company::Recorder, (1, 200), &environment);
            let numbers = [outcome.number("launch"), outcome.number("wall"), outcome.recorder_cpu_ns];
            for (measure, number) in MEASURES.into_iter().zip(numbers) {
                samples.add("log", "launches", variant, measure, number / f64::from(LAUNCHES));
            }
        }
    }
    let rows = VARIANTS.map(|(variant, ..)| {
        let number = |measure| samples.spread("log", "launches", variant, measure).show(1.0, 0);
        let ratio =
            |measure| samples.ratio("log", "launches", (variant, measure), (VARIANTS[0].0, measure)).times();
        let numbers = MEASURES.into_iter().flat_map(|measure| [number(measure), ratio(measure)]);
        std::iter::once(variant.to_string()).chain(numbers).collect()
    });
    let columns = [
        "",
        "launch, CPU ns per dispatch",
        "with / without",
        "wall, ns",
        "with / without",
        "recorder's threads, CPU ns",
        "with / without",
    ];
    print_table("The duration log of a program that only launches", &columns, &rows);
}
