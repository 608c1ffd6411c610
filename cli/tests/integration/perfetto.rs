//! `rpd export perfetto`: its bytes are decoded by the numbers of Perfetto's published definitions and played as its importer does.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::process::Stdio;

use serde_json::{Map, Value};

use crate::export::{
    AnyCall, Event, any_calls, expected, exported, links, name_of, with_launch_attributes, write,
};
use crate::generated::{generated, to_schema_3};
use crate::harness::{Dir, RPD, not_installed, ran};
use crate::property::holds;

/// A field of a message.
#[derive(Debug, Clone)]
enum Field {
    Number(u64),
    Fixed(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message by number, in their order.
#[derive(Debug, Clone, Default)]
struct Message(Vec<(u64, Field)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    unreachable!()
}

impl Message {
    fn of(mut bytes: &[u8]) -> Message {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => {
                    let (value, rest) = bytes.split_first_chunk().expect("8 bytes");
                    bytes = rest;
                    Field::Fixed(u64::from_le_bytes(*value))
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(value.to_vec())
                }
                kind => panic!("field {} has a kind that is not used: {kind}", tag >> 3),
            };
            fields.push((tag >> 3, field));
        }
        Message(fields)
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &Field> {
        self.0.iter().filter(move |(number, _)| *number == field).map(|(_, field)| field)
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.all(field).last().map(|field| match field {
            Field::Number(value) => *value,
            other => panic!("{other:?} is no number"),
        })
    }

    fn fixed(&self, field: u64) -> Vec<u64> {
        let value = |field: &Field| match field {
            Field::Fixed(value) => *value,
            other => panic!("{other:?} has no 64 bits"),
        };
        self.all(field).map(value).collect()
    }

    fn texts(&self, field: u64) -> Vec<String> {
        let value = |field: &Field| match field {
            Field::Bytes(bytes) => String::from_utf8(bytes.clone()).expect("texts are UTF-8"),
            other => panic!("{other:?} is no text"),
        };
        self.all(field).map(value).collect()
    }

    fn text(&self, field: u64) -> Option<String> {
        self.texts(field).pop()
    }

    fn messages(&self, field: u64) -> Vec<Message> {
        let value = |field: &Field| match field {
            Field::Bytes(bytes) => Message::of(bytes),
            other => panic!("{other:?} is no message"),
        };
        self.all(field).map(value).collect()
    }

    fn message(&self, field: u64) -> Option<Message> {
        self.messages(field).pop()
    }
}

/// What a track is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Track {
    name: String,
    parent: Option<u64>,
    /// Process and thread, of threads.
    thread: Option<(i64, i64)>,
    is_process: bool,
    is_counter: bool,
}

/// A slice, or an instant, whose end is its begin.
#[derive(Debug, Clone, PartialEq)]
struct Slice {
    track: u64,
    category: String,
    name: String,
    start: i64,
    end: i64,
    args: Map<String, Value>,
    leave: Vec<u64>,
    arrive: Vec<u64>,
}

/// What Perfetto has of a file.
#[derive(Debug, Default)]
struct Loaded {
    tracks: HashMap<u64, Track>,
    slices: Vec<Slice>,
    /// Track, time and value.
    values: Vec<(u64, i64, f64)>,
    clocks: Vec<(u64, u64)>,
}

/// Names of a sequence, by field of the interned data and number.
type Names = HashMap<(u64, u64), String>;

fn argument(names: &Names, annotation: &Message) -> Value {
    if let Some(iid) = annotation.number(17) {
        return names[&(29, iid)].clone().into();
    }
    if let Some(text) = annotation.text(6) {
        return text.into();
    }
    if let Some(value) = annotation.number(4) {
        return value.cast_signed().into();
    }
    annotation.messages(12).iter().map(|each| argument(names, each)).collect()
}

