//! `rpd import`: what other tools recorded, as a trace.

use std::fs;

use serde_json::json;

use crate::harness::{Dir, ran};

/// What tinygrad wrote (fixtures/tinygrad/README.md).
const PROFILE: &[u8] = include_bytes!("../../../fixtures/tinygrad/null.pkl");

/// Pickles what the expression EVENTS makes of tinygrad's classes, which are made up in modules of the same names.
const MADE_UP: &str = r#"
import dataclasses, decimal, pickle, sys, types

def made_up(module, name, *fields):
    made = dataclasses.make_dataclass(name, fields, namespace={"__module__": module})
    setattr(sys.modules.setdefault(module, types.ModuleType(module)), name, made)
    return made

sys.modules["tinygrad"] = types.ModuleType("tinygrad")
us = decimal.Decimal
Range = made_up("tinygrad.helpers", "ProfileRangeEvent", "device", "name", "st", "en")
Point = made_up("tinygrad.helpers", "ProfilePointEvent", "device", "name", "key", "arg", "ts")
Key = made_up("tinygrad.helpers", "TracingKey", "display_name", "keys", "ret")
Device = made_up("tinygrad.device", "ProfileDeviceEvent", "device", "tdiff", "props")
Program = made_up("tinygrad.device", "ProfileProgramEvent", "device", "name", "lib", "base")
Graph = made_up("tinygrad.device", "ProfileGraphEvent", "ents", "deps", "sigs")
Entry = made_up("tinygrad.device", "ProfileGraphEntry", "device", "name", "st_id", "en_id")
Strange = made_up("tinygrad.device", "ProfileStrangeEvent", "device")
DType = made_up("tinygrad.dtype", "DType", "priority", "bitsize", "name", "fmt")
DType.__reduce__ = lambda self: (DType, dataclasses.astuple(self))

OldRange = made_up("tinygrad.old", "ProfileRangeEvent", "device", "name", "st", "en", "is_copy")
OldDevice = made_up("tinygrad.old", "ProfileDeviceEvent", "device", "comp_tdiff", "copy_tdiff")

def launched(device, name, at):
    return Point(device, "exec", at, {"var_vals": {}, "bufs": [], "name": name}, us(at))

with open("profile.pkl", "wb") as file:
    pickle.dump(EVENTS, file)
"#;

/// A directory with the profile of these events.
fn profile_of(events: &str) -> Dir {
    let dir = Dir::new();
    ran(dir.command("python3").args(["-c", &MADE_UP.replace("EVENTS", events)])).expect(0);
    dir
}

