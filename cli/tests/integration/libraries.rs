//! What `rpd libraries` writes: joules, and calls of a part of a trace against a model that follows each operation to the calls around it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::generated::Random;
use crate::harness::Dir;

/// A trace of two products of matrices: one ran for 20 ms, the other one for 4 us beside it.
fn trace(dir: &Dir) -> String {
    let rows = "INSERT INTO rocpd_string VALUES (2, 'KernelExecution'), (3, 'long'), (4, 'short'), (5, 'hipLaunchKernel'), (6, 'rocblas'), (7, 'blas'),
             (8, 'rocblas_sgemm'), (9, 'handle=0x1 | m=64 | n=64 | k=64'), (10, 'handle=0x1 | m=1 | n=1 | k=1');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 8, 9), (2, 7, 7, 110, 120, 5, 1), (3, 7, 7, 300, 400, 8, 10), (4, 7, 7, 310, 320, 5, 1);
         INSERT INTO ext_librarycall VALUES (1, 6, 7), (3, 6, 7);
         INSERT INTO rocpd_op VALUES (1, 0, 0, 1, '', 20000000, 40000000, 3, 2), (2, 0, 1, 2, '', 39000000, 39004000, 4, 2);
         INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (2, 1), (4, 2);
         INSERT INTO rocpd_monitor VALUES (1, 'gpu', 0, 'power', 10000000, 20000000, '100'), (2, 'gpu', 0, 'power', 20000000, 30000000, '300'),
             (3, 'gpu', 0, 'power', 30000000, 40000000, '350.5');";
    dir.trace("t.rpd", &format!("{} {rows}", rpd_sql::ext::RECORDERS.concat()))
}

/// madengine's own file, from the logs that it was made of: each byte of it.
#[test]
fn library_trace_of_logs_is_the_originals_file() {
    let dir = Dir::new();
    let logs = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/library-logs");
    let original = std::fs::read(format!("{logs}/library_trace.csv")).unwrap();
    let logs = ["rocblas-layer6.log", "tensile-db-0x8000.log"].map(|log| format!("{logs}/{log}"));
    let date = ["--date", "2026-11-22 10:03:46"];
    let arguments = [&["export", "library-trace", "--log", &logs[0], &logs[1]], &date[..]].concat();
    let export = |more: &[&str]| {
        let mut rpd = dir.rpd(&[&arguments[..], more].concat());
        rpd.env("MAD_MODEL_NAME", "blas_sample").env_remove("JENKINS_BUILD_NUMBER").output().unwrap()
    };
    let printed = export(&[]);
    assert!(
        printed.status.success() && printed.stdout == original,
        "{}",
        String::from_utf8_lossy(&printed.stdout)
    );
    assert!(export(&["-o", "library_trace.csv"]).status.success());
    assert_eq!(std::fs::read(dir.path("library_trace.csv")).unwrap(), original);
}

/// 2 J, and 2.505 J but for half of what 4 us of it took.
const JOULES: f64 = 4.505 - 2.505 * 2e-6 / 10e-3;

/// The cells of a row of comma-separated values by the names of their columns.
fn cells(csv: &str, row: usize) -> Vec<(String, String)> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let row = reader.records().nth(row).unwrap().unwrap();
    header.iter().zip(&row).map(|(name, cell)| (name.to_string(), cell.to_string())).collect()
}

#[test]
fn joules_are_shown_where_a_sensor_was_read() {
    let dir = Dir::new();
    let trace = trace(&dir);
    let table = dir.run(&["libraries", &trace]);
    let lines: Vec<&str> = table.expect(0).stdout.lines().collect();
    assert!(lines[0].contains("      GPU      J  GFLOP/s"), "{table}");
    assert!(lines[1].contains("  20.00 ms  4.504    0.026  "), "{table}");
    assert!(lines[1].ends_with("rocblas rocblas_sgemm m=64 n=64 k=64"), "{table}");
    assert!(lines[2].ends_with("  1 x long"), "{table}");
    assert!(lines[3].contains("  4.000 us           0.001  "), "{table}");
    let refused = "it ran for 0.004 ms, which is less than a step of the sensor (10.000 ms)";
    assert_eq!(table.stderr, format!("rpd: no J of rocblas rocblas_sgemm m=1 | n=1 | k=1: {refused}\n"));
    let json = dir.run(&["libraries", "--json", &trace]);
    let found: Value = serde_json::from_str(&json.expect(0).stdout).unwrap();
    assert!((found[0]["joules"].as_f64().unwrap() - JOULES).abs() < 1e-9, "{found}");
    assert_eq!(found[0]["joules_refused"], Value::Null);
    assert_eq!((&found[1]["joules"], &found[1]["joules_refused"]), (&Value::Null, &refused.into()));
    // The kernel has as much.
    let energy = dir.run(&["energy", "--json", &trace]);
    let energy: Value = serde_json::from_str(&energy.expect(0).stdout).unwrap();
    assert_eq!(found[0]["joules"], energy["rows"][0]["joules"], "{energy}");
    let csv = dir.run(&["libraries", "--csv", &trace]);
    let joules =
        |row: usize| cells(&csv.expect(0).stdout, row).into_iter().find(|(name, _)| name == "joules");
    assert_eq!(joules(0).unwrap().1, format!("{JOULES:.6}"));
    assert_eq!(joules(1).unwrap().1, "");
    // What is beside a part has its share.
    let part = dir.run(&["libraries", "--json", "--end", "250", &trace]);
    let part: Value = serde_json::from_str(&part.expect(0).stdout).unwrap();
    assert_eq!(part[0]["joules"], found[0]["joules"], "{part}");
    assert_eq!(part.as_array().unwrap().len(), 1);
}

