//! `rpd energy` against a model that looks at each microsecond.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::generated::Random;
use crate::harness::Dir;

/// When a made-up run begins, ns: a time of 0 is none.
const BEGIN: i64 = 1_000_000;
/// Its microseconds.
const LENGTH: i64 = 4000;
const US: i64 = 1000;
/// What GPUs take while they run nothing, W.
const FLOOR: f64 = 40.0;

/// An operation: GPU, start and end in microseconds, name.
type Op = (i64, i64, i64, usize);

/// How a run is made up.
#[derive(Clone, Copy)]
struct Shape {
    /// How long a step of the sensor of each GPU is, us.
    steps: [i64; 2],
    /// How many kernels there are, and how long one runs at most, us.
    kernels: i64,
    longest: i64,
}

/// A few long kernels, and sensors of one pace.
fn of_one_pace(step: i64) -> Shape {
    Shape { steps: [step; 2], kernels: 4, longest: 400 }
}

/// A trace of two GPUs, what ran on them, and the energy of each of their microseconds, J.
struct MadeUp {
    trace: String,
    shape: Shape,
    ops: Vec<Op>,
    joules: BTreeMap<i64, Vec<f64>>,
}

/// What runs takes power by its name. The counter is read all the time, changes once a step, and begins with a step that is cut off.
fn made_up(dir: &Dir, name: &str, seed: u64, shape: Shape) -> MadeUp {
    let mut random = Random::new(seed);
    let mut ops: Vec<Op> = Vec::new();
    for gpu in 0..2 {
        for _ in 0..40 {
            let start = 200 + random.below(LENGTH - 1000);
            ops.push((
                gpu,
                start,
                start + 1 + random.below(shape.longest),
                random.below(shape.kernels) as usize,
            ));
        }
    }
    let mut joules = BTreeMap::new();
    for gpu in 0..2 {
        let watts = |us: i64| {
            let runs = ops.iter().filter(|(of, start, end, _)| *of == gpu && *start <= us && us < *end);
            FLOOR + runs.map(|(.., name)| 50.0 * (1 + name) as f64).sum::<f64>()
        };
        joules.insert(gpu, (0..LENGTH).map(|us| watts(us) / 1e6).collect::<Vec<f64>>());
    }
    let mut sql = String::from("BEGIN;");
    for name in 0..shape.kernels {
        sql += &format!("INSERT INTO rocpd_string VALUES ({}, 'kernel {name}');", 10 + name);
    }
    sql += "INSERT INTO rocpd_string VALUES (1, 'KernelExecution'), (2, 'UserMarker'), (3, 'even'), (4, 'outer'), (5, 'hipLaunchKernel');";
    // The whole program is in one range, the launches of even operations in one inside.
    sql += &format!("INSERT INTO rocpd_api VALUES (1, 7, 7, {BEGIN}, {}, 2, 4);", BEGIN + 10 * LENGTH * US);
    for (at, (gpu, start, end, name)) in ops.iter().enumerate() {
        let (id, begin) = (100 + at as i64, BEGIN + 10 * (at as i64 + 1) * US);
        sql += &format!(
            "INSERT INTO rocpd_op VALUES ({id}, {gpu}, 0, {id}, '', {}, {}, {}, 1);
             INSERT INTO rocpd_api VALUES ({id}, 7, 7, {}, {}, 5, 5);
             INSERT INTO rocpd_api_ops VALUES ({id}, {id}, {id});",
            BEGIN + start * US,
            BEGIN + end * US,
            10 + name,
            begin + 1,
            begin + 2,
        );
        if at % 2 == 0 {
            sql +=
                &format!("INSERT INTO rocpd_api VALUES ({}, 7, 7, {begin}, {}, 2, 3);", 1000 + id, begin + 5);
        }
    }
    let mut id = 1;
    for (gpu, joules) in &joules {
        let (mut at, mut counter, step) = (0, 1000.0, shape.steps[*gpu as usize]);
        // Readings begin and end where the counter changes, but the first.
        let mut until = step / 2;
        while at < LENGTH {
            sql += &format!(
                "INSERT INTO rocpd_monitor VALUES ({id}, 'gpu', {gpu}, 'energy', {}, {}, '{counter:.9}');",
                BEGIN + at * US,
                BEGIN + until.min(LENGTH) * US
            );
            counter += joules[at as usize..until.min(LENGTH) as usize].iter().sum::<f64>();
            (at, until, id) = (until, until + step, id + 1);
        }
    }
    sql += "COMMIT;";
    MadeUp { trace: dir.trace(name, &sql), shape, ops, joules }
}

