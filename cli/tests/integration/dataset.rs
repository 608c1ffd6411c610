//! `rpd dataset`: what is in the traces is in the Parquet files, once, whoever adds it and however often somebody is killed.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::export_rows::pyarrow;
use crate::generated::{generated, to_schema_3};
use crate::harness::{Dir, Ran, finished};
use crate::merge::elsewhere;

/// CLOCK_REALTIME less CLOCK_MONOTONIC of generated traces, ns.
const CLOCK: i64 = 1_000_000_000;

/// Compares the dataset with its traces by SQLite, row by row: each argument behind the directory is a trace, with what its times are
/// moved by, and job, node and ranks of its sessions 0 and 2.
const COMPARE: &str = r#"
import sqlite3, sys
import pyarrow.dataset as ds
directory, *traces = sys.argv[1:]
number = lambda column: f"CASE WHEN typeof({column}) = 'integer' THEN {column} END"
time = lambda a: f'{a}.start + :clock, {a}."end" + :clock'
launch = ', '.join(f'k.{c}' for c in 'gridX gridY gridZ workgroupX workgroupY workgroupZ groupSegmentSize privateSegmentSize'.split())
copied = ', '.join(number(f'c.{c}') for c in 'size width height kind'.split())
devices = ', '.join(number(f'c.{c}') for c in 'dstDevice srcDevice sync pinned'.split())
queries = {
    'op': f'''SELECT o.id, o.gpuId, o.queueId, o.sequenceId, {time('o')}, d.string, t.string,
        (SELECT api_id FROM rocpd_api_ops WHERE op_id = o.id ORDER BY id LIMIT 1) FROM rocpd_op o
        JOIN rocpd_string d ON d.id = description_id JOIN rocpd_string t ON t.id = opType_id''',
    'kernel': f'''SELECT o.id, o.gpuId, o.queueId, o.sequenceId, {time('o')}, k.stream, {launch}, n.string, l.api_id FROM rocpd_api_ops l
        JOIN rocpd_op o ON o.id = op_id JOIN rocpd_kernelapi k ON k.api_ptr_id = l.api_id JOIN rocpd_string n ON n.id = kernelName_id''',
    'api': f'''SELECT a.id, pid, tid, {time('a')}, n.string, g.string, :domain, :category FROM rocpd_api a
        JOIN rocpd_string n ON n.id = apiName_id JOIN TEXTS g ON g.id = args_id''',
    'copy': f'''SELECT a.id, pid, tid, {time('a')}, n.string, c.stream, {copied}, c.dst, c.src, {devices} FROM rocpd_copyapi c
        JOIN rocpd_api a ON a.id = api_ptr_id JOIN rocpd_string n ON n.id = apiName_id''',
    'monitor': f'''SELECT m.id, deviceType, deviceId, monitorType, {time('m')}, value FROM rocpd_monitor m''',
    'session': '''SELECT CAST(substr(tag, 10, 1) AS integer), substr(tag, 13), value FROM rocpd_metadata WHERE tag GLOB 'session::?::*' ''',
}
total = 0
for table, query in queries.items():
    found = ds.dataset(f'{directory}/{table}', partitioning='hive').to_table()
    names = [name for name in found.column_names if name not in ('part', 'slice', 'job', 'node', 'rank')]
    for row in ds.dataset(f'{directory}/{table}', format='parquet').files:
        assert '/.' not in row, row
    found = [(*(row[name] for name in names), row['job'], row['node'], row['rank']) for row in found.to_pylist()]
    expected = []
    for trace in traces:
        trace, clock, job, node, *ranks = trace.split(',')
        ranks = {0: int(ranks[0]), 2: int(ranks[1])}
        file = sqlite3.connect(trace)
        is_3 = file.execute("SELECT count(*) FROM sqlite_master WHERE name = 'rocpd_ustring'").fetchone()[0]
        query_3 = query.replace('TEXTS', 'rocpd_ustring' if is_3 else 'rocpd_string')
        if is_3:
            query_3 = query_3.replace(':domain', '(SELECT string FROM rocpd_string WHERE id = domain_id)')
            query_3 = query_3.replace(':category', '(SELECT string FROM rocpd_string WHERE id = category_id)')
        query_3 = query_3.replace(':domain', 'NULL').replace(':category', 'NULL').replace(':clock', clock)
        for row in file.execute(query_3):
            session = row[0] if table == 'session' else row[0] >> 32
            # Sensors have ids of no session here.
            expected.append((*row, job, node, ranks[session]))
    assert found and sorted(map(repr, found)) == sorted(map(repr, expected)), (
        table, len(found), len(expected), sorted(set(map(repr, found)) ^ set(map(repr, expected)))[:4])
    total += len(found)
