//! Joules in what `rpd libraries` writes.

use serde_json::Value;

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