/// What a key has.
#[derive(Clone, Copy, Default)]
struct Sums {
    joules: f64,
    /// Of that what is of steps in which nothing else ran.
    measured: f64,
    /// How long its operations ran on each GPU in steps, us.
    us: [i64; 2],
}

impl Sums {
    /// Whether that is less than a step in all: multiplied by both, so that nothing is rounded.
    fn is_refused(&self, [first, second]: [i64; 2]) -> bool {
        self.us[0] * second + self.us[1] * first < first * second
    }
}

/// Sums by the key of each operation.
fn modelled<K: Ord + Clone>(made: &MadeUp, key: impl Fn(usize, &Op) -> K) -> BTreeMap<K, Sums> {
    let mut found: BTreeMap<K, Sums> = BTreeMap::new();
    for (gpu, joules) in &made.joules {
        let step = made.shape.steps[*gpu as usize];
        let running = |us: i64| {
            let of_gpu = made.ops.iter().enumerate().filter(|(_, (of, ..))| of == gpu);
            of_gpu.filter(|(_, (_, start, end, _))| *start <= us && us < *end).collect::<Vec<_>>()
        };
        // The first step is cut off; the last one's end is not seen.
        let mut at = step / 2;
        let steps = std::iter::from_fn(|| {
            let from = at;
            at += step;
            (at < LENGTH).then_some(from..at)
        });
        let steps: Vec<_> = steps.collect();
        let idle: Vec<_> =
            steps.iter().filter(|step| (*step).clone().all(|us| running(us).is_empty())).collect();
        let of = |step: &std::ops::Range<i64>| step.clone().map(|us| joules[us as usize]).sum::<f64>();
        let floor = idle.iter().map(|step| of(step)).sum::<f64>() / (idle.len() as i64 * step) as f64;
        assert!((floor * 1e6 - FLOOR).abs() < 1e-6);
        for step in &steps {
            let busy: Vec<_> = step.clone().map(running).filter(|running| !running.is_empty()).collect();
            let above = of(step) - floor * step.clone().count() as f64;
            let mut keys: Vec<K> = busy.iter().flatten().map(|(at, op)| key(*at, op)).collect();
            keys.sort();
            keys.dedup();
            for running in &busy {
                for (at, op) in running {
                    let part = above / busy.len() as f64 / running.len() as f64;
                    let sums = found.entry(key(*at, op)).or_default();
                    sums.joules += part;
                    sums.measured += if keys.len() == 1 { part } else { 0.0 };
                    sums.us[*gpu as usize] += 1;
                }
            }
        }
    }
    found
}

fn report(dir: &Dir, arguments: &[&str]) -> Value {
    let json = dir.run(&[&["energy", "--json"], arguments].concat());
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[track_caller]
fn row<'a>(found: &'a Value, name: &str) -> &'a Value {
    let rows = found["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {found}"))
}

#[track_caller]
fn equals(found: &Value, name: &str, Sums { joules, measured, .. }: Sums) {
    let row = row(found, name);
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("no {key}: {row}"));
    assert!((number("own_joules") - joules).abs() < 1e-6, "{name}: {joules} {row}");
    if number("joules") == number("own_joules") {
        assert!(
            (number("measured_percent") * number("joules") / 100.0 - measured).abs() < 1e-6,
            "{name}: {measured} {row}"
        );
    }
}

