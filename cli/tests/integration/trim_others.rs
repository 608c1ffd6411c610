//! `rpd trim` of what others put into a trace: their tables, texts that only they know of, rows that cannot be.

use crate::generated::{BEGIN, generated, number};
use crate::harness::Dir;
use crate::trim::trim;

#[test]
fn tables_of_others_are_trimmed_or_go() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 51, 100);
    dir.open(&trace)
        .execute_batch(
            r#"CREATE TABLE "ext_my notes" (note text, api_id integer);
               INSERT INTO "ext_my notes" SELECT 'note', id FROM rocpd_api;
               CREATE TABLE layer (id integer primary key, op integer REFERENCES rocpd_op (id), word integer);
               INSERT INTO layer SELECT id, id, description_id FROM rocpd_op;
               INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', '("layer", "word")');
               CREATE TABLE part (layer_id integer REFERENCES layer (id), share real);
               INSERT INTO part SELECT id, 0.5 FROM layer;
               CREATE TABLE loose (x);
               CREATE TABLE tree (id integer primary key, up integer REFERENCES tree (id));
               INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', '("tree", "up")');
               CREATE VIEW looser AS SELECT * FROM loose;
               CREATE VIEW parts AS SELECT * FROM part JOIN layer ON layer.id = layer_id;
               CREATE VIEW broken AS SELECT * FROM nowhere;
               CREATE VIRTUAL TABLE words USING fts5(word);
               CREATE TRIGGER t AFTER INSERT ON loose BEGIN DELETE FROM rocpd_api; END;"#,
        )
        .unwrap();
    let result = dir.run(&["trim", &trace, "-o", "out.rpd", "--end", &(BEGIN + 900).to_string()]);
    for words in
        ["table loose: nothing tells", "table tree: ", "trigger t: ", "table words: ", "view looser: "]
    {
        assert!(result.expect(0).stderr.contains(&format!("left out: {words}")), "{words}: {result}");
    }
    let out = dir.open("out.rpd");
    for table in [r#""ext_my notes""#, "layer", "part"] {
        assert!(number(&out, &format!("SELECT count(*) FROM {table}")) > 0, "{table}");
    }
    assert_eq!(
        number(&out, r#"SELECT count(*) FROM "ext_my notes" WHERE api_id NOT IN (SELECT id FROM rocpd_api)"#),
        0
    );
    assert_eq!(number(&out, "SELECT count(*) FROM layer WHERE op NOT IN (SELECT id FROM rocpd_op)"), 0);
    assert_eq!(number(&out, "SELECT count(*) FROM layer WHERE word NOT IN (SELECT id FROM rocpd_string)"), 0);
    assert_eq!(number(&out, "SELECT count(*) FROM part"), number(&out, "SELECT count(*) FROM layer"));
    assert_eq!(number(&out, "SELECT count(*) FROM sqlite_master WHERE name IN ('parts', 'broken')"), 2);
    assert_eq!(number(&out, r#"SELECT count(*) FROM rocpd_metadata WHERE value = '("tree", "up")'"#), 0);
    drop(out);
    assert!(!dir.run(&["check", "out.rpd"]).expect(0).stdout.contains("dangling"));
}

#[test]
fn rows_that_cannot_be_are_no_obstacle() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 61, 60);
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_api VALUES (900, 1, 1, '', '', 1, 1), (901, 1, 1, 9223372036854775807, 9223372036854775807, 1, 1),
                 (902, 1, 1, 1000100, 5, 99999, 77777), (903, 1, 1, 'x', 1000100, 1, 1), (904, 1, 1, -5, -9223372036854775808, 1, 1);
             INSERT INTO rocpd_op VALUES (900, 0, 0, 0, '', '', 'x', 1, 1), (901, 0, 0, 0, '', 9223372036854775807, 5, 1, 1),
                 (902, 0, 0, 0, '', 1000100, 5, 66666, 1);
             INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (88888, 900), ('x', 902), (902, 44444), (902, 901);
             INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES ('gpu', 0, '', '', 'x', '');
             INSERT INTO rocpd_metadata (tag, value) VALUES ('references::rocpd_string.id', 'x\"y\"; DROP TABLE rocpd_api'),
                 (x'ff', x'fe'), ('references::rocpd_string.id', x'ff22fe22ff22aa22bb');",
        )
        .unwrap();
    trim(&dir, &trace, "out.rpd", BEGIN, BEGIN + 500);
    let out = dir.open("out.rpd");
    assert_eq!(number(&out, "SELECT count(*) FROM rocpd_api WHERE id BETWEEN 900 AND 904"), 1);
    // No op and no link refers to a row that went.
    assert_eq!(
        number(&out, "SELECT count(*) FROM rocpd_api_ops WHERE api_id NOT IN (SELECT id FROM rocpd_api)"),
        0
    );
    assert_eq!(
        number(&out, "SELECT count(*) FROM rocpd_api_ops WHERE op_id NOT IN (SELECT id FROM rocpd_op)"),
        0
    );
    let result = dir.run(&["trim", &trace, "--dry-run", "--start", "0%"]);
    assert!(result.expect(0).stdout.contains("calls run from 10000"), "{result}");
}

#[test]
fn texts_that_others_may_refer_to_stay() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 55, 60);
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_string VALUES (7000, 'a label');
             CREATE TABLE label (api_id integer REFERENCES rocpd_api (id), label_id integer);
             INSERT INTO label SELECT id, 7000 FROM rocpd_api",
        )
        .unwrap();
    trim(&dir, &trace, "out.rpd", BEGIN, BEGIN + 900);
    let dangling = "SELECT count(*) FROM label WHERE label_id NOT IN (SELECT id FROM rocpd_string)";
    assert_eq!(number(&dir.open("out.rpd"), dangling), 0);
}
