//! `rpd replacements`: which build of a kernel is faster, what else may be the reason, and what became of the candidates.

use std::collections::{BTreeMap, BTreeSet};

use rpd_schema::{
    ApiId, ApiRow, Appender, CandidateId, CandidateRow, CodeObjectId, CodeObjectRow, DispatchRow,
    ExtCodeObjectRow, OpId, OpRow, Outcome, ReplacementRow, session_fact,
};
use serde::Deserialize;

use crate::generated::Random;
use crate::harness::{Dir, Ran, golden, ran};

/// A recording in the making: dispatches follow each other on a queue.
pub(crate) struct Recording {
    appender: Appender,
    random: Random,
    /// When the next one begins, ns.
    now: u64,
    operations: u64,
    /// LDS of the code objects that have rows.
    code_objects: BTreeSet<u32>,
    /// How much durations differ by chance, in percent.
    noise: i64,
}

/// A dispatch.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    kernel: &'a str,
    ns: u64,
    /// Number of the candidate that ran, 0 for the program's own kernel.
    candidate: u64,
    grid: u32,
    /// All of a workgroup's LDS, and the kernel's own: bytes.
    lds: [u32; 2],
    gpu: u32,
    queue: u32,
    /// How long the queue was idle before.
    idle: u64,
}

pub(crate) const GEMM: Launch<'static> = Launch {
    kernel: "void gemm<float, 128>(float const*, float*, int)",
    ns: 100_000,
    candidate: 0,
    grid: 64,
    lds: [0, 0],
    gpu: 0,
    queue: 1,
    idle: 2000,
};

impl Recording {
    pub(crate) fn new(dir: &Dir, name: &str) -> Recording {
        let mut appender = Appender::open(&dir.path(name)).unwrap();
        appender.session_fact(session_fact::HOST, "node1").unwrap();
        appender.session_fact(session_fact::COMMAND, "./train --steps 100").unwrap();
        appender.gpu_fact(0, session_fact::GPU_NAME, "AMD Instinct MI210").unwrap();
        for gpu in [0, 1] {
            appender.gpu_fact(gpu, session_fact::GPU_TARGET, "gfx90a").unwrap();
        }
        appender.begin().unwrap();
        let (random, code_objects) = (Random::new(9), BTreeSet::new());
        Recording { appender, random, now: 1_000_000, operations: 0, code_objects, noise: 3 }
    }

    /// Says of the session that it had a kernel cache, and how kernels ran by turns.
    fn cache(&mut self, directory: &str, alternate: &str) {
        self.appender.session_fact(session_fact::KERNEL_CACHE, directory).unwrap();
        self.appender.session_fact(session_fact::ALTERNATE, alternate).unwrap();
    }