#[test]
fn joules_are_those_of_the_model() {
    let dir = Dir::new();
    let uneven = Shape { steps: [10, 100], ..of_one_pace(10) };
    let shapes = [of_one_pace(10), of_one_pace(50), of_one_pace(100), uneven];
    for (seed, shape) in (1..).zip(shapes) {
        let made = made_up(&dir, &format!("{seed}.rpd"), seed, shape);
        let by_kernel = report(&dir, &[&made.trace]);
        for (name, sums) in modelled(&made, |_, (.., name)| *name) {
            equals(&by_kernel, &format!("kernel {name}"), sums);
        }
        let by_gpu = report(&dir, &["--by", "gpu", &made.trace]);
        for (gpu, sums) in modelled(&made, |_, (gpu, ..)| *gpu) {
            equals(&by_gpu, &format!("GPU {gpu}"), sums);
        }
        let by_marker = report(&dir, &["--by", "marker", &made.trace]);
        let of_markers = modelled(&made, |at, _| at % 2 == 0);
        equals(&by_marker, "even", of_markers[&true]);
        equals(&by_marker, "outer", of_markers[&false]);
        let outer = &by_marker["rows"][0];
        let all = of_markers[&true].joules + of_markers[&false].joules;
        assert!(
            (outer["joules"].as_f64().unwrap() - all).abs() < 1e-6,
            "a range has what is inside: {outer}"
        );
        assert!(
            (outer["measured_percent"].as_f64().unwrap() - 100.0).abs() < 1e-6,
            "nothing runs beside what is inside: {outer}"
        );
        assert_eq!(
            (&by_marker["rows"][1]["depth"], &by_marker["rows"][1]["ranges"]),
            (&1.into(), &40.into())
        );
        for gpu in by_gpu["gpus"].as_array().unwrap() {
            let number = |key: &str| gpu[key].as_f64().unwrap();
            let parts = number("idle_joules") + number("operations_joules");
            assert!(
                (number("joules") - parts).abs() < 1e-9 && (number("idle_watts") - FLOOR).abs() < 1e-6,
                "{gpu}"
            );
            assert_eq!(number("step_ns") as i64, shape.steps[number("gpu") as usize] * US);
        }
        // What was not selected has its share, and no row.
        let some = report(&dir, &["--kernel", "kernel [01]", &made.trace]);
        assert_eq!(some["rows"].as_array().unwrap().len(), 2);
        for (name, sums) in modelled(&made, |_, (.., name)| *name).into_iter().take(2) {
            let row = row(&some, &format!("kernel {name}"));
            assert!((row["joules"].as_f64().unwrap() - sums.joules).abs() < 1e-6, "{row}");
        }
    }
}

/// Processes of a rank are one row, those of none another one, and operations of several ranks share a GPU.
#[test]
fn joules_of_ranks_are_those_of_the_model() {
    let dir = Dir::new();
    let made = made_up(&dir, "ranks.rpd", 7, of_one_pace(50));
    let process = "((id - 100) % 4) << 32";
    let move_to_processes = format!(
        "PRAGMA foreign_keys = OFF; DELETE FROM rocpd_api_ops; DELETE FROM rocpd_api; UPDATE rocpd_op SET id = id + ({process});
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::pid', '7'), ('session::0::env::RANK', '0'),
             ('session::1::pid', '8'), ('session::1::env::OMPI_COMM_WORLD_RANK', '1'), ('session::2::pid', '9'), ('session::2::env::RANK', '1'),
             ('session::3::pid', '10');"
    );
    dir.open(&made.trace).execute_batch(&move_to_processes).unwrap();
    let by_rank = report(&dir, &["--by", "rank", &made.trace]);
    let names = ["rank 0", "rank 1", "rank 1", "(no rank)"];
    let expected = modelled(&made, |at, _| names[at % 4]);
    assert_eq!((by_rank["rows"].as_array().unwrap().len(), expected.len()), (3, 3), "{by_rank}");
    for (name, sums) in expected {
        equals(&by_rank, name, sums);
        let operations = names.iter().filter(|of| **of == name).count() * made.ops.len() / 4;
        let ran = row(&by_rank, name)["operations"].as_u64();
        assert_eq!(ran, Some(operations as u64), "{name}");
    }
    let shown = dir.run(&["energy", "--by", "rank", &made.trace]);
    assert!(shown.expect(0).stdout.lines().next().is_some_and(|head| head.ends_with(" rank")), "{shown}");
}