print(total)
"#;

/// What a script prints of the rows of a table, which are `rows` in it.
fn python(dir: &Dir, directory: &str, table: &str, print: &str) -> Option<String> {
    let script = format!(
        "import pyarrow.dataset as ds\n\
         rows = ds.dataset('{directory}/{table}', partitioning='hive').to_table().to_pylist()\nprint({print})"
    );
    pyarrow(dir, &script, &[]).map(|ran| ran.expect(0).stdout.trim().to_string())
}

/// A generated trace whose sessions 0 and 2 are of two ranks of job 7.
pub(crate) fn ranked(dir: &Dir, name: &str, seed: u64, calls: i64, ranks: [i64; 2]) -> String {
    let trace = generated(dir, name, seed, calls);
    let mut facts = String::new();
    for (session, rank) in [0, 2].into_iter().zip(ranks) {
        facts += &format!(
            "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::{session}::env::RANK', '{rank}'),
                 ('session::{session}::env::SLURM_JOB_ID', '7');
             UPDATE rocpd_metadata SET value = '{}' WHERE tag = 'session::{session}::pid';",
            1000 + rank
        );
    }
    dir.open(&trace).execute_batch(&facts).unwrap();
    trace
}

fn add(dir: &Dir, arguments: &[&str]) -> Ran {
    dir.run(&[&["dataset"], arguments].concat())
}

/// The kinds of what is wrong, in order.
fn findings(dir: &Dir, directory: &str) -> Vec<String> {
    let checked = dir.run(&["dataset", "check", directory, "--json"]);
    let object: Value = serde_json::from_str(&checked.stdout).unwrap_or_else(|_| panic!("{checked}"));
    let found = object["findings"].as_array().unwrap();
    checked.expect(i32::from(!found.is_empty()));
    let plain = dir.run(&["dataset", "check", directory]);
    assert_eq!(plain.stdout.lines().count(), found.len() + 1, "{plain}");
    found.iter().map(|found| found["kind"].as_str().unwrap().to_string()).collect()
}