fn texts(dir: &Dir, query: &str) -> Vec<String> {
    let trace = dir.open("trace.rpd");
    let mut asked = trace.prepare(query).unwrap();
    asked.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn checked(dir: &Dir, words: &str) {
    let checked = dir.run(&["check", "trace.rpd"]);
    assert!(checked.expect(0).stdout.contains(words), "{checked}");
}

#[test]
fn a_profile_that_tinygrad_wrote() {
    let dir = Dir::new();
    dir.write("profile.pkl", PROFILE);
    let imported = dir.run(&["import", "tinygrad", "profile.pkl"]);
    imported.expect(0).says(&["trace.rpd: 110 operations, 33 launches, 261 markers"]);
    assert!(!imported.stderr.contains("left out") && !imported.stderr.contains("no times"), "{imported}");
    checked(&dir, "0 errors, 0 warnings, 0 notes");
    let count =
        |query: &str| texts(&dir, &format!("SELECT CAST(({query}) AS text)"))[0].parse::<u64>().unwrap();
    assert_eq!(
        count("SELECT count(*) FROM op WHERE opType = 'KernelExecution' AND gpuId = 0 AND queueId = 0"),
        110
    );
    assert_eq!(count("SELECT count(DISTINCT op_id) FROM rocpd_api_ops"), 110, "each has its launch");
    assert_eq!(count("SELECT count(*) FROM api WHERE apiName = 'alloc'"), 31);
    assert_eq!(count("SELECT count(*) FROM api WHERE apiName = 'free'"), 16);
    // Kernels on their own have the launch with their name before them; those of a graph have its launch.
    let odd = "SELECT count(*) FROM rocpd_api_ops JOIN api ON api.id = api_id JOIN op ON op.id = op_id
               WHERE api.start > op.start OR args NOT IN ('device=NULL | name=' || description, 'device=NULL | name=batched 19')";
    assert_eq!(count(odd), 0);
    let of_graphs = "SELECT CAST(count(*) AS text) FROM rocpd_api_ops JOIN api ON api.id = api_id
         WHERE args LIKE '%batched 19' GROUP BY api_id";
    assert_eq!(texts(&dir, of_graphs), ["19"; 5]);
    let first = texts(&dir, "SELECT description FROM op ORDER BY start LIMIT 5");
    assert_eq!(first, ["r_64_8_4_16", "r_64_4_32", "r_64_4", "r_64_4", "E_64_4"]);
    let alloc = texts(
        &dir,
        "SELECT args FROM api WHERE apiName = 'alloc' AND args LIKE 'device=NULL%' ORDER BY start LIMIT 1",
    );
    assert_eq!(alloc, ["device=NULL | buffer=9 | size=2048"]);
    assert_eq!(texts(&dir, "SELECT value FROM rocpd_metadata WHERE tag = 'gpu::0::name'"), ["NULL"]);
}

#[test]
fn devices_have_their_clocks_numbers_and_queues() {
    let dir = profile_of(
        r#"[
        Range("USER", Key("step", (), None), us(100), us(900)),
        Range("TINY", "\x1b[34mcompile\x1b[0m", us(110), us("120.5")),
        Range("TINY", "open end", us(130), None),
        Point("TINY", "marker", None, {"name": "here", "color": "gray"}, us(140)),
        launched("AMD:1", "\x1b[33mcopy    4.00 KB, AMD:1 <- CPU \x1b[0m", 150),
        launched("AMD", "add", 200), launched("AMD", "add", 201), launched("AMD:1", "add", 202),
        launched("AMD:1", "copy 4.00 KB, AMD:1 <- AMD", 203),
        launched("HIP", "add", 204), launched("HIP", "mul", 205),
        launched("AMD", "batched 2", 500),
        Device("CPU", us(0), None), Device("AMD", us(1000), None), Device("AMD:1", us(-1000), None),
        Program("AMD", "add", b"\x7fELF", 4096),
        Range("AMD", "add", us(-690), us("-680.123")), Range("AMD", "add", us(-600), us(-590)),
        Range("AMD:1", "add", us(1400), us(1450)), Range("AMD", "late", us(0), us(-1)),
        Range("AMD:1:SDMA:0", Key("TINY -> AMD:1", (), 4096), us(160), us(161)),
        Range("AMD:SDMA:0", Key("AMD -> AMD:1", (), 4096), us(410), us(420)),
        Range("CPU:COPY", "CPU -> TINY", us(430), us(431)),
        Graph([Entry("AMD", Key("mul", (), None), 0, 1), Entry("AMD:1", "mul", 2, 3)], [[]], [us(-400), us(-390), us(1600), us(1610)]),
        Point("AMD", "alloc", 7, {"dtype": DType(1, 16, "half", "e"), "sz": 100}, us(210)), Point("AMD", "free", 7, {}, us(800)),
        Strange("AMD"), 5,
        ]"#,
    );
    let imported = dir.run(&["import", "tinygrad", "profile.pkl", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&imported.expect(0).stdout).unwrap();
    let expected = json!({
        "operations": 8, "launches": 8, "markers": 4, "untimed": { "HIP": 2 }, "unlinked": 0,
        "impossible": 1, "unknown": 2
    });
    assert_eq!(said, expected);
    for words in [
        "no times of 2 launches on HIP: they are calls without an operation; rpd record -- COMMAND has them",
        "1 range left out: a range that ends before it starts is left out with its graph",
        "2 events left out: tinygrad writes no such events",
    ] {
        assert!(imported.stderr.contains(words), "{imported}");
    }
    let ops = texts(
        &dir,
        "SELECT gpuId || '/' || queueId || '/' || sequenceId || ' ' || start || '-' || \"end\" || ' ' || opType || ' ' || description
         FROM op ORDER BY gpuId, queueId, sequenceId",
    );
    assert_eq!(
        ops,
        [
            "0/0/0 310000-319877 KernelExecution add",
            "0/0/1 400000-410000 KernelExecution add",
            "0/0/2 600000-610000 KernelExecution mul",
            "0/1/0 410000-420000 CopyDeviceToDevice ",
            "1/0/0 400000-450000 KernelExecution add",
            "1/0/1 600000-610000 KernelExecution mul",
            "1/1/0 160000-161000 CopyHostToDevice ",
            "2/0/0 430000-431000 CopyHostToHost ",
        ]
    );
    let names =
        texts(&dir, "SELECT tag || ' ' || value FROM rocpd_metadata WHERE tag LIKE 'gpu::%' ORDER BY tag");
    assert_eq!(names, ["gpu::0::name AMD", "gpu::1::name AMD:1", "gpu::2::name CPU"]);
    let causes = texts(
        &dir,
        "SELECT (api.start / 1000) || ' ' || op.gpuId || '/' || op.queueId || '/' || op.sequenceId FROM rocpd_api_ops
         JOIN api ON api.id = api_id JOIN op ON op.id = op_id ORDER BY api.start, op.gpuId",
    );
    assert_eq!(
        causes,
        [
            "150 1/1/0",
            "150 2/0/0",
            "200 0/0/0",
            "201 0/0/1",
            "202 1/0/0",
            "203 0/1/0",
            "500 0/0/2",
            "500 1/0/1"
        ]
    );
    let calls = texts(
        &dir,
        "SELECT start || '-' || \"end\" || ' ' || apiName || ' ' || args FROM api WHERE apiName <> 'exec' ORDER BY start",
    );
    assert_eq!(
        calls,
        [
            "100000-900000 UserMarker step",
            "110000-120500 UserMarker compile",
            "130000-130000 UserMarker open end",
            "140000-140000 UserMarker here",
            "210000-210000 alloc device=AMD | buffer=7 | size=200",
            "800000-800000 free device=AMD | buffer=7",
        ]
    );
    checked(&dir, "0 errors, 0 warnings");
}

#[test]
fn nothing_in_a_profile_is_run() {
    // What pickle.load would do: write a file, and import a module of the current directory.
    for evil in [
        &b"cos\nsystem\n(S'touch ran'\ntR."[..],
        b"(lp0\ncos\nsystem\n(S'touch ran'\ntRacevil\nrun\n(tRa.",
        b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93\x8c\x12open('ran','w')    \x85R.",
    ] {
        let dir = Dir::new();
        dir.write("evil.py", "open('ran', 'w')\ndef run(): pass\n");
        // Nor is what lies in the current directory taken for a part of Python.
        dir.write("json.py", "open('ran', 'w')\n");
        dir.write("profile.pkl", evil);
        dir.run(&["import", "tinygrad", "profile.pkl"]).expect(1).says(&["cannot import profile.pkl"]);
        assert_eq!(dir.names(), ["evil.py", "json.py", "profile.pkl"]);
    }
}

#[test]
fn what_is_no_profile_is_refused_and_makes_no_trace() {
    let dir = Dir::new();
    let refused = |content: &[u8], words: &[&str]| {
        dir.write("profile.pkl", content);
        let said = dir.run(&["import", "tinygrad", "profile.pkl"]);
        said.expect(1).says(words);
        assert!(said.stderr.lines().count() == 1, "{said}");
        assert_eq!(dir.names(), ["profile.pkl"]);
    };
    refused(b"", &["no pickle, or a damaged one"]);
    refused(b"SQLite format 3\0", &["no pickle, or a damaged one"]);
    refused(b"\x80\x04]\x94.", &["no events of tinygrad"]);
    refused(b"\x80\x04K\x05.", &["no events of tinygrad"]);
    for length in (1..PROFILE.len()).step_by(PROFILE.len() / 23) {
        refused(&PROFILE[..length], &["no pickle, or a damaged one"]);
    }
    fs::remove_file(dir.path("profile.pkl")).unwrap();
    dir.run(&["import", "tinygrad", "none.pkl"]).expect(1).says(&["none.pkl", "No such file"]);
    dir.run(&["import", "tinygrad", "."]).expect(1).says(&["directory"]);
    // Whoever has a trace there keeps it.
    dir.write("profile.pkl", PROFILE);
    dir.write("trace.rpd", "mine");
    dir.run(&["import", "tinygrad", "profile.pkl"]).expect(1).says(&["trace.rpd", "exists already"]);
    assert_eq!(fs::read(dir.path("trace.rpd")).unwrap(), b"mine");
    let without =
        ran(dir.rpd(&["import", "tinygrad", "profile.pkl", "-o", "other.rpd"]).env("PATH", "/nowhere"));
    without.expect(1).says(&["python3 cannot be run"]);
    assert_eq!(dir.names(), ["profile.pkl", "trace.rpd"]);
}

#[test]
fn odd_values_of_events_are_left_out_or_kept() {
    for event in [
        "Range(5, 'add', us(1), us(2))",
        "Range('AMD', 'add', 'soon', us(2))",
        "Range('AMD', 'add', us('NaN'), us(2))",
        "Range('AMD', 'add', us(10) ** 999990, us(10) ** 999991)",
        "Range('AMD', 'add', None, us(2))",
        "Graph([Entry('AMD', 'mul', 0, 9)], [], [us(1)])",
        "Point('AMD', 'alloc', [1], {}, us(1))",
        "Point(None, 'exec', 1, {}, us(1))",
        "Point('AMD', 'dance', 1, {}, us(1))",
    ] {
        let dir = profile_of(&format!("[{event}, Point('AMD', 'free', 7, {{}}, us(800))]"));
        let imported = dir.run(&["import", "tinygrad", "profile.pkl"]);
        assert!(
            imported.expect(0).stderr.contains("1 event left out: tinygrad writes no such"),
            "{event}: {imported}"
        );
        assert_eq!(texts(&dir, "SELECT apiName FROM api"), ["free"], "{event}");
    }
    let dir = profile_of(
        r#"[Range("", "\x1b]0;x\x07<b>\u202e\ud800", us(1), us(2)), Range("A::1", None, us(1), us(2)), Range("AMD", "-> x", us(3), us(4)),
            launched("AMD", None, 1), Point("AMD", "alloc", 1, {"sz": -5}, us(1))]"#,
    );
    let imported = dir.run(&["import", "tinygrad", "profile.pkl"]);
    assert!(imported.expect(0).stderr.contains("3 operations, 1 launch"), "{imported}");
    let top = dir.run(&["top", "trace.rpd"]);
    assert!(!top.expect(0).stdout.contains(['\x1b', '\x07', '\u{202e}']), "{top}");
    checked(&dir, "0 errors");
}

