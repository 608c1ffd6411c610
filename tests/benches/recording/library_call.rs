//! What recording costs one call of a library.

use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

const COUNT: u32 = 20_000;
/// What the program prints, and the function.
const CALLS: [(&str, &str); 2] = [("sum", "rocblas_saxpy"), ("multiply", "hipblasLtMatmul")];
/// What RPDT_LIBRARIES says.
const VARIANTS: [(&str, Company, &str); 3] = [
    ("without the recorder", Company::Plain, "none"),
    ("not recorded", Company::Libraries, "none"),
    ("recorded", Company::Libraries, "rocblas,hipblaslt"),
];

/// The same calls without us, with the functions interposed, and recorded.
pub(crate) fn library_call(samples: &mut Samples) {
    for _ in 0..5 {
        for (shown, company, list) in VARIANTS {
            let outcome =
                run("library_calls", &[COUNT.to_string()], company, (1, 200), &[("RPDT_LIBRARIES", list)]);
            for (name, function) in CALLS {
                let numbers = outcome.numbers(name);
                for (measure, number) in [("p50", numbers[0]), ("p99", numbers[1])] {
                    samples.add("library_call", function, shown, measure, number);
                }
            }
        }
    }
    for (_, function) in CALLS {
        let rows = VARIANTS.map(|(shown, ..)| {
            let of = |measure| samples.spread("library_call", function, shown, measure).show(1.0, 0);
            vec![shown.to_string(), of("p50"), of("p99")]
        });
        let title = format!("library_call: one call of {function} that does nothing");
        print_table(&title, &["ns per call", "p50", "p99"], &rows);
    }
}