#[test]
fn what_ran_on_a_gpu_is_refused_by_the_step_of_its_own_sensor() {
    let dir = Dir::new();
    let shape = Shape { steps: [10, 100], kernels: 60, longest: 60 };
    // Rows that the slower sensor's step would refuse and their own does not; refused ones of one GPU, of the other one, and of both.
    let (mut spared, mut first, mut second, mut both) = (0, 0, 0, 0);
    for seed in 1..4 {
        let made = made_up(&dir, &format!("{seed}.rpd"), seed, shape);
        let found = report(&dir, &[&made.trace]);
        for (name, sums) in modelled(&made, |_, (.., name)| *name) {
            let name = format!("kernel {name}");
            if !sums.is_refused(shape.steps) {
                equals(&found, &name, sums);
                assert_eq!(row(&found, &name)["refused"], Value::Null, "{name}");
                spared += u64::from(sums.us[0] + sums.us[1] < shape.steps[1]);
                continue;
            }
            let ms = |us: i64| format!("{:.3} ms", us as f64 / 1000.0);
            let why = match sums.us {
                [us, 0] => {
                    first += 1;
                    format!(
                        "it ran for {}, which is less than a step of the sensor of GPU 0 (0.010 ms)",
                        ms(us)
                    )
                }
                [0, us] => {
                    second += 1;
                    format!(
                        "it ran for {}, which is less than a step of the sensor of GPU 1 (0.100 ms)",
                        ms(us)
                    )
                }
                [one, other] => {
                    both += 1;
                    format!(
                        "it ran for {} on GPU 0 (a step: 0.010 ms) and {} on GPU 1 (a step: 0.100 ms), which is less than a step in all",
                        ms(one),
                        ms(other)
                    )
                }
            };
            let row = row(&found, &name);
            assert_eq!((&row["joules"], &row["refused"]), (&Value::Null, &why.into()), "{name}");
        }
        let table = dir.run(&["energy", &made.trace]);
        for line in ["energy counter, a step each 10.00 us", "energy counter, a step each 100.0 us"] {
            assert!(table.expect(0).stdout.contains(line), "{table}");
        }
    }
    assert!([spared, first, second, both].iter().all(|count| *count > 0), "{spared} {first} {second} {both}");
}

#[test]
fn the_period_of_a_session_is_that_of_the_gpus_it_sampled() {
    let dir = Dir::new();
    let trace = dir.trace(
        "periods.rpd",
        "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::monitor_period_ns', '10000000'),
             ('session::1::monitor_period_ns', '100000000');
         INSERT INTO rocpd_monitor VALUES (1, 'gpu', 0, 'power', 1, 1000000000, '50'),
             ((1 << 32) + 1, 'gpu', 1, 'power', 1, 1000000000, '50');",
    );
    let found = report(&dir, &[&trace]);
    let steps = [0, 1].map(|gpu: usize| found["gpus"][gpu]["step_ns"].as_u64());
    assert_eq!(steps, [Some(10_000_000), Some(100_000_000)], "{found}");
}

