//! A part of a trace for every verb that reads one: each option of the region either gives the answer of a trace that has that part alone,
//! made by plain SQL, or is refused with a reason.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::generated::generated;
use crate::harness::{Dir, Verb};

/// The options, as their help has them.
const OPTIONS: [&str; 12] = [
    "--start",
    "--end",
    "--gpu",
    "--queue",
    "--stream",
    "--pid",
    "--tid",
    "--session",
    "--rank",
    "--node",
    "--in",
    "--kernel",
];

/// Words of verbs whose answer about a part is that of a trace which has nothing else, besides those of [`exact`]. FILE is the trace.
const EXACT: [&[&str]; 21] = [
    &["top", "--json", "FILE"],
    &["top", "--json", "--by", "api", "FILE"],
    &["top", "--json", "--by", "marker", "FILE"],
    &["top", "--json", "--by", "stream", "FILE"],
    &["top", "--json", "--by", "rank", "FILE"],
    &["top", "--json", "--by", "thread", "--percentiles", "FILE"],
    &["categories", "--json", "FILE"],
    &["kernel", "--json", "FILE", "kernel1"],
    &["libraries", "--json", "FILE"],
    &["diff", "--json", "FILE", "FILE"],
    &["sql", "--json", "FILE", "SELECT apiName, count(*), sum(end - start) FROM api GROUP BY 1 ORDER BY 1"],
    &["sql", "--json", "FILE", "top_kernels"],
    &["replacements", "--json", "FILE"],
    &["durations", "FILE"],
    &["export", "rocprofv3", "FILE"],
    &["export", "html", "FILE"],
    &["export", "csv", "FILE", "kernels"],
    &["export", "jsonl", "FILE", "apis"],
    &["export", "library-trace", "--date", "today", "FILE"],
    &["export", "library-perf", "--date", "today", "FILE"],
    &["blocks", "--json", "FILE"],
];

/// What has more of the trace than the part: what was open around it or ran at the same time, its first moment, the order of its threads. What is in
/// it of a part is compared with SQL or a model in `export_region.rs`, `flame.rs` and `energy.rs`.
const AROUND: [&[&str]; 9] = [
    &["energy", "--json", "FILE"],
    &["export", "chrome", "FILE"],
    &["export", "perfetto", "FILE"],
    &["export", "kineto", "FILE"],
    &["export", "collapsed", "FILE"],
    &["export", "speedscope", "FILE"],
    &["export", "timeline", "FILE"],
    &["export", "arrow", "FILE", "copies"],
    &["export", "parquet", "FILE", "kernels"],
];

/// What takes a part and writes files of its own: its tables are compared with the JSON of the same part in `rocprofv3.rs`.
const IN_FILES: [&[&str]; 1] = [&["export", "rocprofv3-csv", "FILE"]];

/// The options that are about operations.
const ABOUT_OPERATIONS: [&str; 4] = ["--gpu", "--queue", "--stream", "--kernel"];

/// Where the option is known to mean something else than the part alone, which is tested elsewhere: what an idle GPU waited for may be a call of another
/// stream, rpd code finds a pattern in names of what ran instead, rpd diff compares iterations that are alike in all that they launch, and a call of a
/// library has what calls inside it launched (`libraries.rs`).
fn looks_further(verb: &[&str], option: &str) -> bool {
    let is_of_libraries =
        ["libraries", "library-trace", "library-perf"].iter().any(|name| verb.contains(name));
    // Memory has no part by operations, and says so.
    matches!((verb[0], option), ("gaps", "--stream") | ("code", "--kernel"))
        || (verb[0] == "memory" && ABOUT_OPERATIONS.contains(&option))
        || ((verb[0] == "diff" || is_of_libraries) && ABOUT_OPERATIONS.contains(&option))
}

/// The words of verbs, among them each verb of which the tables have nothing and that has JSON of one trace.
fn exact(verbs: &[Verb]) -> Vec<Vec<&str>> {
    let is_named = |verb: &Verb| {
        let tables = EXACT.iter().chain(&AROUND).chain(&IN_FILES);
        tables.into_iter().any(|words| words.starts_with(&verb.with(&[])))
    };
    let others = verbs.iter().filter(|verb| {
        verb.has_option("--session") && verb.has_option("--json") && verb.needs_a_file_alone()
    });
    let others = others.filter(|verb| !is_named(verb)).map(|verb| verb.with(&["--json", "FILE"]));
    EXACT.iter().map(|words| words.to_vec()).chain(others).collect()
}

