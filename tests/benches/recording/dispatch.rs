//! What recording costs a HIP program that does nothing but launch.

use crate::program::{Company, peers_checkout, run};
use crate::sample::{Samples, print_table};

/// Kernel time in ns, streams per GPU, GPUs, launches.
const CASES: [(u32, u32, u32, u32); 6] = [
    (200, 1, 1, 100_000),
    (200, 4, 2, 100_000),
    (10_000, 1, 1, 20_000),
    (10_000, 3, 1, 100_000),
    (10_000, 4, 1, 100_000),
    (10_000, 4, 2, 100_000),
];
/// The recorder as `rpd record` brings it under HIP 5.2.
const COMPANIES: [Company; 3] = [Company::Plain, Company::Floor, Company::Symbols];

fn name((kernel_ns, streams, gpus, _): (u32, u32, u32, u32)) -> String {
    format!("{} us, {streams}, {gpus}", f64::from(kernel_ns) / 1000.0)
}

/// A launch-heavy program without us, with a tool that only passes packets on, and with us.
pub(crate) fn dispatch(samples: &mut Samples) {
    let peer = peers_checkout().map(|_| Company::Peer);
    for _ in 0..5 {
        for case in CASES {
            for company in COMPANIES.into_iter().chain(peer) {
                measure(samples, case, company);
            }
        }
    }
    let mut rows = vec![];
    for case in CASES.map(name) {
        let ratio = |one: Company, measure, other: Company| {
            let (one, other) = ((one.name(), measure), (other.name(), measure));
            samples.ratio("dispatch", &case, one, other).times()
        };
        let of = |company: Company, measure| {
            samples.spread("dispatch", &case, company.name(), measure).show(1.0, 0)
        };
        rows.push(vec![
            case.clone(),
            ratio(Company::Symbols, "wall", Company::Floor),
            ratio(Company::Symbols, "wall", Company::Plain),
            peer.map_or(String::new(), |peer| ratio(peer, "wall", Company::Plain)),
            of(Company::Plain, "wall"),
            of(Company::Symbols, "recorder CPU"),
            of(Company::Plain, "launch CPU"),
            of(Company::Floor, "launch CPU"),
            of(Company::Symbols, "launch CPU"),
            of(Company::Plain, "host CPU"),
            of(Company::Symbols, "host CPU"),
        ]);
    }
    let columns = [
        "kernel, streams per GPU, GPUs",
        "wall: recorder / floor",
        "recorder / plain",
        "rocm-trace-lite / plain",
        "plain, ns per dispatch",
        "recorder's threads, CPU ns per dispatch",
        "launch, CPU ns: plain",
        "floor",
        "recorder",
        "program's threads, CPU ns: plain",
        "recorder",
    ];
    print_table(
        "A HIP program that only launches; the recorder as rpd record brings it, with librpd_hip.so",
        &columns,
        &rows,
    );
}

fn measure(samples: &mut Samples, case: (u32, u32, u32, u32), company: Company) {
    let (kernel_ns, streams, gpus, launches) = case;
    let arguments = [gpus, streams, launches].map(|number| number.to_string());
    let outcome = run("launches", &arguments, company, (gpus, kernel_ns), &[]);
    let (case, launches) = (name(case), f64::from(launches));
    let mut add =
        |measure, value: f64| samples.add("dispatch", &case, company.name(), measure, value / launches);
    add("wall", outcome.number("wall"));
    add("host CPU", outcome.number("host"));
    add("launch CPU", outcome.number("launch"));
    add("recorder CPU", outcome.recorder_cpu_ns);
}