#[test]
fn operations_of_gpus_without_a_sensor_are_said() {
    let dir = Dir::new();
    let trace = trace(&dir);
    dir.open(&trace).execute_batch("UPDATE rocpd_op SET gpuId = 1 WHERE id = 2").unwrap();
    let table = dir.run(&["libraries", &trace]);
    assert_eq!(
        table.expect(0).stderr,
        "rpd: t.rpd: 1 operation is left out of J: no sensor of their GPU was read meanwhile\n"
    );
    assert!(table.stdout.contains("  4.505  "), "{table}");
}

#[test]
fn without_a_sensor_there_is_no_column_and_no_line() {
    let dir = Dir::new();
    let trace = trace(&dir);
    dir.open(&trace).execute_batch("DELETE FROM rocpd_monitor").unwrap();
    let table = dir.run(&["libraries", &trace]);
    assert!(table.expect(0).stdout.contains("      GPU  GFLOP/s"), "{table}");
    assert_eq!(table.stderr, "");
    let json = dir.run(&["libraries", "--json", &trace]);
    let found: Value = serde_json::from_str(&json.expect(0).stdout).unwrap();
    assert_eq!((&found[0]["joules"], &found[0]["joules_refused"]), (&Value::Null, &Value::Null), "{found}");
    let csv = dir.run(&["libraries", "--csv", &trace]);
    let of_joules = cells(&csv.expect(0).stdout, 0).into_iter().find(|(name, _)| name == "joules");
    assert_eq!(of_joules.unwrap().1, "");
}