    fn candidate(&mut self, id: u64, path: &str, outcome: Outcome, reason: &str) {
        let sha256 = format!("{id}9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
        let row = CandidateRow {
            id: CandidateId(id),
            path,
            sha256: &sha256,
            target: if outcome == Outcome::OtherTarget { "gfx1100" } else { "gfx90a" },
            loaded: if outcome == Outcome::Loaded { 900 } else { 0 },
            outcome,
            reason,
        };
        self.appender.candidate(&row).unwrap();
    }

    /// A dispatch behind the one before.
    pub(crate) fn launch(&mut self, launch: Launch<'_>) {
        let chance = self.random.below(2 * self.noise * 10_000 + 1) - self.noise * 10_000;
        let ns = launch.ns.saturating_add_signed(launch.ns as i64 * chance / 1_000_000);
        self.exactly(launch, self.now + launch.idle, ns);
        self.now += launch.idle + ns;
    }

    /// The code object that has so much LDS, from 1; none where that is 0.
    fn code_object(&mut self, launch: Launch<'_>) -> CodeObjectId {
        let own = launch.lds[1];
        let id = CodeObjectId(own.into());
        if own > 0 && self.code_objects.insert(own) {
            let name = self.appender.intern(launch.kernel).unwrap();
            self.appender.code_object(&CodeObjectRow { id, vgpr: 8, sgpr: 16, fbar: 0 }).unwrap();
            let row = ExtCodeObjectRow {
                id,
                kernel_name: name,
                agpr: 0,
                vgpr_spill: 0,
                sgpr_spill: 0,
                group_segment_size: own,
                private_segment_size: 0,
                kernarg_segment_size: 8,
                wavefront_size: 64,
                max_workgroup_size: 1024,
            };
            self.appender.ext_code_object(&row).unwrap();
        }
        id
    }

    fn exactly(&mut self, launch: Launch<'_>, start: u64, ns: u64) {
        self.operations += 1;
        let number = self.operations;
        let (op, call) = (OpId(number), ApiId::call(number));
        let kernel_name = self.appender.intern(launch.kernel).unwrap();
        let (op_type, name) = (
            self.appender.intern("KernelExecution").unwrap(),
            self.appender.intern("hipLaunchKernel").unwrap(),
        );
        let args = self.appender.empty();
        self.appender
            .api(&ApiRow { id: call, pid: 7, tid: 7, start: start - 1000, end: start - 500, name, args })
            .unwrap();
        let row = OpRow {
            id: op,
            gpu: launch.gpu,
            queue: launch.queue,
            sequence: number,
            completion_signal: 0,
            start,
            end: start + ns,
            description: kernel_name,
            op_type,
        };
        self.appender.op(&row).unwrap();
        self.appender.api_op(call, op).unwrap();
        let dispatch = DispatchRow {
            op,
            kernel_name,
            grid: [launch.grid, 1, 1],
            workgroup: [256, 1, 1],
            group_segment_size: launch.lds[0],
            private_segment_size: 0,
            kernarg_address: 0,
            code_object: self.code_object(launch),
        };
        self.appender.dispatch(&dispatch).unwrap();
        if launch.candidate > 0 {
            let (original, replacement) = (CodeObjectId::UNKNOWN, CodeObjectId::UNKNOWN);
            let row = ReplacementRow { op, original, replacement, candidate: CandidateId(launch.candidate) };
            self.appender.replacement(&row).unwrap();
        }
    }

    pub(crate) fn end(mut self) {
        self.appender.commit().unwrap();
    }
}

/// The object of `--json`. A new field is a change of the interface and has to be added here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    seed: u64,
    resamples: u64,
    confidence_percent: u64,
    alternate: Vec<String>,
    kernel_cache: Vec<String>,
    launches: Vec<Comparison>,
    candidates: Vec<Candidate>,
    /// See tests/validate.rs.
    validated: Vec<serde_json::Value>,
    runs: Option<Runs>,
    impossible: u64,
    /// See instrumented.rs.
    instrumented: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparison {
    kernel: String,
    gpu: Option<i64>,
    target: String,
    grid: Option<[i64; 3]>,
    workgroup: Option<[i64; 3]>,
    dynamic_lds: Option<i64>,
    builds: Vec<Build>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Build {
    run: Option<char>,
    candidate: Option<String>,
    sha256: Option<String>,
    calls: u64,
    sampled: u64,
    median_ns: f64,
    p10_ns: f64,
    p90_ns: f64,
    total_ns: u64,
    speedup: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: String,
    by_turns: bool,
    after_other_percent: f64,
    idle_before_ns: Option<f64>,
    overlapped_percent: f64,
    remarks: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Candidate {
    run: Option<char>,
    path: String,
    sha256: String,
    target: String,
    loaded_ns: i64,
    outcome: String,
    reason: String,
    calls: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Runs {
    differences: Vec<Difference>,
    unreplaced: Unreplaced,
    in_one_only: u64,
    nothing_replaced: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    what: String,
    a: Vec<String>,
    b: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unreplaced {
    launches: u64,
    speedup: Option<f64>,
    least: Option<f64>,
    most: Option<f64>,
}

#[track_caller]
fn answer(dir: &Dir, arguments: &[&str]) -> Answer {
    let output = dir.run(&[&["replacements", "--json"], arguments].concat());
    serde_json::from_str(&output.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {output}"))
}

impl Answer {
    /// Verdict and whether by turns, of each build of the only launch.
    #[track_caller]
    fn only(&self) -> &[Build] {
        assert_eq!(self.launches.len(), 1, "{self:?}");
        &self.launches[0].builds
    }
}

fn replacements(dir: &Dir, columns: usize, arguments: &[&str]) -> Ran {
    ran(dir.rpd(&[&["replacements"], arguments].concat()).env("COLUMNS", columns.to_string()))
}

/// A run in which three builds of a kernel took turns, and another kernel was replaced half way; its candidates are of every kind.
fn by_turns(dir: &Dir) -> String {
    let mut run = Recording::new(dir, "ab.rpd");
    run.cache("/home/me/builds", "ABAB");
    run.candidate(1, "/home/me/builds/wide/gemm.hsaco", Outcome::Loaded, "");
    run.candidate(2, "/home/me/builds/unrolled/gemm.hsaco", Outcome::Loaded, "");
    run.candidate(3, "/home/me/builds/saxpy.hsaco", Outcome::Loaded, "");
    run.candidate(4, "/home/me/builds/rdna/gemm.hsaco", Outcome::OtherTarget, "no GPU here is a gfx1100");
    run.candidate(
        5,
        "/home/me/builds/reduce.hsaco",
        Outcome::Refused,
        "reduce(int*, int): needs 70000 bytes of LDS of 65536",
    );
    let saxpy = Launch { kernel: "saxpy(float, float const*, float*, int)", ns: 15_000, grid: 4096, ..GEMM };
    let reduce = Launch { kernel: "reduce(int*, int)", ns: 8000, grid: 1, ..GEMM };
    for step in 0..300 {
        let (ns, candidate) = [(120_000, 0), (104_000, 1), (120_100, 2)][step % 3];
        run.launch(Launch { ns, candidate, ..GEMM });
        run.launch(reduce);
        let candidate = if step < 150 { 0 } else { 3 };
        run.launch(Launch { candidate, idle: if step < 150 { 2000 } else { 40_000 }, ..saxpy });
    }
    run.end();
    "ab.rpd".to_string()
}

#[test]
fn builds_that_took_turns_in_every_form() {
    let dir = Dir::new();
    let trace = by_turns(&dir);
    let output = replacements(&dir, 110, &[&trace]);
    golden("replacements.txt", &output.expect(0).stdout);
    assert!(output.stderr.is_empty(), "{output}");
    golden("replacements.csv", &dir.run(&["replacements", "--csv", &trace]).expect(0).stdout);
    for columns in [80, 110] {
        for line in replacements(&dir, columns, &[&trace]).stdout.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
    let answer = answer(&dir, &[&trace]);
    assert_eq!((answer.seed, answer.resamples, answer.confidence_percent), (1, 2000, 95));
    assert_eq!(
        (&answer.alternate[..], &answer.kernel_cache[..]),
        (&["ABAB".to_string()][..], &["/home/me/builds".to_string()][..])
    );
    assert!(
        answer.runs.is_none() && answer.impossible + answer.instrumented == 0 && answer.validated.is_empty()
    );
    assert_eq!(answer.launches.len(), 2, "what was not replaced is not listed: {answer:?}");
    let gemm = &answer.launches[0];
    assert_eq!((gemm.kernel.as_str(), gemm.gpu, gemm.target.as_str()), (GEMM.kernel, Some(0), "gfx90a"));
    assert_eq!((gemm.grid, gemm.workgroup), (Some([64, 1, 1]), Some([256, 1, 1])));
    let [original, unrolled, wide] = &gemm.builds[..] else { panic!("{gemm:?}") };
    assert_eq!((original.verdict.as_str(), &original.candidate, original.speedup), ("baseline", &None, None));
    assert_eq!((unrolled.verdict.as_str(), unrolled.by_turns), ("no-difference-shown", true));
    assert_eq!((wide.verdict.as_str(), wide.by_turns, wide.calls), ("faster", true, 100));
    assert_eq!(wide.candidate.as_deref(), Some("/home/me/builds/wide/gemm.hsaco"));
    assert!(wide.sha256.as_deref().unwrap().starts_with("19f86d08") && wide.run.is_none());
    assert!((wide.speedup.unwrap() - 120.0 / 104.0).abs() < 0.01, "{wide:?}");
    assert!(wide.low.unwrap() > 1.13 && wide.high.unwrap() < 1.18, "{wide:?}");
    assert!(wide.remarks.is_empty() && unrolled.remarks.is_empty(), "{gemm:?}");
    assert_eq!(
        (wide.after_other_percent, wide.overlapped_percent, wide.idle_before_ns),
        (100.0, 0.0, Some(2000.0))
    );
    let saxpy = &answer.launches[1].builds[1];
    assert_eq!((saxpy.verdict.as_str(), saxpy.by_turns), ("no-difference-shown", false));
    let outcomes: Vec<(u64, &str)> =
        answer.candidates.iter().map(|found| (found.calls, found.outcome.as_str())).collect();
    assert_eq!(
        outcomes,
        [(150, "loaded"), (100, "loaded"), (100, "loaded"), (0, "refused"), (0, "other-target")]
    );
    let last = &answer.candidates[4];
    assert_eq!(
        (last.path.as_str(), last.target.as_str(), last.loaded_ns),
        ("/home/me/builds/rdna/gemm.hsaco", "gfx1100", 0)
    );
    assert!(last.reason.contains("gfx1100") && last.sha256.starts_with("49f8") && last.run.is_none());
    // The same file has the same numbers, also where less is asked of it.
    let some = self::answer(&dir, &[&trace, "--kernel", "^void gemm", "-n", "1"]);
    assert_eq!(some.only(), gemm.builds);
}

/// A quantile as numpy has it, of numbers in order.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * share;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[test]
fn the_numbers_are_those_of_sql() {
    let dir = Dir::new();
    let trace = by_turns(&dir);
    let mut expected: BTreeMap<(String, Option<String>), Vec<f64>> = BTreeMap::new();
    let connection = dir.open(&trace);
    let mut rows = connection
        .prepare(
            "SELECT description, path, o.\"end\" - o.start FROM op o LEFT JOIN ext_replacement r ON r.op_id = o.id
             LEFT JOIN ext_candidate c ON c.id = candidate_id ORDER BY 3",
        )
        .unwrap();
    let rows = rows.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get::<_, f64>(2)?))).unwrap();
    for row in rows {
        let (build, ns) = row.unwrap();
        expected.entry(build).or_default().push(ns);
    }
    for launch in answer(&dir, &[&trace]).launches {
        let median =
            |build: &Build| quantile(&expected[&(launch.kernel.clone(), build.candidate.clone())], 0.5);
        for build in &launch.builds {
            let times = &expected[&(launch.kernel.clone(), build.candidate.clone())];
            assert_eq!((build.calls, build.total_ns as f64), (times.len() as u64, times.iter().sum()));
            for (found, share) in [(build.p10_ns, 0.1), (build.median_ns, 0.5), (build.p90_ns, 0.9)] {
                assert!((found - quantile(times, share)).abs() < 1e-6, "{build:?} {share}");
            }
            let speedup = build.speedup.unwrap_or(1.0);
            assert!((speedup - median(&launch.builds[0]) / median(build)).abs() < 1e-12);
            assert!(
                build.low.is_none_or(|low| low <= speedup) && build.high.is_none_or(|high| high >= speedup)
            );
        }
    }
}

/// A run in which `GEMM` ran as `launches` say.
fn run_of(dir: &Dir, launches: impl IntoIterator<Item = Launch<'static>>) -> Answer {
    let mut run = Recording::new(dir, "run.rpd");
    run.candidate(1, "/c/1", Outcome::Loaded, "");
    run.candidate(2, "/c/2", Outcome::Loaded, "");
    launches.into_iter().for_each(|launch| run.launch(launch));
    run.end();
    answer(dir, &["run.rpd"])
}

/// The original and candidate 1 by turns, each so often.
fn turns(
    base: Launch<'static>,
    other: Launch<'static>,
    count: usize,
) -> impl Iterator<Item = Launch<'static>> {
    let other = Launch { candidate: 1, ..other };
    (0..2 * count).map(move |number| if number % 2 == 0 { base } else { other })
}

fn remark<'a>(build: &'a Build, words: &str) -> Option<&'a str> {
    build.remarks.iter().map(String::as_str).find(|remark| remark.contains(words))
}

#[test]
fn equal_builds_show_no_difference() {
    let dir = Dir::new();
    let answer = run_of(&dir, turns(GEMM, GEMM, 200));
    assert_eq!((answer.only()[1].verdict.as_str(), answer.only()[1].by_turns), ("no-difference-shown", true));
}

#[test]
fn what_ran_too_rarely_or_not_at_all_is_not_judged() {
    let dir = Dir::new();
    let verdicts = |launches: Vec<Launch<'static>>| -> Vec<String> {
        let dir = Dir::new();
        run_of(&dir, launches).only().iter().map(|build| build.verdict.clone()).collect()
    };
    let fast = Launch { ns: 50_000, ..GEMM };
    assert_eq!(verdicts(turns(GEMM, fast, 4).collect()), ["baseline", "too-few-calls"]);
    assert_eq!(verdicts(turns(GEMM, fast, 5).collect()), ["baseline", "faster"]);
    let few = [[GEMM; 3].to_vec(), vec![Launch { candidate: 1, ..fast }; 500]].concat();
    assert_eq!(verdicts(few), ["baseline", "too-few-calls"]);
    let candidates = |number| Launch { candidate: number, ..GEMM };
    assert_eq!(verdicts(vec![candidates(1); 20]), ["nothing-to-compare-with"]);
    assert_eq!(
        verdicts((0..20).map(|number| candidates(1 + number % 2)).collect()),
        ["baseline", "no-difference-shown"]
    );
    let nothing = Launch { ns: 0, ..GEMM };
    assert_eq!(verdicts(turns(GEMM, nothing, 50).collect()), ["baseline", "too-short"]);
    assert_eq!(verdicts(turns(nothing, GEMM, 50).collect()), ["baseline", "too-short"]);
    // For people.
    run_of(&dir, turns(GEMM, fast, 4));
    let output = replacements(&dir, 120, &["run.rpd"]);
    assert!(
        output.expect(0).stdout.contains("1.984x") && output.stdout.contains("too few calls (4)"),
        "{output}"
    );
    let dir = Dir::new();
    run_of(&dir, vec![candidates(1); 20]);
    replacements(&dir, 120, &["run.rpd"]).expect(0).says(&["did not run in 1 launch", "--alternate"]);
}

