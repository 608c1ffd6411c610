//! `rpd strings` and `rpd deserialize`: rows that follow their texts, and rows that were texts.

use crate::generated::{generated, number, rows, to_schema_3};
use crate::harness::Dir;

/// A trace in which texts are there several times, one of them in a table of others.
fn with_duplicates(dir: &Dir, seed: u64, is_schema_3: bool) -> String {
    let trace = generated(dir, "t.rpd", seed, 80);
    if is_schema_3 {
        to_schema_3(dir, &trace);
    }
    dir.open(&trace)
        .execute_batch(
            r#"INSERT INTO rocpd_string SELECT id + 1000, string FROM rocpd_string WHERE id & 0xffffffff > 1;
               UPDATE rocpd_op SET description_id = description_id + 1000 WHERE id % 3 = 0 AND description_id & 0xffffffff > 1;
               UPDATE rocpd_api SET apiName_id = apiName_id + 1000 WHERE id % 2;
               INSERT INTO rocpd_string VALUES (5000, 'UserMarker'), (5001, 'never used'), (5002, x'55736572'), (5003, 'User');
               CREATE TABLE words (word integer REFERENCES rocpd_string (id));
               CREATE TABLE "my words" (a integer, "b""c" integer);
               INSERT INTO words VALUES (5000), (5002), (5003), (NULL), ('');
               INSERT INTO "my words" VALUES (1, 5000), (2, 1002), (3, 999999);
               INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', '("words", "word")');"#,
        )
        .unwrap();
    trace
}

#[test]
fn each_text_is_there_once_and_every_reference_follows() {
    for is_schema_3 in [false, true] {
        let dir = Dir::new();
        let trace = with_duplicates(&dir, 7, is_schema_3);
        let questions = [
            "SELECT id, apiName, args FROM api",
            "SELECT id, description, opType FROM op",
            "SELECT f.id, s.string FROM rocpd_stackframe f JOIN rocpd_string s ON s.id = name_id",
            "SELECT api_ptr_id, s.string FROM rocpd_kernelapi JOIN rocpd_string s ON s.id = kernelName_id",
            "SELECT s.string, typeof(s.string) FROM words JOIN rocpd_string s ON s.id = word",
        ];
        let answers = |dir: &Dir| questions.map(|question| rows(&dir.open(&trace), question));
        let before = answers(&dir);
        let result = dir.run(&["strings", "--dedupe", "--json", &trace]);
        let result: serde_json::Value = serde_json::from_str(&result.expect(0).stdout).unwrap();
        assert!(result["equal"].as_i64().unwrap() > 50, "{result}");
        assert!(before == answers(&dir));
        let file = dir.open(&trace);
        let twice =
            "SELECT string FROM rocpd_string WHERE id & 0xffffffff <> 1 GROUP BY string HAVING count(*) > 1";
        assert!(rows(&file, twice).is_empty());
        assert_eq!(number(&file, "SELECT count(*) FROM rocpd_string WHERE string = 'never used'"), 0);
        assert_eq!(number(&file, "SELECT count(*) FROM rocpd_string WHERE id & 0xffffffff = 1"), 2);
        assert_eq!(number(&file, "SELECT count(*) FROM words WHERE word IS NULL OR word = ''"), 2);
        assert_eq!(number(&file, "SELECT count(*) FROM rocpd_string"), result["after"].as_i64().unwrap());
        drop(file);
        dir.run(&["strings", "--dedupe", &trace]).expect(0).says(&["0 of "]);
    }
}

#[test]
fn columns_that_may_refer_to_texts_keep_them() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'a'), (3, 'a'), (4, 'b'), (5, 'b'), (6, 'c'), (7, 'd');
         CREATE TABLE layer (id integer primary key, name_id integer, String integer, size integer);
         INSERT INTO layer VALUES (2, 3, 6, 7), (3, 2, NULL, 4), (4, 99, 0, 4);",
    );
    let before = rows(&dir.open(&trace), "SELECT name_id, String, size FROM layer");
    let result = dir.run(&["strings", "--dedupe", &trace]);
    // 2 and 3 for the one, 6 for the other.
    let result = &result.expect(0).stderr;
    assert!(result.contains("2 texts whose ids stand in (\"layer\", \"name_id\") stay; "), "{result}");
    assert!(result.contains("1 text whose ids stand in (\"layer\", \"String\") stays; "), "{result}");
    assert!(result.contains("references::rocpd_string.id"), "{result}");
    let left = |dir: &Dir| {
        number(
            &dir.open(&trace),
            "SELECT CAST(group_concat(id, '') AS integer) FROM (SELECT id FROM rocpd_string ORDER BY id)",
        )
    };
    assert_eq!(left(&dir), 1236);
    let layers = "SELECT name_id, String, size FROM layer";
    assert_eq!(format!("{:?}", rows(&dir.open(&trace), layers)), format!("{before:?}"));
    // Once it says so it follows as any other.
    dir.open(&trace)
        .execute_batch(r#"INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', '("layer", "name_id")')"#)
        .unwrap();
    dir.run(&["strings", "--dedupe", &trace]).expect(0);
    assert_eq!(left(&dir), 126);
    assert_eq!(number(&dir.open(&trace), "SELECT count(*) FROM layer WHERE name_id = 2"), 2);
}

#[test]
fn a_real_trace_is_read_the_same_afterwards() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_as_shipped.rpd");
    let questions =
        ["SELECT * FROM api", "SELECT * FROM op", "SELECT * FROM autogradKernel", "SELECT * FROM kernel"];
    let before = questions.map(|question| rows(&dir.open(&trace), question));
    dir.run(&["strings", "--dedupe", &trace]).expect(0);
    assert!(before == questions.map(|question| rows(&dir.open(&trace), question)));
}

