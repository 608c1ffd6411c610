//! Queries to the ranks of a job: their answers are what the generator of the traces knows, and the same from DuckDB.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::dataset::{files, ranked};
use crate::harness::{Dir, Ran, not_installed, ran};
use job::{Job, READING, REDUCE, Slow};

#[path = "../../../schema/examples/ranks/job.rs"]
mod job;

/// Where `make setup` puts DuckDB.
const DUCKDB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/duckdb");

const JOB: Job = Job { ranks: 16, iterations: 20, kernels: 10, seed: 7 };

/// The traces of the job on two nodes, one by one and merged.
fn job(dir: &Dir) -> Vec<String> {
    fs::create_dir(dir.path("r")).unwrap();
    JOB.write(&dir.path("r")).unwrap();
    let traces: Vec<String> = (0..JOB.ranks).map(|rank| format!("r/rank{rank:04}.rpd")).collect();
    let mut arguments = vec!["merge", "-o", "all.rpd"];
    arguments.extend(traces.iter().map(String::as_str));
    dir.run(&arguments).expect(0);
    traces
}

fn rows(ran: &Ran) -> Vec<Value> {
    serde_json::from_str(&ran.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
}

fn answer(dir: &Dir, query: &str) -> Vec<Value> {
    rows(&dir.run(&["sql", "--json", "all.rpd", query]))
}

fn python(dir: &Dir, arguments: &[&str]) -> Ran {
    let mut command = dir.command("python3");
    command.env("PYTHONPATH", format!("{DUCKDB}:{}", dir.python())).env("PYTHONDONTWRITEBYTECODE", "1");
    ran(command.args(arguments))
}

fn has_duckdb(dir: &Dir) -> bool {
    let is_there = python(dir, &["-c", "import duckdb"]).stderr.is_empty();
    if !is_there {
        not_installed("no duckdb");
    }
    is_there
}

fn duck(dir: &Dir, query: &str, dataset: &str) -> Ran {
    python(dir, &["-m", "rpd.duck", query, dataset, "--json"])
}

#[test]
fn answers_are_what_the_job_did() {
    let dir = Dir::new();
    job(&dir);
    let number =
        |row: &Value, column: &str| row[column].as_u64().unwrap_or_else(|| panic!("{column}: {row}"));
    let (ranks, iterations) = (JOB.ranks, JOB.iterations);

    let mut verdicts = BTreeMap::new();
    for row in answer(&dir, "job_stragglers") {
        let verdict = row["verdict"].as_str().unwrap();
        let is_missing = verdict == "count";
        assert_eq!(row["name"] == REDUCE, !is_missing, "{row}");
        assert_eq!(number(&row, "missing"), u64::from(is_missing), "{row}");
        let known = verdicts
            .insert((is_missing, number(&row, "nth")), (verdict.to_string(), number(&row, "last_rank")));
        assert_eq!(known, None, "{row}");
    }
    assert_eq!(verdicts.remove(&(true, iterations)).unwrap().0, "count");
    for iteration in 0..iterations {
        let found = verdicts.remove(&(false, iteration + 1));
        let found = found.as_ref().map(|(verdict, rank)| (verdict.as_str(), *rank));
        match JOB.slow(iteration) {
            Slow::Nothing => assert_eq!(found, None),
            Slow::Compute(rank) => assert_eq!(found, Some(("compute", rank))),
            Slow::Launch(rank) => assert_eq!(found, Some(("launch", rank))),
            Slow::Queue(rank) => assert_eq!(found, Some(("queue", rank))),
            Slow::Network => assert_eq!(found.unwrap().0, "network"),
        }
    }
    assert!(verdicts.is_empty(), "{verdicts:?}");

    // Ranks 8 to 15 are on the second node, whose GPUs have numbers of their own in the merged trace.
    for query in ["job_busy", "job_overlap", "job_gaps"] {
        let mut found: Vec<_> = answer(&dir, query);
        found.sort_by_key(|row| number(row, "rank"));
        assert_eq!(found.len() as u64, ranks, "{query}");
        for (rank, row) in (0..).zip(&found) {
            assert_eq!((number(row, "rank"), number(row, "gpuId")), (rank, rank % 8), "{query}");
            assert_eq!(row["node"], format!("n{}", Job::node(rank)), "{query}");
            assert_eq!(row["job"], "j4711", "{query}");
            let gathers = iterations - u64::from(rank == JOB.loser());
            match query {
                // A copy, the kernels and two collectives of each iteration; no barriers.
                "job_busy" => assert_eq!(number(row, "ops"), iterations * (JOB.kernels + 2) + gathers),
                "job_overlap" => assert_eq!(number(row, "hidden_ns"), gathers * 300_000),
                // Those whose GPU waits for a call or in the queue have been idle for 3 ms.
                _ => {
                    let waits = [ranks / 2, ranks * 3 / 4].contains(&rank);
                    assert_eq!(number(row, "longest_ns") > 3_000_000, waits, "{row}");
                }
            }
        }
    }

    let top = answer(&dir, "job_top");
    let ops: u64 = top.iter().map(|row| number(row, "ops")).sum();
    assert_eq!(ops, ranks * iterations * (JOB.kernels + 3) - 1);
    assert!(top.iter().all(|row| number(row, "ranks") == ranks));

    let steps = answer(&dir, "job_iterations");
    let names: Vec<&str> = steps.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, (0..iterations).map(|number| format!("step {number}")).collect::<Vec<_>>());
    assert!(steps.iter().all(|row| number(row, "ranks") == ranks && number(row, "starts_apart_ns") == 0));

    // The kernel that takes long on the rank that is late by it.
    let slowest = &answer(&dir, "job_skew")[0];
    assert_eq!(slowest["name"], format!("kernel{}(float*)", JOB.kernels - 1));
    assert_eq!(number(slowest, "slowest_rank"), ranks / 4);

    let energy = answer(&dir, "job_energy");
    assert_eq!(energy.len() as u64, 2 * ranks);
    for row in energy {
        let watts = Job::milliwatts(number(&row, "rank")) as f64 / 1e3;
        assert!((row["mean_watts"].as_f64().unwrap() - watts).abs() < 1e-6, "{row}");
        let readings = number(&row, "readings") - u64::from(row["sensor"] == "energy");
        assert_eq!(number(&row, "measured_ns"), readings * READING, "{row}");
    }
}

