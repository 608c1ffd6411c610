//! `rpd export chrome`: what a viewer makes of it is compared with slow, obvious SQL.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Read;
use std::process::Stdio;

use proptest::prelude::*;
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::generated::{generated, to_schema_3};
use crate::harness::{Dir, RPD, ran};
use crate::property::holds;

/// An element of the array of events; times as they are written.
#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) ph: String,
    pub(crate) name: String,
    pub(crate) pid: i64,
    #[serde(default)]
    pub(crate) tid: i64,
    #[serde(default)]
    pub(crate) cat: String,
    ts: Option<Box<RawValue>>,
    dur: Option<Box<RawValue>>,
    id: Option<i64>,
    #[serde(default)]
    pub(crate) args: Value,
}

#[derive(Deserialize)]
struct Object {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
    #[serde(rename = "displayTimeUnit")]
    unit: String,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    zero_ns: i64,
}

/// ns of a number of us, by its digits.
fn ns(written: &Option<Box<RawValue>>) -> i64 {
    let text = written.as_ref().unwrap().get();
    let (whole, part) = text.split_once('.').unwrap_or((text, "000"));
    assert!(part.len() == 3 && part.bytes().all(|digit| digit.is_ascii_digit()), "{text}");
    whole.parse::<i64>().unwrap() * 1000 + part.parse::<i64>().unwrap()
}

/// GPU n has this number and n.
const FIRST_GPU: i64 = 1_000_000_000;

impl Event {
    pub(crate) fn start(&self) -> i64 {
        ns(&self.ts)
    }

    pub(crate) fn end(&self) -> i64 {
        self.start() + ns(&self.dur)
    }

    pub(crate) fn is_op(&self) -> bool {
        self.ph == "X" && self.args.get("agent").is_some()
    }

    pub(crate) fn is_call(&self) -> bool {
        matches!(&*self.ph, "X" | "i") && self.pid < FIRST_GPU
    }
}

/// The events of a trace with these options, with what 0 is on its clock.
pub(crate) fn exported(dir: &Dir, trace: &str, options: &[&str]) -> (Vec<Event>, i64) {
    let ran = dir.run(&[&["export", "chrome", trace], options].concat());
    let Object { events, unit, metadata } = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    assert_eq!(unit, "ns");
    (events, metadata.zero_ns)
}

type Slice = (i64, i64, String, i64, i64);

/// Calls and operations as SQL has them: process, thread, name, begin and end; GPU, queue, name, begin and end.
pub(crate) fn expected(trace: &Connection) -> (Vec<Slice>, Vec<Slice>) {
    let all = |query: &str| {
        let mut query = trace.prepare(query).unwrap();
        let rows =
            query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)));
        let mut rows: Vec<Slice> = rows.unwrap().collect::<Result<_, _>>().unwrap();
        rows.sort();
        rows
    };
    (
        all(
            "SELECT pid, tid, CASE apiName WHEN 'UserMarker' THEN args ELSE apiName END, start, \"end\" FROM api",
        ),
        all(
            "SELECT gpuId, queueId, CASE description WHEN '' THEN opType ELSE description END, start, \"end\" FROM op",
        ),
    )
}

/// The same as the export has them.
pub(crate) fn found(events: &[Event], zero: i64) -> (Vec<Slice>, Vec<Slice>) {
    let slice = |event: &Event, first, second| {
        let end = if event.ph == "i" { event.start() } else { event.end() };
        (first, second, event.name.clone(), event.start() + zero, end + zero)
    };
    let mut calls: Vec<Slice> = events
        .iter()
        .filter(|event| event.is_call())
        // Further tracks of a thread have numbers of their own.
        .map(|event| slice(event, event.pid, thread_of(events, event)))
        .collect();
    let number = |event: &Event, key: &str| event.args[key].as_i64().unwrap();
    let mut ops: Vec<Slice> = events
        .iter()
        .filter(|event| event.is_op())
        .map(|event| {
            let gpu = event.args["agent"].as_str().unwrap().strip_prefix("GPU ").unwrap().parse().unwrap();
            slice(event, gpu, number(event, "queue"))
        })
        .collect();
    calls.sort();
    ops.sort();
    (calls, ops)
}

