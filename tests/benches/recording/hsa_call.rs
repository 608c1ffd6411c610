//! What recording costs one call of the HSA runtime.

use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

const COUNT: u32 = 100_000;
/// The function, and what RPDT_HSA_APIS says of it.
const FUNCTION: &str = "hsa_signal_load_relaxed";
const VARIANTS: [(&str, Company, &str); 3] = [
    ("without the recorder", Company::Plain, "none"),
    ("not recorded", Company::Recorder, "none"),
    ("recorded", Company::Recorder, FUNCTION),
];

/// The same calls without us, with the recorder, and recorded.
pub(crate) fn hsa_call(samples: &mut Samples) {
    for _ in 0..5 {
        for (shown, company, list) in VARIANTS {
            let outcome =
                run("hsa_calls", &[COUNT.to_string()], company, (1, 200), &[("RPDT_HSA_APIS", list)]);
            let numbers = outcome.numbers("load");
            for (measure, number) in [("p50", numbers[0]), ("p99", numbers[1])] {
                samples.add("hsa_call", FUNCTION, shown, measure, number);
            }
        }
    }
    let rows = VARIANTS.map(|(shown, ..)| {
        let of = |measure| samples.spread("hsa_call", FUNCTION, shown, measure).show(1.0, 0);
        vec![shown.to_string(), of("p50"), of("p99")]
    });
    print_table(&format!("hsa_call: one call of {FUNCTION}"), &["ns per call", "p50", "p99"], &rows);
}