#[test]
fn phases_and_a_drift_are_reported() {
    let dir = Dir::new();
    // The clock goes down all the time: the candidate, which ran later, is no slower.
    let drift = |number: u64, candidate| Launch { ns: 100_000 + 100 * number, candidate, ..GEMM };
    let answer = run_of(&dir, (0..400).map(|number| drift(number, u64::from(number >= 200))));
    let build = &answer.only()[1];
    assert_eq!((build.verdict.as_str(), build.by_turns), ("slower", false));
    assert!(
        remark(build, "the baseline ran first").is_some_and(|output| output.contains("--alternate")),
        "{build:?}"
    );
    assert!(remark(build, "longer in the second half").is_some(), "{build:?}");
    // By turns the same drift is no difference.
    let dir = Dir::new();
    let answer = run_of(&dir, (0..400).map(|number| drift(number, number % 2)));
    let build = &answer.only()[1];
    assert_eq!(
        (build.verdict.as_str(), build.by_turns, &build.remarks[..]),
        ("no-difference-shown", true, &[][..])
    );
    // The other order; and without a drift.
    let dir = Dir::new();
    let answer = run_of(&dir, (0..400).map(|number| Launch { candidate: u64::from(number < 200), ..GEMM }));
    let build = &answer.only()[1];
    assert!(
        remark(build, "this one ran first").is_some() && remark(build, "half of its calls").is_none(),
        "{build:?}"
    );
    // Twice is not by turns.
    let dir = Dir::new();
    let answer = run_of(&dir, (0..400).map(|number| Launch { candidate: number / 100 % 2, ..GEMM }));
    assert!(remark(&answer.only()[1], "hardly ran by turns").is_some(), "{answer:?}");
}

