//! What `rpd info` tells of a trace, in every form.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::harness::{Dir, golden, ran};

/// The object of `--json`. A new field is a change of the interface and has to be added here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Info {
    file: String,
    schema: String,
    size_bytes: u64,
    span: Option<Span>,
    sessions: Vec<Session>,
    gpus: Vec<Gpu>,
    operations: Vec<OpType>,
    replaced: Option<serde_json::Value>,
    instrumented: Option<serde_json::Value>,
    tables: Option<BTreeMap<String, u64>>,
    lost: BTreeMap<String, u64>,
    launches_without_op: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Span {
    start_ns: i64,
    end_ns: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Session {
    session: i64,
    host: Option<String>,
    pid: Option<u32>,
    rank: Option<String>,
    command: Option<String>,
    started: Option<String>,
    duration_ns: Option<u64>,
    calls: u64,
    operations: u64,
    lost: BTreeMap<String, u64>,
    facts: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gpu {
    gpu: i64,
    name: Option<String>,
    target: Option<String>,
    bdf: Option<String>,
    uuid: Option<String>,
    queues: Vec<Queue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    queue: i64,
    operations: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpType {
    #[serde(rename = "type")]
    name: String,
    kind: String,
    count: u64,
}

fn info(dir: &Dir, trace: &str) -> Info {
    let json = dir.run(&["info", "--json", trace]);
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// Two processes with two GPUs, one of them with everything known about it.
const TWO_SESSIONS: &str = r#"
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'CopyHostToDevice'),
        (4294967297, ''), (4294967298, 'KernelExecution');
    INSERT INTO rocpd_op VALUES
        (1, 0, 0, 1, '', 1000, 2000, 1, 2), (2, 0, 1, 1, '', 1500, 9000, 1, 3), (3, 0, 1, 2, '', 1, 1, 1, 3),
        (4294967297, 3, 0, 1, '', 5000, 6000, 4294967297, 4294967298);
    INSERT INTO rocpd_api VALUES (1, 7, 7, 900, 950, 1, 1), (4294967297, 8, 8, 4000, 1002000, 1, 1);
    INSERT INTO rocpd_metadata (tag, value) VALUES
        ('session_count', '2'),
        ('session::0::host', 'node1'), ('session::0::pid', '7'), ('session::0::command', './a "b c"'),
        ('session::0::env::RANK', '5'), ('session::0::lost::buffer_full', '0'),
        ('session::0::start_monotonic_ns', '1000'), ('session::0::end_monotonic_ns', '3500001000'),
        ('session::0::start_realtime_ns', '1700000000123456789'),
        ('gpu::0::name', 'AMD Instinct MI210'), ('gpu::0::target', 'gfx90a'), ('gpu::0::bdf', '0000:03:00.0'),
        ('gpu::0::uuid', 'GPU-1234');
"#;

#[test]
fn a_real_trace_in_both_forms() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    for (form, name) in [(&[][..], "info.txt"), (&["--json"], "info.json")] {
        let result = dir.run(&[&["info", &trace], form].concat());
        golden(name, &result.expect(0).stdout);
        assert!(result.stderr.is_empty(), "{result}");
    }
}

#[test]
fn a_command_is_whole() {
    let dir = Dir::new();
    let command = "python3 train.py --model meta-llama/Llama-3.1-8B --epochs 3 --batch-size 64 --output /tmp/there --seed 1";
    let trace = dir.trace("t.rpd", &TWO_SESSIONS.replace("./a \"b c\"", command));
    let whole = dir.run(&["info", &trace]);
    assert!(whole.expect(0).stdout.lines().any(|line| line.trim() == command), "{whole}");
    for columns in [60, 80] {
        let result = ran(dir.rpd(&["info", &trace]).env("COLUMNS", columns.to_string()));
        assert!(result.expect(0).stdout.contains("python3 train.py --mod"), "{result}");
        assert!(result.stdout.lines().all(|line| line.chars().count() <= columns), "{columns}: {result}");
    }
}

#[test]
fn everything_a_trace_says_of_itself() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", TWO_SESSIONS);
    let info = info(&dir, &trace);
    assert_eq!((info.file.as_str(), info.schema.as_str()), ("t.rpd", "2"));
    assert_eq!(info.size_bytes, std::fs::metadata(dir.path(&trace)).unwrap().len());
    let span = info.span.unwrap();
    assert_eq!((span.start_ns, span.end_ns), (1, 1_002_000));
    assert!(info.lost.is_empty() && info.replaced.is_none() && info.instrumented.is_none());

    let [first, second] = &info.sessions[..] else { panic!("{} sessions", info.sessions.len()) };
    assert_eq!((first.session, first.calls, first.operations), (0, 1, 3));
    assert_eq!(
        (first.host.as_deref(), first.pid, first.rank.as_deref()),
        (Some("node1"), Some(7), Some("5"))
    );
    assert_eq!(first.command.as_deref(), Some("./a \"b c\""));
    assert_eq!(first.started.as_deref(), Some("2023-11-14T22:13:20Z"));
    assert_eq!(first.duration_ns, Some(3_500_000_000));
    assert!(first.lost.is_empty());
    assert_eq!(first.facts.get("lost::buffer_full").map(String::as_str), Some("0"));
    assert_eq!((second.session, second.calls, second.operations, second.pid), (1, 1, 1, None));

    let [gpu, other] = &info.gpus[..] else { panic!("{} GPUs", info.gpus.len()) };
    assert_eq!(
        (gpu.gpu, gpu.name.as_deref(), gpu.target.as_deref()),
        (0, Some("AMD Instinct MI210"), Some("gfx90a"))
    );
    assert_eq!((gpu.bdf.as_deref(), gpu.uuid.as_deref()), (Some("0000:03:00.0"), Some("GPU-1234")));
    let queues: Vec<_> = gpu.queues.iter().map(|queue| (queue.queue, queue.operations)).collect();
    assert_eq!(queues, [(0, 1), (1, 2)]);
    assert_eq!((other.gpu, other.name.as_deref(), other.queues.len()), (3, None, 1));

    let types: Vec<_> =
        info.operations.iter().map(|op| (op.name.as_str(), op.kind.as_str(), op.count)).collect();
    assert_eq!(types, [("CopyHostToDevice", "copy", 2), ("KernelExecution", "kernel", 2)]);
    let tables = info.tables.unwrap();
    assert_eq!((tables["rocpd_op"], tables["rocpd_api"], tables["rocpd_monitor"]), (4, 2, 0));
    assert!(tables.contains_key("ext_dispatch"));
    let text = dir.run(&["info", &trace]).expect(0).stdout.clone();
    for line in [
        "        0  node1    7     5  2023-11-14T22:13:20Z   3.500 s      1           3     0",
        r#"      ./a "b c""#,
        "        1  -        -     -  -                            -      1           1     0",
        "    0  gfx90a  0000:03:00.0       2           3  AMD Instinct MI210",
        "    0      1           2",
        "      2  KernelExecution",
    ] {
        assert!(text.lines().any(|result| result == line), "{line:?} is missing in:\n{text}");
    }
}

#[test]
fn a_part_has_the_losses_of_its_sessions() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", TWO_SESSIONS);
    let lost = "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::lost::full', '3'), ('session::1::lost::late', '2'),
        ('session::1::launches_without_op', '4')";
    dir.open(&trace).execute_batch(lost).unwrap();
    let part = |options: &[&str]| -> Info {
        let ran = dir.run(&[&["info", "--json", &trace], options].concat());
        serde_json::from_str(&ran.expect(0).stdout).unwrap()
    };
    let second = part(&["--session", "1"]);
    assert_eq!(second.sessions.iter().map(|session| session.session).collect::<Vec<_>>(), [1]);
    assert_eq!(second.gpus.iter().map(|gpu| gpu.gpu).collect::<Vec<_>>(), [3]);
    assert_eq!((second.lost, second.launches_without_op), (BTreeMap::from([("late".into(), 2)]), 4));
    assert!(second.tables.is_none());
    let first = part(&["--rank", "5"]);
    assert_eq!((first.lost, first.launches_without_op), (BTreeMap::from([("full".into(), 3)]), 0));
    let ran = dir.run(&["info", &trace, "--pid", "9"]);
    assert!(
        ran.expect(0)
            .says(&["t.rpd has no such call and no such operation"])
            .stdout
            .contains("nothing recorded")
    );
}

