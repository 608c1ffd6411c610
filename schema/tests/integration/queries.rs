//! The ready-made queries run on every kind of schema 2 trace and answer right.

use rpd_schema::{Appender, OpId, OpRow, create, open_read};

use crate::sample;
use crate::sample::{every_table, kernel, lines, real_trace};

/// A trace, with itself as the one from before.
fn opened(path: &std::path::Path) -> rusqlite::Connection {
    let (connection, _) = open_read(path).unwrap();
    connection.execute("ATTACH ?1 AS before", [path.to_str().unwrap()]).unwrap();
    connection
}

fn answer(connection: &rusqlite::Connection, name: &str) -> Vec<String> {
    let query = rpd_sql::query::ALL.iter().find(|query| query.name == name).unwrap();
    lines(connection, query.text)
}

#[test]
fn every_query_has_a_header_and_runs_on_fresh_and_real_traces() {
    let directory = tempfile::tempdir().unwrap();
    let fresh = directory.path().join("fresh.rpd");
    create(&fresh).unwrap();
    let real = real_trace("mytrace_raw.rpd.gz", directory.path());
    let (fresh, real) = (opened(&fresh), opened(&real));
    for query in rpd_sql::query::ALL {
        assert!(query.text.starts_with("-- ") && query.text.trim_end().ends_with(';'), "{}", query.name);
        assert_eq!(lines(&fresh, query.text), [""; 0], "{}", query.name);
        assert!(!lines(&real, query.text).is_empty(), "{}", query.name);
    }
    let files = sample::names(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/queries"));
    let mut known: Vec<_> = rpd_sql::query::ALL.iter().map(|query| format!("{}.sql", query.name)).collect();
    known.sort();
    assert_eq!(files, known, "each file is offered and each offer is a file");
    let files = sample::names(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/job_queries"));
    let mut known: Vec<_> = rpd_sql::query::JOBS.iter().map(|query| format!("{}.sql", query.name)).collect();
    known.sort();
    assert_eq!(files, known, "of queries to jobs too");
}

#[test]
fn the_answers_are_right() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    every_table(&mut appender);
    kernel(&mut appender, 4, "vectorAdd(float*)");
    kernel(&mut appender, 10, "scale");
    // Overlaps the last kernel by half and outlasts it.
    let (description, op_type) = (appender.intern("overlap").unwrap(), appender.intern("Task").unwrap());
    let overlap = OpRow {
        id: OpId(11),
        gpu: 1,
        queue: 9,
        sequence: 0,
        completion_signal: 0,
        start: 10_250,
        end: 10_550,
        description,
        op_type,
    };
    appender.op(&overlap).unwrap();
    appender.commit().unwrap();
    let (connection, _) = open_read(&path).unwrap();
    assert_eq!(
        answer(&connection, "top_kernels"),
        [
            "vectorAdd(float*)|2|0.6|0.3|0.3|0.3|50",
            "overlap|1|0.3|0.3|0.3|0.3|25",
            "scale|1|0.3|0.3|0.3|0.3|25"
        ]
    );
    assert_eq!(
        answer(&connection, "busy"),
        ["1|5|1.45|9.45|15.34"],
        "300 + 400 + 300 + 450 of 9450 ns, without the barrier"
    );
    assert_eq!(answer(&connection, "copies"), ["CopyHostToDevice|1|1|12884901888|0.4|32212254.72"]);
    assert_eq!(
        answer(&connection, "longest_gaps"),
        [
            "1|5.7|4400|vectorAdd(float*)|scale",
            "1|1.6|2500|CopyHostToDevice|vectorAdd(float*)",
            "1|0.7|1400|vectorAdd(float*)|CopyHostToDevice",
        ]
    );
    assert_eq!(
        answer(&connection, "launchers"),
        ["0|100|101|hipLaunchKernel|vectorAdd(float*)|2|0.6", "0|100|101|hipLaunchKernel|scale|1|0.3"]
    );
    assert_eq!(
        answer(&connection, "launch_delay"),
        ["scale|hipLaunchKernel|1|0.1|0.1|0.1", "vectorAdd(float*)|hipLaunchKernel|2|0.1|0.1|0.1"]
    );
    assert_eq!(
        answer(&connection, "top_apis"),
        ["hipMemcpy|1|0.6|0.6|0.6", "hipLaunchKernel|3|0.15|0.05|0.05"]
    );
    assert_eq!(answer(&connection, "markers"), ["step 1|1|2.5|2.5"]);
}

/// Kernels of graphs have no row of their own call: the view kernel leaves them out.
#[test]
fn launch_delay_has_the_kernels_of_graphs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    kernel(&mut appender, 4, "scale");
    sample::api(&mut appender, rpd_schema::ApiId::call(20), "hipGraphLaunch", "graphExec=0x1", 6000, 6050);
    let op_type = appender.intern("KernelExecution").unwrap();
    for (id, name, start) in [(21, "scale", 6300), (22, "add", 6400), (23, "scale", 6700)] {
        let description = appender.intern(name).unwrap();
        let op = OpRow {
            id: OpId(id),
            gpu: 1,
            queue: 9,
            sequence: id,
            completion_signal: 0,
            start,
            end: start + 50,
            description,
            op_type,
        };
        appender.op(&op).unwrap();
        appender.api_op(rpd_schema::ApiId::call(20), OpId(id)).unwrap();
    }
    appender.commit().unwrap();
    assert_eq!(
        answer(&open_read(&path).unwrap().0, "launch_delay"),
        [
            "scale|hipGraphLaunch|2|0.5|0.3|0.7",
            "add|hipGraphLaunch|1|0.4|0.4|0.4",
            "scale|hipLaunchKernel|1|0.1|0.1|0.1"
        ]
    );
}