#[test]
fn what_is_around_the_calls_is_reported() {
    let dir = Dir::new();
    // Another kernel in front of each call of the candidate.
    let other = Launch { kernel: "evict_caches(char*)", ..GEMM };
    let answer = run_of(
        &dir,
        turns(GEMM, GEMM, 100)
            .flat_map(|launch| [other, launch].into_iter().skip(usize::from(launch.candidate == 0))),
    );
    let build = &answer.only()[1];
    assert_eq!((build.after_other_percent, answer.only()[0].after_other_percent), (100.0, 1.0));
    assert!(
        remark(build, "right before 100 % of its calls, and before 1 % of the baseline's")
            .is_some_and(|output| output.contains("--alternate=random")),
        "{build:?}"
    );
    // An idle queue in front of it.
    let dir = Dir::new();
    let answer = run_of(&dir, turns(GEMM, Launch { idle: 500_000, ..GEMM }, 100));
    let build = &answer.only()[1];
    assert_eq!((build.idle_before_ns, answer.only()[0].idle_before_ns), (Some(500_000.0), Some(2000.0)));
    assert!(remark(build, "idle for 500 us before its calls, and for 2 us before").is_some(), "{build:?}");
    // Another queue of the GPU at the same time, and another GPU, which does not matter.
    let dir = Dir::new();
    let mut run = Recording::new(&dir, "run.rpd");
    run.candidate(1, "/c/1", Outcome::Loaded, "");
    for (number, launch) in turns(GEMM, GEMM, 100).enumerate() {
        let start = run.now + 50_000;
        run.launch(launch);
        let beside = Launch { gpu: if number % 4 == 1 { 0 } else { 1 }, queue: 2, ..other };
        run.exactly(beside, start, 20_000);
    }
    run.end();
    let answer = self::answer(&dir, &["run.rpd"]);
    let build = &answer.only()[1];
    assert_eq!((build.overlapped_percent, answer.only()[0].overlapped_percent), (50.0, 0.0));
    assert!(
        remark(build, "during 50 % of its calls, and during 0 % of the baseline's").is_some(),
        "{build:?}"
    );
    // The same where the other operation begins before the call, and ends in the middle of it.
    let dir = Dir::new();
    let mut run = Recording::new(&dir, "run.rpd");
    run.candidate(1, "/c/1", Outcome::Loaded, "");
    for launch in turns(GEMM, GEMM, 100) {
        if launch.candidate == 1 {
            let start = run.now + launch.idle / 2;
            run.exactly(Launch { queue: 2, ..other }, start, 20_000);
        }
        run.launch(launch);
    }
    run.end();
    let answer = self::answer(&dir, &["run.rpd"]);
    let [base, build] = answer.only() else { panic!("{answer:?}") };
    assert_eq!((base.overlapped_percent, build.overlapped_percent), (0.0, 100.0));
    // Another process has a queue of the same number, which is another one.
    let dir = Dir::new();
    let mut run = Recording::new(&dir, "run.rpd");
    run.candidate(1, "/c/1", Outcome::Loaded, "");
    turns(GEMM, GEMM, 100).for_each(|launch| run.launch(launch));
    run.end();
    let mut run = Recording::new(&dir, "run.rpd");
    (0..200).for_each(|_| run.launch(other));
    run.end();
    let answer = self::answer(&dir, &["run.rpd"]);
    let [base, build] = answer.only() else { panic!("{answer:?}") };
    assert_eq!((base.after_other_percent, build.after_other_percent), (1.0, 0.0), "the first call alone");
    // Nothing of this where both are alike.
    let dir = Dir::new();
    let answer = run_of(&dir, turns(GEMM, GEMM, 100).flat_map(|launch| [other, launch]));
    assert!(answer.only()[1].remarks.is_empty(), "{answer:?}");
}