/// The thread id in the name of a track.
fn thread_of(events: &[Event], event: &Event) -> i64 {
    if event.tid < FIRST_GPU {
        return event.tid;
    }
    let name = events
        .iter()
        .find(|named| named.name == "thread_name" && (named.pid, named.tid) == (event.pid, event.tid));
    let name = name.unwrap().args["name"].as_str().unwrap();
    let name = name.strip_prefix("main ").unwrap_or(name);
    name.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Begin, end and id of the call that an open slice is.
type Open = (i64, i64, Option<i64>);

/// Plays the events as viewers do: sorted by time, those of one time in the order of the file. Slices of a track are inside each other or
/// apart; those of a queue are apart; each arrow leaves the slice of a call that caused the operation whose slice it reaches. A mark has
/// no slice that one could leave.
fn play(events: &[Event], zero: i64, links: &[Link], op_starts: &HashMap<i64, i64>) {
    let mut order: Vec<&Event> = events.iter().filter(|event| event.ts.is_some()).collect();
    order.sort_by_key(|event| event.start());
    let mut open: HashMap<(i64, i64), Vec<Open>> = HashMap::new();
    let mut arrows: HashMap<i64, Option<i64>> = HashMap::new();
    let mut arrived = BTreeSet::new();
    for event in order {
        let track = open.entry((event.pid, event.tid)).or_default();
        let now = event.start();
        match &*event.ph {
            "X" => {
                while track.last().is_some_and(|(_, end, _)| *end <= now) {
                    track.pop();
                }
                if let Some((_, end, _)) = track.last() {
                    assert!(event.end() <= *end, "overlaps: {event:?}");
                    assert!(event.pid < FIRST_GPU, "inside another of a queue: {event:?}");
                }
                track.push((now, event.end(), event.args["corr_id"].as_i64()));
            }
            "s" => {
                let from = track
                    .iter()
                    .rev()
                    .find(|(start, end, _)| *start == now && (*end > now || *start == *end));
                let call = from.and_then(|(_, _, call)| *call);
                assert!(arrows.insert(event.id.unwrap(), call).is_none(), "twice: {event:?}");
            }
            "f" => {
                arrived.insert(event.id.unwrap());
            }
            _ => {}
        }
    }
    let of_link: HashMap<i64, Link> = links.iter().map(|link| (link.0, *link)).collect();
    assert_eq!(arrows.keys().copied().collect::<BTreeSet<_>>(), of_link.keys().copied().collect());
    assert_eq!(arrived, of_link.keys().copied().collect());
    for (link, call) in arrows {
        // A marker has no number in the export, which is why it may be unknown.
        let (_, caused, _, is_mark) = of_link[&link];
        assert!(
            is_mark || call.is_none_or(|call| call == caused),
            "arrow {link} leaves {call:?}, not {caused}"
        );
    }
    for event in events.iter().filter(|event| event.ph == "f") {
        assert_eq!(event.start() + zero, op_starts[&of_link[&event.id.unwrap()].2]);
    }
}

/// The values of a counter over time, one for each time at which it changes, by its process.
fn steps(events: &[Event], zero: i64, counter: &str, key: &str) -> BTreeMap<i64, Vec<(i64, i64)>> {
    let mut steps: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.ph == "C" && event.name == counter) {
        steps.entry(event.pid).or_default().push((event.start() + zero, event.args[key].as_i64().unwrap()));
    }
    for values in steps.values_mut() {
        assert!(values.is_sorted_by(|one, other| one.0 < other.0), "{values:?}");
        values.dedup_by(|later, earlier| later.1 == earlier.1);
    }
    steps
}

/// A link whose call and operation are there: its number, the call, the operation, and whether the call is a mark.
pub(crate) type Link = (i64, i64, i64, bool);

pub(crate) fn links(trace: &Connection) -> Vec<Link> {
    let query = "SELECT L.id, api_id, op_id, apiName = 'UserMarker' AND A.start = A.\"end\"
        FROM rocpd_api_ops L JOIN api A ON A.id = api_id JOIN rocpd_op O ON O.id = op_id";
    let mut query = trace.prepare(query).unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Everything that must hold for the export of a whole trace.
fn check_export(dir: &Dir, trace: &str) -> Vec<Event> {
    let connection = dir.open(trace);
    let (events, zero) = exported(dir, trace, &[]);
    assert_eq!(found(&events, zero), expected(&connection));
    let starts = "SELECT min(start) FROM (SELECT start FROM rocpd_api UNION ALL SELECT start FROM rocpd_op
        UNION ALL SELECT start FROM rocpd_monitor)";
    assert_eq!(
        connection.query_row(starts, [], |row| row.get::<_, Option<i64>>(0)).unwrap().unwrap_or(0),
        zero
    );
    for event in events.iter().filter(|event| event.ph == "X" && event.args.get("begin_ns").is_some()) {
        let exact = ["begin_ns", "end_ns", "delta_ns"].map(|key| event.args[key].as_i64().unwrap());
        assert_eq!(exact, [event.start() + zero, event.end() + zero, event.end() - event.start()]);
    }
    let links = links(&connection);
    let mut op_starts = HashMap::new();
    let mut rows = connection.prepare("SELECT id, start FROM rocpd_op").unwrap();
    for row in rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap() {
        let (id, start): (i64, i64) = row.unwrap();
        op_starts.insert(id, start);
    }
    play(&events, zero, &links, &op_starts);
    check_depths(&connection, &events, zero);
    check_frames(&connection, &events, zero);
    check_names(&events);
    events
}