fn calls(dir: &Dir, arguments: &[&str]) -> Vec<Value> {
    let json = dir.run(&[&["libraries", "--json"], arguments].concat());
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn a_call_around_the_one_that_launched_what_is_asked_for_counts() {
    let dir = Dir::new();
    let trace = trace(&dir);
    // The call of HIP inside the long one launches a copy too.
    let copy = "INSERT INTO rocpd_string VALUES (20, 'CopyHostToDevice'), (21, ''); INSERT INTO rocpd_api VALUES (5, 7, 7, 130, 140, 5, 1);
                INSERT INTO rocpd_op VALUES (3, 0, 0, 3, '', 40000000, 40001000, 21, 20); INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (5, 3);";
    dir.open(&trace).execute_batch(copy).unwrap();
    let all = calls(&dir, &[&trace]);
    assert_eq!((&all[0]["operations"], &all[0]["gflop_per_s"].is_f64()), (&2.into(), &true));
    for options in [&["--kernel", "^long$"][..], &["--kernel", "long|nothing", "--tid", "7"]] {
        let part = calls(&dir, &[options, &[&trace]].concat());
        let [of] = part.as_slice() else { panic!("{part:?}") };
        let counts = ["calls", "operations", "cpu_ns", "gpu_ns"].map(|name| of[name].as_u64().unwrap());
        assert_eq!(counts, [1, 1, 100, 20_000_000], "{of}");
        assert!((of["joules"].as_f64().unwrap() - JOULES).abs() < 1e-9, "the copy has no part in it: {of}");
        assert_eq!((of["kernels"].as_array().unwrap().len(), &of["kernels"][0]["name"]), (1, &"long".into()));
        assert_eq!(of["gflop_per_s"], Value::Null, "what of the product the copy did is not known: {of}");
    }
    let part = calls(&dir, &["--queue", "1", &trace]);
    assert_eq!((part.len(), &part[0]["configuration"]), (1, &"m=1 | n=1 | k=1".into()), "{part:?}");
    assert!(part[0]["gflop_per_s"].is_f64(), "all of its operations are asked for: {part:?}");
    // As the part has it in time, a call counts whatever it launched.
    assert_eq!(calls(&dir, &["--end", "100", &trace])[0]["operations"], 0);
    assert!(calls(&dir, &["--end", "100", "--kernel", "long", &trace]).is_empty());
    // It goes on behind the part, and launches more there.
    for options in [&["--end", "120"][..], &["--end", "120", "--kernel", "long"]] {
        let part = calls(&dir, &[options, &[&trace]].concat());
        assert_eq!((&part[0]["operations"], &part[0]["gflop_per_s"]), (&1.into(), &Value::Null), "{part:?}");
    }
    assert!(calls(&dir, &["--end", "200", &trace])[0]["gflop_per_s"].is_f64());
    let exported = |arguments: &[&str]| {
        let exported = dir.run(&[&["export"], arguments, &["--date", "today", &trace]].concat());
        exported.expect(0).stdout.lines().skip(1).map(str::to_string).collect::<Vec<_>>()
    };
    let [row, profile] = &*exported(&["library-trace", "--kernel", "short"]) else {
        panic!("one call has it")
    };
    assert!(row.contains("rocblas,./rocblas-bench -f gemm -r f32_r -m 1 -n 1 -k 1,1"), "{row}");
    assert!(
        profile.contains(",rocblas_function,") && profile.contains("M: 1, N: 1, K: 1, call_count: 1"),
        "{profile}"
    );
    let [row] = &*exported(&["library-perf", "--kernel", "long"]) else { panic!("one call has it") };
    assert!(row.contains("rocblas_sgemm,m=64 | n=64 | k=64,1,20000.000000,,65536,,,"), "{row}");
    for verb in [&["libraries"][..], &["export", "library-perf"]] {
        let said = dir.run(&[verb, &["--kernel", "medium", &trace]].concat());
        said.expect(0).says(&[
            "t.rpd: no calls of libraries in the named part: the file has nothing of --kernel medium",
        ]);
    }
}

/// A call of a made-up program.
struct Call {
    thread: i64,
    times: (i64, i64),
    around: Option<usize>,
    /// Its configuration, where it is one of a library.
    size: Option<i64>,
}

/// An operation.
struct Op {
    call: usize,
    gpu: i64,
    queue: i64,
    kernel: i64,
    ns: i64,
}

/// Calls of libraries in each other, and of HIP in these.
#[derive(Default)]
struct Program {
    calls: Vec<Call>,
    ops: Vec<Op>,
    now: i64,
}

impl Program {
    fn random(seed: u64) -> Program {
        let mut random = Random::new(seed);
        let mut program = Program::default();
        for thread in 0..3 {
            program.now = 1000 + 7 * thread;
            (0..30).for_each(|_| program.call(&mut random, thread, None, 3));
        }
        program
    }

    /// A call, and `depth` levels of calls of libraries in it at most.
    fn call(&mut self, random: &mut Random, thread: i64, around: Option<usize>, depth: i64) {
        self.now += 1 + random.below(10);
        let (place, start) = (self.calls.len(), self.now);
        let size = (random.below(4) < depth).then(|| 1 + random.below(5));
        self.calls.push(Call { thread, times: (start, start), around, size });
        match size {
            Some(_) => (0..random.below(4)).for_each(|_| self.call(random, thread, Some(place), depth - 1)),
            None => {
                for _ in 0..random.below(3) {
                    let (gpu, queue, kernel) = (random.below(2), random.below(3), random.below(4));
                    self.ops.push(Op { call: place, gpu, queue, kernel, ns: 100 + random.below(900) });
                }
            }
        }
        self.now += 1 + random.below(10);
        self.calls[place].times.1 = self.now;
    }

    /// Streams go with calls.
    fn stream(call: usize) -> usize {
        call % 3
    }

    fn rows(&self) -> String {
        let mut sql = format!("{} BEGIN;", rpd_sql::ext::RECORDERS.concat());
        sql += "INSERT INTO rocpd_string VALUES (2, 'KernelExecution'), (3, 'hipLaunchKernel'), (4, 'rocblas'), (5, 'blas'), (6, 'rocblas_sgemm');";
        for number in 0..6 {
            sql += &format!("INSERT INTO rocpd_string VALUES ({}, 'kernel{number}'),", 10 + number);
            sql += &format!("({}, 'm={number} | n=1 | k=1');", 20 + number);
        }
        for (place, Call { thread, times: (start, end), size, .. }) in self.calls.iter().enumerate() {
            let id = 1 + place;
            let (name, arguments) = size.map_or((3, 1), |size| (6, 20 + size));
            sql += &format!(
                "INSERT INTO rocpd_api VALUES ({id}, 7, {thread}, {start}, {end}, {name}, {arguments});"
            );
            match size {
                Some(_) => sql += &format!("INSERT INTO ext_librarycall VALUES ({id}, 4, 5);"),
                None => {
                    let stream = Program::stream(place);
                    sql += &format!(
                        "INSERT INTO rocpd_kernelapi VALUES ({id}, '0x{stream}', 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 0);"
                    );
                }
            }
        }
        for (place, Op { call, gpu, queue, kernel, ns }) in self.ops.iter().enumerate() {
            let (id, call, kernel, start) = (1 + place, 1 + call, 10 + kernel, 2000 * (1 + place as i64));
            sql += &format!(
                "INSERT INTO rocpd_op VALUES ({id}, {gpu}, {queue}, {id}, '', {start}, {}, {kernel}, 2);
                 INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({call}, {id});",
                start + ns
            );
        }
        sql + "COMMIT;"
    }

    /// The calls around an operation, the one that launched it first.
    fn around(&self, op: &Op) -> Vec<usize> {
        std::iter::successors(Some(op.call), |call| self.calls[*call].around).collect()
    }

    /// Of each configuration: calls, ns in them, operations, ns of these, kernels, and whether its speed is known.
    fn modelled(
        &self,
        is_called: impl Fn(&Call) -> bool,
        is_asked: impl Fn(&Op) -> bool,
    ) -> BTreeMap<String, Expected> {
        let has = |op: &Op| is_called(&self.calls[op.call]);
        let mut found: BTreeMap<String, Expected> = BTreeMap::new();
        for (place, call) in self.calls.iter().enumerate().filter(|(_, call)| is_called(call)) {
            let Some(size) = call.size else { continue };
            let inside = || self.ops.iter().filter(|op| has(op) && self.around(op).contains(&place));
            let asked: Vec<&Op> = inside().filter(|op| is_asked(op)).collect();
            if asked.is_empty() {
                continue;
            }
            let of = found.entry(format!("m={size} | n=1 | k=1")).or_default();
            of.calls += 1;
            of.cpu_ns += call.times.1 - call.times.0;
            of.operations += asked.len() as i64;
            of.gpu_ns += asked.iter().map(|op| op.ns).sum::<i64>();
            of.kernels.extend(asked.iter().map(|op| format!("kernel{}", op.kernel)));
            of.is_partial |= asked.len() < inside().count();
        }
        found
    }
}

#[derive(Debug, Default, PartialEq)]
struct Expected {
    calls: i64,
    cpu_ns: i64,
    operations: i64,
    gpu_ns: i64,
    kernels: BTreeSet<String>,
    is_partial: bool,
}

impl Expected {
    fn read(of: &Value) -> (String, Expected) {
        let number = |name: &str| of[name].as_i64().unwrap_or_else(|| panic!("no {name}: {of}"));
        let kernels = of["kernels"].as_array().unwrap().iter();
        let expected = Expected {
            calls: number("calls"),
            cpu_ns: number("cpu_ns"),
            operations: number("operations"),
            gpu_ns: number("gpu_ns"),
            kernels: kernels.map(|kernel| kernel["name"].as_str().unwrap().to_string()).collect(),
            is_partial: of["gflop_per_s"].is_null(),
        };
        (of["configuration"].as_str().unwrap().to_string(), expected)
    }
}

#[test]
fn calls_of_a_part_are_those_of_the_model() {
    let dir = Dir::new();
    for seed in 1..4 {
        let program = Program::random(seed);
        let trace = dir.trace(&format!("{seed}.rpd"), &program.rows());
        let part = |options: &[&str]| -> BTreeMap<String, Expected> {
            calls(&dir, &[options, &[&trace]].concat()).iter().map(Expected::read).collect()
        };
        let any = |_: &Call| true;
        let whole = program.modelled(any, |_| true);
        assert!(whole.values().all(|of| !of.is_partial) && whole.len() > 3, "{whole:?}");
        let cases = [
            (part(&["--kernel", "kernel2"]), program.modelled(any, |op| op.kernel == 2)),
            (part(&["--gpu", "1"]), program.modelled(any, |op| op.gpu == 1)),
            (part(&["--queue", "0", "--queue", "2"]), program.modelled(any, |op| op.queue != 1)),
            (part(&["--stream", "0x1"]), program.modelled(any, |op| Program::stream(op.call) == 1)),
            (
                part(&["--gpu", "0", "--kernel", "kernel[13]"]),
                program.modelled(any, |op| op.gpu == 0 && op.kernel % 2 == 1),
            ),
            (
                part(&["--tid", "1", "--kernel", "kernel0"]),
                program.modelled(|call| call.thread == 1, |op| op.kernel == 0),
            ),
            (
                part(&["--start", "1200", "--gpu", "0"]),
                program.modelled(|call| call.times.0 >= 1200, |op| op.gpu == 0),
            ),
        ];
        for (at, (found, expected)) in cases.iter().enumerate() {
            assert_eq!(found, expected, "{seed}: case {at}");
            assert!(!expected.is_empty() && *expected != whole, "{seed}: case {at} leaves something out");
        }
    }
}