#[test]
fn launches_are_apart_by_geometry_and_gpu_and_sessions_are_not() {
    let dir = Dir::new();
    for _ in 0..2 {
        let mut run = Recording::new(&dir, "t.rpd");
        run.candidate(1, "/c/1", Outcome::Loaded, "");
        run.candidate(2, "/c/1", Outcome::Removed, "the file is gone");
        for launch in turns(GEMM, GEMM, 10) {
            run.launch(launch);
            run.launch(Launch { grid: 128, ..launch });
            run.launch(Launch { gpu: 1, ..launch });
        }
        run.end();
    }
    let found = answer(&dir, &["t.rpd"]);
    let mut launches: Vec<(Option<i64>, i64, u64)> = found
        .launches
        .iter()
        .map(|launch| (launch.gpu, launch.grid.unwrap()[0], launch.builds[1].calls))
        .collect();
    launches.sort_unstable();
    assert_eq!(launches, [(Some(0), 64, 20), (Some(0), 128, 20), (Some(1), 64, 20)]);
    let calls: Vec<(u64, &str)> =
        found.candidates.iter().map(|found| (found.calls, found.outcome.as_str())).collect();
    assert_eq!(calls, [(60, "loaded"), (0, "removed")]);
    let output = replacements(&dir, 120, &["t.rpd", "-n", "1"]);
    output.expect(0).says(&["2 launches not shown"]);
    assert!(output.stdout.contains("... and 1 more file"), "{output}");
}