/// Of which launch an operation is, is said where the numbers of both agree, whatever their clocks say.
#[test]
fn operations_have_the_right_launch_or_none() {
    let links = |events: &str| -> (Vec<String>, String) {
        let dir = profile_of(events);
        let imported = dir.run(&["import", "tinygrad", "profile.pkl"]);
        imported.expect(0);
        let links = texts(
            &dir,
            "SELECT (op.start / 1000) || ' ' || (api.start / 1000) FROM rocpd_api_ops JOIN api ON api.id = api_id
             JOIN op ON op.id = op_id ORDER BY op.start, api.start",
        );
        (links, imported.stderr.clone())
    };
    // A clock that is ahead.
    let skewed = "[launched('AMD', 'add', at) for at in (10, 20, 30)] + [Range('AMD', 'add', us(at), us(at + 1)) for at in (9, 21, 31)]";
    assert_eq!(links(skewed).0, ["9 10", "21 20", "31 30"]);
    // One was lost: nobody knows which.
    let lost = "[launched('AMD', 'add', at) for at in (10, 20, 30)] + [Range('AMD', 'add', us(at), us(at + 1)) for at in (21, 31)]";
    let (found, said) = links(lost);
    assert!(
        found.is_empty()
            && said.contains("2 operations have no launch: the profile has more or fewer launches"),
        "{said}"
    );
    // Graphs of two sizes, by turns, of which the last run has no times.
    let graph = "Graph([Entry('AMD', str(n), 0, 1) for n in range(count)], [], [us(at), us(at + 1)])";
    let graphs = format!(
        "[launched('AMD', f'batched {{count}}', at) for count, at in ((2, 10), (3, 20), (2, 30), (3, 40), (3, 50))]
         + [{graph} for count, at in ((2, 15), (2, 35), (3, 25), (3, 45))]"
    );
    assert_eq!(
        links(&graphs).0,
        ["15 10", "15 10", "25 20", "25 20", "25 20", "35 30", "35 30", "45 40", "45 40", "45 40"]
    );
    // Kernels of a graph that were launched one by one.
    let lone = format!(
        "[launched('AMD', '0', 10), launched('AMD', '1', 11)] + [{graph} for count, at in ((2, 15),)]"
    );
    assert_eq!(links(&lone).0, ["15 10", "15 11"]);
    // Copies have a direction, and names of devices are cut in launches.
    let copies = "[launched('AMD', 'copy 4 B, AMD <- CPU', 10), launched('CPU', 'copy 4 B, CPU <- AMD', 11),
         launched('WEBGPU:1', 'copy 4 B, WEBGPU: <- AMD', 12), Range('AMD:SDMA:0', 'TINY -> AMD', us(20), us(21)),
         Range('AMD:SDMA:0', 'AMD -> TINY', us(22), us(23)), Range('AMD:SDMA:0', 'AMD -> WEBGPU:1', us(24), us(25))]";
    assert_eq!(links(copies).0, ["20 10", "22 11", "24 12"]);
}