/// How many operations are between the begin of their launch and their end, counted for every time at which that may change.
fn check_depths(connection: &Connection, events: &[Event], zero: i64) {
    let query = "SELECT gpuId, A.start, O.\"end\" FROM rocpd_api_ops L JOIN rocpd_api A ON A.id = L.api_id
        JOIN rocpd_op O ON O.id = L.op_id WHERE A.start <= O.\"end\"";
    let mut query = connection.prepare(query).unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let ranges: Vec<(i64, i64, i64)> = rows.unwrap().collect::<Result<_, _>>().unwrap();
    let mut expected: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    let times: BTreeSet<(i64, i64)> =
        ranges.iter().flat_map(|(gpu, start, end)| [(*gpu, *start), (*gpu, *end)]).collect();
    // A window over what is open, so that a trace with thousands is no matter of minutes.
    let mut changes: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for (gpu, start, end) in &ranges {
        *changes.entry((*gpu, *start)).or_default() += 1;
        *changes.entry((*gpu, *end)).or_default() -= 1;
    }
    let mut depth = HashMap::new();
    for (gpu, time) in times {
        let depth: &mut i64 = depth.entry(gpu).or_default();
        *depth += changes[&(gpu, time)];
        expected.entry(FIRST_GPU + gpu).or_default().push((time, *depth));
    }
    let idle: BTreeMap<i64, Vec<(i64, i64)>> = expected
        .iter()
        .map(|(gpu, depths)| {
            (*gpu, depths.iter().map(|(time, depth)| (*time, i64::from(*depth == 0))).collect())
        })
        .collect();
    for (counter, key, mut expected) in [("QueueDepth", "depth", expected), ("Idle", "idle", idle)] {
        for values in expected.values_mut() {
            values.dedup_by(|later, earlier| later.1 == earlier.1);
        }
        assert_eq!(steps(events, zero, counter, key), expected, "{counter}");
    }
    // The last value stands where the last event ends.
    let last = events.iter().filter(|event| event.ph == "X" || event.ph == "i");
    let last = last.map(|event| if event.ph == "X" { event.end() } else { event.start() }).max();
    for gpu in ranges.iter().map(|(gpu, ..)| *gpu).collect::<BTreeSet<i64>>() {
        let counted =
            events.iter().filter(|event| event.name == "QueueDepth" && event.pid == FIRST_GPU + gpu);
        assert_eq!(counted.map(Event::start).max(), last);
    }
}

/// For each operation by its call: of the markers that began before the call and are open, the latest one. What one marker has on a queue,
/// with less than 200 us between, is a frame.
fn check_frames(connection: &Connection, events: &[Event], zero: i64) {
    let query = "SELECT A.id, A.pid, A.tid, A.start, A.\"end\", A.apiName = 'UserMarker', A.args, O.gpuId, O.queueId, O.start, O.\"end\"
        FROM api A LEFT JOIN rocpd_api_ops L ON L.api_id = A.id LEFT JOIN rocpd_op O ON O.id = L.op_id
        ORDER BY A.id >> 32, A.pid, A.tid, A.start, A.\"end\" DESC, A.id, O.start, O.\"end\", L.id";
    #[derive(Clone)]
    struct Row {
        id: i64,
        thread: (i64, i64, i64),
        times: (i64, i64),
        is_marker: bool,
        text: String,
        op: Option<(i64, i64, i64, i64)>,
    }
    let mut query = connection.prepare(query).unwrap();
    let rows = query.query_map([], |row| {
        let id: i64 = row.get(0)?;
        let op = row
            .get::<_, Option<i64>>(7)?
            .map(|gpu| Ok::<_, rusqlite::Error>((gpu, row.get(8)?, row.get(9)?, row.get(10)?)));
        Ok(Row {
            id,
            thread: (id >> 32, row.get(1)?, row.get(2)?),
            times: (row.get(3)?, row.get(4)?),
            is_marker: row.get(5)?,
            text: row.get(6)?,
            op: op.transpose()?,
        })
    });
    let rows: Vec<Row> = rows.unwrap().collect::<Result<_, _>>().unwrap();
    let mut frames: Vec<(i64, String, i64, i64, i64)> = Vec::new();
    type Growing = (i64, String, i64, i64, i64);
    type QueueOfThread = ((i64, i64, i64), i64, i64);
    let mut growing: BTreeMap<QueueOfThread, Growing> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let Some((gpu, queue, start, end)) = row.op else { continue };
        let before = rows[..at].iter().rev().take_while(|other| other.thread == row.thread);
        let marker = before
            .filter(|other| other.is_marker && other.id != row.id && other.times.0 < other.times.1)
            .find(|other| other.times.1 > row.times.0);
        let Some(marker) = marker else { continue };
        let key = (row.thread, gpu, queue);
        match growing.get_mut(&key) {
            Some((id, _, from, to, ops))
                if *id == marker.id && start - *to < 200_000 && *from - end < 200_000 =>
            {
                *from = start.min(*from);
                *to = end.max(*to);
                *ops += 1;
            }
            _ => {
                let new = (marker.id, marker.text.clone(), start, end, 1);
                if let Some((_, text, from, to, ops)) = growing.insert(key, new) {
                    frames.push((gpu, text, from, to, ops));
                }
            }
        }
    }
    frames.extend(
        growing.into_iter().map(|((_, gpu, _), (_, text, from, to, ops))| (gpu, text, from, to, ops)),
    );
    let mut found: Vec<(i64, String, i64, i64, i64)> = events
        .iter()
        .filter(|event| event.cat == "marker_frame")
        .map(|event| {
            let ops = event.args["ops"].as_i64().unwrap();
            (event.pid - FIRST_GPU, event.name.clone(), event.start() + zero, event.end() + zero, ops)
        })
        .collect();
    frames.sort();
    found.sort();
    assert_eq!(found, frames);
}

