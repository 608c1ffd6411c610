//! What waits waited for: what calls and tables of a file say, and nothing else.

// Tests may unwrap: a panic is how they fail.
#![allow(clippy::unwrap_used)]

use rpd_view::gathering::Progress;
use rpd_view::reading::read;
use rpd_view::waits::Waits;
use rusqlite::Connection;

/// A call: id, session, begin, end, function, arguments, stream in rocpd_kernelapi, operations as (id, GPU, begin, end).
type Call =
    (i64, i64, i64, i64, &'static str, &'static str, Option<&'static str>, &'static [(i64, i64, i64, i64)]);

const CALLS: [Call; 21] = [
    (1, 0, 100, 110, "hipLaunchKernel", "", Some("0x10"), &[(1, 0, 200, 300)]),
    (2, 0, 120, 125, "hipEventRecord", "event=0xe | stream=0x10", None, &[]),
    (3, 0, 130, 135, "hipStreamWaitEvent", "stream=0x20 | event=0xe | flags=0", None, &[]),
    (
        4,
        0,
        140,
        150,
        "hipGraphLaunch",
        "graphExec = 0x9 | stream = 0x20",
        None,
        &[(2, 0, 300, 350), (3, 0, 350, 400)],
    ),
    (5, 0, 160, 420, "hipStreamSynchronize", "stream=0x20", None, &[]),
    (6, 0, 430, 431, "hipEventSynchronize_spt", "event=0xe", None, &[]),
    (7, 0, 440, 450, "hipMemsetAsync", "dst=0x1 | stream=0x0", None, &[(4, 0, 460, 500)]),
    (8, 0, 455, 510, "hipDeviceSynchronize", "", None, &[]),
    (9, 0, 511, 512, "hipStreamSynchronize", "stream=0x0", None, &[]),
    // It ended before the operation: it cannot have waited for that.
    (10, 0, 520, 525, "hipLaunchKernel", "", Some("0x30"), &[(5, 0, 530, 900)]),
    (11, 0, 540, 550, "hipStreamSynchronize", "stream=0x30", None, &[]),
    // An event that was recorded on nothing; a stream that was destroyed; arguments that say nothing.
    (12, 0, 560, 561, "hipEventSynchronize", "event=0xf", None, &[]),
    (13, 0, 562, 563, "hipStreamDestroy", "stream=0x10", None, &[]),
    (14, 0, 564, 565, "hipStreamSynchronize", "stream=0x10", None, &[]),
    (15, 0, 566, 567, "hipStreamSynchronize", "", None, &[]),
    // Another process, with the same handles.
    (16, 1, 570, 580, "hipStreamSynchronize", "stream=0x20", None, &[]),
    // One with two GPUs: nobody knows whose default stream it was, or which device.
    (17, 2, 600, 610, "hipLaunchKernel", "", Some("0x0"), &[(6, 0, 610, 620)]),
    (18, 2, 620, 630, "hipLaunchKernel", "", Some("0x0"), &[(7, 1, 630, 640)]),
    (19, 2, 650, 660, "hipStreamSynchronize", "stream=0x0", None, &[]),
    (20, 2, 670, 680, "hipDeviceSynchronize", "", None, &[]),
    (21, 0, 690, 700, "hipEventQuery", "event=0xe", None, &[]),
];

#[test]
fn waits_wait_for_what_calls_and_the_file_say() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.rpd");
    rpd_schema::create(&file).unwrap();
    let trace = Connection::open(&file).unwrap();
    trace.execute_batch("PRAGMA foreign_keys = OFF; BEGIN; INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'KernelExecution')").unwrap();
    for session in 0..3 {
        for (key, value) in [("pid", 70 + session), ("start_monotonic_ns", 1), ("boot_id", 1)] {
            let tag = format!("session::{session}::{key}");
            trace
                .execute("INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)", (tag, value.to_string()))
                .unwrap();
        }
    }
    let text = |text: &str| {
        trace.execute("INSERT INTO rocpd_string (string) SELECT ?1 WHERE ?1 NOT IN (SELECT string FROM rocpd_string)", [text]).unwrap();
        trace
            .query_row("SELECT id FROM rocpd_string WHERE string = ?1", [text], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    for (id, session, begin, end, function, arguments, stream, ops) in CALLS {
        let call = (session << 32) + id;
        trace
            .execute(
                "INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6)",
                (call, 70 + session, begin, end, text(function), text(arguments)),
            )
            .unwrap();
        if let Some(stream) = stream {
            trace
                .execute(
                    "INSERT INTO rocpd_kernelapi VALUES (?1, ?2, 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 1)",
                    (call, stream),
                )
                .unwrap();
        }
        for (op, gpu, begin, end) in ops {
            trace
                .execute(
                    "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                     VALUES (?1, ?2, ?1, 0, '', ?3, ?4, 1, 2)",
                    (op, gpu, begin, end),
                )
                .unwrap();
            trace.execute("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (?1, ?2)", (call, op)).unwrap();
        }
    }
    trace
        .execute_batch(
            "INSERT INTO rocpd_op_inputSignals (from_op_id, to_op_id) VALUES (5, 4), (5, 99); COMMIT",
        )
        .unwrap();
    drop(trace);

    let (trace, version) = rpd_schema::open_read(&file).unwrap();
    let timeline = read(&file, (&trace, version), &Progress::default()).unwrap();
    let waits = Waits::read(&timeline, 0, (&trace, version)).unwrap();
    let id = |event: u32| (timeline.is_op(event), timeline.columns.id(event));
    let mut found: Vec<_> =
        waits.all().iter().map(|of| (id(of.waits), id(of.on), of.through.map(|call| id(call).1))).collect();
    found.sort_unstable();
    let (call, op) = (|id: i64| (false, id), |id: i64| (true, id));
    assert_eq!(
        found,
        [
            (call(3), op(1), Some(2)),
            (call(5), op(3), None),
            (call(6), op(1), Some(2)),
            (call(8), op(4), None),
            (call(9), op(4), None),
            (op(2), op(1), Some(3)),
            (op(5), op(4), None),
        ]
    );
    // Both ways, for one event.
    let event = timeline.event_of(0, true, 1).unwrap();
    let of = waits.of_event(&timeline, event);
    let ids: Vec<_> = of.waited_by.iter().map(|of| id(of.hit.event)).collect();
    assert_eq!((of.waited_for.len(), of.all_waited_by, ids.len()), (0, 3, 3));
    assert!([call(3), call(6), op(2)].iter().all(|waiter| ids.contains(waiter)));
}