#[test]
fn a_dataset_answers_as_the_merged_trace_does() {
    let dir = Dir::new();
    let traces = job(&dir);
    let mut arguments = vec!["dataset", "d"];
    arguments.extend(traces.iter().map(String::as_str));
    dir.run(&arguments).expect(0);
    // A dataset of the merged trace is the same one.
    dir.run(&["dataset", "m", "all.rpd"]).expect(0);
    if !has_duckdb(&dir) {
        return;
    }
    for query in rpd_sql::query::JOBS {
        let expected = answer(&dir, query.name);
        assert!(!expected.is_empty(), "{}", query.name);
        for dataset in ["d", "m"] {
            let found = rows(&duck(&dir, query.name, dataset));
            assert_eq!(found, expected, "{} {dataset}", query.name);
        }
    }
    let nothing = dir.path("nothing.sql");
    fs::write(&nothing, "SELECT COUNT(*) AS copies FROM copy;\n").unwrap();
    let found = rows(&duck(&dir, "nothing.sql", "d"));
    assert_eq!(found[0]["copies"], 0, "a table that no rank has rows of is empty");
    for (query, dataset, says) in [
        ("job_tops", "d", "job_top"),
        ("job_top", "r", "_dataset.json"),
        ("none.sql", "d", "cannot read none.sql"),
    ] {
        let refused = duck(&dir, query, dataset);
        assert!(refused.expect(2).stderr.contains(says), "{refused}");
    }
}