#[test]
fn a_part_is_what_plain_sql_leaves() {
    let dir = Dir::new();
    let trace = parts(&dir);
    let verbs = dir.verbs();
    let exact = exact(&verbs);
    assert!(exact.len() > EXACT.len(), "{exact:?}");
    let around = AROUND.map(<[_]>::to_vec);
    let whole: Vec<_> = exact.iter().chain(&around).map(|verb| answer(&dir, verb, &trace, &[])).collect();
    assert!(whole.iter().all(|answer| answer.0 == Some(0)), "every verb has an answer for the whole trace");
    let takes = |words: &[&str], option: &str| {
        verbs.iter().any(|verb| words.starts_with(&verb.with(&[])) && verb.has_option(option))
    };
    let cases = cases(&dir, &trace);
    assert_eq!(cases.each_ref().map(|case| case.options[0].as_str()), OPTIONS);
    for case in &cases {
        let option = case.options[0].as_str();
        fs::copy(dir.path(&trace), dir.path("part.rpd")).unwrap();
        dir.open("part.rpd").execute_batch(&case.only()).unwrap();
        let answers = exact.iter().chain(&around).zip(&whole).enumerate();
        for (at, (verb, whole)) in answers.filter(|(_, (verb, _))| takes(verb, option)) {
            let asked = answer(&dir, verb, &trace, &case.options);
            let is_ignored = asked == *whole;
            assert!(!is_ignored, "{verb:?} {:?} is ignored", case.options);
            if at < exact.len() && !looks_further(verb, option) {
                let part = answer(&dir, verb, "part.rpd", &[]);
                assert!(asked == part, "{verb:?} {:?}\nasked: {asked:?}\npart: {part:?}", case.options);
            }
        }
    }
}

#[test]
fn what_takes_no_part_says_why() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let verbs = dir.verbs();
    let mut refused = BTreeSet::new();
    for verb in verbs.iter().filter(|verb| verb.has_a_file() && verb.words[0] != "create") {
        for option in OPTIONS.iter().filter(|option| !verb.has_option(option)) {
            let ran = dir.run(&verb.with(&[option, "1", &trace]));
            ran.expect(2).says(&[option, "does not serve here: "]);
            assert!(ran.stdout.is_empty(), "{ran}");
            refused.insert(&verb.words);
        }
    }
    assert!(refused.len() > 12, "{refused:?}");
    // Of a code object there is no part.
    dir.write("empty.hsaco", "");
    for option in OPTIONS.iter().filter(|option| **option != "--kernel") {
        dir.run(&["code", "empty.hsaco", option, "1"]).expect(1).says(&[option, "which empty.hsaco is not"]);
    }
}

#[test]
fn every_verb_that_takes_a_part_is_compared() {
    let dir = Dir::new();
    let verbs = dir.verbs();
    let mut tested = exact(&verbs);
    tested.extend(AROUND.iter().chain(&IN_FILES).map(|words| words.to_vec()));
    for verb in verbs.iter().filter(|verb| verb.has_a_file() && verb.has_option("--session")) {
        let is_tested = tested.iter().any(|words| words.starts_with(&verb.with(&[])));
        assert!(
            is_tested,
            "rpd {:?}: is its answer about a part that of a trace which has nothing else?",
            verb.words
        );
    }
}

/// An option with its value, and what it means in SQL: of calls A, of operations O, and of those that no call caused.
struct Case {
    options: Vec<String>,
    calls: String,
    ops: String,
    uncaused: String,
}

impl Case {
    /// Leaves in a trace what is in the part.
    fn only(&self) -> String {
        let Case { calls, ops, uncaused, .. } = self;
        let causing = match ops.as_str() {
            "1" => "1",
            _ => {
                "(N.string = 'UserMarker' OR EXISTS (SELECT 1 FROM rocpd_api_ops L WHERE L.api_id = A.id AND L.op_id IN kept_ops))"
            }
        };
        let mut sql = format!(
            "CREATE TEMP TABLE kept_ops AS SELECT O.id FROM rocpd_op O WHERE ({ops}) AND (
                 EXISTS (SELECT 1 FROM rocpd_api_ops L JOIN rocpd_api A ON A.id = L.api_id WHERE L.op_id = O.id AND ({calls}))
                 OR ({uncaused}) AND NOT EXISTS (SELECT 1 FROM rocpd_api_ops L WHERE L.op_id = O.id));
             CREATE TEMP TABLE kept_calls AS SELECT A.id FROM rocpd_api A JOIN rocpd_string N ON N.id = A.apiName_id
                 WHERE ({calls}) AND {causing};"
        );
        for (table, column, kept) in [
            ("rocpd_api", "id", "kept_calls"),
            ("rocpd_op", "id", "kept_ops"),
            ("rocpd_api_ops", "api_id", "kept_calls"),
            ("rocpd_api_ops", "op_id", "kept_ops"),
            ("rocpd_kernelapi", "api_ptr_id", "kept_calls"),
            ("rocpd_copyapi", "api_ptr_id", "kept_calls"),
            ("rocpd_stackframe", "api_ptr_id", "kept_calls"),
            ("ext_librarycall", "api_ptr_id", "kept_calls"),
            ("ext_dispatch", "op_id", "kept_ops"),
            ("ext_replacement", "op_id", "kept_ops"),
            ("ext_validation", "op_id", "kept_ops"),
            ("ext_instrumentation", "op_id", "kept_ops"),
        ] {
            sql += &format!("DELETE FROM {table} WHERE {column} IS NULL OR {column} NOT IN {kept};");
        }
        sql + "DELETE FROM ext_blockcount WHERE instrumentation_id NOT IN (SELECT id FROM ext_instrumentation);"
    }
}

