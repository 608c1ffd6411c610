//! What an appender writes is what a reader finds, with the ids of its session, and nothing else.

use rpd_schema::{ApiId, Appender, ErrorKind, OpId, OpRow, create, open_read};
use rusqlite::Connection;
use std::path::Path;

use crate::sample;
use crate::sample::{api, every_table, kernel, lines, number};

fn read(path: &Path, query: &str) -> Vec<String> {
    lines(&open_read(path).unwrap().0, query)
}

/// One row of every table, with `$` for the session's offset.
const EVERY_TABLE: [(&str, &str); 26] = [
    ("rocpd_kernelcodeobject", "$1|24|32|0 / $2|12|16|0"),
    ("ext_kernelcodeobject", "$1|$3|4|1|2|1024|16|280|64|256"),
    ("rocpd_copyapi", "$2|0xfeed|12884901888|0|0|1|0x10|0x20|1|-1|1|0"),
    ("rocpd_barrierop", "$3|2|none|"),
    ("rocpd_op_inputSignals", "$1|$2|$3"),
    ("rocpd_kernelapi", "$1|0x0|4|2|1|64|1|1|1024|16|0x7f001000|system|agent|$1|$3"),
    ("ext_dispatch", "$1|$3|4|2|1|64|1|1|1024|16|0x7f001000|0"),
    ("ext_launchattribute", "$1|3|-1|2|1|1"),
    ("ext_tick", "$1|12345|-1"),
    ("rocpd_monitor", "$1|gpu|1|sclk|1000|3000|1700"),
    (
        "ext_codeobject",
        "$1|9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08|\
        file:///opt/add#offset=4096&size=9216|gfx90a:xnack-|9216",
    ),
    ("ext_codeobject_kernel", "$1|$1"),
    ("ext_candidate", "$1|/cache/add.hsaco||gfx90a|900|loaded|"),
    ("ext_replacement", "$1|$1|$1|$2|$1"),
    ("ext_validation", "$1|$1|2|16|f32|1024|1024|1|-3|1.5|1.75|0.25|"),
    (
        "ext_instrumentation",
        "$1|$1|$3|1|2|1|MemoryAnalysis|32|4096|64|1|too many lines / $2||$3|1|2|1|MemoryAnalysis|32|4096|64|1|too many lines",
    ),
    ("ext_memoryaccess", "$1|$1|add.hip|7|3|read|global|4|32|64|128|0"),
    ("ext_heatmap", "$2|$1|2130706432|1048576|2048"),
    ("ext_timeinterval", "$3|$1|2|30|1000|1040"),
    (
        "ext_basicblock",
        "$4|$1|1|-1|add.hip|9|4|3|60|10|20|30|30|30|0.25 / $5|$1|1|3||0|4|0|0|0|0|0|0|9223372036854775807|0.5",
    ),
    ("ext_handlervalue", "$6|$1|entropy|0.75"),
    ("rocpd_stackframe", "$1|$1|0|$11"),
    ("rocpd_api_ops", "$1|$1|$1 / $2|$2|$2"),
    (
        "rocpd_op",
        "$1|1|2|1|0xabc0|1100|1400|$3|$4 / $2|1|3|0|0x0|2100|2500|$1|$7 / $3|1|3|0|0x0|2500|2500|$1|$8",
    ),
    (
        "rocpd_api",
        "$1|100|101|1000|1050|$2|$1 / $2|100|101|2000|2600|$5|$6 / $2147483648|100|101|500|3000|$9|$10",
    ),
    (
        "rocpd_string",
        "$1| / $2|hipLaunchKernel / $3|vectorAdd(float*) / $4|KernelExecution / $5|hipMemcpy / \
         $6|dst=0x10 | size=4096 / $7|CopyHostToDevice / $8|Barrier / $9|UserMarker / $10|step 1 / $11|main at add.cpp:7",
    ),
];

