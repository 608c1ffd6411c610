//! Datasets whose manifests were changed: what they say is never taken for more than it can be.

// A panic is how tests fail.
#![allow(clippy::unwrap_used)]

use std::fmt::Arguments;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rpd_postprocess::dataset::check::{Checked, DatasetFindingKind, check};
use rpd_postprocess::dataset::contents::DatasetContents;
use rpd_postprocess::dataset::restore::Restored;
use rpd_postprocess::dataset::{AddOptions, add};
use rpd_postprocess::notes::{Notes, SharedNotes};
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// ns since 1970 less those of the host's clock.
const CLOCK: i64 = 1_700_000_000_000_000_000;

struct Silent;

impl Notes for Silent {
    fn note(&self, _line: Arguments<'_>) {}
}

/// Somebody who makes a file while a trace is being made.
struct Faster(PathBuf);

impl Notes for Faster {
    fn note(&self, _line: Arguments<'_>) {}

    fn show(&self, _what: &str) {
        fs::write(&self.0, "of somebody else").unwrap();
    }
}

/// A dataset in the directory `d`.
struct Dataset(TempDir);

impl Dataset {
    fn new() -> Dataset {
        Dataset(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("d")
    }

    /// Adds a trace of a rank with these calls (start and end), whose clock is known where `has_clock`.
    fn add(&self, rank: i64, name: &str, calls: &[(i64, i64)], has_clock: bool) {
        let trace = self.0.path().join(name);
        rpd_schema::create(&trace).unwrap();
        let mut rows = format!(
            "PRAGMA foreign_keys = OFF; BEGIN; INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'call');
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::host', 'host'),
                 ('session::0::boot_id', '{name}'), ('session::0::pid', '{rank}');"
        );
        for (id, (start, end)) in (1..).zip(calls) {
            rows += &format!("INSERT INTO rocpd_api VALUES ({id}, 7, 7, {start}, {end}, 2, 1);");
        }
        if has_clock {
            rows += &format!(
                "INSERT INTO rocpd_metadata (tag, value) VALUES
                     ('session::0::start_monotonic_ns', '0'), ('session::0::start_realtime_ns', '{CLOCK}');"
            );
        }
        Connection::open(&trace).unwrap().execute_batch(&(rows + "COMMIT")).unwrap();
        let options = AddOptions {
            append: true,
            job: Some("7".to_string()),
            node: Some("n".to_string()),
            rank: Some(rank),
            ..AddOptions::default()
        };
        add(&self.path(), &[trace], &options, &silent()).unwrap();
    }

    /// The only manifest of a rank.
    fn manifest(&self, rank: i64) -> PathBuf {
        let folder = self.path().join(format!("_manifest/job=j7/node=nn/rank={rank}"));
        let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    /// Changes what the manifest of a rank says.
    fn change(&self, rank: i64, change: impl FnOnce(&mut Value)) {
        let path = self.manifest(rank);
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut manifest);
        fs::write(&path, manifest.to_string()).unwrap();
    }

    fn checked(&self) -> Checked {
        check(&self.path(), None, &silent()).unwrap()
    }

    /// The only finding, and its kind.
    fn finding(&self) -> (DatasetFindingKind, String) {
        let findings = self.checked().findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        (findings[0].kind, findings[0].in_words())
    }

    /// The first rank as the trace `out.rpd`.
    fn restore(&self) -> Result<Restored, String> {
        let contents = DatasetContents::open(&self.path()).unwrap();
        let restored = contents.restore(&contents.ranks[0], None, &self.out(), &silent());
        restored.map_err(|error| format!("{error:#}"))
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out.rpd")
    }
}

fn silent() -> SharedNotes {
    Arc::new(Silent)
}

fn number(file: &Path, query: &str) -> i64 {
    Connection::open(file).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn what_no_clock_adds_to_times_is_refused() {
    for (offset, is_found) in [(i64::MIN, true), (-CLOCK * 5, true), (i64::MAX, false), (0, false)] {
        let dataset = Dataset::new();
        dataset.add(0, "t.rpd", &[(100, 900)], true);
        dataset.change(0, |manifest| manifest["offset_ns"] = json!(offset));
        let manifest = dataset.manifest(0).file_name().unwrap().to_string_lossy().into_owned();
        let said = if is_found {
            let findings = dataset.checked().findings;
            let said = findings[0].in_words();
            assert_eq!(findings[0].kind, DatasetFindingKind::Damaged);
            let contents = DatasetContents::open(&dataset.path()).unwrap();
            assert_eq!((contents.ranks.len(), contents.without_ranks().contains(&said)), (0, true));
            said
        } else {
            dataset.restore().unwrap_err()
        };
        assert!(said.contains(&manifest) && said.contains(&offset.to_string()), "{said}");
        assert!(said.contains("add its trace again with --append") || said.contains("t.rpd again"), "{said}");
        assert!(!dataset.out().exists());
    }
}

#[test]
fn rows_whose_times_no_trace_can_have_are_counted() {
    let dataset = Dataset::new();
    dataset.add(0, "one.rpd", &[(100, 900)], true);
    dataset.add(0, "two.rpd", &[(i64::MIN + 50, i64::MIN + 60), (100, 200)], false);
    // The first row of the second trace is not in the dataset. Its part, which has no clock, is the first of the two: it begins earlier.
    assert_eq!(dataset.restore().unwrap().without_time, 0);
    fs::remove_file(dataset.out()).unwrap();
    dataset.add(0, "three.rpd", &[(100, 900)], true);
    let folder = dataset.path().join("_manifest/job=j7/node=nn/rank=0");
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        if manifest["trace"].as_str().unwrap().ends_with("two.rpd") {
            manifest["first_ns"] = json!(CLOCK + 1_000_000);
            fs::write(&path, manifest.to_string()).unwrap();
        }
    }
    let restored = dataset.restore().unwrap();
    // Its other row would begin before the clock of the host did.
    assert_eq!((restored.offset_ns, restored.without_time), (CLOCK, 1));
    assert_eq!(number(&dataset.out(), "SELECT count(*) FROM rocpd_api WHERE start BETWEEN 1 AND 1000"), 2);
    assert_eq!(number(&dataset.out(), "SELECT count(*) FROM rocpd_api"), 2);
}

#[test]
fn a_file_of_two_manifests_counts_once() {
    let dataset = Dataset::new();
    dataset.add(0, "t.rpd", &[(100, 900), (200, 300)], true);
    let whole = dataset.checked();
    assert_eq!(whole.findings.len(), 0, "{:?}", whole.findings);
    let manifest = dataset.manifest(0);
    let other = dataset.path().join("_manifest/job=j7/node=nn/rank=1");
    fs::create_dir(&other).unwrap();
    let name = manifest.file_name().unwrap().to_string_lossy().into_owned();
    for (copy, rank) in [(manifest.with_file_name("0.json"), 0), (other.join(&name), 1)] {
        let mut changed: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
        changed["rank"] = json!(rank);
        if rank == 0 {
            // Another spelling of the same path.
            let path = changed["files"][0]["path"].as_str().unwrap().replacen('/', "/.//", 1);
            changed["files"][0]["path"] = json!(path);
        }
        fs::write(&copy, changed.to_string()).unwrap();
        let (kind, said) = dataset.finding();
        assert_eq!(kind, DatasetFindingKind::Double);
        let copied = copy.strip_prefix(dataset.path()).unwrap().to_string_lossy().into_owned();
        assert!(said.contains(&format!("{copied}: the manifest is left out")), "{said}");
        assert!(said.contains(&format!("_manifest/job=j7/node=nn/rank=0/{name}")), "{said}");
        let checked = dataset.checked();
        assert_eq!((checked.parts, checked.files, checked.bytes), (whole.parts, whole.files, whole.bytes));
        assert_eq!(checked.rows, whole.rows);
        let contents = DatasetContents::open(&dataset.path()).unwrap();
        assert_eq!((contents.ranks.len(), contents.ranks[0].rows("api"), contents.findings.len()), (1, 2, 1));
        assert_eq!(dataset.restore().unwrap().rows["rocpd_api"], 2);
        fs::remove_file(dataset.out()).unwrap();
        fs::remove_file(copy).unwrap();
    }
}

#[test]
fn numbers_of_manifests_are_no_more_than_they_can_be() {
    let damaged = |change: &dyn Fn(&mut Value), why: &str| {
        let dataset = Dataset::new();
        dataset.add(0, "t.rpd", &[(100, 900)], true);
        dataset.change(0, change);
        let findings = dataset.checked().findings;
        let said = findings[0].in_words();
        assert!(findings[0].kind == DatasetFindingKind::Damaged && said.contains(why), "{why}: {findings:?}");
        let found = DatasetContents::open(&dataset.path()).unwrap().findings;
        assert_eq!(found[0].in_words(), said);
    };
    damaged(&|manifest| manifest["rank"] = json!(-1), "rank -1 is none");
    damaged(&|manifest| manifest["rank"] = json!(i64::MAX), "rank 9223372036854775807 is none");
    damaged(&|manifest| manifest["rows"]["api"] = json!(2), "its files of api have other rows");
    damaged(&|manifest| manifest["rows"]["op"] = json!(u64::MAX), "its files of op have other rows");
    damaged(&|manifest| manifest["rows"] = json!({}), "it says no rows of");
    damaged(
        &|manifest| {
            let files = manifest["files"].as_array_mut().unwrap();
            files.push(files[0].clone());
        },
        "twice",
    );
}

#[test]
fn sums_of_manifests_do_not_overflow() {
    let dataset = Dataset::new();
    for rank in 0..2 {
        dataset.add(rank, &format!("{rank}.rpd"), &[(100, 900)], true);
        dataset.change(rank, |manifest| {
            manifest["rows"]["api"] = json!(u64::MAX);
            let files = manifest["files"].as_array_mut().unwrap();
            let of_calls = files.iter_mut().find(|file| file["path"].as_str().unwrap().starts_with("api/"));
            let of_calls = of_calls.unwrap();
            (of_calls["rows"], of_calls["bytes"]) = (json!(u64::MAX), json!(u64::MAX));
        });
    }
    let checked = dataset.checked();
    assert_eq!((checked.rows["api"], checked.bytes), (u64::MAX, u64::MAX));
    let contents = DatasetContents::open(&dataset.path()).unwrap();
    assert_eq!(contents.ranks[0].rows("api"), u64::MAX);
}

#[test]
fn ranks_that_are_not_there_are_counted_without_being_listed() {
    let dataset = Dataset::new();
    dataset.add(1, "t.rpd", &[(100, 900)], true);
    dataset.change(1, |manifest| manifest["ranks"] = json!(i64::MAX));
    let (kind, said) = dataset.finding();
    assert_eq!(kind, DatasetFindingKind::Missing);
    let expected = "of 9223372036854775807 ranks 0, 2, 3, 4, 5 and 9223372036854775801 more are not there";
    assert!(said.contains(expected), "{said}");
    dataset.change(1, |manifest| manifest["ranks"] = json!(-3));
    assert_eq!(dataset.checked().findings.len(), 0);
}

#[test]
fn a_manifest_leads_nowhere_out_of_the_dataset() {
    let dataset = Dataset::new();
    dataset.add(0, "t.rpd", &[(100, 900)], true);
    dataset.change(0, |manifest| {
        let path = manifest["files"][0]["path"].as_str().unwrap().to_string();
        fs::rename(dataset.path().join(&path), dataset.0.path().join("outside.parquet")).unwrap();
        manifest["files"][0]["path"] = json!("../outside.parquet");
        let rows = manifest["rows"].as_object_mut().unwrap();
        let of_table = rows.remove(path.split('/').next().unwrap()).unwrap();
        rows.insert("..".to_string(), of_table);
    });
    let (kind, said) = dataset.finding();
    assert!(kind == DatasetFindingKind::Missing && said.contains("is not there"), "{said}");
}

#[test]
fn a_file_that_appears_meanwhile_is_left_with_the_usual_advice() {
    let dataset = Dataset::new();
    dataset.add(0, "t.rpd", &[(100, 900)], true);
    let contents = DatasetContents::open(&dataset.path()).unwrap();
    let faster: SharedNotes = Arc::new(Faster(dataset.out()));
    let refused = contents.restore(&contents.ranks[0], None, &dataset.out(), &faster).unwrap_err();
    let expected = "out.rpd: the file exists already; name another or remove it";
    assert!(format!("{refused:#}").ends_with(expected), "{refused:#}");
    assert_eq!(fs::read(dataset.out()).unwrap(), b"of somebody else");
    // It is what is said when the file is there from the beginning.
    let before = contents.restore(&contents.ranks[0], None, &dataset.out(), &silent()).unwrap_err();
    assert_eq!(format!("{before:#}"), format!("{refused:#}"));
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let pipe = |path: &Path| {
        fs::remove_file(path).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let dataset = Dataset::new();
    dataset.add(0, "t.rpd", &[(100, 900)], true);
    let manifest: Value = serde_json::from_slice(&fs::read(dataset.manifest(0)).unwrap()).unwrap();
    let file = manifest["files"][0]["path"].as_str().unwrap().to_string();
    pipe(&dataset.path().join(&file));
    let (kind, said) = dataset.finding();
    assert!(kind == DatasetFindingKind::Damaged && said.contains("it is no regular file"), "{said}");
    assert!(dataset.restore().unwrap_err().contains("it is no regular file"));
    pipe(&dataset.manifest(0));
    let findings = dataset.checked().findings;
    let said: Vec<String> = findings.iter().map(|finding| finding.in_words()).collect();
    assert!(said.iter().any(|said| said.contains("it is no regular file")), "{said:?}");
}

#[test]
fn a_manifest_of_another_place_is_damaged() {
    for (key, value) in
        [("rank", json!(1)), ("node", json!("other")), ("job", json!("8")), ("part", json!(""))]
    {
        let dataset = Dataset::new();
        dataset.add(0, "t.rpd", &[(100, 900)], true);
        dataset.change(0, |manifest| manifest[key] = value.clone());
        let findings = dataset.checked().findings;
        let is_damage = |said: &str| said.contains("are not those of its place");
        assert!(findings.iter().any(|finding| is_damage(&finding.in_words())), "{key}: {findings:?}");
        assert!(DatasetContents::open(&dataset.path()).unwrap().ranks.is_empty(), "{key}");
    }
}

/// The manifest has the checksums of the damaged files, so that only what decodes them can notice.
#[test]
fn a_file_that_is_damaged_inside_is_an_error() {
    let dataset = Dataset::new();
    dataset.add(0, "t.rpd", &[(100, 900)], true);
    let manifest: Value = serde_json::from_slice(&fs::read(dataset.manifest(0)).unwrap()).unwrap();
    let files = manifest["files"].as_array().unwrap();
    let mut errors = 0;
    for (number, file) in files.iter().enumerate() {
        let path = dataset.path().join(file["path"].as_str().unwrap());
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let digest: String = Sha256::digest(&damaged).iter().map(|byte| format!("{byte:02x}")).collect();
            fs::write(&path, &damaged).unwrap();
            dataset.change(0, |manifest| manifest["files"][number]["sha256"] = json!(digest));
            match dataset.restore() {
                Ok(_) => fs::remove_file(dataset.out()).unwrap(),
                Err(_) => errors += 1,
            }
        }
        fs::write(&path, &whole).unwrap();
        dataset.change(0, |manifest| manifest["files"][number]["sha256"] = file["sha256"].clone());
    }
    assert!(errors > 0);
    dataset.restore().unwrap();
}