#[test]
fn a_failure_leaves_the_texts_as_they_were() {
    let dir = Dir::new();
    let trace = with_duplicates(&dir, 9, false);
    // Stops it when all references have followed.
    dir.open(&trace)
        .execute_batch(
            "CREATE TABLE last (word integer REFERENCES rocpd_string (id), CHECK (word = 4000000));
             INSERT INTO rocpd_string VALUES (4000000, 'UserMarker'); INSERT INTO last VALUES (4000000)",
        )
        .unwrap();
    let before = std::fs::read(dir.path(&trace)).unwrap();
    dir.run(&["strings", "--dedupe", &trace]).expect(1).says(&["no text was removed", "is as it was"]);
    assert!(std::fs::read(dir.path(&trace)).unwrap() == before);
    assert_eq!(dir.names(), ["t.rpd"]);
    dir.run(&["strings", &trace]).expect(2);
}

/// Markers that stand for calls and ops, in two sessions, and some that cannot.
const MARKERS: &str = "
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 's_api=BlockAlloc | size=64'),
        (4, 's_op = Io | gpuId = 3 | queueId=2 | sequenceId=9 | start = 5000 | end = 6000 | completionSignal=0x1'),
        (5, 's_api=Send|s_op=Wire|size=1'), (6, 's_op=Io | start=9 | end=8'), (7, 's_op=Io | gpuId=many'), (8, 'talks of s_api'),
        (9, 'frame'), (10, 'hipMalloc'), (11, 's_api= | s_op=');
    INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 3), (2, 7, 7, 300, 400, 2, 4), (3, 7, 8, 500, 600, 2, 5), (4, 7, 7, 700, 800, 2, 6),
        (5, 7, 7, 900, 950, 2, 7), (6, 7, 7, 960, 970, 2, 8), (7, 7, 7, 980, 990, 10, 3), (8, 7, 7, 992, 993, 2, 11),
        (4294967297, 9, 9, 100, 200, 2, 4);
    INSERT INTO rocpd_op VALUES (5, 0, 0, 0, '', 1, 2, 9, 9);
    INSERT INTO rocpd_stackframe (api_ptr_id, depth, name_id) VALUES (1, 0, 9), (2, 0, 9);
    INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '2');";

#[test]
fn markers_become_what_they_stand_for() {
    for is_schema_3 in [false, true] {
        let dir = Dir::new();
        let trace = dir.trace("t.rpd", MARKERS);
        if is_schema_3 {
            dir.open(&trace).execute_batch("DELETE FROM rocpd_metadata WHERE tag = 'session_count'").unwrap();
            to_schema_3(&dir, &trace);
        }
        let result = dir.run(&["deserialize", "--json", &trace]);
        let result: serde_json::Value = serde_json::from_str(&result.expect(0).stdout).unwrap();
        assert_eq!(result, serde_json::json!({"calls": 2, "ops": 3, "wrong": 2}));
        let file = dir.open(&trace);
        let shown = |query: &str| -> Vec<String> {
            rows(&file, query).iter().map(|row| format!("{row:?}")).collect()
        };
        assert_eq!(
            shown(
                "SELECT id, tid, start, \"end\", apiName, args FROM api WHERE apiName NOT IN ('UserMarker', 'hipMalloc')"
            ),
            [
                r#"[Integer(1), Integer(7), Integer(100), Integer(200), Text("BlockAlloc"), Text("s_api=BlockAlloc | size=64")]"#,
                r#"[Integer(3), Integer(8), Integer(500), Integer(600), Text("Send"), Text("s_api=Send|s_op=Wire|size=1")]"#,
            ]
        );
        assert_eq!(
            shown("SELECT id, gpuId, queueId, sequenceId, start, \"end\", opType FROM op WHERE id <> 5"),
            [
                r#"[Integer(4294967297), Integer(3), Integer(2), Integer(9), Integer(5000), Integer(6000), Text("Io")]"#,
                r#"[Integer(6), Integer(3), Integer(2), Integer(9), Integer(5000), Integer(6000), Text("Io")]"#,
                r#"[Integer(7), Integer(0), Integer(0), Integer(0), Integer(500), Integer(600), Text("Wire")]"#,
            ]
        );
        assert_eq!(shown("SELECT api_id, op_id FROM rocpd_api_ops"), ["[Integer(3), Integer(7)]"]);
        // The ops' markers are gone with what hung off them.
        assert_eq!(shown("SELECT id FROM rocpd_api WHERE id IN (2, 4294967297)").len(), 0);
        assert_eq!(shown("SELECT api_ptr_id FROM rocpd_stackframe"), ["[Integer(1)]"]);
        if !is_schema_3 {
            assert_eq!(shown("SELECT completionSignal FROM rocpd_op WHERE id = 6"), [r#"[Text("0x1")]"#]);
        }
        drop(file);
        let again = dir.run(&["deserialize", &trace]);
        assert!(again.expect(0).stderr.contains("0 calls and 0 operations"), "{again}");
        dir.run(&["subclass", "--base", "api", "--name", "block", "--apis", "BlockAlloc", &trace])
            .expect(0)
            .says(&["size"]);
    }
}

#[test]
fn a_marker_that_becomes_a_launch_makes_the_passes_stale() {
    let dir = Dir::new();
    let launch = "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 's_api=hipGraphLaunch | graphExec=0x1 | stream=0x2');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 3);";
    let trace = dir.trace("t.rpd", launch);
    dir.run(&["graph", &trace]).expect(0);
    dir.run(&["deserialize", &trace]).expect(0);
    dir.run(&["graph", &trace]).expect(0).says(&["stale"]);
    dir.run(&["graph", "--redo", &trace]).expect(0).says(&["1 rows in rocpd_graphLaunchapi"]);
}