#[test]
fn a_row_of_every_table_comes_back_as_it_was_given_in_every_session() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    for session in 0..2_i64 {
        let mut appender = Appender::open(&path).unwrap();
        assert_eq!(i64::from(appender.session()), session);
        appender.begin().unwrap();
        every_table(&mut appender);
        appender.commit().unwrap();
        for (table, expected) in EVERY_TABLE {
            let offset = session << 32;
            let mut resolved = String::new();
            for (index, part) in expected.split('$').enumerate() {
                let digits = part.chars().take_while(char::is_ascii_digit).count();
                if index == 0 || digits == 0 {
                    resolved.push_str(part);
                } else {
                    let id = part[..digits].parse::<i64>().unwrap() + offset;
                    resolved.push_str(&format!("{id}{}", &part[digits..]));
                }
            }
            // Rows are in id order, so this session's are the last; the first column is the id.
            let first = if table == "rocpd_string" { offset + 1 } else { offset };
            let column = read(&path, &format!("SELECT name FROM pragma_table_info('{table}') LIMIT 1"));
            let query = format!("SELECT * FROM {table} WHERE {} >= {first}", column[0]);
            assert_eq!(read(&path, &query).join(" / "), resolved, "{table} of session {session}");
        }
    }
    assert_eq!(sample::names(directory.path()), ["t.rpd"], "no journal stays");
    assert_eq!(read(&path, "PRAGMA integrity_check"), ["ok"]);
    assert_eq!(read(&path, "PRAGMA foreign_key_check"), [""; 0]);
    assert_eq!(read(&path, "SELECT value FROM rocpd_metadata WHERE tag = 'session_count'"), ["2"]);
}

#[test]
fn the_views_show_what_was_appended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    every_table(&mut appender);
    appender.commit().unwrap();
    for (view, expected) in [
        ("kernel", "1|1|2|1|1100|1400|300|0x0|4|2|1|64|1|1|1024|16|vectorAdd(float*)"),
        (
            "dispatch",
            "1|1|2|1|1100|1400|vectorAdd(float*)|KernelExecution|vectorAdd(float*)|4|2|1|64|1|1|1024|16|0x7f001000|0",
        ),
        ("copy", "2|100|101|2000|2600|hipMemcpy|0xfeed|12884901888|0|0|1|0x10|0x20|1|-1|1|0"),
        ("copyop", "2|1|3|0|2100|2500|400|0xfeed|12884901888|0|0|1|0x10|0x20|1|-1|1|0|hipMemcpy"),
        ("stackframe", "1|hipLaunchKernel|0|main at add.cpp:7"),
        ("busy", "1|700|1400|0.5"),
        ("api WHERE id > 100", "2147483648|100|101|500|3000|UserMarker|step 1"),
        ("op WHERE id = 2", "2|1|3|0|2100|2500||CopyHostToDevice"),
    ] {
        assert_eq!(read(&path, &format!("SELECT * FROM {view}")), [expected], "{view}");
    }
    assert_eq!(
        read(&path, "SELECT Name, TotalCalls, TotalDuration_us, Ave_us, round(Percentage, 1) FROM top"),
        ["CopyHostToDevice|1|0|0.4|57.1", "vectorAdd(float*)|1|0|0.3|42.9", "Barrier|1|0|0|0"]
    );
}

#[test]
fn top_counts_equal_ops_and_equal_names_with_different_ids() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    for _ in 0..2 {
        let mut appender = Appender::open(&path).unwrap();
        appender.begin().unwrap();
        let description = appender.intern("k").unwrap();
        let op_type = appender.intern("KernelExecution").unwrap();
        for id in 1..=3 {
            let op = OpRow {
                id: OpId(id),
                gpu: 0,
                queue: 0,
                sequence: id,
                completion_signal: 0,
                start: 1000,
                end: 5000,
                description,
                op_type,
            };
            appender.op(&op).unwrap();
        }
        appender.commit().unwrap();
    }
    assert_eq!(read(&path, "SELECT * FROM top"), ["k|6|24|4|100"]);
}

