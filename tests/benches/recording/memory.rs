//! What recording adds to the largest resident size of a program.

use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

type Case = (&'static str, &'static [&'static str], &'static str);

/// What happens, the program's arguments, RPDT_BUFFER_MB.
const CASES: [Case; 3] = [
    ("2 million unique markers", &["flood", "1", "2000000"], "256"),
    ("2 million unique markers, slowed down by the buffers", &["flood", "1", "2000000"], "16"),
    ("10,000 short threads", &["short", "10000"], "256"),
];

/// VmHWM, when all rows are written.
pub(crate) fn memory(samples: &mut Samples) {
    for _ in 0..3 {
        for (case, arguments, buffer) in CASES {
            let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string()).collect();
            for company in [Company::Plain, Company::Recorder] {
                // A producer that waits for room is what is measured: it must not give up.
                let environment = [("RPDT_BUFFER_MB", buffer), ("RPDT_WAIT_MS", "60000")];
                let outcome = run("markers", &arguments, company, (1, 10_000), &environment);
                samples.add("memory", case, company.name(), "VmHWM kB", outcome.number("memory"));
            }
        }
    }
    let mut rows = vec![];
    for (case, _, buffer) in CASES {
        let of = |company: Company| samples.spread("memory", case, company.name(), "VmHWM kB");
        let (plain, recorder) = (of(Company::Plain), of(Company::Recorder));
        let more = format!("{:.1}", (recorder.median - plain.median) / 1024.0);
        rows.push(vec![
            case.to_string(),
            buffer.to_string(),
            more,
            plain.show(1.0 / 1024.0, 1),
            recorder.show(1.0 / 1024.0, 1),
        ]);
    }
    print_table("Memory, MiB", &["program", "RPDT_BUFFER_MB", "more than plain", "plain", "recorder"], &rows);
}