/// Reads as Perfetto does: names and tracks in the order of the file, events in that of time, those of one time in that of the file.
fn load(bytes: &[u8]) -> Loaded {
    let mut loaded = Loaded::default();
    let mut names: HashMap<u64, Names> = HashMap::new();
    /// Time, kind, and what it is; only the track and the time of an end.
    type Read = (i64, u64, Slice);
    let mut events: Vec<Read> = Vec::new();
    for packet in Message::of(bytes).messages(1) {
        let sequence = packet.number(10).expect("packets are of a sequence");
        assert!(sequence > 0);
        let flags = packet.number(13).unwrap_or(0);
        if flags & 1 != 0 {
            assert!(names.insert(sequence, Names::new()).is_none(), "one sequence begins once");
        }
        if let Some(new) = packet.message(12) {
            let known = names.get_mut(&sequence).unwrap();
            for field in [1, 2, 3, 29] {
                for entry in new.messages(field) {
                    let iid = entry.number(1).unwrap();
                    assert!(iid > 0);
                    assert!(
                        known.insert((field, iid), entry.text(2).unwrap()).is_none(),
                        "{entry:?} is there already"
                    );
                }
            }
        }
        if let Some(snapshot) = packet.message(6) {
            let clock = |clock: &Message| (clock.number(1).unwrap(), clock.number(2).unwrap());
            loaded.clocks = snapshot.messages(1).iter().map(clock).collect();
        }
        if let Some(track) = packet.message(60) {
            let uuid = track.number(1).unwrap();
            let (process, thread) = (track.message(3), track.message(4));
            let name = process.as_ref().and_then(|process| process.text(6));
            let name = name.or_else(|| thread.as_ref().and_then(|thread| thread.text(5)));
            let number = |message: &Message, field| message.number(field).unwrap().cast_signed();
            let described = Track {
                name: name.or_else(|| track.text(2)).unwrap_or_default(),
                parent: track.number(5),
                thread: thread.map(|thread| (number(&thread, 1), number(&thread, 2))),
                is_process: process.is_some(),
                is_counter: track.message(8).is_some(),
            };
            if let Some(parent) = described.parent {
                assert!(loaded.tracks.contains_key(&parent), "{described:?} stands before what it is in");
            }
            assert!(loaded.tracks.insert(uuid, described).is_none(), "{uuid} is described twice");
        }
        let Some(event) = packet.message(11) else { continue };
        let time = packet.number(8).unwrap().cast_signed();
        let track = event.number(11).unwrap();
        assert!(track != 0 && loaded.tracks.contains_key(&track), "{track} is described before its events");
        let kind = event.number(9).unwrap();
        if kind == 4 {
            assert!(loaded.tracks[&track].is_counter);
            let double = event.fixed(44).first().map(|bits| f64::from_bits(*bits));
            let value = double.unwrap_or_else(|| event.number(30).unwrap().cast_signed() as f64);
            loaded.values.push((track, time, value));
            continue;
        }
        let empty = Names::new();
        let known = if flags & 2 == 0 { &empty } else { &names[&sequence] };
        let name = event.number(10).map(|iid| known[&(2, iid)].clone()).or_else(|| event.text(23));
        let args = event.messages(4);
        let args = args.iter().map(|annotation| {
            (known[&(3, annotation.number(1).unwrap())].clone(), argument(known, annotation))
        });
        let slice = Slice {
            track,
            category: event.number(3).map_or(String::new(), |iid| known[&(1, iid)].clone()),
            name: name.unwrap_or_default(),
            start: time,
            end: time,
            args: args.collect(),
            leave: event.fixed(47),
            arrive: event.fixed(48),
        };
        events.push((time, kind, slice));
    }
    events.sort_by_key(|(time, ..)| *time);
    let mut open: HashMap<u64, Vec<Slice>> = HashMap::new();
    for (time, kind, slice) in events {
        let track = open.entry(slice.track).or_default();
        match kind {
            1 => track.push(slice),
            2 => {
                let mut ended = track.pop().expect("an end has a begin");
                ended.end = time;
                loaded.slices.push(ended);
            }
            3 => loaded.slices.push(slice),
            kind => panic!("events of kind {kind}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "everything ends");
    loaded
}

impl Loaded {
    fn of(dir: &Dir, trace: &str, options: &[&str]) -> Loaded {
        let output = dir.rpd(&[&["export", "perfetto", trace], options].concat()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        load(&output.stdout)
    }

    /// The name of the process or GPU that a track is in.
    fn owner(&self, track: u64) -> &str {
        let mut at = &self.tracks[&track];
        if let Some((pid, _)) = at.thread {
            let process =
                self.tracks.iter().find(|(uuid, track)| track.is_process && (**uuid >> 32) as i64 == pid);
            return &process.unwrap().1.name;
        }
        while let Some(parent) = at.parent {
            if self.tracks[&parent].thread.is_some() {
                return self.owner(parent);
            }
            at = &self.tracks[&parent];
        }
        &at.name
    }

    /// The process and thread that a track is of.
    fn thread(&self, track: u64) -> Option<(i64, i64)> {
        let at = &self.tracks[&track];
        at.thread.or_else(|| self.tracks[&at.parent?].thread)
    }
}

/// A slice as both formats have it: whose it is, its track, category, name, times and arguments.
type Shown = (String, String, String, String, i64, i64, String);

/// The name of a track without what tells tracks of one thread or queue apart.
fn base(name: &str) -> String {
    name.rsplit_once(" (").map_or(name, |(base, _)| base).to_string()
}

fn shown_by_chrome(events: &[Event], zero: i64) -> Vec<Shown> {
    let mut names: HashMap<(i64, i64), String> = HashMap::new();
    let mut name = |pid, tid| names.entry((pid, tid)).or_insert_with(|| name_of(events, pid, tid)).clone();
    let slices = events.iter().filter(|event| matches!(&*event.ph, "X" | "i"));
    let mut shown: Vec<Shown> = slices
        .map(|event| {
            let end = if event.ph == "i" { event.start() } else { event.end() };
            let mut args = event.args.as_object().cloned().unwrap_or_default();
            for exact in ["begin_ns", "end_ns", "delta_ns"] {
                args.remove(exact);
            }
            (
                name(event.pid, 0),
                base(&name(event.pid, event.tid)),
                event.cat.clone(),
                event.name.clone(),
                event.start() + zero,
                end + zero,
                Value::Object(args).to_string(),
            )
        })
        .collect();
    shown.sort();
    shown
}

fn shown_by_perfetto(loaded: &Loaded) -> Vec<Shown> {
    let shown = |slice: &Slice| {
        let Slice { track, category, name, start, end, args, .. } = slice.clone();
        let owner = loaded.owner(track).to_string();
        let args = Value::Object(args).to_string();
        (owner, base(&loaded.tracks[&track].name), category, name, start, end, args)
    };
    let mut shown: Vec<Shown> = loaded.slices.iter().map(shown).collect();
    shown.sort();
    shown
}

/// Everything that must hold for the export of a whole trace.
fn check(dir: &Dir, trace: &str) -> Loaded {
    let connection = dir.open(trace);
    let loaded = Loaded::of(dir, trace, &[]);
    let of_ops = |slice: &&Slice| slice.args.contains_key("agent");
    let mut calls: Vec<(i64, i64, String, i64, i64)> = Vec::new();
    let mut ops = Vec::new();
    for slice in &loaded.slices {
        if let Some((pid, tid)) = loaded.thread(slice.track) {
            calls.push((pid, tid, slice.name.clone(), slice.start, slice.end));
        } else if of_ops(&slice) {
            let gpu = slice.args["agent"].as_str().unwrap().strip_prefix("GPU ").unwrap().parse().unwrap();
            let queue = slice.args["queue"].as_i64().unwrap();
            ops.push((gpu, queue, slice.name.clone(), slice.start, slice.end));
        }
    }
    calls.sort();
    ops.sort();
    assert_eq!((calls, ops), expected(&connection));
    // Each arrow leaves the call of its link and reaches the operation, once.
    let (mut leave, mut arrive) = (BTreeMap::new(), BTreeMap::new());
    for slice in &loaded.slices {
        for link in &slice.leave {
            assert!(leave.insert(link.cast_signed(), slice).is_none());
        }
        for link in &slice.arrive {
            assert!(arrive.insert(link.cast_signed(), slice).is_none());
        }
    }
    let links = links(&connection);
    assert_eq!((leave.len(), arrive.len()), (links.len(), links.len()));
    let mut starts = connection.prepare("SELECT start FROM rocpd_op WHERE id = ?1").unwrap();
    for (link, call, op, _) in links {
        let from = leave[&link].args.get("corr_id").map(|id| id.as_i64().unwrap());
        assert!(from.is_none_or(|id| id == call), "arrow {link} leaves {from:?}, not {call}");
        let start: i64 = starts.query_row([op], |row| row.get(0)).unwrap();
        assert_eq!(arrive[&link].start, start);
        assert!(arrive[&link].args.contains_key("agent"));
    }
    // Frames, arguments, names of tracks and values are as in the other format, whose tests have them from SQL.
    let (events, zero) = exported(dir, trace, &[]);
    assert_eq!(shown_by_perfetto(&loaded), shown_by_chrome(&events, zero));
    let values = events.iter().filter(|event| event.ph == "C").map(|event| {
        let value = event.args.as_object().unwrap().values().next().unwrap().as_f64().unwrap();
        format!("{} {} {} {value}", name_of(&events, event.pid, 0), event.name, event.start() + zero)
    });
    let mut values: Vec<String> = values.collect();
    let mut found: Vec<String> = loaded
        .values
        .iter()
        .map(|(track, time, value)| {
            format!("{} {} {time} {value}", loaded.owner(*track), loaded.tracks[track].name)
        })
        .collect();
    values.sort();
    found.sort();
    assert_eq!(found, values);
    loaded
}

#[test]
fn everything_of_real_traces_is_there() {
    let dir = Dir::new();
    check(&dir, &dir.fixture("matmul_result.rpd"));
    for name in ["mytrace_raw.rpd", "mytrace_as_shipped.rpd"] {
        let loaded = check(&dir, &dir.unpacked(name));
        let of = |category: &str| loaded.slices.iter().filter(|slice| slice.category == category).count();
        assert_eq!((of("marker_frame"), of("graph"), of("marker_api")), (1784, 20, 11_884));
        // What overlaps in a queue is on two tracks of one name.
        let tracks: HashSet<u64> = loaded
            .slices
            .iter()
            .filter(|slice| slice.args.contains_key("agent"))
            .map(|slice| slice.track)
            .collect();
        assert_eq!(tracks.len(), 2);
        assert!(tracks.iter().all(|track| loaded.tracks[track].name == "queue 0"));
    }
}

/// Where `make setup` puts the Python package perfetto.
const PERFETTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/perfetto");

/// Reads a file with the published definitions, and writes its slices and values: track, name, begin, end; track, time, value. Fails where a field is
/// none of theirs.
const READ_BY_PERFETTO: &str = r#"
import json, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
def whole(message):
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
                whole(each)
trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
whole(trace)
names, events, tracks = {}, [], set()
for packet in trace.packet:
    sequence = packet.trusted_packet_sequence_id
    for name in packet.interned_data.event_names:
        names[sequence, name.iid] = name.name
    if packet.HasField("track_descriptor"):
        tracks.add(packet.track_descriptor.uuid)
    if packet.HasField("track_event"):
        events.append((packet.timestamp, len(events), sequence, packet.track_event))
events.sort(key=lambda event: event[:2])
slices, values, open_slices = [], [], {}
for time, _, sequence, event in events:
    assert event.track_uuid in tracks
    stack = open_slices.setdefault(event.track_uuid, [])
    name = names[sequence, event.name_iid] if event.name_iid else event.name
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        stack.append((name, time))
    elif event.type == TrackEvent.TYPE_SLICE_END:
        slices.append((event.track_uuid, *stack.pop(), time))
    elif event.type == TrackEvent.TYPE_INSTANT:
        slices.append((event.track_uuid, name, time, time))
    else:
        assert event.type == TrackEvent.TYPE_COUNTER
        double = event.HasField("double_counter_value")
        values.append((event.track_uuid, time, float(event.double_counter_value if double else event.counter_value)))
assert not any(open_slices.values())
print(json.dumps([sorted(slices), sorted(values)]))
"#;

#[test]
fn the_published_definitions_of_perfetto_read_the_same() {
    let dir = Dir::new();
    let python = |script: &str, arguments: &[&str]| {
        let mut command = dir.command("python3");
        command.env("PYTHONPATH", PERFETTO).env("PYTHONDONTWRITEBYTECODE", "1");
        ran(command.args(["-c", script]).args(arguments))
    };
    if !python("from perfetto.protos.perfetto.trace import perfetto_trace_pb2", &[]).status.success() {
        return not_installed("no Python package perfetto");
    }
    for trace in [
        dir.fixture("matmul_result.rpd"),
        dir.unpacked("mytrace_raw.rpd"),
        generated(&dir, "generated.rpd", 1, 300),
        with_launch_attributes(&dir),
    ] {
        dir.run(&["export", "perfetto", &trace, "--force", "-o", "t.pftrace"]).expect(0);
        let read = python(READ_BY_PERFETTO, &["t.pftrace"]);
        type Read = (Vec<(u64, String, i64, i64)>, Vec<(u64, i64, f64)>);
        let (slices, values): Read = serde_json::from_str(&read.expect(0).stdout).unwrap();
        let loaded = Loaded::of(&dir, &trace, &[]);
        let of = |slice: &Slice| (slice.track, slice.name.clone(), slice.start, slice.end);
        let mut expected: Vec<(u64, String, i64, i64)> = loaded.slices.iter().map(of).collect();
        expected.sort();
        assert!(slices == expected, "{trace}: {} slices, not {}", slices.len(), expected.len());
        let mut expected = loaded.values;
        expected.sort_by(|one, other| one.partial_cmp(other).unwrap());
        assert!(values == expected, "{trace}: {} values, not {}", values.len(), expected.len());
    }
}

#[test]
fn nodes_of_graphs_and_clusters_of_cuda_are_as_in_chrome() {
    let dir = Dir::new();
    let loaded = check(&dir, &with_launch_attributes(&dir));
    assert_eq!(loaded.slices.iter().filter(|slice| slice.args.contains_key("graph_node")).count(), 1);
}

#[test]
fn everything_of_generated_traces_is_there() {
    for (seed, schema) in [(1, 2), (2, 2), (3, 3)] {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", seed, 300);
        if schema == 3 {
            to_schema_3(&dir, &trace);
        }
        let loaded = check(&dir, &trace);
        // The session noted both clocks.
        let time = |clock| loaded.clocks.iter().find(|(id, _)| *id == clock).unwrap().1;
        assert_eq!((time(3), time(1) - time(6)), (time(6), 1_000_000_000));
    }
}

#[test]
fn whatever_the_calls_and_operations_perfetto_shows_them_as_they_were() {
    holds(any_calls(), |calls: Vec<AnyCall>| {
        let dir = Dir::new();
        check(&dir, &write(&dir, &calls));
    });
}

#[test]
fn names_of_any_bytes_are_texts() {
    let dir = Dir::new();
    let hostile = r#"'a"b\c' || char(10) || char(27) || '[2J' || char(0x202e) || '</script>=1+1' || char(0x7f, 0x9b, 8)"#;
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, {hostile}), (4, CAST(x'ff00fe41' AS TEXT)), (5, printf('%.5000c', 'x'));
             INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 3), (2, 7, 7, 110, 120, 3, 4), (3, 7, 7, 130, 130, 2, 5);
             INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 150, 160, 3, 4), (2, 0, 0, 0, '', 170, 180, 4, 3);
             INSERT INTO rocpd_api_ops VALUES (1, 2, 1), (2, 2, 2);
             INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES
                 ('gpu', 0, {hostile}, 100, 200, ' 12.5 '), ('gpu', 0, {hostile}, 200, 300, ''), ({hostile}, 0, 'x', 100, 200, '-7');
             INSERT INTO rocpd_kernelapi VALUES (2, {hostile}, 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 1);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::command', {hostile}), ('gpu::0::name', {hostile});"
        ),
    );
    let output = dir.rpd(&["export", "perfetto", &trace]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "rpd: t.rpd: 1 value of a sensor is left out: no numbers\n"
    );
    let loaded = load(&output.stdout);
    let text = "a\"b\\c\n\u{1b}[2J\u{202e}</script>=1+1\u{7f}\u{9b}\u{8}";
    let named = |name: &str| loaded.slices.iter().filter(|slice| slice.name == name).count();
    // A marker, a kernel, one that is named by its type, and the frame of the marker.
    assert_eq!((named(text), named("\u{fffd}\0\u{fffd}A"), named(&"x".repeat(5000))), (4, 1, 1));
    let op = loaded.slices.iter().find(|slice| slice.start == 150).unwrap();
    assert_eq!(op.args["stream"], text);
    assert!(loaded.tracks.values().any(|track| track.name == format!("GPU 0 {text}")));
    let mut values: Vec<f64> = loaded
        .values
        .iter()
        .filter(|(track, ..)| [text, "x"].contains(&&*loaded.tracks[track].name))
        .map(|value| value.2)
        .collect();
    values.sort_by(f64::total_cmp);
    assert_eq!(values, [-7.0, -7.0, 12.5, 12.5]);
}