#[test]
fn numbers_of_rows_around_the_size_of_a_statement_all_arrive() {
    let directory = tempfile::tempdir().unwrap();
    for count in [0, 1, 9, 10, 11, 99, 100, 101, 119, 1234] {
        let path = directory.path().join(format!("{count}.rpd"));
        let mut appender = Appender::open(&path).unwrap();
        appender.begin().unwrap();
        (1..=count).for_each(|n| kernel(&mut appender, n, &format!("kernel {}", n % 150)));
        appender.commit().unwrap();
        let (connection, _) = open_read(&path).unwrap();
        for table in [
            "rocpd_api",
            "rocpd_op",
            "rocpd_api_ops",
            "rocpd_kernelapi",
            "ext_dispatch",
            "kernel",
            "dispatch",
            "api",
        ] {
            assert_eq!(
                number(&connection, &format!("SELECT count(*) FROM {table}")),
                count as i64,
                "{table} of {count}"
            );
        }
        assert_eq!(
            number(&connection, "SELECT count(*) FROM op WHERE description <> 'kernel ' || (id % 150)"),
            0
        );
    }
}

#[test]
fn any_text_comes_back_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let long = "x".repeat(3 << 20);
    let repaired = String::from_utf8_lossy(b"bad \xff\xfe byte").into_owned();
    let texts = [
        "it's \"quoted\"; DROP TABLE rocpd_op; --",
        "nul\0inside",
        "two\nlines\r\n",
        "\u{1f409}",
        "",
        " ",
        &long,
        &repaired,
    ];
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    let ids: Vec<_> = texts.iter().map(|text| appender.intern(text).unwrap()).collect();
    let again: Vec<_> = texts.iter().map(|text| appender.intern(text).unwrap()).collect();
    assert_eq!(ids[..6], again[..6], "one id each");
    assert_eq!(ids[4], appender.empty());
    for (index, text) in texts.iter().enumerate() {
        api(&mut appender, ApiId::marker(index as u64), "UserMarker", text, 0, 0);
    }
    appender.commit().unwrap();
    let (connection, _) = open_read(&path).unwrap();
    let mut statement = connection.prepare("SELECT args FROM api ORDER BY id").unwrap();
    let found: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(found, texts);
}

#[test]
fn numbers_beyond_what_sqlite_holds_are_clamped_and_handles_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    let empty = appender.empty();
    let op = OpRow {
        id: OpId(1),
        gpu: u32::MAX,
        queue: u32::MAX,
        sequence: u64::MAX,
        completion_signal: u64::MAX,
        start: 0,
        end: u64::MAX,
        description: empty,
        op_type: empty,
    };
    appender.op(&op).unwrap();
    appender.commit().unwrap();
    assert_eq!(
        read(&path, "SELECT * FROM rocpd_op"),
        ["1|4294967295|4294967295|9223372036854775807|0xffffffffffffffff|0|9223372036854775807|1|1"]
    );
}

