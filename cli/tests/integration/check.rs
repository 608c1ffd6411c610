//! `rpd check`: every kind of finding in the rows and tables of a trace, made by damaging a sound one.

use serde::Deserialize;

use crate::harness::{Dir, golden};
use crate::sound::{KERNELS, sound};

/// The object of `--json`. A new field is a change of the interface and has to be added here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    pub(crate) file: String,
    pub(crate) schema: String,
    pub(crate) findings: Vec<Finding>,
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) notes: usize,
    pub(crate) repairs: Vec<Repair>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finding {
    pub(crate) severity: String,
    pub(crate) kind: String,
    pub(crate) place: String,
    pub(crate) count: u64,
    pub(crate) meaning: String,
    pub(crate) detail: Option<String>,
    pub(crate) advice: String,
    pub(crate) repairable: bool,
    pub(crate) examples: Vec<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repair {
    pub(crate) kind: String,
    pub(crate) place: String,
    pub(crate) done: String,
    pub(crate) rows: u64,
}

impl Answer {
    /// `kind place count` of every finding.
    pub(crate) fn found(&self) -> Vec<String> {
        let line = |finding: &Finding| format!("{} {} {}", finding.kind, finding.place, finding.count);
        self.findings.iter().map(line).collect()
    }

    /// The finding of a kind.
    #[track_caller]
    pub(crate) fn finding(&self, kind: &str) -> &Finding {
        self.findings
            .iter()
            .find(|finding| finding.kind == kind)
            .unwrap_or_else(|| panic!("{kind}: {self:?}"))
    }
}

/// Checks a trace; the exit status must fit the answer.
#[track_caller]
pub(crate) fn check(dir: &Dir, arguments: &[&str]) -> Answer {
    let ran = dir.run(&[&["check", "--json"], arguments].concat());
    let answer: Answer = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"));
    ran.expect(i32::from(answer.errors > 0));
    for (severity, count) in [("error", answer.errors), ("warning", answer.warnings), ("note", answer.notes)]
    {
        assert_eq!(answer.findings.iter().filter(|finding| finding.severity == severity).count(), count);
    }
    answer
}

/// Checks a sound trace after `damage` (SQL), which must be all that is found: `kind place count`, worst
/// first.
#[track_caller]
fn finds(damage: &str, expected: &[&str]) -> Answer {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    dir.open(&trace).execute_batch(damage).unwrap();
    let answer = check(&dir, &[&trace]);
    assert_eq!(answer.found(), expected, "{damage}");
    answer
}

#[test]
fn a_sound_trace_is_clean_in_both_forms() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let result = dir.run(&["check", &trace]);
    assert_eq!(result.expect(0).stdout, "t.rpd: schema 2, 0 errors, 0 warnings, 0 notes\n");
    assert!(result.stderr.is_empty(), "{result}");
    let answer = check(&dir, &[&trace]);
    assert_eq!((answer.file.as_str(), answer.schema.as_str()), ("t.rpd", "2"));
    assert!(answer.findings.is_empty() && answer.repairs.is_empty(), "{answer:?}");
    dir.run(&["create", "empty.rpd"]).expect(0);
    assert!(check(&dir, &["empty.rpd"]).findings.is_empty());
}

#[test]
fn real_traces_have_notes_and_nothing_worse() {
    let dir = Dir::new();
    let matmul = dir.fixture("matmul_result.rpd");
    golden("check.txt", &dir.run(&["check", &matmul]).expect(0).stdout);
    golden("check.json", &dir.run(&["check", "--json", &matmul]).expect(0).stdout);
    for (trace, file) in [
        ("mytrace_raw.rpd", "check-mytrace-raw.txt"),
        ("mytrace_as_shipped.rpd", "check-mytrace-as-shipped.txt"),
    ] {
        let trace = dir.unpacked(trace);
        golden(file, &dir.run(&["check", &trace]).expect(0).stdout);
    }
}