/// Every track has a name and a place, and there are none of other tracks.
fn check_names(events: &[Event]) {
    let used: BTreeSet<(i64, i64)> = events
        .iter()
        .filter(|event| matches!(&*event.ph, "X" | "i"))
        .map(|event| (event.pid, event.tid))
        .collect();
    let processes: BTreeSet<i64> =
        events.iter().filter(|event| event.ph != "M").map(|event| event.pid).collect();
    for fact in ["name", "sort_index"] {
        let named = |what: &str| {
            let name = format!("{what}_{fact}");
            events.iter().filter(move |event| event.ph == "M" && event.name == name)
        };
        let threads: Vec<(i64, i64)> = named("thread").map(|event| (event.pid, event.tid)).collect();
        assert_eq!(threads.len(), used.len());
        assert_eq!(threads.into_iter().collect::<BTreeSet<_>>(), used);
        let named: Vec<i64> = named("process").map(|event| event.pid).collect();
        assert_eq!(named.len(), processes.len());
        assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), processes);
    }
}

/// The name of a track or of a process.
pub(crate) fn name_of(events: &[Event], pid: i64, tid: i64) -> String {
    let what = if tid == 0 { "process_name" } else { "thread_name" };
    let named = events.iter().find(|event| event.name == what && (event.pid, event.tid) == (pid, tid));
    named.unwrap().args["name"].as_str().unwrap().to_string()
}

#[test]
fn everything_of_real_traces_is_there() {
    let dir = Dir::new();
    let events = check_export(&dir, &dir.fixture("matmul_result.rpd"));
    assert_eq!(events.iter().filter(|event| event.is_op()).count(), 85);
    for name in ["mytrace_raw.rpd", "mytrace_as_shipped.rpd"] {
        let events = check_export(&dir, &dir.unpacked(name));
        let of = |cat: &str| events.iter().filter(|event| event.cat == cat && event.ph == "X").count();
        assert_eq!((of("marker_frame"), of("graph"), of("marker_api")), (1784, 20, 11_884));
        // 96 operations overlap another one of their queue.
        let tracks: BTreeSet<i64> =
            events.iter().filter(|event| event.is_op()).map(|event| event.tid).collect();
        let names: Vec<String> = tracks.iter().map(|track| name_of(&events, FIRST_GPU + 2, *track)).collect();
        assert_eq!(names, ["queue 0", "queue 0 (2)"]);
        let second = *tracks.last().unwrap();
        assert_eq!(events.iter().filter(|event| event.is_op() && event.tid == second).count(), 96);
    }
}

#[test]
fn everything_of_generated_traces_is_there() {
    for (seed, schema) in [(1, 2), (2, 2), (3, 3)] {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", seed, 300);
        if schema == 3 {
            to_schema_3(&dir, &trace);
        }
        check_export(&dir, &trace);
    }
    let dir = Dir::new();
    dir.trace("empty.rpd", "");
    let options = ["--events", "4000", "--processes", "2", "--edge", "--template", "empty.rpd"];
    check_export(&dir, &dir.generated("t.rpd", &options));
}