#[test]
fn what_ran_for_less_than_a_step_is_refused_in_words() {
    let dir = Dir::new();
    let trace = dir.trace(
        "short.rpd",
        "INSERT INTO rocpd_string VALUES (1, 'KernelExecution'), (2, 'long'), (3, 'short'), (4, 'elsewhere');
         INSERT INTO rocpd_op VALUES (1, 0, 0, 1, '', 30000000, 70000000, 2, 1), (2, 0, 0, 2, '', 70000000, 70004000, 3, 1),
             (3, 1, 0, 3, '', 30000000, 70000000, 4, 1), (4, 0, 0, 4, '', 50000000, 50000000, 2, 1);
         INSERT INTO rocpd_monitor VALUES (1, 'gpu', 0, 'energy', 10000000, 20000000, '1'), (2, 'gpu', 0, 'energy', 20000000, 30000000, '2'),
             (3, 'gpu', 0, 'energy', 30000000, 50000000, '3'), (4, 'gpu', 0, 'energy', 50000000, 70000000, '7'),
             (5, 'gpu', 0, 'energy', 70000000, 90000000, '12'), (6, 'gpu', 0, 'energy', 90000000, 100000000, '13.5');",
    );
    let found = report(&dir, &[&trace]);
    let row = |name: &str| {
        found["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
    };
    // 2 J in the step before, which is the floor: 100 W. 4 J and 5 J in its two steps of 20 ms each, of which 2 J each are the floor's.
    assert!((row("long")["joules"].as_f64().unwrap() - 5.0).abs() < 1e-9, "{found}");
    assert_eq!((&row("long")["measured_percent"], &row("long")["operations"]), (&100.0.into(), &2.into()));
    assert_eq!(row("short")["joules"], Value::Null);
    assert_eq!(found["rows"].as_array().unwrap().len(), 2, "{found}");
    let table = dir.run(&["energy", &trace]);
    assert!(
        table.expect(0).stdout.contains("GPU 0: ") && table.stdout.contains("idle floor 100.0 W"),
        "{table}"
    );
    for line in [
        "no J of short: it ran for 0.004 ms, which is less than a step of the sensor (20.000 ms)",
        "1 operation is left out: no sensor of their GPU was read meanwhile",
    ] {
        assert!(table.stderr.contains(line), "{table}");
    }
    // What ran where no sensor is has no part in the joules of one operation either.
    dir.open(&trace)
        .execute_batch("INSERT INTO rocpd_op VALUES (5, 1, 0, 4, '', 80000000, 90000000, 2, 1)")
        .unwrap();
    let more = report(&dir, &[&trace]);
    assert_eq!(more["rows"][0]["operations"], 2, "{more}");
    let given = report(&dir, &["--floor", "0", &trace]);
    assert_eq!(given["gpus"][0]["idle_watts"], 0.0);
    assert!(given["rows"][0]["joules"].as_f64().unwrap() > 8.9, "{given}");
}

#[test]
fn power_serves_where_there_is_no_counter() {
    let dir = Dir::new();
    let trace = dir.trace(
        "power.rpd",
        "INSERT INTO rocpd_string VALUES (1, 'KernelExecution'), (2, 'work');
         INSERT INTO rocpd_op VALUES (1, 0, 0, 1, '', 1000000000, 2000000000, 2, 1);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::monitor_period_ns', '10000000');
         INSERT INTO rocpd_monitor VALUES (1, 'gpu', 0, 'power', 1, 1000000000, '50'), (2, 'gpu', 0, 'power', 1000000000, 2000000000, '300.5'),
             (3, 'gpu', 0, 'power', 2000000000, 3000000000, '50');",
    );
    let found = report(&dir, &[&trace]);
    assert!((found["rows"][0]["joules"].as_f64().unwrap() - 250.5).abs() < 1e-6, "{found}");
    let gpu = &found["gpus"][0];
    assert_eq!((&gpu["sensor"], &gpu["step_ns"]), (&"power".into(), &10_000_000.into()), "{gpu}");
    for (region, says) in [
        (["--gpu", "7"], "no GPU operations in the named part: the file has nothing of --gpu 7"),
        (["--start", "50%"], "no GPU operations in the named part; rpd info shows what the file holds"),
    ] {
        let said = dir.run(&["energy", region[0], region[1], &trace]);
        said.expect(0).says(&[says]);
    }
    // As rpd monitor leaves it.
    dir.open("power.rpd").execute_batch("DELETE FROM rocpd_op").unwrap();
    let said = dir.run(&["energy", &trace]);
    assert!(said.expect(0).stdout.contains("GPU 0: "), "{}", said.stdout);
    said.says(&["no operation was found, so that all energy counts as idle; rpd record --monitor has kernels and sensors in one file"]);
    let without = dir.fixture("matmul_result.rpd");
    let said = dir.run(&["energy", &without]);
    assert_eq!(said.expect(0).stdout, "");
    said.says(&[
        "holds no readings of a GPU's energy or power; rpd record --monitor energy,power takes them",
    ]);
    // A recording that ended before the counter changed says so, and not that nothing was read.
    let short = dir.trace(
        "short.rpd",
        "INSERT INTO rocpd_string VALUES (1, 'KernelExecution'), (2, 'work');
         INSERT INTO rocpd_op VALUES (1, 0, 0, 1, '', 1000000000, 1000500000, 2, 1);
         INSERT INTO rocpd_monitor VALUES (1, 'gpu', 0, 'energy', 1, 1002000000, '1000.5');",
    );
    let said = dir.run(&["energy", &short]);
    assert_eq!(said.expect(0).stdout, "");
    said.says(&["no energy counter of a GPU changed while it was recorded, so there are no joules; record for longer, or read more often: --monitor energy:10ms"]);
}
