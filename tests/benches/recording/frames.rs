//! What stack frames cost a call, by the depth of its stack.

use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

/// Functions between `main` and the calls.
const DEPTHS: [u32; 3] = [5, 30, 100];
const CALLS: u32 = 20_000;
/// Name, who is in the program, RPDT_STACKFRAMES.
const VARIANTS: [(&str, Company, &str); 3] =
    [("plain", Company::Plain, ""), ("off", Company::Recorder, "0"), ("on", Company::Recorder, "1")];
/// What the program prints of each call: its name there, and what stands behind it.
const MEASURES: [(&str, [&str; 2]); 2] =
    [("launch", ["launch p50", "launch p99"]), ("query", ["query p50", "query p99"])];

/// A launch and hipStreamQuery without us, with us, and with stack frames.
pub(crate) fn frames(samples: &mut Samples) {
    for _ in 0..5 {
        for depth in DEPTHS {
            for (variant, company, wanted) in VARIANTS {
                let arguments = [depth, CALLS].map(|number| number.to_string());
                let outcome =
                    run("deep_calls", &arguments, company, (1, 200), &[("RPDT_STACKFRAMES", wanted)]);
                for (name, measures) in MEASURES {
                    for (measure, value) in measures.into_iter().zip(outcome.numbers(name)) {
                        samples.add("frames", &depth.to_string(), variant, measure, *value);
                    }
                }
                samples.add("frames", &depth.to_string(), variant, "recorder CPU", outcome.recorder_cpu_ns);
            }
        }
    }
    let mut rows = vec![];
    for depth in DEPTHS.map(|depth| depth.to_string()) {
        let of = |variant, measure| samples.spread("frames", &depth, variant, measure);
        for measure in MEASURES.into_iter().flat_map(|(_, measures)| measures) {
            let more = of("on", measure).median - of("off", measure).median;
            let spreads = VARIANTS.map(|(variant, ..)| of(variant, measure).show(1.0, 0));
            rows.push([vec![depth.clone(), measure.into(), format!("{more:.0}")], spreads.to_vec()].concat());
        }
        let per_call =
            VARIANTS.map(|(variant, ..)| of(variant, "recorder CPU").show(1.0 / (2.0 * f64::from(CALLS)), 0));
        rows.push(
            [vec![depth.clone(), "recorder's threads, CPU".into(), String::new()], per_call.to_vec()]
                .concat(),
        );
    }
    let columns = ["functions deep", "ns per call", "frames cost", "plain", "recorder", "with frames"];
    print_table("Stack frames of HIP calls", &columns, &rows);
}
