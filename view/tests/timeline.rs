//! Real files of random rows: what is read, drawn and counted is what SQL and slow, obvious code say.

// Tests may unwrap: a panic is how they fail.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;
use rpd_view::gathering::{Gathered, Gatherer, Progress};
use rpd_view::reading::{GatheredPart, assemble, gather, read};
use rpd_view::search::Found;
use rpd_view::statistics::{By, Next, Order, Selection, Sort, Whence, events, next, statistics, step};
use rpd_view::tiles::{Asked, BUCKETS, tiles};
use rpd_view::timeline::{Shown, Timeline};
use rusqlite::Connection;

/// A call: pid, tid, start, duration, name. An operation: GPU, queue, start, duration, name.
type Event = (i64, i64, u64, u64, i64);

#[derive(Debug, Clone)]
struct Made {
    calls: Vec<Event>,
    ops: Vec<Event>,
    links: Vec<(usize, usize)>,
}

/// Times of the first event are behind this.
const BEGIN: u64 = 1_000_000_007;

fn made(most: usize) -> impl Strategy<Value = Made> {
    let duration = prop_oneof![1 => Just(0u64), 5 => 1u64..400, 1 => 1000u64..40_000];
    let event = move |most: u64| (0i64..2, 0i64..3, 0u64..most, duration.clone(), 10i64..14);
    let events = prop::collection::vec(event(30_000), 0..most);
    (events.clone(), events).prop_flat_map(|(calls, ops)| {
        let links = prop::collection::vec((0..calls.len().max(1), 0..ops.len().max(1)), 0..40);
        let links = if calls.is_empty() || ops.is_empty() {
            prop::collection::vec((0usize..1, 0usize..1), 0).boxed()
        } else {
            links.boxed()
        };
        (Just(calls), Just(ops), links).prop_map(|(calls, ops, links)| Made { calls, ops, links })
    })
}

fn write(file: &Path, made: &Made) -> Connection {
    rpd_schema::create(file).unwrap();
    let mut trace = Connection::open(file).unwrap();
    trace.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF").unwrap();
    let rows = trace.transaction().unwrap();
    let texts = [
        (1, ""),
        (2, "UserMarker"),
        (3, "KernelExecution"),
        (10, "gemm<float>"),
        (11, "copy"),
        (12, "step 7"),
        (13, "gemm<float>"),
    ];
    for text in texts {
        rows.execute("INSERT INTO rocpd_string (id, string) VALUES (?1, ?2)", text).unwrap();
    }
    for (at, (pid, tid, start, duration, name)) in made.calls.iter().enumerate() {
        let start = (start + BEGIN) as i64;
        // What is named 12 is a marker.
        let names = if *name == 12 { (2, 12) } else { (*name, 1) };
        rows.execute(
            "INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (at as i64 + 100, pid + 1, tid, start, start + *duration as i64, names.0, names.1),
        )
        .unwrap();
    }
    for (at, (gpu, queue, start, duration, name)) in made.ops.iter().enumerate() {
        let start = (start + BEGIN) as i64;
        rows.execute(
            "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
             VALUES (?1, ?2, ?3, 0, '', ?4, ?5, ?6, 3)",
            (at as i64 + 100, gpu, queue, start, start + *duration as i64, name),
        )
        .unwrap();
    }
    for (call, op) in &made.links {
        rows.execute(
            "INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (?1, ?2)",
            (*call as i64 + 100, *op as i64 + 100),
        )
        .unwrap();
    }
    rows.commit().unwrap();
    trace
}

fn search(timeline: &Timeline, text: &str) -> anyhow::Result<Found> {
    rpd_view::search::search(timeline, text, &|_| unreachable!("no arguments are asked for"))
}

fn whence(after: Option<u32>, back: bool) -> Whence {
    Whence { after, at: None, back }
}

fn opened(file: &Path) -> Timeline {
    let (trace, version) = rpd_schema::open_read(file).unwrap();
    read(file, (&trace, version), &Progress::default()).unwrap()
}

/// Events of each track: is it an operation, id, begin, end, name.
type ByTrack = BTreeMap<String, BTreeSet<(bool, i64, u64, u64, String)>>;

fn by_track(timeline: &Timeline) -> ByTrack {
    let mut found = ByTrack::new();
    for group in &timeline.groups {
        for track in &group.tracks {
            let events: &mut BTreeSet<_> = found.entry(track.key.clone()).or_default();
            for row in &track.rows {
                let Shown::Subtrack(subtrack) = timeline.rows[*row as usize].shown else {
                    panic!("a row without events")
                };
                for event in timeline.columns.subtracks()[subtrack].events.clone() {
                    let (start, end) = timeline.columns.times(event);
                    let name = timeline.name(event).text.to_string();
                    assert!(events.insert((group.is_gpu, timeline.columns.id(event), start, end, name)));
                }
            }
            assert_eq!(events.len() as u64, track.events);
        }
    }
    found
}