#[test]
fn the_queries_that_users_of_the_original_know() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    kernel(&mut appender, 4, "scale");
    kernel(&mut appender, 5, "add");
    kernel(&mut appender, 6, "add");
    // Around the first launch, and inside that one; beside them another thread's.
    sample::api(&mut appender, rpd_schema::ApiId::call(20), "hipInit", "", 3000, 4800);
    sample::api(&mut appender, rpd_schema::ApiId::call(21), "hipModuleLoad", "", 3500, 3700);
    appender.commit().unwrap();
    let connection = opened(&path);
    assert_eq!(
        answer(&connection, "topEx"),
        [
            "hipInit|1|1.55|1.55|81.57894736842105",
            "hipModuleLoad|1|0.2|0.2|10.526315789473685",
            "hipLaunchKernel|3|0.15|0.05|7.894736842105263",
        ]
    );
    assert_eq!(answer(&connection, "ktop")[0], "add|2|0.6|0.3|66.66666666666667");
    assert_eq!(answer(&connection, "binOpByDuration"), ["1|under 10 us|3|0.9|100|100"]);
    assert_eq!(
        answer(&connection, "kernelKernelDelay"),
        [""; 0],
        "each was submitted after the one before had ended"
    );
    let other = directory.path().join("other.rpd");
    let mut appender = Appender::open(&other).unwrap();
    appender.begin().unwrap();
    kernel(&mut appender, 4, "add");
    kernel(&mut appender, 5, "mul");
    appender.commit().unwrap();
    let (after, _) = open_read(&other).unwrap();
    after.execute("ATTACH ?1 AS before", [path.to_str().unwrap()]).unwrap();
    assert_eq!(answer(&after, "topDiff"), ["add|2|1|0.3|0.3|0|-50", "mul||1||0.3||", "scale|1||0.3|||"]);
}

/// max and min of two values are SQLite's alone: DuckDB's max(a, b) is a list of the b largest.
#[test]
fn no_query_takes_the_greater_of_two_by_an_aggregate() {
    for query in rpd_sql::query::every() {
        let lines = query.text.lines().map(|line| line.split("--").next().unwrap_or_default());
        let text = lines.collect::<Vec<_>>().join("\n").to_lowercase();
        let calls = text.match_indices("max(").chain(text.match_indices("min("));
        for (at, name) in calls {
            let mut depth = 0;
            let rest = text[at + name.len()..].chars();
            let inside: Vec<char> = rest
                .take_while(|letter| {
                    depth += match letter {
                        '(' => 1,
                        ')' => -1,
                        _ => 0,
                    };
                    depth >= 0
                })
                .collect();
            let mut depth = 0;
            let is_of_two = inside.into_iter().any(|letter| {
                match letter {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                letter == ',' && depth == 0
            });
            assert!(!is_of_two, "{}: {}", query.name, &text[at..]);
        }
    }
}

/// A fresh trace with these rows.
fn with_rows(sql: &str) -> (tempfile::TempDir, rusqlite::Connection) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    (directory, connection)
}

#[test]
fn ops_that_overlap_are_busy_once() {
    let (_directory, connection) = with_rows(
            "INSERT INTO rocpd_string VALUES (1, '');
             INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES (1, 0, 5, 0, '', 1000, 3000, 1, 1), (2, 0, 5, 0, '', 2000, 4000, 1, 1), (3, 0, 6, 0, '', 2500, 2600, 1, 1),
                     (4, 0, 6, 0, '', 5000, 4900, 1, 1), (5, 0, 6, 0, '', 6000, 7000, 1, 1), (6, 1, 6, 0, '', 100, 100, 1, 1);",
    );
    assert_eq!(answer(&connection, "busy"), ["0|5|4|6|66.67", "1|1|0|0|"]);
}

#[test]
fn gaps_between_kernels_that_were_waiting() {
    let (_directory, connection) = with_rows(
            "INSERT INTO rocpd_string VALUES (1, '');
             INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
                 (1, 1, 1, 0, 10, 1, 1), (2, 1, 1, 20, 30, 1, 1), (3, 1, 1, 900, 910, 1, 1);
             INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES (1, 0, 5, 0, '', 100, 400, 1, 1), (2, 0, 5, 0, '', 500, 800, 1, 1), (3, 0, 5, 0, '', 950, 1000, 1, 1);
             INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1), (2, 2), (3, 3);",
    );
    assert_eq!(answer(&connection, "kernelKernelDelay"), ["0|5|1|0.1|0.3|25"]);
}