/// All files of a dataset whose paths have `part` in them, sorted.
pub(crate) fn files(dir: &Dir, directory: &str, part: &str) -> Vec<PathBuf> {
    let mut folders = vec![dir.path(directory)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.to_string_lossy().contains(part) => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_row_of_every_trace_is_there_once() {
    let dir = Dir::new();
    let one = ranked(&dir, "n1.rpd", 1, 300, [0, 1]);
    elsewhere(&dir, &ranked(&dir, "t.rpd", 2, 300, [2, 3]), "n2.rpd", 5_000_000_000);
    let three = ranked(&dir, "v3.rpd", 3, 200, [4, 5]);
    dir.open(&three)
        .execute_batch("UPDATE rocpd_metadata SET value = 'b3' WHERE tag GLOB 'session::*::boot_id'")
        .unwrap();
    to_schema_3(&dir, &three);
    // Ids of sensors are of session 0 in these traces.
    for trace in [&one[..], "n2.rpd", &three] {
        dir.open(trace)
            .execute_batch(
                "UPDATE rocpd_monitor SET id = id + 4611686018427387904 WHERE deviceId = 2;
                 UPDATE rocpd_monitor SET id = id - 4611686018427387904 + (2 << 32) WHERE deviceId = 2",
            )
            .unwrap();
    }
    add(&dir, &["d", &one, "n2.rpd", &three]).expect(0);
    assert_eq!(findings(&dir, "d"), [""; 0]);
    // The third host has the name of the first, and another boot.
    let traces = [
        format!("{one},{CLOCK},j7,nnode1,0,1"),
        format!("n2.rpd,{},j7,nn2.rpd,2,3", CLOCK - 5_000_000_000),
        format!("{three},{CLOCK},j7,nnode1-b3,4,5"),
    ];
    let arguments: Vec<&str> = std::iter::once("d").chain(traces.iter().map(String::as_str)).collect();
    let Some(compared) = pyarrow(&dir, COMPARE, &arguments) else { return };
    compared.expect(0);
    // A merged trace comes to the same, on one clock.
    dir.run(&["merge", "-o", "all.rpd", &one, "n2.rpd"]).expect(0);
    add(&dir, &["m", "all.rpd"]).expect(0);
    add(&dir, &["apart", &one, "n2.rpd"]).expect(0);
    for (table, columns) in [("op", "opType"), ("api", "apiName"), ("monitor", "value")] {
        let print =
            format!("sorted((r['node'], r['rank'], r['start'], r['end'], r['{columns}']) for r in rows)");
        assert_eq!(python(&dir, "m", table, &print), python(&dir, "apart", table, &print), "{table}");
    }
    // Each of its ranks is one that the dataset has.
    let again = add(&dir, &["m", "--append", &one, "n2.rpd"]);
    assert_eq!(again.expect(0).stderr.matches("is there already").count(), 4, "{again}");
}

#[test]
fn what_is_there_is_left_and_what_went_on_takes_its_place() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 4, 200, [0, 1]);
    fs::copy(dir.path(&trace), dir.path("short.rpd")).unwrap();
    let late =
        "DELETE FROM rocpd_op WHERE id & 0xffffffff > 50; DELETE FROM rocpd_api WHERE id & 0xffffffff > 150";
    dir.open("short.rpd").execute_batch(late).unwrap();
    let said = |ran: Ran, what: &str| assert_eq!(ran.expect(0).stderr.matches(what).count(), 2, "{ran}");
    said(add(&dir, &["d", "short.rpd"]), "added");
    add(&dir, &["d", &trace]).expect(1).says(&["d is a dataset already", "--append"]);
    said(add(&dir, &["d", "--append", &trace]), "in place of");
    assert_eq!(findings(&dir, "d"), [""; 0]);
    let before = files(&dir, "d", "");
    said(add(&dir, &["d", "--append", &trace]), "is there already");
    said(add(&dir, &["d", "--append", "short.rpd"]), "has more of the same recording");
    said(add(&dir, &["d", "--append", "--force", &trace]), "in place of");
    assert_eq!(files(&dir, "d", ""), before);
    assert_eq!(findings(&dir, "d"), [""; 0]);
    fs::create_dir_all(dir.path("x")).unwrap();
    dir.write("x/file", "");
    add(&dir, &["x", "--append", &trace]).expect(1).says(&["x has other files"]);
    dir.run(&["dataset", "check", "x"]).expect(1).says(&["x is no dataset"]);
}

