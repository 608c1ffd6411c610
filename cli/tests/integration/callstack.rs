//! Call stacks: the answer for a real trace, and for small ones that can be worked out by hand.

use rusqlite::Connection;

use crate::harness::Dir;

/// `(parent, child, depth, cpu_time, gpu_time)` of every row, sorted.
fn rows(trace: &Connection) -> Vec<[i64; 5]> {
    let mut select = trace
        .prepare("SELECT parent_id, child_id, depth, cpu_time, gpu_time FROM ext_callstack ORDER BY 2, 3")
        .unwrap();
    let rows = select
        .query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?]))
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// Rows of calls of one thread: `(id, start, end)`.
fn calls(calls: &[(i64, i64, i64)]) -> String {
    let rows = calls
        .iter()
        .map(|(id, start, end)| format!("INSERT INTO rocpd_api VALUES ({id}, 7, 8, {start}, {end}, 1, 1);"));
    "INSERT INTO rocpd_string VALUES (1, '');".to_string() + &rows.collect::<String>()
}

/// What the pass makes of these calls.
fn of(name: &str, sql: &str) -> (Vec<[i64; 5]>, String) {
    let dir = Dir::new();
    let trace = dir.trace(name, sql);
    let ran = dir.run(&["callstack", &trace]);
    ran.expect(0);
    (rows(&dir.open(&trace)), ran.stderr)
}

#[test]
fn a_real_trace_has_the_stacks_that_the_original_found_save_for_outermost_times() {
    let dir = Dir::new();
    let (ours, theirs) = (dir.unpacked("mytrace_raw.rpd"), dir.unpacked("mytrace_as_shipped.rpd"));
    dir.run(&["callstack", &ours]).expect(0).says(&["86387 rows in ext_callstack"]);
    let (ours, theirs) = (rows(&dir.open(&ours)), rows(&dir.open(&theirs)));
    assert_eq!(ours.len(), 86387);
    let differ: Vec<(&[i64; 5], &[i64; 5])> =
        ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs).collect();
    assert_eq!(differ.len(), 2, "{differ:?}");
    for (ours, theirs) in differ {
        let [parent, child, depth, _, gpu_time] = *ours;
        assert_eq!([parent, child, depth, gpu_time], [theirs[0], theirs[1], theirs[2], theirs[4]]);
        assert!(
            parent == child && ours[3] < theirs[3],
            "an outermost call, without what it called: {ours:?}"
        );
    }
}

#[test]
fn times_are_a_calls_own() {
    let sql = calls(&[(1, 0, 100), (2, 10, 40), (3, 20, 30), (4, 50, 90)])
        + "INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 1000, 1007, 1, 1), (2, 0, 0, 0, '', 1100, 1120, 1, 1);
           INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (3, 1), (3, 2);";
    let (rows, _) = of("own.rpd", &sql);
    assert_eq!(
        rows,
        [
            [1, 1, 0, 30, 0],
            [2, 2, 0, 20, 0],
            [1, 2, 1, 20, 0],
            [3, 3, 0, 10, 27],
            [2, 3, 1, 10, 27],
            [1, 3, 2, 10, 27],
            [4, 4, 0, 40, 0],
            [1, 4, 1, 40, 0],
        ]
    );
}

#[test]
fn ties_have_one_answer_whatever_the_order_of_the_rows() {
    // Touching siblings, equal starts, equal ends, equal intervals, marks at both ends and twice at one time.
    let mut events = [
        (1, 0, 100),
        (2, 0, 50),
        (3, 50, 100),
        (5, 60, 70),
        (4, 60, 70),
        (6, 0, 0),
        (7, 100, 100),
        (8, 55, 55),
        (9, 55, 55),
    ];
    let expected: Vec<[i64; 3]> = vec![
        [1, 1, 0],
        [2, 2, 0],
        [1, 2, 1],
        [3, 3, 0],
        [1, 3, 1],
        [4, 4, 0],
        [3, 4, 1],
        [1, 4, 2],
        [5, 5, 0],
        [4, 5, 1],
        [3, 5, 2],
        [1, 5, 3],
        [6, 6, 0],
        [2, 6, 1],
        [1, 6, 2],
        [7, 7, 0],
        [8, 8, 0],
        [3, 8, 1],
        [1, 8, 2],
        [9, 9, 0],
        [3, 9, 1],
        [1, 9, 2],
    ];
    for _ in 0..events.len() {
        events.rotate_left(1);
        let (rows, notes) = of("ties.rpd", &calls(&events));
        let shape: Vec<[i64; 3]> =
            rows.iter().map(|[parent, child, depth, ..]| [*parent, *child, *depth]).collect();
        assert_eq!(shape, expected, "{events:?}");
        assert!(!notes.contains("overlapping"), "{notes}");
    }
}

#[test]
fn calls_that_overlap_are_placed_by_the_rule_and_reported() {
    let (rows, notes) =
        of("overlap.rpd", &calls(&[(1, 0, 100), (2, 10, 50), (3, 40, 80), (4, 45, 48), (5, 90, 120)]));
    assert!(notes.contains("2 overlapping-calls"), "{notes}");
    let own: Vec<[i64; 2]> = rows.iter().filter(|row| row[2] == 0).map(|row| [row[1], row[3]]).collect();
    assert_eq!(own, [[1, 20], [2, 40], [3, 37], [4, 3], [5, 30]]);
    assert!(rows.contains(&[3, 4, 1, 3, 0]) && rows.contains(&[1, 4, 2, 3, 0]), "{rows:?}");
    assert_eq!(rows.iter().filter(|row| row[1] == 5).count(), 1, "5 ends after 1, so it is outermost");
}

#[test]
fn threads_and_processes_do_not_mix() {
    let sql = "INSERT INTO rocpd_string VALUES (1, '');
        INSERT INTO rocpd_api VALUES (1, 1, 1, 0, 100, 1, 1), (2, 1, 2, 10, 20, 1, 1), (3, 2, 1, 10, 20, 1, 1),
            (4294967299, 1, 1, 10, 20, 1, 1);";
    let (rows, _) = of("threads.rpd", sql);
    assert_eq!(rows.len(), 4, "{rows:?}");
    // The same with both sessions of one process.
    let facts = "INSERT INTO rocpd_metadata (tag, value) SELECT 'session::' || column1 || '::' || column2, 7
        FROM (VALUES (0, 'boot_id'), (0, 'pid'), (0, 'start_monotonic_ns'), (1, 'boot_id'), (1, 'pid'), (1, 'start_monotonic_ns'));";
    let (rows, _) = of("threads.rpd", &format!("{sql}{facts}"));
    assert_eq!(rows.len(), 5, "{rows:?}");
    assert!(rows.contains(&[1, 4_294_967_299, 1, 10, 0]));
}