#[test]
fn texts_of_names_and_of_arguments_are_not_taken_for_each_other() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 5, 30);
    to_schema_3(&dir, &trace);
    // Both tables have texts with the same ids.
    dir.open(&trace)
        .execute_batch(
            "INSERT OR REPLACE INTO rocpd_ustring SELECT id, 'argument ' || id FROM rocpd_string;
             UPDATE rocpd_api SET args_id = apiName_id;",
        )
        .unwrap();
    check(&dir, &trace);
}

#[test]
fn more_names_than_are_numbered_stand_in_their_events() {
    let dir = Dir::new();
    let names = 70_000;
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker');
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {names})
                 INSERT INTO rocpd_string SELECT n + 10, 'step ' || n FROM n;
             INSERT INTO rocpd_api SELECT id, 7, 7, 100 * id, 100 * id + 50, 2, id FROM rocpd_string WHERE id > 10;"
        ),
    );
    let loaded = Loaded::of(&dir, &trace, &[]);
    let distinct: HashSet<&str> = loaded.slices.iter().map(|slice| &*slice.name).collect();
    assert_eq!((loaded.slices.len(), distinct.len()), (names, names));
    assert!(loaded.slices.iter().all(|slice| slice.name == format!("step {}", slice.start / 100 - 10)));
}