fn by_sql(trace: &Connection, first: u64) -> ByTrack {
    let mut found = ByTrack::new();
    for (is_op, query) in [
        (false, "SELECT 'p' || pid || '.0.' || tid, C.id, start, \"end\", iif(N.string = 'UserMarker', G.string, N.string)
                 FROM rocpd_api C JOIN rocpd_string N ON N.id = apiName_id JOIN rocpd_string G ON G.id = args_id"),
        (true, "SELECT 'g' || gpuId || '.' || queueId, C.id, start, \"end\", N.string
                FROM rocpd_op C JOIN rocpd_string N ON N.id = description_id"),
    ] {
        let mut rows = trace.prepare(query).unwrap();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let time = |at| row.get::<_, i64>(at).unwrap() as u64 - first;
            let event = (is_op, row.get(1).unwrap(), time(2), time(3), row.get(4).unwrap());
            found.entry(row.get(0).unwrap()).or_default().insert(event);
        }
    }
    found
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap())
}

/// For each bucket of one tile of one row the event and the busy share; and how many events begin in the tile.
fn decoded(timeline: &Timeline, row: u32, level: u8, tile: u64) -> (Vec<Option<(u32, u8)>>, u64) {
    let asked = Asked { level, first: tile, tiles: 1, rows: vec![row] };
    assert_eq!(asked.fault(), None);
    let bytes = tiles(timeline, &asked);
    let header: Vec<u32> = (0..8).map(|at| word(&bytes, at)).collect();
    let runs = header[5] as usize;
    assert_eq!(
        header,
        [0x7464_7072, 1, u32::from(level), 1, 1, runs as u32, tile as u32, (tile >> 32) as u32]
    );
    assert_eq!((word(&bytes, 8), word(&bytes, 9) as usize), (row, runs));
    assert_eq!(bytes.len(), 40 + 17 * runs);
    let short = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    let mut buckets = vec![None; BUCKETS as usize];
    let mut count = 0;
    for run in 0..runs {
        let event = word(&bytes, 10 + run);
        assert_eq!(word(&bytes, 10 + runs + run), timeline.columns.name(event));
        count += u64::from(word(&bytes, 10 + 2 * runs + run));
        let (first, length) = (short(40 + 12 * runs + 2 * run), short(40 + 14 * runs + 2 * run));
        for bucket in first..first + length {
            assert!(buckets[usize::from(bucket)].replace((event, bytes[40 + 16 * runs + run])).is_none());
        }
    }
    (buckets, count)
}