#[test]
fn ids_that_lead_nowhere() {
    let second = (1_i64 << 32) + 7;
    let answer = finds(
        &format!(
            "DELETE FROM rocpd_op WHERE id IN (3, {second});
             UPDATE rocpd_api SET args_id = 999 WHERE id = 5;
             UPDATE rocpd_kernelapi SET kernelName_id = '' WHERE api_ptr_id = 6;
             UPDATE ext_dispatch SET codeObject_id = 77 WHERE op_id = 8;
             UPDATE rocpd_kernelapi SET codeObject_id = 0 WHERE api_ptr_id = 9;
             DELETE FROM rocpd_op WHERE id = {};",
            KERNELS + 1
        ),
        &[
            "dangling-id rocpd_op_inputSignals.from_op_id 1",
            "dangling-id rocpd_api.args_id 1",
            "dangling-id rocpd_api_ops.op_id 3",
            "dangling-id rocpd_kernelapi.kernelName_id 1",
            "dangling-id ext_dispatch.op_id 2",
            "dangling-id ext_dispatch.codeObject_id 1",
            "dangling-id ext_tick.op_id 2",
        ],
    );
    let links = &answer.findings[2];
    assert_eq!(links.examples, [3, KERNELS as i64 + 1, second]);
    assert_eq!(links.detail.as_deref(), Some("no such row in rocpd_op"));
    assert!(links.repairable && links.severity == "error");
    assert!(!links.meaning.is_empty() && !links.advice.is_empty());
}

#[test]
fn replaced_kernels_and_saved_code_that_lead_nowhere() {
    let damage = format!(
        "UPDATE ext_replacement SET original_kernel_id = 0, candidate_id = 0 WHERE op_id = 202;
         UPDATE ext_replacement SET op_id = 9999 WHERE id = 203;
         UPDATE ext_replacement SET original_kernel_id = 99, replacement_kernel_id = 'x' WHERE id = 204;
         UPDATE ext_replacement SET candidate_id = 'y' WHERE id = 205;
         DELETE FROM ext_candidate WHERE id = {};
         UPDATE ext_candidate SET loaded = 'late' WHERE id = 1;
         UPDATE ext_codeobject_kernel SET ext_codeobject_id = 7 WHERE id = 1;",
        (1_i64 << 32) + 1
    );
    let found = [
        "dangling-id ext_codeobject_kernel.ext_codeobject_id 1",
        "not-a-number ext_candidate.loaded 1",
        "dangling-id ext_replacement.op_id 1",
        "dangling-id ext_replacement.original_kernel_id 1",
        "dangling-id ext_replacement.replacement_kernel_id 1",
        "dangling-id ext_replacement.candidate_id 51",
    ];
    let output = finds(&damage, &found).found();
    // The same where the tables declare nothing, and NULL is no id.
    let tables = [
        ("ext_replacement", "op_id, original_kernel_id, replacement_kernel_id, candidate_id"),
        ("ext_codeobject_kernel", "ext_codeobject_id"),
    ]
    .map(|(table, columns)| {
        format!(
            "CREATE TABLE ext_copy AS SELECT * FROM {table}; DROP TABLE {table};
             CREATE TABLE {table} (id integer PRIMARY KEY, {columns});
             INSERT INTO {table} SELECT * FROM ext_copy; DROP TABLE ext_copy;"
        )
    })
    .concat();
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let null = "UPDATE ext_replacement SET candidate_id = NULL WHERE op_id = 206;";
    dir.open(&trace).execute_batch(&format!("{tables}{damage}{null}")).unwrap();
    let answer = check(&dir, &[&trace]).found();
    assert!(output.iter().all(|finding| answer.contains(finding)), "{answer:?}");
    assert_eq!(answer.len(), output.len(), "{answer:?}");
}

#[test]
fn references_of_extensions_are_followed_as_they_declare_them() {
    finds(
        "CREATE TABLE ext_mine (id integer primary key, api_id integer REFERENCES rocpd_api (id), text_id integer,
             odd_id integer REFERENCES nowhere (id));
         INSERT INTO ext_mine VALUES (1, 1, 1, 1), (2, 9999, 9999, 1), (3, NULL, 1, 1);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', '(\"ext_mine\", \"text_id\")')",
        &["dangling-id ext_mine.api_id 1", "dangling-id ext_mine.text_id 1"],
    );
    let answer = finds(
        "INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', '(\"ext_gone\", \"name_id\")'),
             ('references::rocpd_string.id', 'what?')",
        &["unknown-reference ext_gone.name_id 1", "unknown-reference what?. 1"],
    );
    assert_eq!(answer.warnings, 2);
}