/// Up to tinygrad 0.12 a device has a clock for kernels and one for copies.
#[test]
fn profiles_of_older_versions_have_two_clocks_for_a_device() {
    let dir = profile_of(
        "[OldDevice('AMD', us(100), us(200)), OldDevice('NV', us(10), None), OldRange('AMD', 'add', us(1), us(2), False),
          OldRange('AMD', 'TINY -> AMD', us(1), us(2), True), OldRange('NV', 'TINY -> NV', us(1), us(2), True)]",
    );
    dir.run(&["import", "tinygrad", "profile.pkl"]).expect(0);
    let ops =
        texts(&dir, "SELECT gpuId || '/' || queueId || ' ' || start || ' ' || opType FROM op ORDER BY 1");
    assert_eq!(
        ops,
        ["0/0 101000 KernelExecution", "0/1 201000 CopyHostToDevice", "1/0 11000 CopyHostToDevice"]
    );
}

#[test]
fn the_oldest_pickles_are_read_too() {
    let dir = profile_of("[Range('AMD', 'add', us(1), us(2))]");
    let old = MADE_UP.replace("EVENTS, file)", "[Range('AMD', 'add', us(1), us(2))], file, protocol=0)");
    ran(dir.command("python3").args(["-c", &old])).expect(0);
    let imported = dir.run(&["import", "tinygrad", "profile.pkl"]);
    imported.expect(0);
    assert!(imported.stderr.contains("1 operation, 0 launches"), "{imported}");
}

