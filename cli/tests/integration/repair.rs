//! `rpd check --repair`: what is mended, how, and what stands in the file afterwards.

use std::fs;

use rusqlite::Connection;

use crate::check::{Answer, check};
use crate::harness::Dir;
use crate::sound::{KERNELS, REPLACED, sound};

fn number(trace: &Connection, query: &str) -> i64 {
    trace.query_row(query, [], |row| row.get(0)).unwrap()
}

/// Damages a sound trace, repairs it, and checks what was done: `kind place rows done`.
#[track_caller]
fn repairs(dir: &Dir, damage: &str, expected: &[&str]) -> Answer {
    let trace = sound(dir, "t.rpd");
    dir.open(&trace).execute_batch(damage).unwrap();
    let answer = check(dir, &["--repair", &trace]);
    let done: Vec<String> = answer
        .repairs
        .iter()
        .map(|repair| format!("{} {} {} {}", repair.kind, repair.place, repair.rows, repair.done))
        .collect();
    assert_eq!(done, expected);
    // What was done is in the file, and there is nothing more to do.
    let noted = "SELECT count(*) FROM rocpd_metadata WHERE tag GLOB 'repaired::*' AND value GLOB '*: * (rows: *, 20*Z)'";
    assert_eq!(number(&dir.open(&trace), noted), expected.len() as i64);
    let bytes = fs::read(dir.path(&trace)).unwrap();
    dir.run(&["check", "--repair", &trace]).expect(i32::from(answer.errors > 0)).says(&["nothing to repair"]);
    assert!(fs::read(dir.path(&trace)).unwrap() == bytes);
    answer
}

#[test]
fn links_and_arguments_of_what_is_not_there_go() {
    let dir = Dir::new();
    let answer = repairs(
        &dir,
        "DELETE FROM rocpd_op WHERE id = 3; DELETE FROM rocpd_api WHERE id = 5",
        &[
            "dangling-id rocpd_api_ops.api_id 1 removed",
            "dangling-id rocpd_api_ops.op_id 1 removed",
            "dangling-id rocpd_kernelapi.api_ptr_id 1 removed",
            "dangling-id ext_dispatch.op_id 1 removed",
            "dangling-id ext_tick.op_id 1 removed",
        ],
    );
    // The op whose call was gone is still there: it ran.
    assert_eq!(answer.found(), ["unlinked-op rocpd_op 1"]);
    let trace = dir.open("t.rpd");
    assert_eq!(number(&trace, "SELECT count(*) FROM rocpd_op"), 2 * (KERNELS as i64 + 2) - 1);
}

/// The row of a call that is gone, or goes, says how its kernel was launched: the kernel keeps that.
#[test]
fn kernels_keep_their_launch_where_the_call_goes() {
    let dir = Dir::new();
    let launches = "SELECT count(*) FROM dispatch WHERE gridX = (SELECT gridX FROM rocpd_kernelapi WHERE api_ptr_id = 7)";
    let before = number(&dir.open(&sound(&dir, "before.rpd")), launches);
    let answer = repairs(
        &dir,
        "DELETE FROM ext_dispatch WHERE op_id IN (5, 6); DELETE FROM rocpd_api WHERE id = 5;
         UPDATE rocpd_api SET \"end\" = 1 WHERE id = 6",
        &[
            "dangling-id ext_dispatch 2 added, from launches whose call is gone",
            "negative-duration rocpd_api 1 removed",
            "dangling-id rocpd_api_ops.api_id 2 removed",
            "dangling-id rocpd_kernelapi.api_ptr_id 2 removed",
        ],
    );
    assert_eq!(answer.found(), ["unlinked-op rocpd_op 2"]);
    assert_eq!(number(&dir.open("t.rpd"), launches), before);
}

#[test]
fn rows_with_impossible_times_go_with_what_hangs_off_them() {
    let dir = Dir::new();
    let answer = repairs(
        &dir,
        "UPDATE rocpd_op SET \"end\" = 1 WHERE id = 2; UPDATE rocpd_op SET start = 0 WHERE id = 3;
         UPDATE rocpd_api SET \"end\" = 1 WHERE id = 301;",
        &[
            "impossible-time rocpd_op 1 removed",
            "negative-duration rocpd_op 1 removed",
            "negative-duration rocpd_api 1 removed",
            "dangling-id rocpd_api_ops.api_id 1 removed",
            "dangling-id rocpd_api_ops.op_id 2 removed",
            "dangling-id rocpd_stackframe.api_ptr_id 1 removed",
            "dangling-id ext_dispatch.op_id 2 removed",
            "dangling-id ext_tick.op_id 2 removed",
            "dangling-id rocpd_copyapi.api_ptr_id 1 removed",
        ],
    );
    assert_eq!(answer.found(), ["unlinked-op rocpd_op 1"]);
    let trace = dir.open("t.rpd");
    assert_eq!(number(&trace, "SELECT count(*) FROM rocpd_op WHERE \"end\" < start OR start = 0"), 0);
    assert_eq!(number(&trace, "SELECT min(start) FROM rocpd_api WHERE id = 3"), 3000, "nothing else changed");
}