#[test]
fn many_hosts_add_at_once() {
    let dir = Dir::new();
    let traces: Vec<String> = (0..8)
        .map(|rank| {
            ranked(&dir, &format!("{rank}.rpd"), 10 + rank, 200, [2 * rank as i64, 2 * rank as i64 + 1])
        })
        .collect();
    // Two of them by two hosts each.
    let running: Vec<_> = traces
        .iter()
        .chain(&traces[..2])
        .map(|trace| {
            let mut command = dir.rpd(&["dataset", "d", "--append", trace]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for running in running {
        finished(running.wait_with_output().unwrap(), "rpd dataset d --append".to_string()).expect(0);
    }
    assert_eq!(findings(&dir, "d"), [""; 0]);
    assert_eq!(files(&dir, "d", "_manifest").len(), 16);
    let Some(ranks) = python(&dir, "d", "op", "sorted({r['rank'] for r in rows}) == list(range(16))") else {
        return;
    };
    assert_eq!(ranks, "True");
}

#[test]
fn who_is_killed_leaves_what_the_check_explains() {
    let dir = Dir::new();
    let trace = dir.generated("t.rpd", &["--events", "60000"]);
    let mut killed = dir.rpd(&["dataset", "d", &trace]).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !files(&dir, "d", ".part-").iter().any(|file| file.to_string_lossy().contains("/op/")) {
        assert!(Instant::now() < until, "nothing was written");
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let found = findings(&dir, "d");
    assert!(found.iter().all(|kind| kind == "leftover") && !found.is_empty(), "{found:?}");
    add(&dir, &["d", "--append", &trace]).expect(0);
    assert_eq!(findings(&dir, "d"), [""; 0]);
    // Killed between the names of the files and the manifest.
    fs::remove_file(&files(&dir, "d", "_manifest")[0]).unwrap();
    let found = findings(&dir, "d");
    assert!(found.iter().all(|kind| kind == "leftover") && found.len() > 2, "{found:?}");
    add(&dir, &["d", "--append", &trace]).expect(0);
    assert_eq!(findings(&dir, "d"), [""; 0]);
}

#[test]
fn missing_double_and_damaged_parts_are_found_and_mended() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 5, 200, [0, 1]);
    add(&dir, &["d", &trace]).expect(0);
    let file = |table: &str| files(&dir, "d", &format!("/{table}/"))[0].clone();
    // Missing, cut off, and with other bytes.
    fs::remove_file(file("api")).unwrap();
    let mut bytes = fs::read(file("op")).unwrap();
    fs::write(file("op"), &bytes[1..]).unwrap();
    assert_eq!(findings(&dir, "d"), ["damaged", "missing"]);
    add(&dir, &["d", "--append", &trace]).expect(0);
    assert_eq!(findings(&dir, "d"), [""; 0]);
    bytes[10] ^= 1;
    fs::write(file("op"), &bytes).unwrap();
    assert_eq!(findings(&dir, "d"), ["damaged"]);
    add(&dir, &["d", "--append", "--force", &trace]).expect(0);
    assert_eq!(findings(&dir, "d"), [""; 0]);
    let manifest = files(&dir, "d", "_manifest")[0].clone();
    fs::write(&manifest, "{").unwrap();
    let found = findings(&dir, "d");
    assert!(found[0] == "damaged" && found[1] == "leftover", "{found:?}");
    fs::remove_file(manifest).unwrap();
    add(&dir, &["d", "--append", &trace]).expect(0);
    assert_eq!(findings(&dir, "d"), [""; 0]);
    // The same recording as another job's; ranks that are not there.
    add(&dir, &["d", "--append", "--job", "8", &trace]).expect(0);
    assert_eq!(findings(&dir, "d"), ["double", "double"]);
    add(&dir, &["e", &ranked(&dir, "gap.rpd", 6, 50, [1, 3])]).expect(0);
    let checked = dir.run(&["dataset", "check", "e"]);
    assert!(checked.expect(1).stdout.contains("missing: job 7: of 4 ranks 0, 2 are not there"), "{checked}");
    let checked = dir.run(&["dataset", "check", "e", "--ranks", "5"]);
    assert!(checked.expect(1).stdout.contains("of 5 ranks 0, 2, 4 are not there"), "{checked}");
}

#[test]
fn a_file_that_two_manifests_name_is_found_and_counts_once() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 12, 100, [0, 1]);
    add(&dir, &["d", &trace]).expect(0);
    let sums = |expected: i32| -> Value {
        let checked = dir.run(&["dataset", "check", "d", "--json"]);
        let object: Value = serde_json::from_str(&checked.expect(expected).stdout).unwrap();
        Value::from(["parts", "jobs", "files", "bytes", "rows"].map(|name| object[name].clone()).to_vec())
    };
    let before = sums(0);
    let manifest = files(&dir, "d", "_manifest")[0].clone();
    fs::copy(&manifest, manifest.with_file_name("copy.json")).unwrap();
    assert_eq!(findings(&dir, "d"), ["double"]);
    assert_eq!(sums(1), before);
    let checked = dir.run(&["dataset", "check", "d"]);
    let said = checked.expect(1).stdout.clone();
    assert!(said.contains("copy.json: the manifest is left out, because _manifest/"), "{said}");
    fs::remove_file(manifest.with_file_name("copy.json")).unwrap();
    assert_eq!(findings(&dir, "d"), [""; 0]);
}

#[test]
fn a_manifest_that_contradicts_itself_is_found_and_mended() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 13, 100, [0, 1]);
    add(&dir, &["d", &trace]).expect(0);
    let manifest = files(&dir, "d", "_manifest")[0].clone();
    let text = fs::read_to_string(&manifest).unwrap();
    let absurd = text.replace(&format!("\"offset_ns\": {CLOCK}"), "\"offset_ns\": -9223372036854775808");
    assert_ne!(absurd, text);
    fs::write(&manifest, absurd).unwrap();
    assert_eq!(findings(&dir, "d")[0], "damaged");
    let checked = dir.run(&["dataset", "check", "d"]);
    let said = checked.expect(1).stdout.clone();
    assert!(said.contains("offset_ns -9223372036854775808 does not fit to its times"), "{said}");
    add(&dir, &["d", "--append", &trace]).expect(0);
    assert_eq!((findings(&dir, "d"), fs::read_to_string(&manifest).unwrap()), (Vec::new(), text));
}

