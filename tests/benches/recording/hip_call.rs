//! What recording costs one call of HIP, by each way to observe it.

use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

/// Calls of the kind that does nearly nothing; a tenth as many launches.
const COUNT: u32 = 100_000;
const CALLS: [(&str, &str); 2] = [("query", "hipStreamQuery"), ("launch", "hipLaunchKernel")];
const COMPANIES: [Company; 3] = [Company::Plain, Company::Recorder, Company::Symbols];

/// The same calls without us, recorded by HIP's callbacks, and by its functions' symbols.
pub(crate) fn hip_call(samples: &mut Samples) {
    for _ in 0..5 {
        for company in COMPANIES {
            let outcome = run("calls", &[COUNT.to_string()], company, (1, 200), &[]);
            for (name, shown) in CALLS {
                let numbers = outcome.numbers(name);
                for (measure, number) in [("p50", numbers[0]), ("p99", numbers[1])] {
                    samples.add("hip_call", shown, company.name(), measure, number);
                }
            }
        }
    }
    let mut rows = vec![];
    for (_, shown) in CALLS {
        let of = |company: Company, measure| {
            samples.spread("hip_call", shown, company.name(), measure).show(1.0, 0)
        };
        let mut row = vec![shown.to_string()];
        row.extend(COMPANIES.iter().flat_map(|company| [of(*company, "p50"), of(*company, "p99")]));
        rows.push(row);
    }
    let columns =
        ["ns per call", "plain: p50", "p99", "callbacks (C): p50", "p99", "symbols (D): p50", "p99"];
    print_table("hip_call: one call of HIP", &columns, &rows);
}
