//! A part of a trace, as the options of `rpd export` name it: what is left is compared with SQL that says what the options mean.

use std::collections::BTreeSet;

use crate::export::{Event, exported};
use crate::generated::generated;
use crate::harness::Dir;

/// Ids of the calls, times of the operations.
fn left(events: &[Event], zero: i64) -> (BTreeSet<i64>, Vec<(i64, i64)>) {
    let ids =
        events.iter().filter(|event| event.is_call()).filter_map(|event| event.args["corr_id"].as_i64());
    let mut ops: Vec<(i64, i64)> = events
        .iter()
        .filter(|event| event.is_op())
        .map(|event| (event.start() + zero, event.args["queue"].as_i64().unwrap()))
        .collect();
    ops.sort_unstable();
    (ids.collect(), ops)
}

/// The calls (markers apart) for which `calls` holds and the operations for which `ops` does, or that none of all calls caused and for which
/// `uncaused` does.
fn asked(dir: &Dir, trace: &str, calls: &str, ops: &str, uncaused: &str) -> (BTreeSet<i64>, Vec<(i64, i64)>) {
    let connection = dir.open(trace);
    let caused = format!(
        "SELECT O.* FROM rocpd_op O WHERE ({ops}) AND EXISTS (SELECT 1 FROM rocpd_api_ops L JOIN api A ON A.id = L.api_id
             WHERE L.op_id = O.id AND ({calls}))"
    );
    let alone = format!(
        "SELECT O.* FROM rocpd_op O WHERE ({ops}) AND ({uncaused}) AND NOT EXISTS (SELECT 1 FROM rocpd_api_ops L WHERE L.op_id = O.id)"
    );
    let mut found = connection
        .prepare(&format!("SELECT start, queueId FROM ({caused} UNION ALL {alone}) ORDER BY 1, 2"))
        .unwrap();
    let found: Vec<(i64, i64)> =
        found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let causing = match ops {
        "1" => "1".to_string(),
        _ => format!(
            "EXISTS (SELECT 1 FROM rocpd_api_ops L JOIN rocpd_op O ON O.id = L.op_id WHERE L.api_id = A.id AND ({ops}))"
        ),
    };
    let mut ids = connection
        .prepare(&format!("SELECT A.id FROM api A WHERE ({calls}) AND apiName <> 'UserMarker' AND {causing}"))
        .unwrap();
    let ids = ids.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    (ids, found)
}

#[test]
fn each_option_leaves_what_it_says() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 11, 300);
    let connection = dir.open(&trace);
    let text = |query: &str| connection.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    let middle = number("SELECT CAST(avg(start) AS integer) FROM rocpd_api WHERE id < 1000").to_string();
    let stream = text("SELECT stream FROM rocpd_kernelapi GROUP BY 1 ORDER BY count(*) DESC LIMIT 1");
    let queue = number("SELECT min(queueId) FROM rocpd_op WHERE gpuId = 0").to_string();
    let kernel = "(SELECT coalesce(nullif(D.string, ''), T.string) FROM rocpd_string D, rocpd_string T
        WHERE D.id = O.description_id AND T.id = O.opType_id)";
    let on_stream = format!(
        "A.id IN (SELECT api_ptr_id FROM rocpd_kernelapi WHERE stream = '{stream}' UNION SELECT api_ptr_id FROM rocpd_copyapi WHERE stream = '{stream}')"
    );
    let by_stream = format!(
        "EXISTS (SELECT 1 FROM rocpd_api_ops S JOIN rocpd_api A ON A.id = S.api_id WHERE S.op_id = O.id AND {on_stream})"
    );
    let matching = format!("{kernel} LIKE '%kernel1%' OR {kernel} LIKE '%Barrier%'");
    let after = format!("A.start >= {middle}");
    let cases: [(&[&str], &str, &str, &str); 10] = [
        (&["--start", &middle], &after, "1", &format!("O.start >= {middle}")),
        (&["--end", &middle], &format!("A.start <= {middle}"), "1", &format!("O.start <= {middle}")),
        (&["--pid", "102"], "A.pid = 102", "1", "0"),
        (&["--pid", "100", "--pid", "102"], "1", "1", "0"),
        (&["--tid", "100"], "A.tid = 100", "1", "0"),
        (&["--session", "2"], "A.id >> 32 = 2", "1", "O.id >> 32 = 2"),
        (&["--gpu", "1"], "1", "O.gpuId = 1", "1"),
        (&["--queue", &queue, "--gpu", "0"], "1", &format!("O.queueId = {queue} AND O.gpuId = 0"), "1"),
        (&["--kernel", "kernel1|Barrier"], "1", &matching, "1"),
        (&["--stream", &stream, "--start", &middle], &format!("{after} AND {on_stream}"), &by_stream, "0"),
    ];
    for (options, calls, ops, uncaused) in cases {
        let (events, zero) = exported(&dir, &trace, options);
        let expected = asked(&dir, &trace, calls, ops, uncaused);
        assert!(!expected.0.is_empty() && !expected.1.is_empty(), "{options:?} leaves nothing to compare");
        assert!(expected.0.len() < 600 || options[0] == "--pid", "{options:?} leaves everything");
        assert_eq!(left(&events, zero), expected, "{options:?}");
        // What one arrow leaves, and what it reaches, are both there.
        let ends = |ph: &str| events.iter().filter(|event| event.ph == ph).count();
        assert_eq!(ends("s"), ends("f"), "{options:?}");
    }
}