#[test]
fn times_that_cannot_be() {
    finds(
        "UPDATE rocpd_op SET \"end\" = start - 1 WHERE id IN (2, 3);
         UPDATE rocpd_api SET start = 0, \"end\" = 0 WHERE id = 4;
         UPDATE rocpd_op SET \"end\" = 9223372036854775807 WHERE id = 5;
         UPDATE rocpd_op SET start = -1 WHERE id = 6;
         UPDATE rocpd_monitor SET \"end\" = 1 WHERE id = 1;
         UPDATE rocpd_api SET \"end\" = start WHERE id = 7;",
        &[
            "impossible-time rocpd_op 2",
            "negative-duration rocpd_op 2",
            "impossible-time rocpd_api 1",
            "negative-duration rocpd_monitor 1",
        ],
    );
}

#[test]
fn a_few_times_far_from_all_others() {
    let answer = finds(
        "UPDATE rocpd_api SET start = start + 3000000000000000, \"end\" = \"end\" + 3000000000000000 WHERE id = 4;
         UPDATE rocpd_op SET \"end\" = \"end\" + 90000000000000000 WHERE id IN (5, 6)",
        &["far-time rocpd_op 2", "far-time rocpd_api 1"],
    );
    assert_eq!(answer.finding("far-time").examples, [5, 6]);
    // Two hosts in one file, each with a clock of its own.
    let second = "UPDATE rocpd_op SET start = start + 90000000000000000, \"end\" = \"end\" + 90000000000000000 WHERE id >> 32 = 1";
    finds(second, &[]);
}

#[test]
fn what_stands_where_numbers_belong() {
    finds(
        "UPDATE rocpd_op SET queueId = 'two' WHERE id = 1;
         UPDATE rocpd_op SET start = '' WHERE id = 2;
         UPDATE rocpd_op SET gpuId = 1.5 WHERE id IN (3, 4);
         UPDATE rocpd_copyapi SET width = '', height = '';
         UPDATE rocpd_kernelapi SET codeObject_id = '' WHERE api_ptr_id = 1;",
        &[
            "not-a-number rocpd_op.gpuId 2",
            "not-a-number rocpd_op.queueId 1",
            "not-a-number rocpd_op.start 1",
            "empty-number rocpd_copyapi.width 2",
            "empty-number rocpd_copyapi.height 2",
            "empty-number rocpd_kernelapi.codeObject_id 1",
        ],
    );
}

#[test]
fn ops_without_a_name_or_a_launch() {
    finds(
        "UPDATE rocpd_op SET description_id = 1 WHERE id IN (1, 2);
         DELETE FROM ext_dispatch WHERE op_id IN (4, 5);
         DELETE FROM rocpd_kernelapi WHERE api_ptr_id = (SELECT api_id FROM rocpd_api_ops WHERE op_id = 4);
         UPDATE rocpd_op SET opType_id = 1 WHERE id = 301",
        &["unnamed-op rocpd_op 3", "missing-dispatch rocpd_op 1"],
    );
    finds("DELETE FROM ext_dispatch WHERE op_id >> 32 = 1", &[]);
    // An extract of a dataset has none.
    finds("DELETE FROM ext_dispatch", &[]);
    // Links are compared all the same.
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let damage = "DROP TABLE rocpd_kernelapi; INSERT INTO rocpd_api_ops (api_id, op_id) SELECT * FROM \
         (SELECT api_id, op_id FROM rocpd_api_ops LIMIT 1)";
    dir.open(&trace).execute_batch(damage).unwrap();
    let found = check(&dir, &[&trace]).found();
    assert!(found.contains(&"duplicate-link rocpd_api_ops 1".to_string()), "{found:?}");
    assert!(found.contains(&"missing-table rocpd_kernelapi 1".to_string()), "{found:?}");
    assert!(found.iter().all(|finding| !finding.starts_with("unreadable-table")), "{found:?}");
}