/// What is shown of what was gathered so far.
fn shown(gathered: &Gathered) -> Timeline {
    assemble(vec![GatheredPart { gathered: gathered.clone(), shift_ns: 0 }]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_trace_that_grows_between_its_rows_is_what_it_is_when_it_is_read_at_once(
        made in made(120),
        // When each row is written: calls end in another order than they begin in.
        turns in prop::collection::vec(0u8..6, 240),
        most in 1u32..40,
    ) {
        let directory = tempfile::TempDir::new().unwrap();
        let whole = directory.path().join("whole.rpd");
        drop(write(&whole, &made));
        let file = directory.path().join("t.rpd");
        let writer = write(&file, &Made { calls: Vec::new(), ops: Vec::new(), links: Vec::new() });
        writer.execute("ATTACH ?1 AS whole", [whole.to_str().unwrap()]).unwrap();
        let (trace, version) = rpd_schema::open_read(&file).unwrap();
        let progress = Progress::default();
        let mut gatherer = Gatherer::of(&file, (&trace, version), &progress).unwrap();
        for turn in 0..6 {
            for (table, count) in [("rocpd_api", made.calls.len()), ("rocpd_op", made.ops.len())] {
                for at in (0..count).filter(|at| turns[at + usize::from(table == "rocpd_op") * 120] == turn) {
                    let copy = format!("INSERT INTO main.{table} SELECT * FROM whole.{table} WHERE id = {}", at + 100);
                    writer.execute(&copy, []).unwrap();
                }
            }
            if turn == 3 {
                writer.execute("INSERT INTO main.rocpd_api_ops SELECT * FROM whole.rocpd_api_ops", []).unwrap();
            }
            // Nothing is held while it pauses: a recorder can commit.
            let mut pause = || assert!(writer.execute("UPDATE rocpd_metadata SET value = value", []).is_ok());
            gatherer.grow(most, &mut pause).unwrap();
            let now = shown(gatherer.gathered().unwrap());
            let rows: i64 = writer
                .query_row("SELECT (SELECT count(*) FROM main.rocpd_api) + (SELECT count(*) FROM main.rocpd_op)", [], |row| row.get(0))
                .unwrap();
            prop_assert_eq!(now.columns.len() as i64, rows);
        }
        let (grown, read) = (shown(gatherer.gathered().unwrap()), opened(&whole));
        prop_assert_eq!(by_track(&grown), by_track(&read));
        prop_assert_eq!(grown.links.len(), read.links.len());
        prop_assert_eq!(grown.span_ns, read.span_ns);
    }

    #[test]
    fn two_traces_lie_on_one_axis_as_they_do_on_two(one in made(80), other in made(80), shift_ns in 0u64..50_000) {
        let directory = tempfile::TempDir::new().unwrap();
        let files = ["a.rpd", "b.rpd"].map(|name| directory.path().join(name));
        let gathered = |file: &Path, made: &Made| {
            drop(write(file, made));
            let (trace, version) = rpd_schema::open_read(file).unwrap();
            gather(file, (&trace, version), &Progress::default(), &mut |_| ()).unwrap()
        };
        let parts = [gathered(&files[0], &one), gathered(&files[1], &other)].into_iter().zip([0, shift_ns]);
        let both = assemble(parts.map(|(gathered, shift_ns)| GatheredPart { gathered, shift_ns }).collect()).unwrap();
        let mut expected = by_track(&opened(&files[0]));
        for (key, events) in by_track(&opened(&files[1])) {
            let shifted = |(is_op, id, start, end, name)| (is_op, id, start + shift_ns, end + shift_ns, name);
            expected.insert(format!("b.{key}"), events.into_iter().map(shifted).collect());
        }
        prop_assert_eq!(by_track(&both), expected);
        for (source, made) in [&one, &other].into_iter().enumerate() {
            for (call, op) in &made.links {
                let call = both.event_of(source, false, *call as i64 + 100).unwrap();
                let op = both.event_of(source, true, *op as i64 + 100).unwrap();
                prop_assert_eq!((both.source_of(call), both.source_of(op)), (source, source));
                prop_assert!(both.links.ops(call).any(|other| other == op));
            }
        }
        // Equal names of both are one.
        let texts: BTreeSet<_> = both.names.iter().map(|name| (&name.text, name.kind.word())).collect();
        prop_assert_eq!(texts.len(), both.names.len());
    }

    #[test]
    fn what_is_read_is_what_sql_says(made in made(120)) {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("t.rpd");
        let trace = write(&file, &made);
        let timeline = opened(&file);
        let first: u64 = timeline.sources[0].facts.first_ns.parse().unwrap();
        prop_assert_eq!(by_track(&timeline), by_sql(&trace, first));
        prop_assert_eq!((timeline.sources[0].facts.calls, timeline.sources[0].facts.ops), (made.calls.len() as u64, made.ops.len() as u64));
        // Equal texts are one name, also where the file has them twice.
        let texts: BTreeSet<_> = timeline.names.iter().map(|name| (&name.text, name.kind.word())).collect();
        prop_assert_eq!(texts.len(), timeline.names.len());
        let links: BTreeSet<_> = made.links.iter().collect();
        prop_assert_eq!(timeline.links.len(), links.len());
        for (call, op) in links {
            let call = timeline.event_of(0, false, *call as i64 + 100).unwrap();
            let op = timeline.event_of(0, true, *op as i64 + 100).unwrap();
            prop_assert!(!timeline.is_op(call) && timeline.is_op(op));
            prop_assert!(timeline.links.ops(call).any(|other| other == op));
            prop_assert!(timeline.links.calls(op).any(|other| other == call));
        }
        prop_assert_eq!(timeline.event_of(0, true, 99), None);
    }

    #[test]
    fn counters_are_what_sql_says(
        made in made(120),
        sensed in prop::collection::vec((0i64..2, 0usize..2, 1u64..30_000, 0u64..500, -50i64..2000), 0..300),
        times in prop::collection::vec(0u64..32_000, 20),
        (level, tile) in (0u8..8, 0u64..60),
    ) {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("t.rpd");
        let trace = write(&file, &made);
        for (device, sensor, start, duration, value) in &sensed {
            let start = (start + BEGIN) as i64;
            trace
                .execute(
                    "INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES ('gpu', ?1, ?2, ?3, ?4, ?5)",
                    (device, ["sclk", "power"][*sensor], start, start + *duration as i64, format!(" {value}.25")),
                )
                .unwrap();
        }
        let timeline = opened(&file);
        let first: i64 = timeline.sources[0].facts.first_ns.parse().unwrap();
        let mut found = 0;
        for group in &timeline.groups {
            for counter in &group.counters {
                found += 1;
                let steps = &timeline.counter(counter.row).unwrap().steps;
                let gpu: i64 = group.key[1..].parse().unwrap();
                let depth = "SELECT count(*) FROM (SELECT DISTINCT api_id, op_id FROM rocpd_api_ops) JOIN rocpd_api C ON C.id = api_id
                    JOIN rocpd_op O ON O.id = op_id WHERE C.start <= O.\"end\" AND C.start <= ?1 AND O.\"end\" > ?1 AND gpuId = ?2 AND ?3 > ''";
                let sensor = "SELECT value + 0.0 FROM rocpd_monitor WHERE start <= ?1 AND deviceId = ?2 AND monitorType = ?3
                    AND (SELECT max(\"end\") FROM rocpd_monitor WHERE deviceId = ?2 AND monitorType = ?3) > ?1 ORDER BY start DESC, \"end\" DESC, id DESC LIMIT 1";
                let query = if counter.label == "queue depth" { depth } else { sensor };
                for time in &times {
                    let expected: Option<f64> =
                        trace.query_row(query, (first + *time as i64, gpu, &counter.label), |row| row.get(0)).ok();
                    let held = steps.at(*time).filter(|place| steps.times(*place).1 > *time).map(|place| steps.number(place));
                    // No depth is shown before the first call and behind the last end: there it is none.
                    let expected = if query == depth { expected.filter(|depth| held.is_some() || *depth != 0.0) } else { expected };
                    prop_assert_eq!(held, expected, "{} {}", counter.key, time);
                }
                // Tiles have the least and the greatest value of each bucket.
                let level = 2 * level;
                let asked = Asked { level, first: tile >> level, tiles: 1, rows: vec![counter.row] };
                let bytes = tiles(&timeline, &asked);
                let runs = word(&bytes, 5) as usize;
                prop_assert_eq!(bytes.len(), 40 + 17 * runs);
                let short = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
                let mut buckets = vec![None; BUCKETS as usize];
                for run in 0..runs {
                    let of = (f32::from_bits(word(&bytes, 10 + run)), f32::from_bits(word(&bytes, 10 + runs + run)));
                    let (begin, length) = (short(40 + 12 * runs + 2 * run), short(40 + 14 * runs + 2 * run));
                    for bucket in begin..begin + length {
                        prop_assert!(buckets[usize::from(bucket)].replace(of).is_none());
                    }
                }
                for (bucket, found) in (asked.first * BUCKETS..).zip(buckets) {
                    let (from, to) = (bucket << level, (bucket + 1) << level);
                    let here = (0..steps.len()).filter(|place| {
                        let (start, end) = steps.times(*place);
                        start < to && (end > from || start >= from)
                    });
                    let numbers: Vec<f32> = here.map(|place| steps.number(place) as f32).collect();
                    let expected = (!numbers.is_empty()).then(|| {
                        (numbers.iter().copied().fold(f32::MAX, f32::min), numbers.iter().copied().fold(f32::MIN, f32::max))
                    });
                    prop_assert_eq!(found, expected, "{} level {} bucket {}", counter.key, level, bucket);
                }
            }
        }
        let sensors: BTreeSet<_> = sensed.iter().map(|(device, sensor, ..)| (device, sensor)).collect();
        let depths: i64 = trace
            .query_row(
                "SELECT count(DISTINCT gpuId) FROM rocpd_api_ops JOIN rocpd_api C ON C.id = api_id JOIN rocpd_op O ON O.id = op_id WHERE C.start <= O.\"end\"",
                [],
                |row| row.get(0),
            )
            .unwrap();
        prop_assert_eq!(found, sensors.len() as i64 + depths);
    }

    #[test]
    fn names_come_in_any_order_and_their_events_one_behind_another(made in made(200), from in 0u64..30_000, length in 1u64..20_000) {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("t.rpd");
        let trace = write(&file, &made);
        let timeline = opened(&file);
        let first: i64 = timeline.sources[0].facts.first_ns.parse().unwrap();
        let selection = Selection { from, to: from + length, ..Selection::default() };
        let touches = "start - ?1 < ?3 AND (\"end\" - ?1 > ?2 OR start - ?1 >= ?2)";
        let calls = "SELECT start, \"end\", iif(N.string = 'UserMarker', 'markers', 'calls') AS sort, iif(N.string = 'UserMarker', G.string, N.string) AS name
             FROM rocpd_api C JOIN rocpd_string N ON N.id = apiName_id JOIN rocpd_string G ON G.id = args_id";
        let ops = "SELECT start, \"end\", 'operations', N.string FROM rocpd_op O JOIN rocpd_string N ON N.id = description_id";
        for (sort, of) in [(Sort::All, "%"), (Sort::Operations, "operations"), (Sort::Calls, "calls"), (Sort::Markers, "markers")] {
            for (by, column) in [(By::Name, "name"), (By::Count, "count"), (By::Total, "total"), (By::Mean, "mean"), (By::Max, "max")] {
                for (is_ascending, direction) in [(true, "ASC"), (false, "DESC")] {
                    let query = format!(
                        "SELECT sort, name, count(*) AS count, sum(\"end\" - start) AS total, avg(\"end\" - start) AS mean, max(\"end\" - start) AS max
                         FROM ({calls} UNION ALL {ops}) WHERE {touches} AND sort LIKE ?4 AND name LIKE '%e%' GROUP BY sort, name ORDER BY {column} {direction}"
                    );
                    let mut rows = trace.prepare(&query).unwrap();
                    let rows = rows
                        .query_map((first, from as i64, (from + length) as i64, of), |row| {
                            Ok((row.get::<_, String>(1)?, row.get::<_, i64>(2)? as u64, row.get::<_, i64>(3)? as u64, row.get::<_, i64>(5)? as u64))
                        })
                        .unwrap();
                    let expected: Vec<_> = rows.collect::<Result<_, _>>().unwrap();
                    let selection = Selection { sort, words: "E", ..selection.clone() };
                    let names = statistics(&timeline, &selection, by, is_ascending).names;
                    let found: Vec<_> = names
                        .iter()
                        .map(|of| (timeline.names[of.name as usize].text.to_string(), of.durations.count, of.durations.total_ns, of.durations.max_ns))
                        .collect();
                    // Names that are equal in the order may lie either way.
                    let key = |row: &(String, u64, u64, u64)| match by {
                        By::Name => (row.0.clone(), 0, 0),
                        By::Count => (String::new(), row.1, 0),
                        By::Mean => (String::new(), row.2, row.1),
                        By::Total => (String::new(), row.2, 0),
                        By::P50 | By::P99 | By::Max => (String::new(), row.3, 0),
                    };
                    if by != By::Mean {
                        prop_assert_eq!(found.iter().map(key).collect::<Vec<_>>(), expected.iter().map(key).collect::<Vec<_>>());
                    }
                    let sorted = |rows: &[(String, u64, u64, u64)]| rows.iter().cloned().collect::<BTreeSet<_>>();
                    prop_assert_eq!(sorted(&found), sorted(&expected));
                }
            }
        }
        for of in statistics(&timeline, &selection, By::Total, false).names {
            // Each step leads to one that begins no earlier, all are found, and then comes the first again.
            let mut found = Vec::new();
            let mut at = None;
            for place in 1..=of.durations.count {
                let step = next(&timeline, &selection, of.name, whence(at, false)).unwrap();
                prop_assert_eq!((step.place, step.of), (place, of.durations.count));
                prop_assert_eq!(timeline.columns.name(step.event), of.name);
                found.push(step.event);
                at = Some(step.event);
            }
            prop_assert!(found.windows(2).all(|pair| timeline.columns.times(pair[0]).0 <= timeline.columns.times(pair[1]).0));
            prop_assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
            prop_assert_eq!(next(&timeline, &selection, of.name, whence(at, false)).unwrap().event, found[0]);
            prop_assert_eq!(next(&timeline, &selection, of.name, whence(Some(found[0]), true)).unwrap().event, found[found.len() - 1]);
        }
    }

    #[test]
    fn a_step_goes_to_what_begins_next_from_an_event_or_a_time(made in made(60), at in 0u64..30_000, back: bool) {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("t.rpd");
        write(&file, &made);
        let timeline = opened(&file);
        let mut all: Vec<u32> = (0..timeline.columns.len() as u32).filter(|event| event % 3 != 0).collect();
        let found = |whence| step(&timeline, &all, whence).map(|Next { event, place, of }| (event, place as usize - 1, of as usize));
        let key = |event: u32| (timeline.columns.times(event).0, event);
        let mut sorted = all.clone();
        sorted.sort_unstable_by_key(|event| key(*event));
        let expected = |before: usize| sorted.get(match (back, before) {
            (true, 0) => sorted.len().wrapping_sub(1),
            (true, before) => before - 1,
            (false, before) => before % sorted.len().max(1),
        }).map(|event| (*event, sorted.iter().position(|one| one == event).unwrap(), sorted.len()));
        let begun = sorted.iter().filter(|event| key(**event).0 < at).count();
        prop_assert_eq!(found(Whence { after: None, at: Some(at), back }), expected(begun));
        for after in 0..timeline.columns.len() as u32 {
            let before = sorted.iter().filter(|event| key(**event) < key(after) || (!back && **event == after)).count();
            prop_assert_eq!(found(Whence { after: Some(after), at: None, back }), expected(before));
        }
        all.clear();
        prop_assert_eq!(step(&timeline, &all, Whence { after: None, at: Some(at), back }), None);
    }

    #[test]
    fn events_come_in_the_order_that_is_asked_for(made in made(120), is_ascending: bool) {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("t.rpd");
        write(&file, &made);
        let timeline = opened(&file);
        let selection = Selection { to: u64::MAX, ..Selection::default() };
        for order in [Order::Start, Order::Duration, Order::Name, Order::Kind, Order::Row, Order::Id] {
            let listed = events(&timeline, &selection, order, is_ascending);
            prop_assert_eq!(listed.event.len(), timeline.columns.len());
            let key = |at: usize| {
                let name = timeline.name(listed.event[at]);
                let (number, text) = match order {
                    Order::Start => (listed.start_ns[at].into(), ""),
                    Order::Duration => (listed.duration_ns[at].into(), ""),
                    Order::Name => (0, &*name.text),
                    Order::Kind => (0, name.kind.word()),
                    Order::Row => (listed.row[at].map_or(i128::MAX, i128::from), ""),
                    Order::Id => (listed.id[at].parse().unwrap(), ""),
                };
                (number, text.to_string())
            };
            for at in 1..listed.event.len() {
                let (one, other) = (key(at - 1), key(at));
                prop_assert!(if is_ascending { one <= other } else { one >= other }, "{:?}", order);
            }
        }
    }

    #[test]
    fn tiles_are_what_the_events_give(made in made(300), tile in 0u64..70) {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("t.rpd");
        write(&file, &made);
        let timeline = opened(&file);
        for (row, shown) in timeline.rows.iter().enumerate() {
            let Shown::Subtrack(subtrack) = shown.shown else { continue };
            let events: Vec<_> = timeline.columns.subtracks()[subtrack].events.clone().map(|event| (event, timeline.columns.times(event))).collect();
            for level in [0, 4, 10, 54] {
                let (buckets, count) = decoded(&timeline, row as u32, level, tile >> level);
                let first = (tile >> level) * BUCKETS;
                let begun = events.iter().filter(|(_, (start, _))| (first..first + BUCKETS).contains(&(start >> level)));
                prop_assert_eq!(count, begun.count() as u64);
                for (bucket, found) in buckets.into_iter().enumerate() {
                    let from = (first + bucket as u64) << level;
                    let to = from + (1 << level);
                    let here = events.iter().filter(|(_, (start, end))| *start < to && (*end > from || *start >= from));
                    let longest = here.rev().max_by_key(|(_, (start, end))| end - start).map(|(event, _)| *event);
                    prop_assert_eq!(found.map(|(event, _)| event), longest, "level {} bucket {}", level, bucket);
                }
            }
        }
    }

    #[test]
    fn the_bar_of_a_track_is_its_events_together(made in made(150)) {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("t.rpd");
        write(&file, &made);
        let timeline = opened(&file);
        for track in timeline.groups.iter().flat_map(|group| &group.tracks) {
            let mut is_busy = vec![false; 80_000];
            for row in &track.rows {
                let Shown::Subtrack(subtrack) = timeline.rows[*row as usize].shown else { panic!() };
                for event in timeline.columns.subtracks()[subtrack].events.clone() {
                    let (start, end) = timeline.columns.times(event);
                    is_busy[start as usize..end as usize].fill(true);
                }
            }
            for run in timeline.runs(track.busy, 10, 0..80) {
                let times = (run.first << 10) as usize..(run.end() << 10) as usize;
                let busy = is_busy[times.start.min(80_000)..times.end.min(80_000)].iter().filter(|busy| **busy).count();
                prop_assert_eq!(run.busy, busy as u64);
            }
        }
    }

    #[test]
    fn statistics_and_hits_are_what_a_count_gives(made in made(200), from in 0u64..30_000, length in 1u64..20_000) {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("t.rpd");
        write(&file, &made);
        let timeline = opened(&file);
        let to = from + length;
        let rows: Vec<u32> = (0..timeline.rows.len() as u32).filter(|row| row % 2 == 0).collect();
        let selection = Selection { rows: Some(&rows), from, to, ..Selection::default() };
        let found = statistics(&timeline, &selection, By::Total, false);
        let mut durations = Vec::new();
        let mut is_busy = vec![false; length as usize];
        let mut names: BTreeMap<u32, u64> = BTreeMap::new();
        for row in &rows {
            let Shown::Subtrack(subtrack) = timeline.rows[*row as usize].shown else { continue };
            for event in timeline.columns.subtracks()[subtrack].events.clone() {
                let (start, end) = timeline.columns.times(event);
                if start < to && (end > from || start >= from) {
                    durations.push(end - start);
                    *names.entry(timeline.columns.name(event)).or_default() += end - start;
                    let part = start.max(from) - from..end.min(to).max(from) - from;
                    is_busy[part.start as usize..(part.end as usize).max(part.start as usize)].fill(true);
                }
            }
        }
        durations.sort_unstable();
        prop_assert_eq!(found.durations.count, durations.len() as u64);
        prop_assert_eq!(found.durations.total_ns, durations.iter().sum::<u64>());
        prop_assert_eq!(found.busy_ns, is_busy.iter().filter(|busy| **busy).count() as u64);
        if let Some(longest) = durations.last() {
            prop_assert_eq!(found.durations.max_ns, *longest);
            let rank = |percent: f64| durations[((durations.len() as f64 * percent).ceil() as usize).max(1) - 1];
            prop_assert_eq!((found.durations.p50_ns, found.durations.p99_ns), (rank(0.5), rank(0.99)));
        }
        let by_name: BTreeMap<u32, u64> = found.names.iter().map(|of| (of.name, of.durations.total_ns)).collect();
        prop_assert_eq!(by_name, names);

        let named = |event: &&Event, text: &str| ["gemm<float>", "copy", "step 7", "gemm<float>"][(event.4 - 10) as usize].contains(text);
        let all = made.calls.iter().chain(&made.ops);
        prop_assert_eq!(search(&timeline, "GEMM").unwrap().count, all.clone().filter(|event| named(event, "gemm")).count() as u64);
        prop_assert_eq!(search(&timeline, "re:^step [0-9]$").unwrap().count, all.clone().filter(|event| event.4 == 12).count() as u64);
        prop_assert_eq!(search(&timeline, "dur>300ns gpu:1").unwrap().count,
            made.ops.iter().filter(|event| event.0 == 1 && event.3 > 300).count() as u64);
        let long = search(&timeline, "dur>300ns").unwrap();
        let is_long = |event: &u32| timeline.columns.duration(*event) > 300;
        let all_events = 0..timeline.columns.len() as u32;
        let names: BTreeSet<u32> = all_events.clone().filter(is_long).map(|event| timeline.columns.name(event)).collect();
        prop_assert_eq!(long.names.iter().copied().collect::<BTreeSet<_>>(), names.clone());
        // Each event that is found has its bit, where others have such a name.
        let is_named = |event: &u32| names.contains(&timeline.columns.name(*event));
        prop_assert_eq!(long.bits.is_some(), all_events.clone().filter(is_named).count() as u64 > long.count);
        if let Some(bits) = &long.bits {
            let bits = BASE64.decode(bits).unwrap();
            for event in all_events {
                prop_assert_eq!(bits[event as usize / 8] >> (event % 8) & 1 == 1, is_long(&event));
            }
        }
        let hits = search(&timeline, "o").unwrap();
        prop_assert_eq!(hits.parts.iter().map(|part| u64::from(*part)).sum::<u64>(), hits.count);
        prop_assert!(hits.hits.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
        prop_assert_eq!(search(&timeline, "no such name").unwrap().count, 0);
    }
}

#[test]
fn extremes_are_left_out_and_counted() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("t.rpd");
    let trace = write(&file, &Made { calls: vec![(1, 1, 5, 10, 10)], ops: vec![], links: vec![(7, 7)] });
    for (start, end, pid) in [
        ("9223372036854775807", "9223372036854775807", "1"),
        ("-9223372036854775808", "5", "1"),
        ("1000000020", "1000000010", "1"),
        ("'x'", "7", "1"),
        ("NULL", "NULL", "1"),
        ("1000000020", "1000000030", "'p'"),
        ("1000000020", "1000000030", "9223372036854775807"),
    ] {
        let mut insert = format!(
            "INSERT INTO rocpd_api (pid, tid, start, \"end\", apiName_id, args_id) VALUES ({pid}, 1, {start}, {end}, 99, 99)"
        );
        if start == "NULL" {
            insert = insert.replace("NULL", "''");
        }
        trace.execute_batch(&insert).unwrap();
    }
    let timeline = opened(&file);
    assert_eq!((timeline.sources[0].facts.impossible, timeline.sources[0].facts.calls), (6, 2));
    assert!(timeline.links.is_empty());
    let keys: Vec<_> = timeline.groups.iter().map(|group| &*group.key).collect();
    assert_eq!(keys, ["p2.0", "p9223372036854775807.0"]);
}

#[test]
fn what_is_days_away_from_all_else_does_not_stretch_the_axis() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("t.rpd");
    let near: Vec<Event> = (0..300).map(|at| (at % 2, 1, at as u64 * 100, 50, 10)).collect();
    let week = 7 * 86_400_000_000_000;
    // Each is short; only where it is stands out. One begins among the others and ends far from them.
    let (mut calls, mut ops) = (near.clone(), near);
    calls.push((0, 1, week, 10, 11));
    ops.push((0, 1, 2 * week, 10, 11));
    ops.push((1, 2, 40, week, 11));
    let trace = write(&file, &Made { calls, ops, links: vec![(300, 300), (1, 1)] });
    let timeline = opened(&file);
    let (days, end): (i64, i64) = trace
        .query_row(
            "SELECT max(\"end\") / 86400000000000, max(\"end\") FILTER (WHERE \"end\" < 86400000000000) FROM rocpd_op",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!((days, timeline.sources[0].facts.span_ns), (14, end as u64 - BEGIN));
    assert_eq!((timeline.sources[0].facts.outliers, timeline.sources[0].facts.impossible), (3, 0));
    assert_eq!(
        (timeline.sources[0].facts.calls, timeline.sources[0].facts.ops, timeline.links.len()),
        (300, 300, 1)
    );
}

#[test]
fn sensors_with_odd_rows_are_read_as_far_as_they_say_something() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("t.rpd");
    let trace = write(&file, &Made { calls: vec![(1, 1, 5, 10, 10)], ops: vec![], links: vec![] });
    for (device, id, sensor, start, end, value) in [
        ("'gpu'", "3", "'sclk'", "1000000000", "1000000100", "'1700'"),
        ("'gpu'", "3", "'sclk'", "1000000100", "1000000200", "'9007199254740993'"),
        ("'gpu'", "3", "'sclk'", "1000000200", "1000000300", "'n/a'"),
        ("'gpu'", "3", "'sclk'", "1000000300", "1000000200", "'1'"),
        ("'gpu'", "3", "'sclk'", "9223372036854775807", "9223372036854775807", "'1'"),
        ("'gpu'", "3", "'sclk'", "864001000000000", "864001000000010", "'1'"),
        ("'gpu'", "'x'", "'sclk'", "1000000000", "1000000100", "'1'"),
        ("'cpu'", "-1", "X'ff3c'", "1000000000", "1000000000", "7"),
        ("''", "0", "printf('%5000s', 'x')", "1000000000", "1000000100", "1.5"),
    ] {
        let insert = format!(
            "INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES ({device}, {id}, {sensor}, {start}, {end}, {value})"
        );
        trace.execute_batch(&insert).unwrap();
    }
    let timeline = opened(&file);
    let facts = &timeline.sources[0].facts;
    assert_eq!((facts.impossible, facts.outliers, facts.no_numbers), (3, 1, 1));
    // Sensors are read before the first call; the axis begins there.
    assert_eq!((&*facts.first_ns, facts.span_ns), ("1000000000", 200));
    let found: Vec<_> = timeline
        .groups
        .iter()
        .flat_map(|group| {
            group.counters.iter().map(|counter| (&*group.key, counter.label.len() < 130, counter.greatest))
        })
        .collect();
    assert_eq!(found, [("g3", true, 9007199254740992.0), ("dcpu.-1", true, 7.0), ("d.0", true, 1.5)]);
    let sclk = timeline.groups.iter().find(|group| group.key == "g3").unwrap().counters[0].row;
    let steps = &timeline.counter(sclk).unwrap().steps;
    assert_eq!(steps.at(150).map(|place| steps.digits(place)).as_deref(), Some("9007199254740993"));
    assert!(serde_json::to_string(&timeline.groups).is_ok());
}

#[test]
fn an_empty_trace_is_an_empty_timeline() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("t.rpd");
    rpd_schema::create(&file).unwrap();
    let timeline = opened(&file);
    assert!(timeline.groups.is_empty() && timeline.columns.is_empty() && timeline.rows.is_empty());
    let selection = Selection { rows: Some(&[0, 1]), from: 0, to: 100, ..Selection::default() };
    assert_eq!(
        statistics(&timeline, &selection, By::Total, false),
        rpd_view::statistics::Statistics::default()
    );
    assert_eq!(next(&timeline, &selection, 0, whence(None, true)), None);
    assert_eq!(timeline.first_of(0), None);
}

#[test]
fn rows_in_thousands_of_gaps_are_found_without_another_commit() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("t.rpd");
    let writer = write(&file, &Made { calls: Vec::new(), ops: Vec::new(), links: Vec::new() });
    let rows = |from: i64| {
        let rows = format!(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
             INSERT INTO rocpd_op SELECT 2 * i + {from}, 0, 0, 0, '', 1000000000 + i, 1000000001 + i, 10, 3 FROM n;"
        );
        writer.execute_batch(&rows).unwrap();
    };
    rows(1);
    let (trace, version) = rpd_schema::open_read(&file).unwrap();
    let progress = Progress::default();
    let mut gatherer = Gatherer::of(&file, (&trace, version), &progress).unwrap();
    assert_eq!(gatherer.grow(100, &mut || ()).unwrap(), 5000);
    assert!(gatherer.has_looked_everywhere());
    rows(2);
    let found: Vec<u64> = (0..3).map(|_| gatherer.grow(100, &mut || ()).unwrap()).collect();
    assert!(gatherer.has_looked_everywhere());
    assert_eq!(found.iter().sum::<u64>(), 5000, "{found:?}");
    assert!(found.iter().all(|&rows| (1..=2049).contains(&rows)), "{found:?}");
}