#[test]
fn names_may_be_anything() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 7, 20, [0, 0]);
    let node = format!("{}\u{e9}/../ =%", "x".repeat(300));
    add(&dir, &["d", "--job", "a/b=c *?", "--node", &node, &trace]).expect(0);
    add(&dir, &["d", "--append", "--job", "00123", "--node", "..", "--rank", "9", &trace]).expect(0);
    let Some(jobs) = python(&dir, "d", "op", "sorted({(r['job'], r['rank']) for r in rows})") else { return };
    assert_eq!(jobs, "[('j00123', 9), ('ja/b=c *?', 0)]");
}

#[test]
fn traces_that_say_little_are_taken_with_a_note() {
    let dir = Dir::new();
    let raw = dir.unpacked("mytrace_raw.rpd");
    let old = dir.fixture("matmul_result.rpd");
    let empty = dir.trace("empty.rpd", "");
    let ran = add(&dir, &["d", &raw, &old, &empty]);
    let stderr = &ran.expect(0).stderr;
    assert!(
        stderr.contains("taken for rank 0") && stderr.contains("nothing of its host's wall clock"),
        "{ran}"
    );
    assert_eq!(findings(&dir, "d"), [""; 0]);
    let again = add(&dir, &["d", "--append", "--rank", "0", &raw, &old, &empty]);
    assert_eq!(again.expect(0).stderr.matches("is there already").count(), 3, "{again}");
    let calls: i64 = [&raw, &old]
        .map(|trace| crate::generated::number(&dir.open(trace), "SELECT count(*) FROM rocpd_api"))
        .iter()
        .sum();
    let Some(rows) = python(&dir, "d", "api", "len(rows), len({r['part'] for r in rows})") else { return };
    assert_eq!(rows, format!("{calls} 2"));
}

#[test]
fn cells_of_other_types_are_null_and_counted() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'kernel');
         INSERT INTO rocpd_op VALUES (1, 0, 1, 7, '', 10, 20, 2, 1), (2, 0.5, 1, 8, '', 'soon', 30, 2, 99);",
    );
    let said = add(&dir, &["d", &trace]).expect(0).stderr.clone();
    for column in ["gpuId", "start"] {
        assert!(said.contains(&format!("1 value is of another type in rocpd_op.{column}")), "{said}");
    }
    let print = "[tuple(r.values())[:8] for r in sorted(rows, key=lambda r: r['id'])]";
    let Some(rows) = python(&dir, "d", "op", print) else { return };
    assert_eq!(rows, "[(1, 0, 1, 7, 10, 20, 'kernel', ''), (2, None, 1, 8, None, 30, 'kernel', None)]");
}

#[test]
fn slices_are_cut_at_multiples_of_their_length() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 8, 300, [0, 1]);
    add(&dir, &["d", "--slice", "1us", &trace]).expect(0);
    add(&dir, &["d", "--append", "--slice", "2us", &trace]).expect(1).says(&["slices of 1000 ns"]);
    assert_eq!(findings(&dir, "d"), [""; 0]);
    let rows = crate::generated::number(&dir.open(&trace), "SELECT count(*) FROM rocpd_op");
    let print =
        "len(rows), len({r['slice'] for r in rows}) > 3, all(r['slice'] == r['start'] // 1000 for r in rows)";
    let Some(found) = python(&dir, "d", "op", print) else { return };
    assert_eq!(found, format!("{rows} True True"));
}

/// A trace of a rank of job 7: the marker `go` at `at` ns of its host's clock, and again 500 ns later.
fn with_marker(dir: &Dir, name: &str, rank: i64, host: Option<(&str, i64)>, at: i64) {
    let facts = host.map_or(String::new(), |(host, clock)| {
        let fact = |key: &str, value: &str| {
            format!("INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::{key}', '{value}');")
        };
        [
            fact("host", host),
            fact("boot_id", &format!("boot of {host}")),
            fact("pid", &(100 + rank).to_string()),
            fact("start_monotonic_ns", "1000"),
            fact("start_realtime_ns", &(clock + 1000).to_string()),
        ]
        .concat()
    });
    dir.trace(
        name,
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'go'), (4, 'stop');
             INSERT INTO rocpd_api VALUES (1, 5, 5, {at}, {at} + 10, 2, 3), (2, 5, 5, {at} + 500, {at} + 600, 2, 3);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::env::RANK', '{rank}'),
                 ('session::0::env::SLURM_JOB_ID', '7');
             {facts}"
        ),
    );
}