/// What a generated trace has: calls with what they caused.
#[derive(Debug, Clone)]
pub(crate) struct AnyCall {
    session: i64,
    tid: i64,
    start: i64,
    length: i64,
    is_marker: bool,
    /// Queue, start after the call, length.
    ops: Vec<(i64, i64, i64)>,
}

/// Few values, so that ties and overlaps are common.
pub(crate) fn any_calls() -> impl Strategy<Value = Vec<AnyCall>> {
    let op = (0..3_i64, -2..12_i64, prop_oneof![0..8_i64, 199_990..200_010_i64]);
    let call = (0..2_i64, 0..2_i64, 1..20_i64, 0..12_i64, any::<bool>(), prop::collection::vec(op, 0..3));
    prop::collection::vec(call, 0..40).prop_map(|calls| {
        let calls = calls.into_iter().map(|(session, tid, start, length, is_marker, ops)| AnyCall {
            session,
            tid: tid + 7,
            start: start + 10,
            length,
            is_marker,
            ops,
        });
        calls.collect()
    })
}

pub(crate) fn write(dir: &Dir, calls: &[AnyCall]) -> String {
    let mut sql = "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'hipLaunchKernel'), (4, 'KernelExecution');".to_string();
    for (at, call) in calls.iter().enumerate() {
        let AnyCall { session, tid, start, length, is_marker, .. } = call;
        // Out of order, and of both sessions.
        let id = (session << 32) + 1 + (at as i64 * 7919 % 100);
        let (name, text) = (if *is_marker { 2 } else { 3 }, 100 + at);
        sql += &format!(
            "INSERT INTO rocpd_string VALUES ({text}, 'm{at}');
             INSERT INTO rocpd_api VALUES ({id}, {}, {tid}, {start}, {}, {name}, {text});",
            7 + session,
            start + length
        );
        for (queue, after, length) in &call.ops {
            let begin = start + after;
            sql += &format!(
                "INSERT INTO rocpd_op (gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                     VALUES ({}, {queue}, 0, '', {begin}, {}, {text}, 4);
                 INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({id}, last_insert_rowid());",
                queue % 2,
                begin + length
            );
        }
    }
    dir.trace("t.rpd", &sql)
}

#[test]
fn whatever_the_calls_and_operations_viewers_show_them_as_they_were() {
    holds(any_calls(), |calls| {
        let dir = Dir::new();
        check_export(&dir, &write(&dir, &calls));
    });
}

#[test]
fn names_of_any_bytes_give_valid_json() {
    let dir = Dir::new();
    let hostile = r#"'a"b\c' || char(10) || char(9) || char(27) || '[2J' || char(0x202e) || '</script>' || char(0x7f, 0x9b, 8)"#;
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, {hostile}), (4, CAST(x'ff00fe41' AS TEXT)), (5, '\\n\\b');
             INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 3), (2, 7, 7, 110, 120, 3, 4), (3, 7, 7, 130, 130, 2, 5);
             INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 150, 160, 3, 4), (2, 0, 0, 0, '', 170, 180, 4, 3);
             INSERT INTO rocpd_api_ops VALUES (1, 2, 1), (2, 2, 2);
             INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES
                 ('gpu', 0, {hostile}, 100, 200, ' 12.5 '), ('gpu', 0, {hostile}, 200, 300, ''), ({hostile}, 0, 'x', 100, 200, '7');
             INSERT INTO rocpd_kernelapi VALUES (2, {hostile}, 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 1);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::command', {hostile}), ('gpu::0::name', {hostile});"
        ),
    );
    let ran = dir.run(&["export", "chrome", &trace]);
    ran.expect(0).says(&["1 value of a sensor is left out: no numbers"]);
    assert!(!ran.stdout.chars().any(|c| c != '\n' && rpd_escape::is_unsafe(c)), "{ran}");
    let events = serde_json::from_str::<Object>(&ran.stdout).unwrap().events;
    let text = "a\"b\\c\n\t\u{1b}[2J\u{202e}</script>\u{7f}\u{9b}\u{8}";
    let names: BTreeSet<&str> =
        events.iter().filter(|event| event.ph != "M").map(|event| &*event.name).collect();
    assert!(
        names.contains(text) && names.contains("\u{fffd}\0\u{fffd}A") && names.contains("\\n\\b"),
        "{names:?}"
    );
    assert_eq!(name_of(&events, FIRST_GPU, 0), format!("GPU 0 {text}"));
    let sensed: Vec<&Event> = events.iter().filter(|event| event.ph == "C" && event.name == text).collect();
    assert_eq!(sensed.len(), 2);
    assert_eq!(sensed[0].args[text], 12.5);
    let op = events.iter().find(|event| event.is_op()).unwrap();
    assert_eq!(op.args["stream"], text.trim_end_matches('\u{8}').to_string() + "\u{8}");
}