#[test]
fn an_empty_trace_says_so() {
    let dir = Dir::new();
    dir.run(&["create", "t.rpd"]).expect(0);
    let result = dir.run(&["info", "t.rpd"]);
    assert!(result.expect(0).stdout.contains("nothing recorded"), "{result}");
    let info = info(&dir, "t.rpd");
    assert!(
        info.span.is_none() && info.sessions.is_empty() && info.gpus.is_empty() && info.operations.is_empty()
    );
}

#[test]
fn lost_records_are_reported_by_cause() {
    let dir = Dir::new();
    let lost = "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::lost::buffer_full', '10'),
        ('session::1::lost::buffer_full', '1'), ('session::1::lost::late', '2'), ('session::1::lost::other', '0'),
        ('session::0::launches_without_op', '2'), ('session::1::launches_without_op', '1')";
    let trace = dir.trace("t.rpd", lost);
    let result = dir.run(&["info", &trace]);
    assert!(result.expect(0).stdout.contains("\nopen    3 launches without an operation"), "{result}");
    assert!(result.expect(0).stdout.contains("13 records: 11 buffer_full, 2 late\n"), "{result}");
    let info = info(&dir, &trace);
    assert_eq!(info.lost, BTreeMap::from([("buffer_full".into(), 11), ("late".into(), 2)]));
    assert_eq!(info.launches_without_op, 3);
    assert_eq!(info.sessions[1].lost.values().sum::<u64>(), 3);
}