#[test]
fn a_part_of_a_trace_and_an_empty_one() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let options = ["--start", "25%", "--end", "75%", "--kernel", "Cijk|paged"];
    let (events, zero) = exported(&dir, &trace, &options);
    let loaded = Loaded::of(&dir, &trace, &options);
    assert_eq!(shown_by_perfetto(&loaded), shown_by_chrome(&events, zero));
    dir.trace("empty.rpd", "");
    let output = dir.rpd(&["export", "perfetto", "empty.rpd"]).output().unwrap();
    assert!(output.status.success());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .starts_with("rpd: empty.rpd holds no calls and no operations")
    );
    assert!(load(&output.stdout).slices.is_empty());
}

#[test]
fn a_file_is_complete_and_a_terminal_gets_no_bytes() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let whole = dir.rpd(&["export", "perfetto", &trace]).output().unwrap().stdout;
    // Twice the same.
    assert!(dir.rpd(&["export", "perfetto", &trace]).output().unwrap().stdout == whole);
    dir.run(&["export", "perfetto", &trace, "-o", "t.pftrace"]).expect(0);
    assert!(fs::read(dir.path("t.pftrace")).unwrap() == whole);
    dir.run(&["export", "perfetto", &trace, "-o", "t.pftrace"])
        .expect(1)
        .says(&["exists already", "--force"]);
    dir.run(&["export", "perfetto", &trace, "-o", "t.pftrace.gz"]).expect(0);
    let unpacked = dir.command("gzip").args(["-dc", "t.pftrace.gz"]).output().unwrap();
    assert!(unpacked.stdout == whole);
    let answer = ran(dir
        .command("script")
        .args(["-qec", &format!("{RPD} export perfetto {trace}"), "/dev/null"])
        .stdin(Stdio::null()));
    assert_eq!(answer.stdout.trim_end(), "rpd: this format is not for a terminal: name a file with -o");
    answer.expect(1);
}