#[test]
fn more_calls_than_a_sample_has() {
    let dir = Dir::new();
    let answer = run_of(&dir, turns(GEMM, Launch { ns: 99_000, ..GEMM }, 6000));
    let build = &answer.only()[1];
    assert_eq!((build.verdict.as_str(), build.calls, build.by_turns), ("faster", 6000, true));
    assert_eq!((build.sampled, &build.remarks[..]), (5000, &[][..]));
    let output = replacements(&dir, 120, &["run.rpd"]);
    assert!(output.expect(0).stdout.contains("of 5000 drawn at random"), "{output}");
    let (low, high) = (build.low.unwrap(), build.high.unwrap());
    assert!(
        low < build.speedup.unwrap() && build.speedup.unwrap() < high && low > 1.007 && high < 1.013,
        "{build:?}"
    );
}

#[test]
fn damaged_rows_do_not_change_what_the_others_say() {
    let dir = Dir::new();
    run_of(&dir, turns(GEMM, Launch { ns: 80_000, ..GEMM }, 100));
    dir.open("run.rpd")
        .execute_batch(
            "PRAGMA legacy_alter_table = ON;
             CREATE TABLE loose (id, op_id, original_kernel_id, replacement_kernel_id, candidate_id);
             INSERT INTO loose SELECT * FROM ext_replacement; DROP TABLE ext_replacement;
             ALTER TABLE loose RENAME TO ext_replacement;
             UPDATE ext_replacement SET candidate_id = NULL WHERE op_id = 2;
             UPDATE ext_replacement SET candidate_id = 'x' WHERE op_id = 4;
             UPDATE ext_replacement SET candidate_id = 77 WHERE op_id = 6;
             UPDATE ext_replacement SET candidate_id = 0 WHERE op_id = 8;
             UPDATE ext_replacement SET op_id = NULL WHERE op_id = 10;
             UPDATE ext_replacement SET op_id = 'y' WHERE op_id = 12;
             INSERT INTO ext_replacement VALUES (900, 900, 0, 0, 1), (14, 14, 0, 0, 2);
             UPDATE rocpd_op SET \"end\" = 1 WHERE id IN (15, 16);
             UPDATE rocpd_op SET start = 'z' WHERE id = 17;
             UPDATE ext_dispatch SET gridX = 'wide' WHERE op_id = 19;",
        )
        .unwrap();
    let found = answer(&dir, &["run.rpd"]);
    assert_eq!(found.impossible, 3);
    let build =
        |build: &Build| format!("{} {}", build.candidate.as_deref().unwrap_or("original"), build.calls);
    let launches: Vec<(Option<i64>, Vec<String>)> = found
        .launches
        .iter()
        .map(|launch| (launch.grid.map(|[x, ..]| x), launch.builds.iter().map(build).collect()))
        .collect();
    // The one without a row of which anything is known counts as the program's own.
    let builds = ["original 99", "(a candidate that is not in the file) 4", "/c/1 93"].map(String::from);
    assert_eq!(launches, [(Some(64), builds.to_vec()), (None, vec!["original 1".to_string()])]);
    replacements(&dir, 100, &["run.rpd"]).expect(0).says(&["3 dispatches are left out"]);
    dir.run(&["info", "run.rpd"]).expect(0);
}

#[test]
fn a_trace_without_replacements_says_so() {
    let dir = Dir::new();
    for trace in [dir.fixture("matmul_result.rpd"), dir.trace("empty.rpd", "")] {
        let output = dir.run(&["replacements", &trace]);
        output.expect(0).says(&[&trace, "no kernel was replaced", "--kernel-cache"]);
        assert!(output.stdout.is_empty(), "{output}");
        for form in ["--json", "--csv"] {
            let output = dir.run(&["replacements", form, &trace]);
            output.expect(0).says(&[&trace, "no kernel was replaced", "rpd record --kernel-cache DIR"]);
        }
        assert!(answer(&dir, &[&trace]).launches.is_empty());
    }
    // Candidates of which none ran.
    let mut run = Recording::new(&dir, "none.rpd");
    run.candidate(1, "/c/\x1b[2J\u{202e}", Outcome::Failed, "=cmd()\nsecond line");
    run.end();
    let output = dir.run(&["replacements", "none.rpd"]);
    assert!(
        output.expect(0).stdout.contains("1 failed") && output.stdout.contains("/c/\\x1b[2J\\u{202e}"),
        "{output}"
    );
    assert!(output.stdout.contains("  =cmd()\\nsecond line\n"), "{output}");
    output.says(&["no kernel was replaced", "list of candidates"]);
    assert!(!output.stderr.contains("--kernel-cache"), "there is one: {output}");
    assert_eq!(answer(&dir, &["none.rpd"]).candidates[0].path, "/c/\x1b[2J\u{202e}");
}