#[test]
fn links_between_ops_and_calls() {
    finds(
        "INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (4, 5), (6, 6), (6, 6);
         DELETE FROM rocpd_api_ops WHERE op_id IN (8, 9)",
        &["duplicate-link rocpd_api_ops 2", "unlinked-op rocpd_op 2", "shared-op rocpd_op 1"],
    );
}

#[test]
fn tables_views_and_indexes() {
    finds(
        "DROP TABLE rocpd_monitor; DROP VIEW busy; DROP INDEX rocpd_strin_string_c7b9cd_idx;
         DROP VIEW top; CREATE VIEW top AS SELECT nowhere FROM rocpd_op; CREATE VIEW mine AS SELECT * FROM gone;
         DROP VIEW stackframe; DROP TABLE rocpd_stackframe;
         DELETE FROM rocpd_metadata WHERE value LIKE '%rocpd_stackframe%'",
        &[
            "missing-table rocpd_monitor 1",
            "missing-index rocpd_strin_string_c7b9cd_idx 1",
            "missing-view busy 1",
            "broken-view top 1",
            "broken-view mine 1",
            "older-layout file 2",
        ],
    );
}

#[test]
fn a_version_that_is_not_the_tables() {
    for (damage, result) in [
        (
            "UPDATE rocpd_metadata SET value = '3' WHERE tag = 'schema_version'",
            "it says 3, the tables are of schema 2",
        ),
        (
            "DELETE FROM rocpd_metadata WHERE tag = 'schema_version'",
            "it says none, the tables are of schema 2",
        ),
    ] {
        let answer = finds(damage, &["schema-version rocpd_metadata 1"]);
        assert_eq!(answer.findings[0].detail.as_deref(), Some(result));
        assert_eq!(answer.schema, "2");
    }
}

#[test]
fn ids_of_sessions_that_nobody_took() {
    finds(
        "UPDATE rocpd_metadata SET value = '1' WHERE tag = 'session_count'; DELETE FROM rocpd_monitor",
        &[
            "unclaimed-id rocpd_string 8",
            "unclaimed-id rocpd_api 301",
            "unclaimed-id rocpd_op 302",
            "unclaimed-id rocpd_api_ops 301",
            "unclaimed-id rocpd_kernelcodeobject 2",
            "unclaimed-id rocpd_stackframe 1",
        ],
    );
}

#[test]
fn ids_that_are_there_twice() {
    // What a table is after a trip through pandas.
    finds(
        "CREATE TABLE copy AS SELECT * FROM rocpd_monitor; DROP TABLE rocpd_monitor;
         ALTER TABLE copy RENAME TO rocpd_monitor; INSERT INTO rocpd_monitor SELECT * FROM rocpd_monitor WHERE id = 1"
            .replace("copy", "ext_copy")
            .as_str(),
        &["duplicate-id rocpd_monitor 1", "no-primary-key rocpd_monitor 1"],
    );
}

#[test]
fn lost_records_are_reported_by_cause() {
    let answer = finds(
        "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::lost::buffer_full', '5'),
             ('session::1::lost::buffer_full', '2'), ('session::1::lost::late', '1'), ('session::1::lost::x', '0')",
        &["lost-records buffer_full 7", "lost-records late 1"],
    );
    assert_eq!(answer.warnings, 2);
}

#[test]
fn names_out_of_the_file_are_harmless() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    dir.open(&trace)
        .execute_batch(
            "CREATE TABLE \"ext_\u{1b}[2J\"\"\n\" (id integer primary key, \"end\" integer, start integer, \"a\u{202e}\" integer);
             INSERT INTO \"ext_\u{1b}[2J\"\"\n\" VALUES (1, 1, 2, 'x');
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::9::lost::' || char(27), '1')",
        )
        .unwrap();
    for form in [&["check", &trace][..], &["check", "--json", &trace]] {
        let result = dir.run(form);
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!result.expect(1).stdout.contains(harmful), "{:?}", result.stdout);
        assert!(
            result.stdout.contains("negative-duration") && result.stdout.contains("not-a-number"),
            "{result}"
        );
    }
}