#[test]
fn rollback_leaves_nothing_and_the_appender_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    let kept = appender.intern("kept").unwrap();
    appender.commit().unwrap();
    let contents = |path: &Path| {
        let (connection, _) = open_read(path).unwrap();
        let tables = lines(
            &connection,
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
        );
        tables
            .iter()
            .map(|table| lines(&connection, &format!("SELECT '{table}', * FROM {table}")))
            .collect::<Vec<_>>()
    };
    let before = contents(&path);
    appender.begin().unwrap();
    every_table(&mut appender);
    (10..500).for_each(|n| kernel(&mut appender, n, &format!("lost {n}")));
    appender.session_fact("host", "lost").unwrap();
    appender.gpu_fact(0, "name", "lost").unwrap();
    let lost = appender.intern("lost 10").unwrap();
    appender.rollback();
    assert_eq!(contents(&path), before);
    appender.rollback();

    appender.begin().unwrap();
    assert_eq!(appender.intern("kept").unwrap(), kept);
    assert_ne!(
        appender.intern("lost 10").unwrap(),
        lost,
        "an id of a text that is gone comes not to mean another"
    );
    every_table(&mut appender);
    appender.session_fact("host", "here").unwrap();
    appender.gpu_fact(0, "name", "here").unwrap();
    appender.commit().unwrap();
    assert_eq!(read(&path, "SELECT count(*) FROM rocpd_op"), ["3"]);
    assert_eq!(read(&path, "SELECT count(*) FROM op"), ["3"]);
    assert_eq!(read(&path, "SELECT count(*) FROM ext_tick"), ["1"]);
    assert_eq!(
        read(&path, "SELECT value FROM rocpd_metadata WHERE tag LIKE '%::%::%' AND tag NOT LIKE 'ref%'"),
        ["here", "here"]
    );
}

#[test]
fn an_id_that_is_used_twice_is_named_and_spoils_its_transaction_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    kernel(&mut appender, 1, "k");
    kernel(&mut appender, 1, "k");
    let error = appender.commit().unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Sqlite);
    assert!(error.to_string().ends_with("t.rpd: UNIQUE constraint failed: rocpd_api.id"), "{error}");
    appender.rollback();
    appender.begin().unwrap();
    kernel(&mut appender, 2, "k");
    appender.commit().unwrap();
    assert_eq!(read(&path, "SELECT id FROM kernel"), ["2"]);
}

#[test]
fn rows_outside_of_a_transaction_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    assert_eq!(appender.intern("x").unwrap_err().kind(), &ErrorKind::NoTransaction);
    assert_eq!(appender.api_op(ApiId::call(1), OpId(1)).unwrap_err().kind(), &ErrorKind::NoTransaction);
    assert_eq!(appender.commit().unwrap_err().kind(), &ErrorKind::NoTransaction);
    appender.begin().unwrap();
    assert_eq!(appender.begin().unwrap_err().kind(), &ErrorKind::InTransaction);
    appender.commit().unwrap();
}

#[test]
fn what_is_lacking_in_an_older_file_is_added_and_nothing_else_changes() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample::real_trace("matmul_result.rpd", directory.path());
    let before = read(&path, "SELECT name, sql FROM sqlite_master ORDER BY name");
    let top = read(&path, "SELECT * FROM top");
    rpd_schema::create_or_check(&path).unwrap();
    assert_eq!(
        read(&path, "SELECT name, sql FROM sqlite_master ORDER BY name"),
        before,
        "a check changes nothing"
    );
    let mut appender = Appender::open(&path).unwrap();
    assert_eq!(appender.session(), 1);
    appender.begin().unwrap();
    every_table(&mut appender);
    appender.commit().unwrap();
    let after = read(&path, "SELECT name, sql FROM sqlite_master ORDER BY name");
    assert!(before.iter().all(|object| after.contains(object)));
    let added: Vec<_> = after
        .iter()
        .filter(|object| !before.contains(object))
        .map(|object| object.split('|').next().unwrap())
        .collect();
    assert_eq!(
        added,
        [
            "cacheLineWaste",
            "dispatch",
            "ext_basicblock",
            "ext_block",
            "ext_blockcount",
            "ext_candidate",
            "ext_codeobject",
            "ext_codeobject_kernel",
            "ext_dispatch",
            "ext_handlervalue",
            "ext_heatmap",
            "ext_instrumentation",
            "ext_kernelcodeobject",
            "ext_launchattribute",
            "ext_memoryaccess",
            "ext_replacement",
            "ext_tick",
            "ext_timeinterval",
            "ext_validation",
            "hotBlock",
            "instrumentationCost",
            "replacement",
            "rocpd_stackframe",
            "stackframe"
        ]
    );
    assert_eq!(read(&path, "SELECT count(*) FROM rocpd_op"), ["88"]);
    assert_ne!(read(&path, "SELECT * FROM top"), top);
    assert_eq!(read(&path, "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'"), ["2"]);
    assert_eq!(
        read(&path, "SELECT count(*) FROM rocpd_metadata WHERE tag = 'references::rocpd_string.id'"),
        ["4"]
    );
}