#[test]
fn a_sensor_with_the_name_of_a_counter_is_another_one() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'gemm'), (4, 'KernelExecution');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 110, 2, 1);
         INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 120, 160, 3, 4);
         INSERT INTO rocpd_api_ops VALUES (1, 1, 1);
         INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES
             ('gpu', 0, 'QueueDepth', 100, 150, '77'), ('gpu', 0, 'Idle', 100, 150, '88')",
    );
    let (events, _) = exported(&dir, &trace, &[]);
    for (name, ours, sensed) in
        [("QueueDepth", vec![1.0, 0.0], vec![77.0, 77.0]), ("Idle", vec![0.0, 1.0], vec![88.0, 88.0])]
    {
        let values = |name: &str| -> Vec<f64> {
            let counted = events.iter().filter(|event| event.ph == "C" && event.name == name);
            counted
                .map(|event| event.args.as_object().unwrap().values().next().unwrap().as_f64().unwrap())
                .collect()
        };
        assert_eq!((values(name), values(&format!("{name} (sensor)"))), (ours, sensed), "{name}");
    }
}

#[test]
fn processes_with_equal_ids_stay_apart() {
    let dir = Dir::new();
    let of = |session: i64| {
        let id = (session << 32) + 1;
        format!(
            "INSERT INTO rocpd_string VALUES ({id}, ''), ({}, 'call{session}');
             INSERT INTO rocpd_api VALUES ({id}, 7, 7, {}, {}, {}, {id});",
            id + 1,
            100 + session,
            200 + session,
            id + 1
        )
    };
    let trace = dir.trace("t.rpd", &(of(0) + &of(1)));
    let (events, _) = exported(&dir, &trace, &[]);
    let pids: BTreeSet<i64> = events.iter().filter(|event| event.is_call()).map(|event| event.pid).collect();
    assert_eq!(pids.into_iter().collect::<Vec<_>>(), [7, 500_000_000]);
    assert_eq!(name_of(&events, 7, 0), "process 7");
    assert_eq!(name_of(&events, 500_000_000, 0), "process 7 (pid 7, session 1)");
    // A process that took two sessions is one.
    for session in [0, 1] {
        for (key, value) in
            [("boot_id", "b"), ("pid", "7"), ("start_monotonic_ns", "5"), ("command", "./train -x")]
        {
            let sql = "INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)";
            dir.open(&trace).execute(sql, [&format!("session::{session}::{key}"), value]).unwrap();
        }
    }
    let (events, _) = exported(&dir, &trace, &[]);
    assert!(events.iter().filter(|event| event.is_call()).all(|event| event.pid == 7));
    assert_eq!(name_of(&events, 7, 0), "./train -x");
    assert_eq!(name_of(&events, 7, 7), "main thread 7");
    assert_eq!(name_of(&events, 7, FIRST_GPU), "main thread 7 (2)");
}

#[test]
fn launches_and_copies_are_described() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'KernelExecution'), (4, 'CopyHostToDevice'), (5, 'k'), (6, 'a=1');
         INSERT INTO rocpd_api VALUES (1, 7, 8, 100, 200, 2, 6), (2, 7, 8, 300, 400, 2, 1);
         INSERT INTO rocpd_kernelcodeobject VALUES (9, 32, 16, 0);
         INSERT INTO rocpd_kernelapi VALUES (1, '0x1f', 4, 3, 2, 64, 2, 1, 512, 16, '', '', '', 9, 5);
         INSERT INTO rocpd_copyapi VALUES (2, '0x0', 4096, 0, 0, 1, '', '', 0, 0, 1, 0);
         INSERT INTO rocpd_op VALUES (1, 3, 2, 0, '', 150, 160, 5, 3), (2, 3, 2, 0, '', 350, 360, 1, 4);
         INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 2, 2);",
    );
    let (events, zero) = exported(&dir, &trace, &["--absolute"]);
    assert_eq!(zero, 0);
    let ops: Vec<&Event> = events.iter().filter(|event| event.is_op()).collect();
    assert_eq!(
        (&*ops[0].cat, &ops[0].args),
        (
            "kernel_dispatch",
            &serde_json::json!({"desc": "KernelExecution", "agent": "GPU 3", "queue": 2, "begin_ns": 150, "end_ns": 160,
                "delta_ns": 10, "corr_id": 1, "pid": 7, "tid": 8, "grid": [4, 3, 2], "workgroup": [64, 2, 1], "grid_size": 3072,
                "workgroup_size": 128, "LDS_Block_Size": 512, "Scratch_Size": 16, "VGPR_Count": 32, "SGPR_Count": 16,
                "stream": "0x1f", "stream_ID": 31})
        )
    );
    assert_eq!(
        (&*ops[1].cat, &ops[1].args),
        (
            "memory_copy",
            &serde_json::json!({"desc": "CopyHostToDevice", "agent": "GPU 3", "queue": 2, "begin_ns": 350, "end_ns": 360,
                "delta_ns": 10, "corr_id": 2, "pid": 7, "tid": 8, "copy_bytes": 4096, "stream": "0x0", "stream_ID": 0})
        )
    );
    let call = events.iter().find(|event| event.is_call()).unwrap();
    assert_eq!(
        (call.start(), &call.args["desc"], &call.args["corr_id"]),
        (100, &Value::from("a=1"), &Value::from(1))
    );
}