/// When each rank's first call begins in a dataset, ns.
fn first(ran: &Ran) -> Vec<i64> {
    let parts: serde_json::Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    parts.as_array().unwrap().iter().map(|part| part["first_ns"].as_i64().unwrap()).collect()
}

#[test]
fn clocks_of_a_job_are_aligned_by_a_marker() {
    let dir = Dir::new();
    // The second host's wall clock is wrong by 7 s.
    let (one, two) = (("one", CLOCK), ("two", CLOCK + 7_000_000_000));
    with_marker(&dir, "0.rpd", 0, Some(one), 5_000);
    with_marker(&dir, "1.rpd", 1, Some(one), 5_700);
    with_marker(&dir, "2.rpd", 2, Some(two), 80_000);
    let by_wall_clock = add(&dir, &["w", "--json", "0.rpd", "2.rpd"]);
    assert_eq!(first(&by_wall_clock), [CLOCK + 5_000, CLOCK + 7_000_080_000]);
    let align = ["--append", "--align", "marker:go", "--json"];
    let added = add(&dir, &[&["d"], &align[..], &["0.rpd", "1.rpd", "2.rpd"]].concat());
    // Ranks of one host are to each other as they were.
    assert_eq!(first(&added), [CLOCK + 5_000, CLOCK + 5_700, CLOCK + 5_000]);
    assert_eq!(added.stderr, "");
    // A host adds its trace alone and later, and its next one needs no marker.
    let apart = |trace: &str| first(&add(&dir, &[&["apart"], &align[..], &[trace]].concat()));
    assert_eq!([apart("2.rpd"), apart("0.rpd")], [[CLOCK + 7_000_080_000]; 2]);
    with_marker(&dir, "3.rpd", 3, Some(two), 90_000);
    dir.open("3.rpd").execute_batch("UPDATE rocpd_api SET args_id = 1").unwrap();
    assert_eq!(apart("3.rpd"), [CLOCK + 7_000_090_000]);
    assert_eq!(findings(&dir, "d"), [""; 0]);
    // Traces of other recorders fit to each other, too.
    with_marker(&dir, "a.rpd", 0, None, 1_000);
    with_marker(&dir, "b.rpd", 1, None, 90_000);
    let others = add(&dir, &[&["o"], &align[..], &["a.rpd", "b.rpd"]].concat());
    assert_eq!((first(&others), &others.stderr[..]), (vec![1_000, 1_000], ""));
}

#[test]
fn a_marker_that_cannot_align_is_said() {
    let dir = Dir::new();
    let (one, two) = (("one", CLOCK), ("two", CLOCK + 7_000_000_000));
    with_marker(&dir, "0.rpd", 0, Some(one), 5_000);
    with_marker(&dir, "2.rpd", 2, Some(two), 80_000);
    let align = |directory: &str, marker: &str, trace: &str| {
        add(&dir, &[directory, "--append", "--align", marker, trace])
    };
    align("d", "go", "0.rpd").expect(2).says(&["not marker:NAME"]);
    align("d", "marker:stop", "0.rpd").expect(1).says(&["no marker has the text stop in 0.rpd"]);
    align("d", "marker:go", "0.rpd").expect(0);
    dir.open("2.rpd").execute_batch("UPDATE rocpd_api SET args_id = 4 WHERE id = 2").unwrap();
    align("d", "marker:stop", "2.rpd").expect(1).says(&["job 7 are aligned by marker:go"]);
    // Without --align the wall clock decided.
    add(&dir, &["w", "0.rpd", "2.rpd"]).expect(0);
    align("w", "marker:go", "0.rpd").expect(0);
    let late = align("w", "marker:go", "2.rpd");
    let said = "the clock of two was decided by an earlier trace, and the marker begins 7000075000 ns later";
    assert!(late.expect(0).stderr.contains(said), "{late}");
    // Times that no clock has.
    with_marker(&dir, "9.rpd", 9, Some(("nine", CLOCK)), i64::MIN + 5);
    align("d", "marker:go", "9.rpd").expect(1).says(&["out of all bounds"]);
}