/// Two runs of a program: without a candidate, and with one that is faster.
fn two_runs(dir: &Dir) {
    let other = Launch { kernel: "reduce(int*, int)", ns: 8000, ..GEMM };
    for (name, ns, candidate) in [("a.rpd", 100_000, 0), ("b.rpd", 80_000, 1)] {
        let mut run = Recording::new(dir, name);
        run.candidate(1, "/c/1", Outcome::Loaded, "");
        for _ in 0..100 {
            run.launch(Launch { ns, candidate, ..GEMM });
            run.launch(other);
            run.launch(Launch { gpu: 1, ns, candidate, ..GEMM });
        }
        let grid = if candidate == 0 { 7 } else { 8 };
        run.launch(Launch { grid, ..GEMM });
        run.end();
    }
}

#[test]
fn two_runs_are_compared_by_target() {
    let dir = Dir::new();
    two_runs(&dir);
    let answer = answer(&dir, &["a.rpd", "b.rpd"]);
    assert_eq!((answer.launches[0].gpu, answer.launches[0].target.as_str()), (None, "gfx90a"));
    let [a, b] = answer.only() else { panic!("{answer:?}") };
    assert_eq!((a.run, a.calls, a.verdict.as_str(), &a.candidate), (Some('A'), 200, "baseline", &None));
    assert_eq!((b.run, b.calls, b.verdict.as_str(), b.by_turns), (Some('B'), 200, "faster", false));
    assert!((b.speedup.unwrap() - 1.25).abs() < 0.01 && remark(b, "by turns").is_none(), "{b:?}");
    let runs = answer.runs.unwrap();
    assert_eq!((runs.in_one_only, runs.nothing_replaced, runs.differences.len()), (2, false, 0));
    assert_eq!(runs.unreplaced.launches, 1);
    assert!(runs.unreplaced.speedup.is_some_and(|speedup| (0.99..1.01).contains(&speedup)));
    assert_eq!(runs.unreplaced.least, runs.unreplaced.most);
    let runs: Vec<_> = answer.candidates.iter().map(|found| (found.run, found.calls)).collect();
    assert_eq!(runs, [(Some('A'), 0), (Some('B'), 200)]);
    // The other way round the candidate is slower.
    let back = self::answer(&dir, &["b.rpd", "a.rpd"]);
    assert_eq!(back.only()[1].verdict, "slower");
    assert_eq!(self::answer(&dir, &["a.rpd", "b.rpd", "--kernel", "nothing"]).launches.len(), 0);
}

/// LDS that a launch adds is a part of its geometry; what the kernel itself has is a matter of the build.
#[test]
fn launches_with_other_dynamic_lds_are_compared_by_themselves() {
    let dir = Dir::new();
    let mut run = Recording::new(&dir, "one.rpd");
    run.candidate(1, "/b/gemm.hsaco", Outcome::Loaded, "");
    for _ in 0..20 {
        for (lds, ns) in [([1024, 1024], 50_000), ([1024 + 4096, 1024], 90_000)] {
            for candidate in [0, 1] {
                run.launch(Launch { candidate, lds, ns, ..GEMM });
            }
        }
    }
    run.end();
    let sizes = |answer: &Answer| {
        let mut sizes: Vec<_> =
            answer.launches.iter().map(|launch| (launch.dynamic_lds, launch.builds[0].calls)).collect();
        sizes.sort();
        sizes
    };
    let one = answer(&dir, &["one.rpd"]);
    assert_eq!(sizes(&one), [(Some(0), 20), (Some(4096), 20)]);
    let output = replacements(&dir, 120, &["one.rpd"]);
    assert_eq!(
        output.stdout.matches("workgroup 256,1,1, 4096 bytes of dynamic LDS\n").count(),
        1,
        "{output}"
    );
    assert_eq!(output.stdout.matches("workgroup 256,1,1\n").count(), 1, "{output}");
    let csv = dir.run(&["replacements", "--csv", "one.rpd"]).expect(0).stdout.clone();
    assert_eq!(csv.matches("\"256,1,1\",4096,").count(), 2, "{csv}");

    // Two builds of the whole program: the kernel's own LDS differs, the launch is the same.
    for (name, own) in [("a.rpd", 1024), ("b.rpd", 2048)] {
        let mut run = Recording::new(&dir, name);
        (0..20).for_each(|_| run.launch(Launch { lds: [own + 512, own], ..GEMM }));
        run.end();
    }
    let two = answer(&dir, &["a.rpd", "b.rpd"]);
    assert_eq!(sizes(&two), [(Some(512), 20)]);
    assert_eq!(two.launches[0].builds.len(), 2);
    // HIP's own times tell the LDS that the launch adds, and no other.
    for name in ["a.rpd", "b.rpd"] {
        let hip = "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::timing', 'hip');
             UPDATE ext_dispatch SET groupSegmentSize = 512";
        dir.open(name).execute_batch(hip).unwrap();
    }
    assert_eq!(sizes(&answer(&dir, &["a.rpd", "b.rpd"])), [(Some(512), 20)]);
}