#[test]
fn texts_and_code_objects_that_are_not_there_become_unknown() {
    let dir = Dir::new();
    let answer = repairs(
        &dir,
        "UPDATE rocpd_api SET args_id = 999 WHERE id IN (3, 4); UPDATE rocpd_op SET opType_id = 999 WHERE id = 3;
         UPDATE rocpd_kernelapi SET codeObject_id = 999 WHERE api_ptr_id = 3",
        &[
            "dangling-id rocpd_op.opType_id 1 set to the empty text",
            "dangling-id rocpd_api.args_id 2 set to the empty text",
            "dangling-id rocpd_kernelapi.codeObject_id 1 set to 0 (unknown)",
        ],
    );
    assert!(answer.findings.is_empty(), "{answer:?}");
    let trace = dir.open("t.rpd");
    assert_eq!(
        number(&trace, "SELECT count(*) FROM op"),
        2 * (KERNELS as i64 + 2),
        "the view has every op again"
    );
    assert_eq!(number(&trace, "SELECT codeObject_id FROM rocpd_kernelapi WHERE api_ptr_id = 3"), 0);
}

#[test]
fn a_dispatch_that_was_replaced_stays_one_whatever_is_known_of_it() {
    let dir = Dir::new();
    let answer = repairs(
        &dir,
        "UPDATE ext_replacement SET candidate_id = 'x', original_kernel_id = 99 WHERE op_id = 204;
         UPDATE ext_replacement SET op_id = 9999 WHERE id = 205;",
        &[
            "dangling-id ext_replacement.op_id 1 removed",
            "dangling-id ext_replacement.original_kernel_id 1 set to 0 (unknown)",
            "dangling-id ext_replacement.candidate_id 1 set to 0 (unknown)",
        ],
    );
    assert!(answer.findings.is_empty(), "{answer:?}");
    let replaced = 2 * REPLACED.count() as i64 - 1;
    assert_eq!(number(&dir.open("t.rpd"), "SELECT count(*) FROM replacement"), replaced);
    assert_eq!(number(&dir.open("t.rpd"), "SELECT count(*) FROM replacement WHERE path IS NULL"), 1);
}

#[test]
fn the_empty_text_is_made_where_there_is_none() {
    let dir = Dir::new();
    let answer = repairs(
        &dir,
        "DELETE FROM rocpd_string WHERE string = ''",
        &[
            "dangling-id rocpd_op.description_id 4 set to the empty text",
            "dangling-id rocpd_api.args_id 602 set to the empty text",
        ],
    );
    assert!(answer.findings.is_empty(), "{answer:?}");
    assert_eq!(number(&dir.open("t.rpd"), "SELECT count(*) FROM rocpd_string WHERE string = ''"), 1);
}

#[test]
fn what_the_format_has_is_added_and_replaced() {
    let dir = Dir::new();
    let answer = repairs(
        &dir,
        "DROP TABLE rocpd_monitor; DROP VIEW busy; DROP INDEX rocpd_strin_string_c7b9cd_idx;
         DROP VIEW top; CREATE VIEW top AS SELECT nowhere FROM rocpd_op; CREATE VIEW mine AS SELECT * FROM gone;",
        &[
            "missing-table rocpd_monitor 1 added, as a fresh file has it",
            "missing-index rocpd_strin_string_c7b9cd_idx 1 added, as a fresh file has it",
            "missing-view busy 1 added, as a fresh file has it",
            "broken-view top 1 replaced by that of a fresh file",
        ],
    );
    assert_eq!(answer.found(), ["broken-view mine 1"], "the user's own views are the user's");
    let trace = dir.open("t.rpd");
    assert_eq!(number(&trace, "SELECT sum(TotalCalls) FROM top"), 2 * (KERNELS as i64 + 2));
    assert_eq!(number(&trace, "SELECT count(*) FROM busy"), 1);
}