#[test]
fn a_table_whose_rows_are_not_found_by_id_is_read_and_not_followed() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("t.rpd");
    let writer = write(&file, &Made { calls: Vec::new(), ops: Vec::new(), links: Vec::new() });
    writer
        .execute_batch(
            "DROP TABLE rocpd_op;
             CREATE TABLE rocpd_op (id INTEGER, gpuId INTEGER, queueId INTEGER, start INTEGER, \"end\" INTEGER, description_id INTEGER, opType_id INTEGER);
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO rocpd_op SELECT i << 31, 0, 0, 1000000000 + i, 1000000001 + i, 10, 3 FROM n;",
        )
        .unwrap();
    assert_eq!(opened(&file).sources[0].facts.ops, 2001);
    let (trace, version) = rpd_schema::open_read(&file).unwrap();
    let progress = Progress::default();
    let mut gatherer = Gatherer::of(&file, (&trace, version), &progress).unwrap();
    let error = gatherer.grow(100, &mut || ()).unwrap_err();
    assert!(error.to_string().starts_with("rocpd_op has no ids by which new rows are found"), "{error}");
}

#[test]
fn a_part_that_is_shown_first_is_of_all_times_and_then_all_is_there() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("t.rpd");
    let writer = write(&file, &Made { calls: Vec::new(), ops: Vec::new(), links: Vec::new() });
    // Two sessions of calls, and operations whose ids are those of their calls.
    for (session, count) in [(0i64, 150_000), (3, 60_000)] {
        writer
            .execute_batch(&format!(
                "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
                 INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id)
                 SELECT ({session} << 32) + i, 1, 1, 1000000000 + i * 1000, 1000000500 + i * 1000, 11, 1 FROM n;
                 INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 SELECT id, 0, {session}, 0, '', start + 100, \"end\", 10, 3 FROM rocpd_api WHERE id >> 32 = {session}; COMMIT;"
            ))
            .unwrap();
    }
    let (trace, version) = rpd_schema::open_read(&file).unwrap();
    let mut rough = Vec::new();
    let all =
        gather(&file, (&trace, version), &Progress::default(), &mut |gathered| rough.push(shown(gathered)))
            .unwrap();
    let [rough] = &rough[..] else { panic!("a part is shown once: {}", rough.len()) };
    let all = shown(&all);
    assert_eq!((all.sources[0].facts.calls, all.sources[0].facts.ops), (210_000, 210_000));
    assert_eq!(rough.span_ns, all.span_ns);
    let share = rough.columns.len() as f64 / all.columns.len() as f64;
    assert!(share > 0.1 && share < 0.8, "{share}");
    // Each tenth of the time has some of it.
    let queue = rough.groups.iter().find(|group| group.is_gpu).unwrap().tracks[0].rows[0];
    let Shown::Subtrack(subtrack) = rough.rows[queue as usize].shown else { panic!("a row without events") };
    for tenth in 0..10 {
        let (from, to) = (rough.span_ns * tenth / 10, rough.span_ns * (tenth + 1) / 10);
        assert!(!rough.columns.within(&rough.columns.subtracks()[subtrack], from, to).is_empty(), "{tenth}");
    }
}
