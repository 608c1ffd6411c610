//! What a marker costs the thread that pushes it: paced, and when nothing can keep up.

use crate::program::{Company, run};
use crate::sample::{Samples, print_table};

/// Measures that `markers` prints, in its order.
const MEASURES: [&str; 5] = ["p50", "p99", "p99.9", "max", "mean"];
/// A call that does nothing measured the same way: what the ruler itself adds.
const RULER: &str = "empty";

fn record(
    samples: &mut Samples,
    section: &'static str,
    case: &str,
    arguments: &[String],
    kinds: &[&'static str],
) {
    let outcome = run("markers", arguments, Company::Recorder, (1, 10_000), &[("RPDT_BUFFER_MB", "512")]);
    let ruler = outcome.printed.get(RULER).map_or(0.0, |values| values[0]);
    for kind in kinds {
        for (measure, value) in MEASURES.into_iter().zip(outcome.numbers(kind)) {
            samples.add(section, case, kind, measure, value - ruler);
        }
    }
}

/// Bursts with pauses between them, so that buffers never fill.
pub(crate) fn producer(samples: &mut Samples) {
    const THREADS: [u32; 4] = [1, 2, 4, 8];
    const KINDS: [&str; 3] = ["clocks", "mark", "range"];
    for _ in 0..5 {
        for threads in THREADS {
            let arguments = ["paced".to_string(), threads.to_string(), "10000".to_string()];
            record(samples, "producer", &threads.to_string(), &arguments, &KINDS);
        }
    }
    let mut rows = vec![];
    for threads in THREADS.map(|threads| threads.to_string()) {
        for (kind, what) in
            KINDS.into_iter().zip(["two clock_gettime", "rpd_mark", "rpd_rangePush + rpd_rangePop"])
        {
            let of = |measure| samples.spread("producer", &threads, kind, measure).show(1.0, 0);
            let ratio = samples.ratio("producer", &threads, (kind, "p50"), ("clocks", "p50")).times();
            let mut row = vec![threads.clone(), what.to_string(), ratio];
            row.extend(["p50", "p99", "max", "mean"].map(of));
            rows.push(row);
        }
    }
    let columns =
        ["threads", "call", "p50, times two clock_gettime", "p50 ns", "p99 ns", "max ns", "mean ns"];
    print_table("A thread that pushes markers, paced", &columns, &rows);
}

/// Far more than can be written, until the buffers are about as full as they may get.
pub(crate) fn stall(samples: &mut Samples) {
    const THREADS: [u32; 2] = [1, 8];
    const KINDS: [&str; 2] = ["clocks", "mark"];
    for _ in 0..5 {
        for threads in THREADS {
            let arguments = ["flood".to_string(), threads.to_string(), (2_000_000 / threads).to_string()];
            record(samples, "stall", &threads.to_string(), &arguments, &KINDS);
        }
    }
    let mut rows = vec![];
    for threads in THREADS.map(|threads| threads.to_string()) {
        for (kind, what) in KINDS.into_iter().zip(["two clock_gettime", "rpd_mark, unique text"]) {
            let of = |measure| samples.spread("stall", &threads, kind, measure).show(1.0, 0);
            let mut row = vec![threads.clone(), what.to_string()];
            row.extend(MEASURES.map(of));
            rows.push(row);
        }
    }
    let columns = ["threads", "call", "p50 ns", "p99 ns", "p99.9 ns", "max ns", "mean ns"];
    print_table("2 million markers without a pause", &columns, &rows);
}