#[test]
fn what_else_differs_between_two_runs_is_reported() {
    let dir = Dir::new();
    two_runs(&dir);
    dir.open("b.rpd")
        .execute_batch(
            "UPDATE rocpd_metadata SET value = './train --steps 9' WHERE tag = 'session::0::command';
             UPDATE rocpd_metadata SET value = 'AMD Instinct MI250' WHERE tag = 'gpu::0::name';
             DELETE FROM rocpd_metadata WHERE tag = 'session::0::host';
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::version::hip', '6.4'),
                ('session::0::version::driver', 'Linux 6.8.0'), ('session::0::version::hsa', '1.14')",
        )
        .unwrap();
    dir.open("a.rpd")
        .execute_batch(
            "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::version::hip', '5.2'),
                ('session::0::version::driver', 'amdgpu 6.3.6, Linux 6.8.0'), ('session::0::version::hsa', '1.14')",
        )
        .unwrap();
    let runs = answer(&dir, &["a.rpd", "b.rpd"]).runs.unwrap();
    let differences: Vec<String> = runs
        .differences
        .iter()
        .map(|found| format!("{} {} {}", found.what, found.a.join(","), found.b.join(",")))
        .collect();
    assert_eq!(
        differences,
        [
            "GPU AMD Instinct MI210 AMD Instinct MI250",
            "command ./train --steps 100 ./train --steps 9",
            "version of driver amdgpu 6.3.6, Linux 6.8.0 Linux 6.8.0",
            "version of hip 5.2 6.4"
        ]
    );
    golden("replacements-runs.txt", &replacements(&dir, 100, &["a.rpd", "b.rpd"]).expect(0).stdout);
    // Another target has no launch in common.
    dir.open("b.rpd")
        .execute_batch("UPDATE rocpd_metadata SET value = 'gfx906' WHERE tag GLOB 'gpu::*::target'")
        .unwrap();
    let output = replacements(&dir, 100, &["a.rpd", "b.rpd"]);
    output.expect(0).says(&["a.rpd and b.rpd", "no kernel ran in both"]);
    assert!(output.stdout.contains("target") && output.stdout.contains("gfx906"), "{output}");
}

#[test]
fn two_runs_without_replacements_are_compared_in_all_kernels() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let answer = answer(&dir, &[&trace, &trace]);
    assert!(answer.runs.is_some_and(|runs| runs.nothing_replaced && runs.unreplaced.launches == 0));
    assert!(answer.launches.len() > 3);
    for build in answer.launches.iter().map(|launch| &launch.builds[1]) {
        assert!(matches!(build.verdict.as_str(), "no-difference-shown" | "too-few-calls"), "{build:?}");
    }
}

#[test]
fn info_and_top_say_that_kernels_were_replaced() {
    let dir = Dir::new();
    let trace = by_turns(&dir);
    let info = dir.run(&["info", &trace]);
    let line =
        "code    350 dispatches of 2 kernels ran another in its place, of 3 candidates: rpd replacements\n";
    assert!(info.expect(0).stdout.contains(line), "{info}");
    let info: serde_json::Value = serde_json::from_str(&dir.run(&["info", "--json", &trace]).stdout).unwrap();
    assert_eq!(info["replaced"], serde_json::json!({"dispatches": 350, "kernels": 2, "candidates": 3}));
    let top = dir.run(&["top", &trace]);
    top.expect(0).says(&["350 dispatches ran another kernel", "rpd replacements ab.rpd"]);
    let replaced: Vec<&str> = top
        .stdout
        .lines()
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().nth(9).unwrap_or_default())
        .collect();
    assert_eq!(replaced.len(), 4, "{top}");
    let output: serde_json::Value =
        serde_json::from_str(&dir.run(&["top", "--json", &trace]).stdout).unwrap();
    let output: Vec<_> = output
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["calls"].as_u64(), row["replaced"].as_u64()))
        .collect();
    assert_eq!(output, [(Some(300), Some(200)), (Some(300), Some(150)), (Some(300), None)]);
    for by in ["api", "copy", "marker"] {
        assert!(!dir.run(&["top", "--by", by, &trace]).expect(0).stderr.contains("in the place"));
    }
}