/// What lets a table have what its declaration forbids, as files of other writers do.
fn undeclared(table: &str) -> String {
    format!(
        "CREATE TABLE ext_copy AS SELECT * FROM {table}; DROP TABLE {table};
         CREATE TABLE {table} (id integer PRIMARY KEY, {});
         INSERT INTO {table} SELECT * FROM ext_copy; DROP TABLE ext_copy;",
        match table {
            "rocpd_op" =>
                "gpuId integer, queueId integer, sequenceId integer, completionSignal varchar(18), start, \"end\", description_id integer, opType_id integer",
            _ =>
                "pid integer, tid integer, start integer, \"end\" integer, apiName_id integer, args_id integer",
        }
    )
}

#[test]
fn times_that_are_no_integers_or_missing_are_errors_and_the_rest_is_judged() {
    let real = undeclared("rocpd_op")
        + "UPDATE rocpd_op SET start = start + 0.5 WHERE id = 7; UPDATE rocpd_op SET \"end\" = NULL WHERE id IN (8, 9);
           UPDATE rocpd_op SET start = 0 WHERE id = 10; UPDATE rocpd_op SET \"end\" = 'late' WHERE id = 11;";
    let answer = finds(
        &real,
        &["impossible-time rocpd_op 1", "not-a-number rocpd_op.start 1", "not-a-number rocpd_op.end 3"],
    );
    assert_eq!(answer.errors, 3);
    let null = undeclared("rocpd_api")
        + "UPDATE rocpd_api SET tid = NULL WHERE id = 3; UPDATE rocpd_api SET start = NULL WHERE id = 4;
           UPDATE rocpd_api SET apiName_id = NULL WHERE id = 5; UPDATE rocpd_api SET start = 5.5, \"end\" = 1e300 WHERE id = 6;";
    finds(
        &null,
        &[
            "dangling-id rocpd_api.apiName_id 1",
            "not-a-number rocpd_api.tid 1",
            "not-a-number rocpd_api.start 2",
            "not-a-number rocpd_api.end 1",
        ],
    );
    // Far from the others, among times that are none.
    let far = undeclared("rocpd_op")
        + "UPDATE rocpd_op SET start = start + 900000000000000, \"end\" = \"end\" + 900000000000000 WHERE id = 3;
           UPDATE rocpd_op SET start = 1.5 WHERE id = 4;";
    finds(&far, &["not-a-number rocpd_op.start 1", "far-time rocpd_op 1"]);
}

#[test]
fn a_renamed_column_is_named_in_a_few_words_by_every_verb() {
    named_by_every_verb("rocpd_op", "start");
}

/// The version of the file is in one of these, and whatever it says of its sessions.
#[test]
fn renamed_columns_of_facts_are_named_as_others_are() {
    named_by_every_verb("rocpd_metadata", "tag");
    named_by_every_verb("rocpd_metadata", "value");
}

#[track_caller]
fn named_by_every_verb(table: &str, column: &str) {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    dir.open(&trace)
        .execute_batch(&format!("ALTER TABLE {table} RENAME COLUMN \"{column}\" TO begin"))
        .unwrap();
    let result = dir.run(&["check", &trace]);
    assert!(result.expect(1).stdout.contains("missing-column"), "{result}");
    assert!(result.stdout.contains(&format!("{table}.{column}")), "{result}");
    for verb in ["info", "top", "api", "callstack", "graph", "autograd", "passes", "deserialize"] {
        let result = dir.run(&[verb, &trace]);
        let longest = result.stderr.lines().map(str::len).max().unwrap_or(0);
        assert!(longest < 250, "{result}");
        assert!(!result.stderr.contains("SELECT"), "{result}");
        if result.status.code() != Some(0) {
            result.expect(1).says(&["rpd check", column]);
        }
    }
}