#[test]
fn metadata_is_put_right() {
    let dir = Dir::new();
    let answer = repairs(
        &dir,
        "DELETE FROM rocpd_metadata WHERE tag IN ('session_count', 'schema_version');
         INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', '(\"ext_gone\", \"name_id\")')",
        &[
            "schema-version rocpd_metadata 1 schema_version set to 2",
            "unknown-reference ext_gone.name_id 1 declaration removed",
            "unclaimed-id rocpd_metadata 1 session_count set to 2",
        ],
    );
    assert!(answer.findings.is_empty(), "{answer:?}");
    let trace = dir.open("t.rpd");
    assert_eq!(number(&trace, "SELECT value + 0 FROM rocpd_metadata WHERE tag = 'session_count'"), 2);
    assert_eq!(number(&trace, "SELECT count(*) FROM rocpd_metadata WHERE tag = 'schema_version'"), 1);
}

#[test]
fn a_link_counts_once() {
    let dir = Dir::new();
    repairs(
        &dir,
        "INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (6, 6), (6, 6), (7, 8)",
        &["duplicate-link rocpd_api_ops 2 removed"],
    );
    assert_eq!(number(&dir.open("t.rpd"), "SELECT count(*) FROM rocpd_api_ops WHERE op_id IN (6, 8)"), 3);
}

#[test]
fn nothing_is_invented() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    dir.open(&trace)
        .execute_batch(
            "DELETE FROM rocpd_metadata WHERE tag GLOB 'session::1::end_*'; UPDATE rocpd_op SET queueId = 'x' WHERE id = 1;
             UPDATE rocpd_op SET description_id = 1 WHERE id = 2; UPDATE rocpd_copyapi SET width = '' WHERE api_ptr_id = 301;
             DELETE FROM rocpd_api_ops WHERE op_id = 5; DELETE FROM ext_dispatch WHERE op_id = 6;
             DELETE FROM rocpd_kernelapi WHERE api_ptr_id = (SELECT api_id FROM rocpd_api_ops WHERE op_id = 6)",
        )
        .unwrap();
    let before = fs::read(dir.path(&trace)).unwrap();
    let answer = check(&dir, &["--repair", &trace]);
    assert_eq!(
        answer.found(),
        [
            "not-a-number rocpd_op.queueId 1",
            "unnamed-op rocpd_op 1",
            "missing-dispatch rocpd_op 1",
            "session-unfinished sessions 1",
            "empty-number rocpd_copyapi.width 1",
            "unlinked-op rocpd_op 1",
        ]
    );
    assert!(answer.repairs.is_empty() && answer.findings.iter().all(|finding| !finding.repairable));
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
}

#[test]
fn a_sound_or_older_trace_is_not_touched() {
    let dir = Dir::new();
    for trace in
        [sound(&dir, "t.rpd"), dir.fixture("matmul_result.rpd"), dir.unpacked("mytrace_as_shipped.rpd")]
    {
        let before = fs::read(dir.path(&trace)).unwrap();
        dir.run(&["check", "--repair", &trace]).expect(0).says(&[&trace, "nothing to repair"]);
        assert!(fs::read(dir.path(&trace)).unwrap() == before, "{trace}");
    }
}

#[test]
fn what_was_done_is_reported_to_people_too() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    dir.open(&trace)
        .execute_batch(
            "DELETE FROM ext_tick; DELETE FROM rocpd_barrierop; UPDATE rocpd_monitor SET \"end\" = 1;
             UPDATE rocpd_string SET string = 'Marker' WHERE string = 'Barrier'",
        )
        .unwrap();
    let result = dir.run(&["check", "--repair", &trace]);
    assert_eq!(
        result.expect(0).stdout,
        "repaired           rows  place          what was done\n\
         negative-duration     2  rocpd_monitor  removed\n\n\
         severity  kind         count  place     what it means; what to do\n\
         note      unlinked-op      2  rocpd_op  ops that no call caused (id 302, 4294967598); they have no launching thread\n\
         t.rpd: schema 2, 0 errors, 0 warnings, 1 note\n"
    );
}

