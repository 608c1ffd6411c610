//! `rpd dataset extract`: a rank of a dataset is the trace that it was of, row by row.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use rusqlite::Connection;

use crate::dataset::{files, ranked};
use crate::generated::number;
use crate::harness::{Dir, finished};

/// What both traces must have, of the session with the number S: rows of a table, with texts in place of their ids. A dataset has the first
/// link of each operation, and launches of calls that an operation is linked to.
const SAME: [&str; 7] = [
    r#"SELECT o.id, gpuId, queueId, sequenceId, start, "end", d.string, t.string FROM T.rocpd_op o
       JOIN T.rocpd_string d ON d.id = description_id JOIN T.rocpd_string t ON t.id = opType_id WHERE o.id >> 32 = S"#,
    r#"SELECT a.id, pid, tid, start, "end", n.string, g.string FROM T.rocpd_api a
       JOIN T.rocpd_string n ON n.id = apiName_id JOIN T.rocpd_string g ON g.id = args_id WHERE a.id >> 32 = S"#,
    "SELECT op_id, api_id FROM T.rocpd_api_ops l WHERE op_id >> 32 = S
       AND NOT EXISTS (SELECT 1 FROM T.rocpd_api_ops f WHERE f.op_id = l.op_id AND f.id < l.id)",
    "SELECT api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize, privateSegmentSize, n.string
       FROM T.rocpd_kernelapi JOIN T.rocpd_string n ON n.id = kernelName_id
       WHERE api_ptr_id >> 32 = S AND api_ptr_id IN (SELECT api_id FROM T.rocpd_api_ops)",
    "SELECT * FROM T.rocpd_copyapi WHERE api_ptr_id >> 32 = S",
    r#"SELECT id, deviceType, deviceId, monitorType, start, "end", value FROM T.rocpd_monitor WHERE id >> 32 = S"#,
    "SELECT tag, value FROM T.rocpd_metadata WHERE tag GLOB 'session::S::*'",
];

/// Compares a session of the trace `original` with `extracted`; how many rows are equal.
fn same(dir: &Dir, original: &str, extracted: &str, session: i64) -> i64 {
    let connection = Connection::open_in_memory().unwrap();
    for (name, file) in [("one", original), ("two", extracted)] {
        connection.execute(&format!("ATTACH ?1 AS {name}"), [dir.path(file).to_str().unwrap()]).unwrap();
    }
    let mut rows = 0;
    for query in SAME {
        let of = |name: &str| {
            query
                .replace("= S", &format!("= {session}"))
                .replace(":S:", &format!(":{session}:"))
                .replace("T.", &format!("{name}."))
        };
        let (one, two) = (of("one"), of("two"));
        for (from, without) in [(&one, &two), (&two, &one)] {
            let differ =
                format!("SELECT count(*) FROM (SELECT * FROM ({from}) EXCEPT SELECT * FROM ({without}))");
            assert_eq!(number(&connection, &differ), 0, "{extracted}: {differ}");
        }
        let count = |query: &str| number(&connection, &format!("SELECT count(*) FROM ({query})"));
        assert_eq!(count(&one), count(&two), "{extracted}: {one}");
        assert!(count(&one) > 0, "nothing to compare: {one}");
        rows += count(&one);
    }
    rows
}

/// Gives the sensors of the second session ids of that session, which generated traces do not do.
fn sensors_of_sessions(dir: &Dir, trace: &str) {
    dir.open(trace)
        .execute_batch(
            "UPDATE rocpd_monitor SET id = id + 4611686018427387904 WHERE deviceId = 2;
             UPDATE rocpd_monitor SET id = id - 4611686018427387904 + (2 << 32) WHERE deviceId = 2",
        )
        .unwrap();
}

fn extract(dir: &Dir, rank: &str, more: &[&str], output: &str) {
    let arguments = [&["dataset", "extract", "d", "--rank", rank, "-o", output], more].concat();
    dir.run(&arguments).expect(0);
    dir.run(&["check", output]).expect(0);
}

#[test]
fn each_rank_is_what_was_recorded() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 1, 300, [0, 1]);
    sensors_of_sessions(&dir, &trace);
    dir.run(&["dataset", "d", &trace]).expect(0);
    let before = dir.names();
    extract(&dir, "0", &[], "0.rpd");
    extract(&dir, "1", &["--job", "7", "--node", "node1"], "1.rpd");
    let rows = same(&dir, &trace, "0.rpd", 0) + same(&dir, &trace, "1.rpd", 2);
    assert!(rows > 1500, "{rows}");
    // Nothing else is in them, and nothing else was written.
    for (extracted, session) in [("0.rpd", 0), ("1.rpd", 2)] {
        for table in ["rocpd_op", "rocpd_api", "rocpd_api_ops", "rocpd_monitor"] {
            let others = format!("SELECT count(*) FROM {table} WHERE id >> 32 <> {session}");
            assert_eq!(number(&dir.open(extracted), &others), 0, "{extracted} {table}");
        }
    }
    let mut after = dir.names();
    after.retain(|name| !["0.rpd", "1.rpd"].contains(&name.as_str()));
    assert_eq!(after, before);
    // It is the same recording: the dataset has it already.
    let again = dir.run(&["dataset", "d", "--append", "0.rpd", "1.rpd"]);
    assert_eq!(again.expect(0).stderr.matches("is there already").count(), 2, "{again}");
}

