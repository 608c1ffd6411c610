//! What all passes have in common: made once, made anew, stale, and nothing half done.

use std::fs;

use crate::harness::Dir;

/// The verbs that make a pass, and a table of each.
pub(crate) const PASSES: [(&str, &str); 3] =
    [("callstack", "ext_callstack"), ("graph", "ext_graph_kernelops"), ("autograd", "ext_autogradapi")];

#[test]
fn the_list_of_passes_is_the_one_tested_here() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let listed: serde_json::Value =
        serde_json::from_str(&dir.run(&["passes", "--json", &trace]).expect(0).stdout).unwrap();
    let listed: Vec<&str> =
        listed.as_array().unwrap().iter().map(|entry| entry["pass"].as_str().unwrap()).collect();
    let in_their_places = ["deserialize", "strings", "subclass"];
    assert_eq!(listed, [&PASSES.map(|(name, _)| name)[..], &in_their_places].concat());
}

#[test]
fn passes_that_change_rows_in_their_places_are_reported_too() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let states = || {
        let listed = dir.run(&["passes", "--json", &trace]);
        let listed: serde_json::Value = serde_json::from_str(&listed.expect(0).stdout).unwrap();
        let result =
            |entry: &serde_json::Value| format!("{} {} {}", entry["pass"], entry["state"], entry["tables"]);
        listed.as_array().unwrap()[PASSES.len()..]
            .iter()
            .map(result)
            .collect::<Vec<_>>()
            .join("\n")
            .replace('"', "")
    };
    assert_eq!(states(), "deserialize absent []\nstrings absent []\nsubclass absent []");
    dir.run(&["deserialize", &trace]).expect(0);
    dir.run(&["strings", "--dedupe", &trace]).expect(0);
    for name in ["a", "b"] {
        dir.run(&["subclass", "--base", "api", "--name", name, "--apis", "hipMalloc,hipFree", &trace])
            .expect(0);
    }
    let result = |state: &str| {
        format!(
            "deserialize {state} []\nstrings {state} []\nsubclass {state} [rocpd_aapi]\nsubclass {state} [rocpd_bapi]"
        )
    };
    assert_eq!(states(), result("current"));
    dir.run(&["trim", &trace, "-o", "out.rpd", "--end", "60%"]).expect(0);
    let listed = dir.run(&["passes", "out.rpd"]);
    assert!(
        listed.expect(0).stdout.contains("subclass     current  Table rocpd_aapi, view aapi\n"),
        "{listed}"
    );
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_api SELECT 1000000, pid, tid, start, \"end\", apiName_id, args_id FROM api JOIN rocpd_api USING (id, pid, tid, start, \"end\")
                 WHERE apiName = 'hipMalloc' LIMIT 1;
             INSERT INTO rocpd_string VALUES (1000000, 'more')",
        )
        .unwrap();
    assert_eq!(states(), result("stale"));
    dir.run(&["deserialize", &trace]).expect(0);
    dir.run(&["strings", "--dedupe", &trace]).expect(0);
    assert!(states().starts_with("deserialize current []\nstrings current []\nsubclass stale"));
}

#[test]
fn the_second_time_says_so_and_changes_nothing() {
    for (pass, _) in PASSES {
        let dir = Dir::new();
        let trace = dir.unpacked("mytrace_raw.rpd");
        dir.run(&[pass, &trace]).expect(0);
        let before = fs::read(dir.path(&trace)).unwrap();
        dir.run(&[pass, &trace]).expect(0).says(&[&trace, pass, "already", "--redo"]);
        assert!(fs::read(dir.path(&trace)).unwrap() == before, "{pass}");
        assert_eq!(dir.names(), [trace.as_str()]);
    }
}

#[test]
fn redo_gives_the_same_again() {
    for (pass, table) in PASSES {
        let dir = Dir::new();
        let trace = dir.unpacked("mytrace_raw.rpd");
        let dump = || -> i64 {
            dir.open(&trace)
                .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
                .unwrap()
        };
        dir.run(&[pass, &trace]).expect(0);
        let first = dump();
        dir.run(&[pass, "--redo", &trace]).expect(0);
        assert_eq!(dump(), first, "{pass}");
    }
}

#[test]
fn rows_that_come_later_make_a_pass_stale() {
    for (pass, _) in PASSES {
        let dir = Dir::new();
        let trace = dir.fixture("matmul_result.rpd");
        let state = || {
            let listed = dir.run(&["passes", "--json", &trace]);
            let listed: serde_json::Value = serde_json::from_str(&listed.expect(0).stdout).unwrap();
            let entry = listed.as_array().unwrap().iter().find(|entry| entry["pass"] == pass).unwrap();
            entry["state"].as_str().unwrap().to_string()
        };
        assert_eq!(state(), "absent");
        dir.run(&[pass, &trace]).expect(0);
        assert_eq!(state(), "current");
        dir.open(&trace)
            .execute_batch("INSERT INTO rocpd_api SELECT id + 1000000, pid, tid, start, \"end\", apiName_id, args_id FROM rocpd_api LIMIT 1")
            .unwrap();
        assert_eq!(state(), "stale");
        dir.run(&[pass, &trace]).expect(0).says(&["stale", "--redo"]);
        dir.run(&[pass, "--redo", &trace]).expect(0);
        assert_eq!(state(), "current");
    }
}