#[test]
fn a_failed_repair_leaves_the_file_as_it_was() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    dir.open(&trace)
        .execute_batch(
            "UPDATE rocpd_monitor SET \"end\" = 1; UPDATE rocpd_op SET \"end\" = 1 WHERE id = 4;
             CREATE TRIGGER guard BEFORE DELETE ON rocpd_monitor BEGIN SELECT RAISE(ABORT, 'hands off'); END",
        )
        .unwrap();
    let before = fs::read(dir.path(&trace)).unwrap();
    dir.run(&["check", "--repair", &trace]).expect(1).says(&["t.rpd", "is as it was", "hands off"]);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
    assert_eq!(dir.names(), ["t.rpd"]);
}

/// The tables of schema 3, with keys as its tools declare them, and one call with one op.
const V3: &str = r#"
    CREATE TABLE rocpd_metadata (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, tag varchar(4096) NOT NULL, value varchar(4096) NOT NULL);
    CREATE TABLE rocpd_string (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);
    CREATE TABLE rocpd_ustring (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);
    CREATE TABLE rocpd_api (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, pid integer, tid integer, start integer, "end" integer,
        apiName_id bigint, category_id bigint, domain_id bigint, args_id bigint REFERENCES rocpd_ustring (id));
    CREATE TABLE rocpd_op (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, gpuId integer, queueId integer, sequenceId integer,
        start integer, "end" integer, description_id bigint, opType_id bigint);
    CREATE TABLE rocpd_api_ops (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, api_id bigint, op_id bigint);
    CREATE TABLE rocpd_kernelapi (api_ptr_id bigint NOT NULL PRIMARY KEY REFERENCES rocpd_api (id), stream varchar(18),
        gridX integer, kernelName_id bigint);
    CREATE TABLE rocpd_copyapi (api_ptr_id bigint NOT NULL PRIMARY KEY REFERENCES rocpd_api (id), size integer);
    CREATE TABLE rocpd_monitor (id integer PRIMARY KEY, deviceType, deviceId integer, monitorType, start integer, "end" integer, value);
    CREATE TABLE rocpd_counter (id integer PRIMARY KEY, value real, op_id bigint, name_id bigint);
    CREATE TABLE rocpd_stackframe (id integer PRIMARY KEY, api_ptr_id bigint, depth integer, name_id bigint);
    INSERT INTO rocpd_metadata (tag, value) VALUES ('schema_version', '3'), ('session_count', '1');
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'hipLaunchKernel'), (4, 'gemm');
    INSERT INTO rocpd_ustring VALUES (50, 'args');
    INSERT INTO rocpd_api VALUES (1, 7, 7, 10, 20, 3, 1, 1, 50), (9, 7, 7, 30, 40, 3, 1, 1, 50);
    INSERT INTO rocpd_op VALUES (5, 0, 0, 1, 12, 18, 4, 2);
    INSERT INTO rocpd_api_ops VALUES (1, 1, 5);
    INSERT INTO rocpd_kernelapi VALUES (9, '0x0', 1, 4);
    INSERT INTO rocpd_counter VALUES (1, 0.5, 5, 4);
"#;

#[test]
fn a_trace_of_schema_3_is_checked_and_repaired_by_its_own_rules() {
    let dir = Dir::new();
    dir.open("v3.rpd").execute_batch(V3).unwrap();
    let answer = check(&dir, &["v3.rpd"]);
    assert_eq!((answer.schema.as_str(), answer.found()), ("3", vec![]));
    dir.open("v3.rpd")
        .execute_batch(
            "UPDATE rocpd_api SET args_id = 2 WHERE id = 1; UPDATE rocpd_api SET category_id = 50 WHERE id = 9;
             INSERT INTO rocpd_kernelapi VALUES (4294967297, '0x0', 1, 4); INSERT INTO rocpd_counter VALUES (2, 1.5, 6, 4)",
        )
        .unwrap();
    let answer = check(&dir, &["v3.rpd"]);
    assert_eq!(
        answer.found(),
        [
            "dangling-id rocpd_api.category_id 1",
            "dangling-id rocpd_api.args_id 1",
            "dangling-id rocpd_kernelapi.api_ptr_id 1",
            "dangling-id rocpd_counter.op_id 1",
        ]
    );
    assert_eq!(answer.findings[2].examples, [4_294_967_297_i64], "named by its key, not by its row number");
    let answer = check(&dir, &["--repair", "v3.rpd"]);
    assert!(answer.findings.is_empty() && answer.repairs.len() == 4, "{answer:?}");
    let trace = dir.open("v3.rpd");
    assert_eq!(
        number(
            &trace,
            "SELECT u.string = '' FROM rocpd_api a JOIN rocpd_ustring u ON u.id = a.args_id WHERE a.id = 1"
        ),
        1
    );
}
