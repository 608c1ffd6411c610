//! Texts as long as the file, and ids that are none: no verb reads such a text whole to show it, or once for each row that has it.

use crate::harness::{Dir, RPD, Ran, ran};

/// MiB of the long text.
const LENGTH: usize = 48;

/// A trace in which one text is name, arguments and type of 400 calls and operations.
fn with_long_text(dir: &Dir) -> String {
    dir.trace(
        "long.rpd",
        &format!(
            "BEGIN;
             INSERT INTO rocpd_string VALUES (1, ''), (2, replace(hex(zeroblob({} << 20)), '0', 'x')), (3, 'UserMarker');
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 400)
                 INSERT INTO rocpd_api SELECT n, 7, 8, n * 100, n * 100 + 50, iif(n % 2, 2, 3), 2 FROM n;
             INSERT INTO rocpd_op SELECT id, 0, 0, id, '', start + 60, start + 90, iif(id % 3, 2, 1), 2 FROM rocpd_api;
             INSERT INTO rocpd_api_ops SELECT id, id, id FROM rocpd_api;
             INSERT INTO rocpd_kernelapi SELECT id, '0x0', 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 2 FROM rocpd_api WHERE id % 2;
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '1');
             INSERT INTO rocpd_metadata (tag, value) SELECT 'session::0::command', string FROM rocpd_string WHERE id = 2;
             COMMIT",
            LENGTH / 2
        ),
    )
}

/// Runs rpd with as much address space as the text takes several times, and less than each row takes it once.
fn bounded(dir: &Dir, arguments: &str, trace: &str) -> Ran {
    let limited = format!("ulimit -v {}; exec timeout 120 {RPD} {arguments} {trace}", 600 << 10);
    ran(dir.command("bash").args(["-c", &limited]))
}

#[test]
fn a_long_text_of_many_rows_is_cut_when_it_is_read() {
    let dir = Dir::new();
    let trace = with_long_text(&dir);
    for verb in [
        "top",
        "top --json",
        "top --csv",
        "top --wide",
        "top --by api",
        "top --by marker --json",
        "api",
        "info",
        "info --json",
    ] {
        let ran = bounded(&dir, verb, &trace);
        let (head, tail) = (&ran.stdout[..ran.stdout.len().min(300)], &ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{verb}: {head} {tail}");
        assert!(ran.stdout.len() < 64 << 20, "{verb}: {} bytes", ran.stdout.len());
        if verb != "info" && verb != "top" && verb != "top --by api" {
            let size = format!("[{} bytes]", LENGTH << 20);
            assert!(ran.stdout.contains(&size), "{verb}: {head}");
        }
    }
    for verb in [
        "check",
        "passes",
        "deserialize",
        "callstack",
        "graph",
        "autograd",
        "subclass --base api --name long --apis UserMarker",
        "trim --dry-run --start kernel:^x",
    ] {
        let ran = bounded(&dir, verb, &trace);
        assert_eq!(ran.status.code(), Some(0), "{verb}: {ran}");
    }
}

#[test]
fn ids_that_are_texts_end_no_question() {
    for key in
        ["varchar(10)", "integer", "varchar(10) PRIMARY KEY", "int PRIMARY KEY", "integer PRIMARY KEY DESC"]
    {
        let dir = Dir::new();
        let trace = dir.trace(
            "texts.rpd",
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'call'); DROP TABLE rocpd_api; DROP TABLE rocpd_op",
        );
        let rest = "start integer, \"end\" integer";
        let is_text = !key.starts_with("integer PRIMARY KEY");
        let ids = if is_text { "('a'), (4294967297), ('b'), (NULL), (1.5)" } else { "(1), (4294967297)" };
        dir.open(&trace)
            .execute_batch(&format!(
                "CREATE TABLE rocpd_api (id {key}, pid integer, tid integer, {rest}, apiName_id integer, args_id integer);
                 CREATE TABLE rocpd_op (id {key}, gpuId integer, queueId integer, sequenceId integer, completionSignal varchar(18),
                     {rest}, description_id integer, opType_id integer);
                 INSERT INTO rocpd_api SELECT column1, 7, 7, 100, 200, 2, 1 FROM (VALUES {ids});
                 INSERT INTO rocpd_op SELECT column1, 0, 0, 0, '', 100, 200, 2, 1 FROM (VALUES {ids})"
            ))
            .unwrap();
        for verb in
            ["info", "info --json", "top", "api", "check", "passes", "callstack", "graph", "strings --dedupe"]
        {
            let ran = bounded(&dir, verb, &trace);
            let code = ran.status.code();
            assert!(code == Some(0) || code == Some(1), "{key}: {ran}");
            if verb == "info --json" {
                let info: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
                let calls = |number| {
                    let mut sessions = info["sessions"].as_array().unwrap().iter();
                    let session = sessions.find(|session| session["session"] == number);
                    session.map(|session| session["calls"].as_u64().unwrap())
                };
                // A number that its column makes a text is no id either.
                let expected = if key.starts_with("varchar") { None } else { Some(1) };
                assert_eq!(calls(1), expected, "{key}");
            }
        }
    }
}
