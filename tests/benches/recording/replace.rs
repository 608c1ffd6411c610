//! What replaced kernels cost: a dispatch, the start of a program, and the time from a file's rename to its effect.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::{Dir, Loading, Run, candidate, program};
use crate::program::{Company, compiled_candidate, run};
use crate::sample::{Samples, print_table};

const LAUNCHES: u32 = 100_000;
/// Files of the large cache.
const FILES: usize = 1000;
/// Times inside the interceptor, of launches of one program that run its own kernel and the candidate by turns: the lower quartile, as other
/// threads hold up the rest.
const INTERCEPTED: &str = "with times as (select R.op_id is not null replaced, A.end - A.start ns from rocpd_op O
        join rocpd_api_ops J on J.op_id = O.id join rocpd_api A on A.id = J.api_id left join ext_replacement R on R.op_id = O.id),
    ranked as (select replaced, ns, row_number() over (partition by replaced order by ns) place, count(*) over (partition by replaced) n from times)
    select ns from ranked where place = n / 4 order by replaced";
const VARIANTS: [&str; 5] = ["recording", "unused cache", "replaced", "by turns", "1,000 files"];

/// All of it.
pub(crate) fn replace(samples: &mut Samples) {
    let dir = Dir::new();
    let cache = |name: &str, files: usize, file: &Path| {
        let directory = dir.path(name);
        fs::create_dir(&directory).unwrap();
        (0..files).for_each(|number| {
            fs::copy(file, directory.join(format!("{number}.hsaco"))).unwrap();
        });
        directory.display().to_string()
    };
    let (own, other) = (compiled_candidate("launches", "gfx900"), candidate("gfx900", &["-DVARIANT=2"]));
    let (one, unused, many) =
        (cache("one", 1, &own), cache("unused", 1, &other), cache("many", FILES, &other));
    for _ in 0..5 {
        for variant in VARIANTS {
            let environment: &[(&str, &str)] = match variant {
                "unused cache" => &[("LOGDUR_KERNEL_CACHE", &unused)],
                "replaced" => &[("LOGDUR_KERNEL_CACHE", &one)],
                "by turns" => &[("LOGDUR_KERNEL_CACHE", &one), ("RPDT_ALTERNATE", "ABAB")],
                "1,000 files" => &[("LOGDUR_KERNEL_CACHE", &many)],
                _ => &[],
            };
            let launches = if variant == "1,000 files" { 1 } else { LAUNCHES };
            let arguments = [1, 1, launches].map(|number| number.to_string());
            let outcome = run("launches", &arguments, Company::Recorder, (1, 200), environment);
            let mut add = |measure, value: f64| samples.add("replace", "launches", variant, measure, value);
            add("wall", outcome.number("wall") / f64::from(launches));
            add("launch CPU", outcome.number("launch") / f64::from(launches));
            add("recorder CPU", outcome.recorder_cpu_ns / f64::from(launches));
        }
        samples.add("replace", "rename", "replaced", "ms", reaction());
        let turns = [("LOGDUR_KERNEL_CACHE", &*one), ("RPDT_ALTERNATE", "blocks=500"), ("RPDT_HIP", "0")];
        let arguments = [1, 1, LAUNCHES].map(|number| number.to_string());
        let outcome = run("launches", &arguments, Company::Recorder, (1, 200), &turns);
        let trace = rusqlite::Connection::open(&outcome.trace).unwrap();
        let mut times = trace.prepare(INTERCEPTED).unwrap();
        let times = times.query_map([], |row| row.get(0)).unwrap();
        let times: Vec<f64> = times.map(Result::unwrap).collect();
        samples.add("replace", "one run", "own kernel", "intercepted", times[0]);
        samples.add("replace", "one run", "replaced", "intercepted", times[1]);
        samples.add("replace", "one run", "replaced", "more", times[1] - times[0]);
    }
    let of = |variant, measure| samples.spread("replace", "launches", variant, measure);
    let row = |variant: &'static str| {
        let more = of(variant, "launch CPU").median - of("recording", "launch CPU").median;
        let measures =
            ["launch CPU", "wall", "recorder CPU"].map(|measure| of(variant, measure).show(1.0, 0));
        [vec![variant.to_string(), format!("{more:.0}")], measures.to_vec()].concat()
    };
    let columns = ["", "launch: more than recording", "launch, CPU ns", "wall", "recorder's threads"];
    print_table(
        "ns per dispatch with a kernel cache",
        &columns,
        &VARIANTS[..4].iter().map(|variant| row(variant)).collect::<Vec<_>>(),
    );
    let one_run = |variant, measure| samples.spread("replace", "one run", variant, measure).show(1.0, 0);
    let times = [("own kernel", "intercepted"), ("replaced", "intercepted"), ("replaced", "more")];
    print_table(
        "ns in the interceptor, by turns in one run",
        &["own kernel", "replaced", "more"],
        &[times.map(|(variant, measure)| one_run(variant, measure)).to_vec()],
    );
    let start = vec![
        vec![
            "CPU of the recorder's threads with 1,000 files, ms".into(),
            of("1,000 files", "recorder CPU").show(1e-6, 1),
        ],
        vec![
            "from a rename to the loaded candidate, ms".into(),
            samples.spread("replace", "rename", "replaced", "ms").show(1.0, 1),
        ],
    ];
    print_table("A kernel cache at the start, and when it changes", &["", ""], &start);
}

/// From the rename of a file into the cache to the moment from which its kernels run, ms.
fn reaction() -> f64 {
    let dir = Dir::new();
    let cache: PathBuf = dir.path("cache");
    fs::create_dir(&cache).unwrap();
    fs::copy(candidate("gfx900", &["-DVARIANT=2"]), dir.path("next")).unwrap();
    let run =
        Run::new(&dir, program("replace")).recorded(Loading::Preload).env("LOGDUR_KERNEL_CACHE", &cache);
    let mut running = run.arg("2").arg("wait").start();
    running.wait_for_output("round 0.\n");
    dir.touch("round.0");
    running.wait_for_output("round 1.\n");
    std::thread::sleep(Duration::from_millis(300));
    let renamed = monotonic();
    fs::rename(dir.path("next"), cache.join("next.hsaco")).unwrap();
    dir.wait_for_rows("trace.rpd", "select count(*) from ext_candidate where outcome = 'loaded'", 1);
    dir.touch("round.1");
    running.finish().expect(0);
    let loaded =
        dir.trace("trace.rpd").number("select min(loaded) from ext_candidate where outcome = 'loaded'");
    (loaded - renamed) as f64 / 1e6
}

/// CLOCK_MONOTONIC, ns.
fn monotonic() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