#[test]
fn facts_cannot_disturb_the_terminal() {
    let dir = Dir::new();
    let facts = "INSERT INTO rocpd_metadata (tag, value) VALUES
        ('session::0::command', 'a' || char(27) || '[2Jb' || char(10) || 'c'), ('session::0::host', char(155) || 'h'),
        ('session::0::lost::' || char(27) || 'x', '3'), ('gpu::0::name', char(8238))";
    let trace = dir.trace("t.rpd", facts);
    dir.open(&trace).execute_batch("CREATE TABLE \"rocpd_\u{1b}[1m\"\"\" (x)").unwrap();
    for form in [&[][..], &["--json"]] {
        let result = dir.run(&[&["info", &trace], form].concat());
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!result.expect(0).stdout.contains(harmful), "{:?}", result.stdout);
        assert!(!result.stderr.contains(harmful), "{:?}", result.stderr);
    }
}

#[test]
fn older_and_newer_schemas_are_counted_too() {
    let dir = Dir::new();
    let v1 = dir.open("v1.rpd");
    v1.execute_batch(
        r#"CREATE TABLE rocpd_string (id integer primary key, string varchar(4096));
           CREATE TABLE rocpd_api (id integer primary key, pid, tid, start integer, "end" integer, apiName_id, args_id);
           CREATE TABLE rocpd_op (id integer primary key, gpuId, queueId, sequenceId, completionSignal, start integer,
               "end" integer, description_id, opType_id);
           CREATE TABLE rocpd_kernelop (op_ptr_id integer primary key);
           INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution');
           INSERT INTO rocpd_op VALUES (1, 0, 0, 1, '', 10, 20, 1, 2);"#,
    )
    .unwrap();
    let info_v1 = info(&dir, "v1.rpd");
    assert_eq!((info_v1.schema.as_str(), info_v1.tables.unwrap()["rocpd_kernelop"]), ("1", 0));
    assert_eq!(info_v1.operations[0].count, 1);
    assert!(dir.run(&["top", "v1.rpd"]).expect(0).stdout.contains("KernelExecution"));

    let trace = dir.trace("v3.rpd", TWO_SESSIONS);
    dir.open(&trace)
        .execute_batch(
            "UPDATE rocpd_metadata SET value = '3' WHERE tag = 'schema_version';
             CREATE TABLE rocpd_ustring (id integer primary key, string varchar(4096));
             CREATE TABLE rocpd_counter (id integer primary key, value real, op_id integer, name_id integer);
             DROP TABLE rocpd_barrierop; DROP TABLE rocpd_op_inputSignals; DROP TABLE rocpd_kernelcodeobject;
             DROP VIEW op; ALTER TABLE rocpd_op DROP COLUMN completionSignal;",
        )
        .unwrap();
    let info_v3 = info(&dir, &trace);
    assert_eq!((info_v3.schema.as_str(), info_v3.tables.as_ref().unwrap()["rocpd_ustring"]), ("3", 0));
    assert_eq!(info_v3.sessions.len(), 2);
    assert!(dir.run(&["top", &trace]).expect(0).stdout.contains("CopyHostToDevice"));
}