#[test]
fn a_real_trace_and_one_of_a_dataset_of_earlier_versions_keep_their_times() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 2, 100, [0, 1]);
    sensors_of_sessions(&dir, &trace);
    dir.run(&["dataset", "d", &trace]).expect(0);
    let mut folders = vec![dir.path("d/_manifest")];
    let mut changed = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap();
            let without: Vec<&str> = text.lines().filter(|line| !line.contains("\"offset_ns\"")).collect();
            changed += usize::from(without.len() < text.lines().count());
            fs::write(entry.path(), without.join("\n")).unwrap();
        }
    }
    assert_eq!(changed, 2);
    extract(&dir, "1", &[], "1.rpd");
    same(&dir, &trace, "1.rpd", 2);
    // Of another recorder, which says nothing of its clock and host.
    let raw = dir.unpacked("mytrace_raw.rpd");
    dir.run(&["dataset", "d", "--append", "--job", "raw", &raw]).expect(0);
    extract(&dir, "0", &["--job", "raw"], "raw-again.rpd");
    let tables = ["rocpd_op", "rocpd_api"];
    for table in tables {
        let sums = format!("SELECT count(*) + sum(start % 1000003) + sum(\"end\" % 1000003) FROM {table}");
        assert_eq!(number(&dir.open("raw-again.rpd"), &sums), number(&dir.open(&raw), &sums), "{table}");
    }
}

#[test]
fn several_traces_of_a_rank_are_one_trace() {
    let dir = Dir::new();
    let one = ranked(&dir, "one.rpd", 3, 200, [0, 1]);
    let two = ranked(&dir, "two.rpd", 4, 200, [0, 1]);
    // Another run of the rank, of another boot of its host.
    dir.open(&two)
        .execute_batch(
            "UPDATE rocpd_metadata SET value = 'boot2' WHERE tag GLOB 'session::*::boot_id';
             UPDATE rocpd_metadata SET value = value + 9000000 WHERE tag GLOB 'session::*::start_realtime_ns'",
        )
        .unwrap();
    dir.run(&["dataset", "d", "--node", "n", &one, &two]).expect(0);
    extract(&dir, "0", &[], "0.rpd");
    let count = |file: &str, session: i64| {
        let query = format!("SELECT count(*) FROM rocpd_op WHERE id >> 32 = {session}");
        number(&dir.open(file), &query)
    };
    assert_eq!((count("0.rpd", 0), count("0.rpd", 1)), (count(&one, 0), count(&two, 0)));
    same(&dir, &one, "0.rpd", 0);
    // The second is as far behind the first as their wall clocks are.
    let first = |file: &str, session: i64| {
        number(&dir.open(file), &format!("SELECT min(start) FROM rocpd_api WHERE id >> 32 = {session}"))
    };
    assert_eq!(first("0.rpd", 1), first(&two, 0) + 9_000_000);
    let start =
        "SELECT CAST(value AS integer) FROM rocpd_metadata WHERE tag = 'session::N::start_monotonic_ns'";
    let start = |file: &str, session: &str| {
        number(&dir.open(file), &start.replace("::N::", &format!("::{session}::")))
    };
    assert_eq!(start("0.rpd", "1"), start(&two, "0") + 9_000_000);
}

#[test]
fn a_time_slice_is_what_began_in_it() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 5, 300, [0, 1]);
    dir.run(&["dataset", "d", "--slice", "1us", &trace]).expect(0);
    let time = "(start + 1000000000) / 1000";
    let middle = number(
        &dir.open(&trace),
        &format!("SELECT {time} FROM rocpd_op WHERE id >> 32 = 0 ORDER BY start LIMIT 1 OFFSET 50"),
    );
    extract(&dir, "0", &["--slice", &middle.to_string()], "slice.rpd");
    for table in ["rocpd_op", "rocpd_api"] {
        let of = |file: &str| {
            number(
                &dir.open(file),
                &format!("SELECT count(*) FROM {table} WHERE id >> 32 = 0 AND {time} = {middle}"),
            )
        };
        assert_eq!(of("slice.rpd"), of(&trace), "{table}");
        assert_eq!(
            number(&dir.open("slice.rpd"), &format!("SELECT count(*) FROM {table}")),
            of(&trace),
            "{table}"
        );
    }
    let dangling = "SELECT count(*) FROM rocpd_api_ops WHERE api_id NOT IN (SELECT id FROM rocpd_api)";
    assert_eq!(number(&dir.open("slice.rpd"), dangling), 0);
    dir.run(&["dataset", "extract", "d", "--rank", "0", "--slice", "-5", "-o", "none.rpd"])
        .expect(1)
        .says(&["has nothing in slice -5", "slices from"]);
    assert!(!dir.path("none.rpd").exists());
}