/// A trace in which every option has something to leave out.
pub(crate) fn parts(dir: &Dir) -> String {
    let trace = generated(dir, "t.rpd", 11, 300);
    let connection = dir.open(&trace);
    let mut sql = String::from(
        "DELETE FROM rocpd_monitor;
         INSERT INTO rocpd_monitor SELECT gpuId + 1, 'gpu', gpuId, 'power', min(start), max(\"end\"), '90' FROM rocpd_op GROUP BY gpuId;
         UPDATE rocpd_string SET string = 'hipblaslt-bench -m ' || string WHERE string LIKE 'argument = %' AND id % 2;
         UPDATE rocpd_kernelapi SET stream = '0x' || (api_ptr_id % 2);
         UPDATE rocpd_copyapi SET stream = '0x' || (api_ptr_id % 2);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::env::RANK', '0'), ('session::2::env::RANK', '1'),
             ('pid_stride', '101'), ('gpu_stride', '1'), ('session::0::lost::full', '3'), ('session::2::launches_without_op', '5');
         INSERT INTO ext_kernelcodeobject SELECT id, (id >> 32 << 32) + 20 + id % 5, 0, 0, 0, 0, 0, 64, 64, 1024 FROM rocpd_kernelcodeobject;
         INSERT INTO ext_validation SELECT id, op_id, 0, 0, 'f32', 10, 8, id % 2, 1, '1', '2', '1', '' FROM ext_replacement;
         INSERT INTO ext_instrumentation SELECT id + 100000, op_id, kernelName_id, gpuId, queueId, sequenceId, 'blocks', 0, 0, 0, 0, ''
             FROM ext_instrumentation WHERE analyzer = 'MemoryAnalysis' AND op_id IS NOT NULL;
         INSERT INTO ext_block SELECT id, id, 0, 'f', 64, 8, 'a.hip', 1, 2, 1, 1, 0, 0, 0, 0, 0, 0 FROM rocpd_kernelcodeobject;
         INSERT INTO ext_blockcount SELECT I.id, I.id, (I.id >> 32 << 32) + 1, 1, I.id % 7 + 1, NULL, NULL FROM ext_instrumentation I
             WHERE analyzer = 'blocks';",
    );
    for session in [0_i64, 2] {
        let offset = session << 32;
        sql += &format!(
            "INSERT INTO rocpd_string VALUES ({offset} + 60, 'rocblas_sgemm'), ({offset} + 61, 'rocblas'), ({offset} + 62, 'blas'),
                 ({offset} + 63, 'm = 3 | n = 4 | k = 5');
             INSERT INTO ext_librarycall SELECT id, {offset} + 61, {offset} + 62 FROM rocpd_api
                 WHERE id >> 32 = {session} AND apiName_id = {offset} + 4 AND id % 2;
             UPDATE rocpd_api SET apiName_id = {offset} + 60, args_id = {offset} + 63 WHERE id IN (SELECT api_ptr_id FROM ext_librarycall)
                 AND id >> 32 = {session};
             INSERT INTO rocpd_string SELECT id + 10000, 'ptr=0x' || printf('%x', id * 4096) || ' | size=0x100' FROM rocpd_api
                 WHERE apiName_id = {offset} + 3;
             UPDATE rocpd_api SET args_id = id + 10000 WHERE apiName_id = {offset} + 3;"
        );
    }
    connection.execute_batch(&sql).unwrap();
    trace
}

fn cases(dir: &Dir, trace: &str) -> [Case; 12] {
    let connection = dir.open(trace);
    let text = |query: &str| connection.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    let middle = number("SELECT CAST(avg(start) AS integer) FROM rocpd_api WHERE id < 1000");
    let marker = text(
        "SELECT args FROM api WHERE apiName = 'UserMarker' GROUP BY 1 HAVING count(*) = 1 ORDER BY sum(\"end\" - start) DESC, 1 LIMIT 1",
    );
    let of_marker = "FROM api M WHERE M.apiName = 'UserMarker'";
    let during = format!("SELECT 1 {of_marker} AND M.args = '{marker}'");
    let on_stream = "SELECT 1 FROM rocpd_api_ops S WHERE S.op_id = O.id AND S.api_id IN (
        SELECT api_ptr_id FROM rocpd_kernelapi WHERE stream = '0x1' UNION SELECT api_ptr_id FROM rocpd_copyapi WHERE stream = '0x1')";
    let name = "(SELECT coalesce(nullif(D.string, ''), T.string) FROM rocpd_string D, rocpd_string T
        WHERE D.id = O.description_id AND T.id = O.opType_id)";
    let case = |option: &str, value: &str, calls: &str, ops: &str, uncaused: &str| Case {
        options: vec![option.to_string(), value.to_string()],
        calls: calls.to_string(),
        ops: ops.to_string(),
        uncaused: uncaused.to_string(),
    };
    let time = middle.to_string();
    [
        case("--start", &time, &format!("A.start >= {middle}"), "1", &format!("O.start >= {middle}")),
        case("--end", &time, &format!("A.start <= {middle}"), "1", &format!("O.start <= {middle}")),
        case("--gpu", "1", "1", "O.gpuId = 1", "1"),
        case("--queue", "2", "1", "O.queueId = 2", "1"),
        case("--stream", "0x1", "1", &format!("EXISTS ({on_stream})"), "0"),
        case("--pid", "102", "A.pid = 102", "1", "0"),
        case("--tid", "101", "A.tid = 101", "1", "0"),
        case("--session", "2", "A.id >> 32 = 2", "1", "O.id >> 32 = 2"),
        case("--rank", "1", "A.id >> 32 = 2", "1", "O.id >> 32 = 2"),
        case("--node", "1", "A.pid / 101 = 1", "1", "O.gpuId = 1"),
        case(
            "--in",
            &marker,
            &format!("EXISTS ({during} AND M.pid = A.pid AND A.start BETWEEN M.start AND M.\"end\")"),
            "1",
            &format!("EXISTS ({during} AND O.start BETWEEN M.start AND M.\"end\")"),
        ),
        case("--kernel", "kernel2", "1", &format!("{name} LIKE '%kernel2%'"), "1"),
    ]
}