/// What is not read to its end is no profile; Python is not begun where the trace has no place, and ends with rpd.
#[test]
fn python_and_the_place_of_the_trace() {
    let dir = Dir::new();
    dir.write("profile.pkl", PROFILE);
    for (python, why) in [
        ("exit 0", "it was not read to its end"),
        ("echo hello; sleep 1000", "event 1 is none of tinygrad's"),
        ("echo '{\"event\":\"other\"}'; kill -9 $$", "it was not read to its end"),
        ("echo no such luck >&2; exit 3", "no such luck"),
    ] {
        dir.script("bin/python3", &format!("#!/bin/sh\n{python}\n"));
        let path = format!("{}:/usr/bin:/bin", dir.path("bin").display());
        let said = ran(dir.rpd(&["import", "tinygrad", "profile.pkl"]).env("PATH", &path));
        said.expect(1).says(&[why]);
        assert_eq!(dir.names(), ["bin", "profile.pkl"], "{python}");
    }
    dir.script("bin/python3", "#!/bin/sh\ntouch began\n");
    let path = format!("{}:/usr/bin:/bin", dir.path("bin").display());
    for place in ["profile.pkl", "left.rpd"] {
        dir.write("left.rpd-journal", "of a trace that is gone");
        let said = ran(dir.rpd(&["import", "tinygrad", "profile.pkl", "-o", place]).env("PATH", &path));
        said.expect(1);
        assert!(!dir.path("began").exists(), "{said}");
    }
}