#[test]
fn an_engine_reads_the_files_that_manifests_name() {
    let dir = Dir::new();
    let traces = job(&dir);
    // Names of folders that are not the names themselves.
    let node = format!("{}\u{e9} ~", "x".repeat(300));
    dir.run(&["dataset", "d", "--job", "a/b=c *?~\u{e9}", "--node", &node, &traces[0]]).expect(0);
    dir.run(&["dataset", "d", "--append", &traces[1], &traces[2]]).expect(0);
    if !has_duckdb(&dir) {
        return;
    }
    dir.write("ranks.sql", "SELECT rank, COUNT(*) AS ops FROM op GROUP BY rank ORDER BY rank");
    let ask = || {
        let ran = duck(&dir, "ranks.sql", "d");
        (rows(&ran), ran.stderr)
    };
    let (expected, said) = ask();
    assert_eq!((expected.len(), &said[..]), (3, ""));

    // What a kill leaves, or a longer recording that takes the place of a shorter one.
    let file = files(&dir, "d", "/op/")[0].clone();
    fs::copy(&file, file.with_file_name("part-0000000000000001-0-00000000.parquet")).unwrap();
    let manifest = files(&dir, "d", "_manifest")[0].clone();
    assert_eq!(ask(), (expected.clone(), String::new()));
    // A path that begins with file:// stands for an object store.
    let url = format!("file://{}", dir.path("d").display());
    let ran = duck(&dir, "ranks.sql", &url);
    assert!(ran.stderr.contains("no manifest can be read there"), "{ran}");
    assert_ne!(rows(&ran), expected);

    // A manifest that is not where its rank's manifests are counts no row twice.
    fs::copy(&manifest, manifest.with_file_name("copy.json")).unwrap();
    let (found, said) = ask();
    assert_eq!(found, expected);
    assert!(said.contains("copy.json is left out") && said.lines().count() == 1, "{said}");
    fs::remove_file(manifest.with_file_name("copy.json")).unwrap();

    let text = fs::read_to_string(&manifest).unwrap();
    let rank = serde_json::from_str::<Value>(&text).unwrap()["rank"].clone();
    let others: Vec<Value> = expected.iter().filter(|row| row["rank"] != rank).cloned().collect();
    for damaged in
        ["{".to_string(), text.replacen("\"op\": ", "\"op\": 1", 1), text.replace("\"sessions\"", "\"s\"")]
    {
        fs::write(&manifest, damaged).unwrap();
        let (found, said) = ask();
        assert_eq!(found, others);
        assert!(said.contains("is left out, with all files that no other one names"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    fs::write(&manifest, text).unwrap();

    fs::remove_file(file).unwrap();
    let refused = duck(&dir, "ranks.sql", "d");
    assert!(refused.expect(2).stderr.contains("rpd dataset check d says"), "{refused}");
}

/// A misspelt column is an error and no text.
#[test]
fn queries_are_of_columns_that_are_there() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    for query in rpd_sql::query::JOBS {
        // A trace that says nothing of jobs, nodes and ranks.
        dir.run(&["sql", "--json", &trace, query.name]).expect(0);
        dir.run(&["sql", "--json", "--gpu", "2", &trace, query.name]).expect(0);
    }
    assert_eq!(answer_of(&dir, &trace, "job_busy")[0]["job"], "j");
    dir.run(&["sql", &trace, "job_busi"]).expect(2).says(&["job_busy"]);
}

fn answer_of(dir: &Dir, trace: &str, query: &str) -> Vec<Value> {
    rows(&dir.run(&["sql", "--json", trace, query]))
}

#[test]
fn barriers_and_impossible_times_count_nowhere() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 1, 200, [0, 1]);
    // A type that says so, and a row of the table for it, make a barrier.
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_string VALUES (900000, 'Barrier');
             UPDATE rocpd_op SET opType_id = 900000 WHERE id % 7 = 0;
             INSERT INTO rocpd_barrierop SELECT id, 0, '', '' FROM rocpd_op WHERE id % 11 = 0;
             UPDATE rocpd_op SET start = 0 WHERE id % 5 = 0;
             UPDATE rocpd_op SET start = 0, \"end\" = 0 WHERE id % 5 = 1;
             UPDATE rocpd_api SET start = -5 WHERE id % 9 = 0;
             UPDATE rocpd_monitor SET \"end\" = 1 << 62 WHERE id % 9 = 0",
        )
        .unwrap();
    let added = dir.run(&["dataset", "d", &trace]);
    for table in ["rocpd_op", "rocpd_api", "rocpd_monitor"] {
        let says =
            format!(" of {table} left out, with a time that no trace can have; rpd check t.rpd says which");
        assert!(added.expect(0).stderr.contains(&says), "{added}");
    }
    let again = dir.run(&["dataset", "d", "--append", &trace]);
    assert!(again.expect(0).stderr.contains("is there already"), "{again}");
    let busy = answer_of(&dir, &trace, "job_busy");
    for rank in [0, 1] {
        let extracted = format!("{rank}.rpd");
        dir.run(&["dataset", "extract", "d", "--rank", &rank.to_string(), "-o", &extracted]).expect(0);
        let checked = dir.run(&["check", &extracted]);
        assert!(!checked.expect(0).stdout.contains("impossible"), "{checked}");
        let expected = busy.iter().filter(|row| row["rank"] == rank);
        let expected: Vec<_> = expected.map(|row| [&row["gpuId"], &row["ops"], &row["busy_ns"]]).collect();
        let gaps = rows(&dir.run(&["gaps", "--json", &extracted]));
        let found: Vec<_> =
            gaps.iter().map(|row| [&row["gpu"], &row["operations"], &row["busy_ns"]]).collect();
        assert_eq!(found, expected);
    }
    if has_duckdb(&dir) {
        for query in rpd_sql::query::JOBS {
            assert_eq!(
                rows(&duck(&dir, query.name, "d")),
                answer_of(&dir, &trace, query.name),
                "{}",
                query.name
            );
        }
    }
}