/// The status and what a verb writes, but for what is the file's and not its rows'.
fn answer(dir: &Dir, verb: &[&str], trace: &str, options: &[String]) -> (Option<i32>, String) {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let arguments: Vec<&str> =
        verb.iter().map(|word| if *word == "FILE" { trace } else { word }).chain(options).collect();
    let ran = dir.rpd(&arguments).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout).replace("part.rpd", "t.rpd");
    let of_whole: &[&str] = match verb[0] {
        "info" => &["file", "size_bytes", "tables", "lost", "launches_without_op"],
        "libraries" => &["joules"],
        "replacements" => &[
            "candidates",
            "instrumented",
            "idle_before_ns",
            "overlapped_percent",
            "after_other_percent",
            "by_turns",
            "remarks",
        ],
        _ => &[],
    };
    let text = match (verb[0], of_whole) {
        ("export", _) => {
            let lines = text.lines().map(|line| without_seconds(line, verb[1]));
            lines.collect::<Vec<_>>().join("\n")
        }
        (_, []) => text,
        (_, of_whole) => {
            let mut shown: Value = serde_json::from_str(&text).unwrap();
            without(&mut shown, of_whole);
            shown.to_string()
        }
    };
    (ran.status.code(), text)
}

/// Takes out of an answer what is of the whole trace although a part was asked for: the file, losses, candidates of a kernel cache, what
/// ran beside a dispatch and before it, and joules, which are shared with what ran beside. Sessions and GPUs that have nothing are in no part.
fn without(shown: &mut Value, of_whole: &[&str]) {
    match shown {
        Value::Object(fields) => {
            fields.retain(|name, _| !of_whole.contains(&name.as_str()));
            if let Some(Value::Array(sessions)) = fields.get_mut("sessions") {
                sessions.retain(|session| session["calls"] != 0 || session["operations"] != 0);
            }
            if let Some(Value::Array(gpus)) = fields.get_mut("gpus") {
                gpus.retain(|gpu| gpu["queues"] != Value::Array(Vec::new()));
            }
            fields.values_mut().for_each(|value| without(value, of_whole));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| without(value, of_whole)),
        _ => {}
    }
}

/// A row without its seconds since the trace's first call.
fn without_seconds(line: &str, format: &str) -> String {
    match format {
        "jsonl" => {
            let mut row: Value = serde_json::from_str(line).unwrap();
            row.as_object_mut().unwrap().remove("start_s");
            row.to_string()
        }
        "csv" => {
            let cells: Vec<&str> = line.split(',').collect();
            [&cells[..4], &cells[5..]].concat().join(",")
        }
        _ => line.to_string(),
    }
}