/// Two processes with a marker of one text; the second one pushes it twice. What happens between is not in it.
const STEPS: &str = "
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'step'), (4, 'hipLaunchKernel'), (5, 'KernelExecution'), (6, 'k'), (7, 'outer');
    INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 3), (2, 7, 7, 150, 160, 4, 1), (3, 7, 8, 200, 210, 4, 1), (4, 7, 7, 300, 310, 4, 1),
        (5, 7, 7, 50, 900, 2, 7),
        (4294967297, 9, 9, 290, 320, 2, 3), (4294967298, 9, 9, 300, 310, 4, 1), (4294967299, 9, 9, 400, 410, 4, 1),
        (4294967300, 9, 9, 500, 600, 2, 3), (4294967301, 9, 9, 550, 560, 4, 1);
    INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 700, 710, 6, 5), (2, 0, 0, 0, '', 720, 730, 6, 5), (3, 0, 0, 0, '', 180, 190, 6, 5),
        (4, 0, 0, 0, '', 450, 460, 6, 5);
    INSERT INTO rocpd_api_ops VALUES (1, 2, 1), (2, 4294967299, 2);
    INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES ('gpu', 0, 'sclk', 10, 900, '5'), ('gpu', 1, 'sclk', 10, 900, '6');";

#[test]
fn a_marker_is_what_its_process_does_meanwhile() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", STEPS);
    let (events, zero) = exported(&dir, &trace, &["--in", "step"]);
    assert_eq!(zero, 10);
    let (calls, ops) = left(&events, zero);
    // The call of another thread of the process too; not that of process 7 while 9 has the marker.
    assert_eq!(calls.into_iter().collect::<Vec<_>>(), [2, 3, 4_294_967_298, 4_294_967_301]);
    // With its call, whenever it ran; one that no call caused, where it ran.
    assert_eq!(ops, [(180, 0), (700, 0)]);
    let marks = events.iter().filter(|event| event.cat == "marker_api" && event.ph == "X").count();
    assert_eq!(marks, 3);
    let (events, zero) = exported(&dir, &trace, &["--in", "step:3"]);
    assert_eq!(left(&events, zero).0.into_iter().collect::<Vec<_>>(), [4_294_967_301]);
    let (events, zero) = exported(&dir, &trace, &["--in", "step", "--tid", "8"]);
    assert_eq!(left(&events, zero).0.into_iter().collect::<Vec<_>>(), [3]);
    dir.run(&["export", "chrome", "--in", "stride", &trace])
        .expect(1)
        .says(&["no marker has the text stride"]);
    dir.run(&["export", "chrome", "--in", "step:4", &trace])
        .expect(1)
        .says(&["no marker", "3 have the text step"]);
    dir.run(&["export", "chrome", "--start", "9", "--end", "8", &trace])
        .expect(1)
        .says(&["ends", "before it starts"]);
}

/// A call that is not in the file, or whose thread is not known, says nothing of what is asked for.
#[test]
fn operations_of_calls_that_are_not_known_count_by_themselves() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", STEPS);
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_api VALUES (6, 7, 'x', 170, 175, 4, 1);
             INSERT INTO rocpd_api_ops VALUES (3, 99, 3), (4, 6, 4);",
        )
        .unwrap();
    let operations = |options: &[&str]| left(&exported(&dir, &trace, options).0, 0).1.len();
    assert_eq!([operations(&[]), operations(&["--gpu", "0"]), operations(&["--kernel", "k"])], [4; 3]);
    assert_eq!(operations(&["--start", "400", "--end", "500"]), 2);
    assert_eq!(operations(&["--pid", "7"]), 1);
}

#[test]
fn sensors_are_cut_to_the_time_and_frames_have_the_markers_around() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", STEPS);
    let (events, zero) = exported(&dir, &trace, &["--start", "140", "--end", "160", "--gpu", "0"]);
    let sensed: Vec<i64> =
        events.iter().filter(|event| event.name == "sclk").map(|event| event.start() + zero).collect();
    assert_eq!(sensed, [140, 160]);
    // The marker began before the time, so it is not in it, but the operation is its.
    assert!(events.iter().all(|event| event.cat != "marker_api"));
    let frames: Vec<&str> =
        events.iter().filter(|event| event.cat == "marker_frame").map(|event| &*event.name).collect();
    assert_eq!(frames, ["step"]);
    assert!(exported(&dir, &trace, &["--gpu", "1"]).0.iter().any(|event| event.name == "sclk"));
}

#[test]
fn a_region_of_nothing_is_an_export_of_nothing() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", STEPS);
    for options in
        [&["--pid", "1"][..], &["--gpu", "9", "--tid", "1"], &["--stream", "0x7"], &["--kernel", "^z"]]
    {
        let ran = dir.run(&[&["export", "chrome", &trace], options].concat());
        serde_json::from_str::<serde_json::Value>(&ran.expect(0).stdout).unwrap();
        if options[0] == "--pid" {
            ran.says(&["t.rpd has no such call and no such operation"]);
        }
    }
    let empty = dir.trace("empty.rpd", "");
    dir.run(&["export", "chrome", &empty]).expect(0).says(&["empty.rpd holds no calls and no operations"]);
}