#[test]
fn a_reading_that_is_no_number_fails_no_query() {
    let dir = Dir::new();
    job(&dir);
    let trace = "r/rank0000.rpd";
    let expected = answer_of(&dir, trace, "job_energy");
    for value in ["1.2.3", ".", "", "-3", "\u{0663}", &"9".repeat(40), "999999999999999"] {
        dir.open(trace)
            .execute(
                "INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value)
                     SELECT deviceType, deviceId, 'power', start, \"end\" + 1000000, ?1 FROM rocpd_monitor LIMIT 1",
                [value],
            )
            .unwrap();
    }
    assert_eq!(answer_of(&dir, trace, "job_energy"), expected);
    dir.run(&["dataset", "d", trace]).expect(0);
    if has_duckdb(&dir) {
        assert_eq!(rows(&duck(&dir, "job_energy", "d")), expected);
    }
}

#[test]
fn a_query_of_ones_own_is_answered_or_refused() {
    let dir = Dir::new();
    let trace = ranked(&dir, "t.rpd", 1, 20, [0, 1]);
    // A name that is a pattern, and a dataset that fits to it.
    for dataset in ["d*", "dx"] {
        dir.run(&["dataset", dataset, &trace]).expect(0);
    }
    if !has_duckdb(&dir) {
        return;
    }
    let ask = |query: &str| {
        dir.write("own.sql", query);
        duck(&dir, "own.sql", "d*")
    };
    let ops =
        dir.open(&trace).query_row("SELECT count(*) FROM rocpd_op", [], |row| row.get::<_, i64>(0)).unwrap();
    let found =
        rows(&ask("SELECT count(*) AS ops, 0.5 * 3 AS half, timestamp '2020-01-02 03:04:05' AS moment,
             'nan'::DOUBLE AS odd, 'inf'::DOUBLE AS most, 'é' AS word FROM op"));
    let expected = serde_json::json!({
        "ops": ops, "half": 1.5, "moment": "2020-01-02T03:04:05", "odd": null, "most": null, "word": "é"
    });
    assert_eq!(found, [expected]);
    assert!(ask("-- nothing").expect(2).stderr.contains("the query has no answer"));

    dir.write("own.sql", "SELECT 1 AS one");
    python(&dir, &["-m", "rpd.duck", "own.sql", "d*", "--json", "-o", "kept.json"]).expect(0);
    assert_eq!(fs::read_to_string(dir.path("kept.json")).unwrap(), "[\n{\"one\": 1}\n]\n");
    // What fails in the middle leaves the file as it was.
    let fails = "import sys, rpd.jobs as jobs\n\
                 def rows(arguments, text):\n    return ['one'], [(1,), None]\n\
                 sys.argv = ['x', 'own.sql', 'd*', '--json', '-o', 'kept.json']\njobs.run('x', rows)\n";
    assert!(!python(&dir, &["-c", fails]).status.success());
    assert_eq!(fs::read_to_string(dir.path("kept.json")).unwrap(), "[\n{\"one\": 1}\n]\n");
    assert!(dir.names().iter().all(|name| !name.starts_with("kept.json.")), "{:?}", dir.names());
}