/// Two kernels of CUDA that one call launched: a node of a graph, and one in clusters.
pub(crate) fn with_launch_attributes(dir: &Dir) -> String {
    let rows = "INSERT INTO rocpd_string VALUES (1, ''), (2, 'cudaGraphLaunch'), (3, 'KernelExecution'), (4, 'node'), (5, 'clustered');
         INSERT INTO rocpd_api VALUES (1, 7, 8, 100, 200, 2, 1);
         INSERT INTO rocpd_op VALUES (1, 3, 2, 0, '', 150, 160, 4, 3), (2, 3, 2, 0, '', 350, 360, 5, 3);
         INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 1, 2);
         INSERT INTO ext_launchattribute VALUES (1, 5, 21474836481, 0, 0, 0), (2, 0, 0, 2, 4, 1);";
    dir.trace("t.rpd", &format!("{} {rows}", rpd_sql::ext::LAUNCHATTRIBUTE))
}

#[test]
fn nodes_of_graphs_and_clusters_of_cuda_are_there() {
    let dir = Dir::new();
    let (events, _) = exported(&dir, &with_launch_attributes(&dir), &[]);
    let found: Vec<[&Value; 3]> = events
        .iter()
        .filter(|event| event.is_op())
        .map(|event| ["graph", "graph_node", "cluster"].map(|key| &event.args[key]))
        .collect();
    let (graph, node, cluster) =
        (Value::from(5), Value::from(21_474_836_481_i64), serde_json::json!([2, 4, 1]));
    assert_eq!(found, [[&graph, &node, &Value::Null], [&Value::Null, &Value::Null, &cluster]]);
}

#[test]
fn rows_that_cannot_be_are_left_out_and_counted() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'call'), (3, 'KernelExecution');
         INSERT INTO rocpd_api VALUES (1, 7, 8, 100, 200, 2, 1), (2, 7, 8, 300, 200, 2, 1), (3, 'x', 8, 300, 400, 2, 1);
         INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 150, 160, 1, 3), (2, 0, 0, 0, '', '', 360, 1, 3), (3, 0, '', 0, '', 150, 160, 1, 3);
         INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 2, 1), (3, 1, 2), (4, 99, 1), (5, 1, 99);",
    );
    let ran = dir.run(&["export", "chrome", &trace]);
    ran.expect(0).says(&["t.rpd: 4 calls and operations are left out", "rpd check"]);
    let events = serde_json::from_str::<Object>(&ran.stdout).unwrap().events;
    let of = |ph: &str| events.iter().filter(|event| event.ph == ph).count();
    assert_eq!((of("X"), of("s"), of("f")), (2, 1, 1));
}

#[test]
fn both_formats_and_an_empty_trace() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let (object, _) = exported(&dir, &trace, &[]);
    let array = dir.run(&["export", "chrome", "--format", "array", &trace]);
    let events: Vec<Event> = serde_json::from_str(&array.expect(0).stdout).unwrap();
    assert_eq!(events.len(), object.len());
    // By this Perfetto knows what it is.
    assert!(array.stdout.starts_with("[{\""));
    assert!(dir.run(&["export", "chrome", &trace]).stdout.starts_with("{\"traceEvents\":[{\""));
    dir.trace("empty.rpd", "");
    for format in ["object", "array"] {
        let ran = dir.run(&["export", "chrome", "--format", format, "empty.rpd"]);
        ran.expect(0).says(&["empty.rpd holds no calls and no operations"]);
        serde_json::from_str::<Value>(&ran.stdout).unwrap();
    }
}