/// The views of recorders that wrote a row of `ext_dispatch` for each kernel would show no kernel that a call launched.
#[test]
fn views_of_older_recorders_show_what_is_written_now() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.rpd");
    Appender::open(&path).unwrap();
    let older = "SELECT O.\"gpuId\" AS \"gpuId\", D.\"workgroupZ\" AS \"workgroupZ\" FROM \"ext_dispatch\" D
        JOIN \"rocpd_op\" O ON O.\"id\" = D.\"op_id\"";
    let views = format!(
        "DROP VIEW \"dispatch\"; CREATE VIEW \"dispatch\" AS {older};
         CREATE VIEW \"instrumentationCost\" AS {older}; CREATE VIEW \"own\" AS {older}"
    );
    Connection::open(&path).unwrap().execute_batch(&views).unwrap();
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    kernel(&mut appender, 1, "vectorAdd(float*)");
    appender.commit().unwrap();
    drop(appender);
    Connection::open(&path).unwrap().execute_batch("DELETE FROM ext_dispatch").unwrap();
    let launched = "SELECT kernelName || ' ' || gridX || ' ' || workgroupX FROM dispatch";
    assert_eq!(read(&path, launched), ["vectorAdd(float*) 4 64"]);
    assert_eq!(read(&path, "SELECT count(*) FROM instrumentationCost"), ["0"]);
    assert_eq!(
        read(
            &path,
            "SELECT group_concat(name, ' ') FROM pragma_table_info('instrumentationCost') WHERE name = 'ratio'"
        ),
        ["ratio"]
    );
    assert_eq!(read(&path, "SELECT count(*) FROM own"), ["0"], "what is not ours stays");
}

#[test]
fn a_file_that_is_replaced_under_its_writer_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    std::fs::rename(&path, directory.path().join("away.rpd")).unwrap();
    create(&path).unwrap();
    appender.begin().unwrap();
    appender.intern("x").unwrap();
    assert_eq!(appender.commit().unwrap_err().kind(), &ErrorKind::Moved);
    appender.rollback();
    drop(appender);
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    kernel(&mut appender, 1, "k");
    appender.commit().unwrap();
    assert_eq!(read(&path, "SELECT count(*) FROM kernel"), ["1"]);
    assert_eq!(read(&directory.path().join("away.rpd"), "SELECT count(*) FROM rocpd_op"), ["0"]);
}

#[test]
fn a_reader_that_holds_the_file_delays_a_commit_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open_within(&path, std::time::Duration::from_millis(20)).unwrap();
    let (reader, _) = open_read(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM rocpd_api").unwrap();
    appender.begin().unwrap();
    kernel(&mut appender, 1, "k");
    assert_eq!(appender.commit().unwrap_err().kind(), &ErrorKind::Locked);
    reader.execute_batch("COMMIT").unwrap();
    kernel(&mut appender, 2, "k");
    appender.commit().unwrap();
    assert_eq!(read(&path, "SELECT id FROM kernel"), ["1", "2"]);
}

#[test]
fn a_file_in_wal_mode_is_brought_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL").unwrap();
    assert_eq!(rpd_schema::identify(&path).unwrap(), rpd_schema::Version::V2);
    assert_eq!(sample::names(directory.path()), ["t.rpd"]);
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    kernel(&mut appender, 1, "k");
    appender.commit().unwrap();
    assert_eq!(read(&path, "PRAGMA journal_mode"), ["delete"]);
    assert_eq!(read(&path, "SELECT id FROM kernel"), ["1"]);
}
