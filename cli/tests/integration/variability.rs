//! `rpd variability` against SQL that looks at each kernel and what began before it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::generated::generated;
use crate::harness::Dir;

fn report(dir: &Dir, arguments: &[&str]) -> Vec<Value> {
    let json = dir.run(&[&["variability", "--json"], arguments].concat());
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// Kernel, the two operations in front of it on its GPU, and duration.
const KERNELS: &str = r#"
    SELECT name, first, second, duration FROM (
        SELECT opType, name, duration, lag(name, 2) OVER behind AS first, lag(name, 1) OVER behind AS second, id FROM (
            SELECT O.id, gpuId, start, "end", "end" - start AS duration, T.string AS opType, coalesce(nullif(D.string, ''), T.string) AS name
            FROM rocpd_op O JOIN rocpd_string D ON D.id = description_id JOIN rocpd_string T ON T.id = opType_id
            WHERE O.id NOT IN (SELECT op_ptr_id FROM rocpd_barrierop))
        WINDOW behind AS (PARTITION BY gpuId ORDER BY start, "end", id))
    WHERE opType IN ('KernelExecution', 'Task') AND id NOT IN (SELECT op_id FROM instrumented) ORDER BY duration"#;

#[test]
fn groups_are_those_of_sql() {
    let dir = Dir::new();
    let mut traces = vec![dir.fixture("matmul_result.rpd"), dir.unpacked("mytrace_raw.rpd")];
    for seed in 0..3 {
        traces.push(generated(&dir, &format!("{seed}.rpd"), seed, 300));
    }
    for trace in &traces {
        let connection = dir.open(trace);
        connection.execute_batch("CREATE TEMP TABLE instrumented (op_id)").unwrap();
        let has_instrumented: bool = connection
            .query_row("SELECT count(*) FROM sqlite_master WHERE name = 'ext_instrumentation'", [], |row| {
                row.get(0)
            })
            .unwrap();
        if has_instrumented {
            connection
                .execute_batch(
                    "INSERT INTO instrumented SELECT op_id FROM ext_instrumentation WHERE op_id IS NOT NULL",
                )
                .unwrap();
        }
        let mut expected: BTreeMap<(String, Vec<String>), Vec<u64>> = BTreeMap::new();
        let mut rows = connection.prepare(KERNELS).unwrap();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let after = [row.get::<_, Option<String>>(1).unwrap(), row.get(2).unwrap()];
            let key = (row.get(0).unwrap(), after.into_iter().flatten().collect());
            expected.entry(key).or_default().push(row.get::<_, i64>(3).unwrap().unsigned_abs());
        }
        let all: u64 = expected.values().flatten().sum();
        let found = report(&dir, &[trace]);
        assert_eq!(found.len(), expected.len(), "{trace}");
        for group in &found {
            let text = |value: &Value| value.as_str().unwrap().to_string();
            let after = group["after"].as_array().unwrap().iter().map(text).collect();
            let durations = &expected[&(text(&group["name"]), after)];
            let (calls, total) = (durations.len() as u64, durations.iter().sum::<u64>());
            let (min, max) = (durations[0], durations[durations.len() - 1]);
            let percentile = |percent: usize| durations[(durations.len() * percent).div_ceil(100).max(1) - 1];
            let numbers =
                ["calls", "total_ns", "min_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns", "varying_ns"]
                    .map(|key| group[key].as_u64().unwrap());
            let varying = total - calls * min;
            let at = [50, 90, 99].map(percentile);
            assert_eq!(numbers, [calls, total, min, max, at[0], at[1], at[2], varying], "{trace}: {group}");
            let mean = total as f64 / calls as f64;
            let squares: f64 = durations.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum();
            let deviation = (squares / calls as f64).sqrt();
            let close = |key: &str, expected: f64| {
                let found = group[key].as_f64().unwrap();
                assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{trace} {key}: {group}");
            };
            close("average_ns", mean);
            close("deviation_ns", deviation);
            close("deviation_percent", if mean > 0.0 { 100.0 * deviation / mean } else { 0.0 });
            close("varying_percent", 100.0 * varying as f64 / all as f64);
            let outliers = durations
                .iter()
                .filter(|ns| deviation > 0.0 && (**ns as f64 - mean).abs() >= 3.0 * deviation);
            assert_eq!(group["outliers"].as_u64().unwrap(), outliers.count() as u64, "{trace}: {group}");
            let steps: u64 =
                group["histogram"].as_array().unwrap().iter().map(|step| step.as_u64().unwrap()).sum();
            assert_eq!(steps, calls, "{trace}: {group}");
        }
        let order: Vec<u64> = found.iter().map(|group| group["varying_ns"].as_u64().unwrap()).collect();
        assert!(order.is_sorted_by(|a, b| a >= b), "{trace}");
        // By its name alone, a kernel has one group, with the sums of `rpd top`.
        let by_name = report(&dir, &["--before", "0", trace]);
        let top = dir.run(&["top", "--by", "kernel", "--json", trace]);
        let top: Vec<Value> = serde_json::from_str(&top.expect(0).stdout).unwrap();
        let sums = |rows: &[Value]| -> BTreeMap<String, [u64; 4]> {
            let numbers =
                |row: &Value| ["calls", "total_ns", "min_ns", "max_ns"].map(|key| row[key].as_u64().unwrap());
            rows.iter().map(|row| (row["name"].as_str().unwrap().to_string(), numbers(row))).collect()
        };
        assert_eq!(sums(&by_name), sums(&top), "{trace}");
    }
}

#[test]
fn an_outlier_and_two_sizes_are_seen() {
    let dir = Dir::new();
    let mut rows = String::from(
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'gemm'), (3, 'KernelExecution'), (4, 'small'), (5, 'large');",
    );
    let mut start = 1_000_000;
    for call in 0..200 {
        let (before, usual) = if call % 2 == 0 { (4, 1000) } else { (5, 9000) };
        let duration = if call == 120 { 50_000 } else { usual + call % 7 };
        for (name, duration) in [(before, 10), (2, duration)] {
            rows.push_str(&format!(
                "INSERT INTO rocpd_op VALUES (NULL, 0, 0, 0, '', {start}, {}, {name}, 3);",
                start + duration
            ));
            start += duration;
        }
    }
    let trace = dir.trace("t.rpd", &rows);
    let found = report(&dir, &["--before", "1", "--kernel", ".", &trace]);
    let gemms: Vec<&Value> = found.iter().filter(|group| group["name"] == "gemm").collect();
    assert_eq!(
        gemms.iter().map(|group| (&group["after"][0], &group["outliers"])).collect::<Vec<_>>(),
        [(&Value::from("small"), &Value::from(1)), (&Value::from("large"), &Value::from(0))]
    );
    assert!(gemms[1]["deviation_percent"].as_f64().unwrap() < 0.1, "{gemms:?}");
    let together = report(&dir, &["--before", "0", &trace]);
    assert!(together[0]["deviation_percent"].as_f64().unwrap() > 80.0, "{together:?}");
    let table = dir.run(&["variability", "--before", "1", "-n", "1", &trace]).expect(0).stdout.clone();
    assert!(table.contains("█      ▁  gemm") && table.contains("after small"), "{table}");
    assert!(dir.run(&["variability", &trace, "-n", "1"]).stderr.contains("rows not shown"), "{table}");
}