#[test]
fn what_cannot_be_is_said_and_nothing_is_left() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 6, 50, [0, 1]);
    dir.run(&["dataset", "d", &trace]).expect(0);
    dir.run(&["dataset", "d", "--append", "--node", "other", &trace]).expect(0);
    let run = |more: &[&str]| dir.run(&[&["dataset", "extract", "d", "-o", "o.rpd"], more].concat());
    run(&["--rank", "0"]).expect(1).says(&["2 times rank 0", "--node"]);
    run(&["--rank", "5"]).expect(1).says(&["no such rank among 4 ranks"]);
    run(&["--rank", "0", "--job", "8"]).expect(1).says(&["no such rank"]);
    dir.run(&["dataset", "extract", ".", "--rank", "0", "-o", "o.rpd"]).expect(1).says(&["is no dataset"]);
    dir.run(&["dataset", "extract", "d", "--rank", "0", "--node", "other", "-o", &trace])
        .expect(1)
        .says(&["exists already"]);
    let api = dir.path("d/api/job=j7/node=nother/rank=0/slice=0");
    let file = fs::read_dir(api).unwrap().flatten().next().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    bytes[40] ^= 1;
    fs::write(&file, bytes).unwrap();
    run(&["--rank", "0", "--node", "other"]).expect(1).says(&[
        "rank=0",
        "SHA-256",
        "--force",
        "o.rpd was not made",
    ]);
    assert_eq!(dir.names(), ["d", "t.rpd"]);
}

/// The manifest of rank 0.
fn manifest(dir: &Dir) -> PathBuf {
    let mut found = files(dir, "d", "rank=0").into_iter();
    found.find(|file| file.to_string_lossy().contains("_manifest")).unwrap()
}

/// Changes a text in the manifest of rank 0.
fn change(dir: &Dir, from: &str, to: &str) {
    let text = fs::read_to_string(manifest(dir)).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(manifest(dir), text.replace(from, to)).unwrap();
}

#[test]
fn what_is_wrong_with_manifests_is_said() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 7, 50, [0, 1]);
    dir.run(&["dataset", "d", &trace]).expect(0);
    let run = |rank: &str| dir.run(&["dataset", "extract", "d", "--rank", rank, "-o", "o.rpd"]);
    // A copy of a manifest: the rank is there once, and a line says why.
    let manifest = manifest(&dir);
    fs::copy(&manifest, manifest.with_file_name("copy.json")).unwrap();
    let ran = run("0");
    assert!(ran.expect(0).stderr.contains("copy.json: the manifest is left out"), "{ran}");
    same(&dir, &trace, "o.rpd", 0);
    fs::remove_file(manifest.with_file_name("copy.json")).unwrap();
    fs::remove_file(dir.path("o.rpd")).unwrap();
    // What was added to the times is not what is said of the host's clock.
    change(&dir, "\"offset_ns\": 1000000000", "\"offset_ns\": 9223372036854775807");
    let name = manifest.file_name().unwrap().to_str().unwrap();
    run("0").expect(1).says(&[name, "9223372036854775807 ns were added", "--append", "o.rpd was not made"]);
    run("1").expect(0);
    fs::remove_file(dir.path("o.rpd")).unwrap();
    // It cannot even be subtracted from them.
    change(&dir, "9223372036854775807", "-9223372036854775808");
    run("0").expect(1).says(&["no such rank among 1 rank", "a manifest is damaged: rpd dataset check d"]);
    // No manifest is left.
    for manifest in files(&dir, "d", "_manifest") {
        fs::write(manifest, "{").unwrap();
    }
    let refused = run("0");
    refused.expect(1).says(&[
        "d has no rank that can be read",
        "the manifest cannot be read",
        "rpd dataset check d",
    ]);
    assert!(!refused.stderr.contains("no ranks yet"), "{refused}");
    for manifest in files(&dir, "d", "_manifest") {
        fs::remove_file(manifest).unwrap();
    }
    run("0").expect(1).says(&["d has no ranks yet: rpd dataset d --append"]);
    assert_eq!(dir.names(), ["d", "t.rpd"]);
}

#[test]
fn of_many_who_write_one_trace_one_does_and_the_others_hear_it() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 8, 200, [0, 1]);
    dir.run(&["dataset", "d", &trace]).expect(0);
    let running: Vec<_> = (0..8)
        .map(|_| {
            let mut command = dir.rpd(&["dataset", "extract", "d", "--rank", "0", "-o", "o.rpd"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut made = 0;
    for running in running {
        let ran = finished(running.wait_with_output().unwrap(), "rpd dataset extract".to_string());
        if ran.stderr.contains("of rank 0") {
            ran.expect(0);
            made += 1;
        } else {
            ran.expect(1).says(&["o.rpd: the file exists already; name another or remove it"]);
        }
    }
    assert_eq!(made, 1);
    same(&dir, &trace, "o.rpd", 0);
    assert_eq!(dir.names(), ["d", "o.rpd", "t.rpd"]);
}