#[test]
fn a_file_appears_when_it_is_complete_and_replaces_none_unasked() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let before = fs::read(dir.path(&trace)).unwrap();
    let whole = dir.run(&["export", "chrome", &trace]).expect(0).stdout.clone();
    let answer = dir.run(&["export", "chrome", &trace, "-o", "t.json"]);
    assert!(answer.expect(0).stdout.is_empty() && answer.stderr.is_empty(), "{answer}");
    assert_eq!(fs::read_to_string(dir.path("t.json")).unwrap(), whole);
    dir.run(&["export", "chrome", &trace, "-o", "t.json"]).expect(1).says(&[
        "t.json",
        "exists already",
        "--force",
    ]);
    dir.write("t.json", "what was there");
    dir.run(&["export", "chrome", &trace, "-o", "t.json", "--force"]).expect(0);
    assert_eq!(fs::read_to_string(dir.path("t.json")).unwrap(), whole);
    dir.run(&["export", "chrome", &trace, "-o", "t.json.gz"]).expect(0);
    let unpacked = ran(dir.command("gzip").args(["-dc", "t.json.gz"]));
    assert_eq!(unpacked.expect(0).stdout, whole);
    assert_eq!(dir.run(&["export", "chrome", &trace, "-o", "-"]).expect(0).stdout, whole);
    dir.run(&["export", "chrome", &trace, "-o", "/dev/full"]).expect(1).says(&["/dev/full", "No space left"]);
    dir.run(&["export", "chrome", &trace, "-o", "no/such.json"]).expect(1).says(&["no/such.json"]);
    dir.run(&["export", "chrome", &trace, "-o", &trace, "--force"]).expect(1).says(&[&trace, "is a trace"]);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
    assert_eq!(dir.names(), [&trace, "t.json", "t.json.gz"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let mut child =
        dir.rpd(&["export", "chrome", &trace]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 1]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let shell = format!("{RPD} export chrome {trace} > /dev/full");
    ran(dir.command("bash").args(["-c", &shell]))
        .expect(1)
        .says(&["cannot write to standard output", "No space left"]);
}

/// The front with the original's name and arguments.
#[test]
fn rpd2tracing_takes_the_arguments_of_the_original() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/rpd2tracing.py");
    fs::copy(script, dir.path("rpd2tracing.py")).unwrap();
    std::os::unix::fs::symlink(RPD, dir.path("rpd")).unwrap();
    let front = |arguments: &[&str]| ran(dir.command("python3").arg("rpd2tracing.py").args(arguments));
    let same = |name: &str, options: &[&str]| {
        let ours = dir.run(&[&["export", "chrome", &trace], options].concat()).expect(0).stdout.clone();
        assert_eq!(fs::read_to_string(dir.path(name)).unwrap(), ours, "{options:?}");
    };
    front(&[&trace]).expect(0);
    same("matmul_result.json", &["--absolute"]);
    front(&[&trace, "--relative", "--format", "array"]).expect(0);
    same("matmul_result.json", &["--format", "array"]);
    front(&["--start", "25%", "--end", "75%", &trace, "part.json"]).expect(0);
    same("part.json", &["--absolute", "--start", "25%", "--end", "75%"]);
    // The range of the original: whole us of the start, both ends included.
    let connection = dir.open(&trace);
    let [from, to] = ["min(start) + 3400000000", "max(start) - 1000000"].map(|edge| {
        connection
            .query_row(&format!("SELECT ({edge}) / 1000 FROM rocpd_api"), [], |row| row.get::<_, i64>(0))
            .unwrap()
    });
    front(&["--start", &from.min(to - 1000).to_string(), "--end", &to.to_string(), &trace, "us.json"])
        .expect(0);
    let Object { events, .. } =
        serde_json::from_str(&fs::read_to_string(dir.path("us.json")).unwrap()).unwrap();
    let calls: i64 = connection
        .query_row(
            "SELECT count(*) FROM rocpd_api WHERE start / 1000 >= ?1 AND start / 1000 <= ?2",
            [from.min(to - 1000), to],
            |row| row.get(0),
        )
        .unwrap();
    assert!(calls > 0);
    assert_eq!(events.iter().filter(|event| event.is_call()).count() as i64, calls);
    front(&["--start", "soon", &trace]).expect(1);
    front(&["missing.rpd"]).expect(1);
}

#[test]
fn a_damaged_trace_leaves_no_file() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let connection = dir.open(&trace);
    let root: i64 = connection
        .query_row("SELECT rootpage FROM sqlite_master WHERE name = 'rocpd_op'", [], |row| row.get(0))
        .unwrap();
    let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    drop(connection);
    let mut bytes = fs::read(dir.path(&trace)).unwrap();
    let at = ((root - 1) * page) as usize;
    bytes[at..at + page as usize].fill(0xa5);
    fs::write(dir.path(&trace), bytes).unwrap();
    dir.run(&["export", "chrome", &trace, "-o", "out.json"]).expect(1).says(&[&trace, "malformed"]);
    assert_eq!(dir.names(), [trace]);
}
