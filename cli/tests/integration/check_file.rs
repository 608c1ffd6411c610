//! `rpd check`: damage of the file itself, journals, locks, other versions, and sessions without an end.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::check::check;
use crate::harness::{Dir, RPD, ran};
use crate::sound::sound;

#[test]
fn a_corrupt_page_is_an_error_and_the_rest_is_still_checked() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let trace_at = dir.path(&trace);
    let root: u32 = dir
        .open(&trace)
        .query_row("SELECT rootpage FROM sqlite_master WHERE name = 'rocpd_op'", [], |row| row.get(0))
        .unwrap();
    let mut bytes = fs::read(&trace_at).unwrap();
    let at = (root as usize - 1) * 4096;
    bytes[at..at + 4096].fill(0xa5);
    fs::write(&trace_at, &bytes).unwrap();
    dir.open(&trace).execute("UPDATE rocpd_api SET \"end\" = 1 WHERE id = 3", []).unwrap();
    let before = fs::read(&trace_at).unwrap();
    let answer = check(&dir, &[&trace]);
    let result = answer.found();
    assert!(result[0].starts_with("damaged-database file "), "{result:?}");
    assert!(result.contains(&"unreadable-table rocpd_op 1".to_string()), "{result:?}");
    assert!(result.contains(&"negative-duration rocpd_api 1".to_string()), "{result:?}");
    assert!(answer.finding("damaged-database").advice.contains(".recover"));
    let refused = dir.run(&["check", "--repair", &trace]);
    refused.expect(1).says(&["t.rpd", "not repaired", "damaged", ".recover"]);
    assert!(refused.stdout.contains("damaged-database"), "{refused}");
    assert!(fs::read(&trace_at).unwrap() == before, "a damaged file is left alone");
}

#[test]
fn a_truncated_file_says_so() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let whole = fs::read(dir.path(&trace)).unwrap();
    for length in [whole.len() - 4096, whole.len() - 1, whole.len() / 2, 4096, 600, 100] {
        dir.write("cut.rpd", &whole[..length]);
        for arguments in [&["check", "cut.rpd"][..], &["check", "--repair", "cut.rpd"]] {
            dir.run(arguments).expect(1).says(&["cut.rpd"]);
            assert!(fs::read(dir.path("cut.rpd")).unwrap() == whole[..length]);
        }
    }
}

#[test]
fn an_index_that_misses_rows_is_built_anew() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let connection = dir.open(&trace);
    let entry: (String, String, String, i64, String) = connection
        .query_row(
            "SELECT * FROM sqlite_master WHERE type = 'index' AND tbl_name = 'rocpd_string'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
        )
        .unwrap();
    connection
        .execute_batch("PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE type = 'index' AND tbl_name = 'rocpd_string'")
        .unwrap();
    drop(connection);
    let connection = dir.open(&trace);
    connection.execute("INSERT INTO rocpd_string (string) VALUES ('not in the index')", []).unwrap();
    connection.execute_batch("PRAGMA writable_schema = ON").unwrap();
    connection
        .execute(
            "INSERT INTO sqlite_master VALUES (?1, ?2, ?3, ?4, ?5)",
            rusqlite::params![entry.0, entry.1, entry.2, entry.3, entry.4],
        )
        .unwrap();
    drop(connection);
    let answer = check(&dir, &[&trace]);
    assert_eq!(answer.found(), ["index-out-of-step indexes 2"]);
    let answer = check(&dir, &["--repair", &trace]);
    assert!(answer.findings.is_empty(), "{answer:?}");
    assert_eq!(
        (answer.repairs[0].kind.as_str(), answer.repairs[0].done.as_str()),
        ("index-out-of-step", "built anew")
    );
}

/// A trace as a writer leaves it that is killed in the middle of a large transaction.
fn killed_in_mid_transaction(dir: &Dir) -> String {
    let trace = sound(dir, "live.rpd");
    let connection = dir.open(&trace);
    connection
        .execute_batch(
            "PRAGMA cache_size = 1; BEGIN; UPDATE rocpd_op SET \"end\" = 1; UPDATE rocpd_api SET \"end\" = 1",
        )
        .unwrap();
    fs::copy(dir.path(&trace), dir.path("t.rpd")).unwrap();
    fs::copy(dir.path("live.rpd-journal"), dir.path("t.rpd-journal")).unwrap();
    drop(connection);
    fs::remove_file(dir.path(&trace)).unwrap();
    "t.rpd".to_string()
}

#[test]
fn a_journal_of_a_killed_writer_is_rolled_back_and_reported() {
    let dir = Dir::new();
    let trace = killed_in_mid_transaction(&dir);
    assert_eq!(check(&dir, &[&trace]).found(), ["journal-rolled-back file 1"]);
    assert_eq!(dir.names(), ["t.rpd"]);
    assert!(check(&dir, &[&trace]).findings.is_empty(), "once is enough");
}

#[test]
fn a_journal_that_says_nothing_stays_and_is_reported() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    dir.write("t.rpd-journal", "");
    let answer = check(&dir, &[&trace]);
    assert_eq!(answer.found(), ["leftover-journal file 1"]);
    assert_eq!(answer.findings[0].examples, ["t.rpd-journal"]);
}

#[test]
fn a_locked_file_is_no_verdict() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let other = dir.open(&trace);
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    dir.run(&["check", &trace]).expect(1).says(&["t.rpd", "locked"]);
}

/// rpd, which was installed here, as a user that permissions bind: root may do anything.
pub(crate) fn bound_rpd(dir: &Dir, arguments: &[&str]) -> Command {
    let mut command = dir.command(dir.path("rpd"));
    command.args(arguments);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    command
}

#[test]
fn a_read_only_directory_can_be_checked_but_not_repaired() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    dir.open(&trace).execute("UPDATE rocpd_api SET \"end\" = 1 WHERE id = 3", []).unwrap();
    dir.install(RPD, "rpd");
    let home = dir.path("");
    let at = dir.path(&trace);
    fs::set_permissions(&at, fs::Permissions::from_mode(0o666)).unwrap();
    let before = fs::read(&at).unwrap();
    let mut checked = bound_rpd(&dir, &["check", &trace]);
    let mut repaired = bound_rpd(&dir, &["check", "--repair", &trace]);
    fs::set_permissions(&home, fs::Permissions::from_mode(0o555)).unwrap();
    let (checked, repaired) = (ran(&mut checked), ran(&mut repaired));
    fs::set_permissions(&at, fs::Permissions::from_mode(0o444)).unwrap();
    let read_only = ran(&mut bound_rpd(&dir, &["check", "--repair", &trace]));
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(checked.expect(1).stdout.contains("negative-duration"), "{checked}");
    repaired.expect(1).says(&["t.rpd", "not repaired", "is as it was"]);
    read_only.expect(1).says(&["t.rpd", "read-only"]);
    assert!(fs::read(&at).unwrap() == before);
}

#[test]
fn a_killed_writers_file_in_a_read_only_directory_says_what_to_do() {
    let dir = Dir::new();
    let trace = killed_in_mid_transaction(&dir);
    for name in ["t.rpd", "t.rpd-journal"] {
        fs::set_permissions(dir.path(name), fs::Permissions::from_mode(0o444)).unwrap();
    }
    dir.install(RPD, "rpd");
    let mut command = bound_rpd(&dir, &["check", &trace]);
    fs::set_permissions(dir.path(""), fs::Permissions::from_mode(0o555)).unwrap();
    let result = ran(&mut command);
    fs::set_permissions(dir.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    result.expect(1).says(&["t.rpd", "rolled back"]);
}

/// SQL that says a session is process `pid` of this host, recorded since `began` ns and without an end.
fn session_here(session: u32, pid: u32, began: u64) -> String {
    let read = |file: &str| fs::read_to_string(file).unwrap().trim().to_string();
    let (boot, host) = (read("/proc/sys/kernel/random/boot_id"), read("/proc/sys/kernel/hostname"));
    format!(
        "DELETE FROM rocpd_metadata WHERE tag GLOB 'session::{session}::*';
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session::{session}::pid', '{pid}'),
             ('session::{session}::boot_id', '{boot}'), ('session::{session}::host', '{host}'),
             ('session::{session}::start_monotonic_ns', '{began}');"
    )
}

/// Later than any process of this host began, ns.
const NOW_OR_LATER: u64 = u64::MAX / 2;

#[test]
fn sessions_without_an_end_are_distinguished() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let mut child = Command::new("true").stdout(Stdio::null()).spawn().unwrap();
    let gone = child.id();
    child.wait().unwrap();
    for (facts, kind, severity) in [
        (session_here(1, gone, NOW_OR_LATER), "session-killed", "warning"),
        (session_here(1, std::process::id(), 1), "session-killed", "warning"),
        (
            session_here(1, gone, NOW_OR_LATER)
                + "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::1::abort_monotonic_ns', '7')",
            "session-aborted",
            "note",
        ),
        (session_here(1, std::process::id(), NOW_OR_LATER), "session-running", "note"),
        (
            session_here(1, std::process::id(), NOW_OR_LATER)
                + "UPDATE rocpd_metadata SET value = 'another boot' WHERE tag = 'session::1::boot_id'",
            "session-unfinished",
            "warning",
        ),
        (
            session_here(1, std::process::id(), NOW_OR_LATER)
                + "UPDATE rocpd_metadata SET value = 'node2' WHERE tag = 'session::1::host'",
            "session-unfinished",
            "warning",
        ),
        // A process of a container that has the host's name.
        (
            session_here(1, std::process::id(), NOW_OR_LATER)
                + "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::1::pid_namespace', 'pid:[1]')",
            "session-unfinished",
            "warning",
        ),
    ] {
        dir.open(&trace).execute_batch(&facts).unwrap();
        let answer = check(&dir, &[&trace]);
        assert_eq!(answer.found(), [format!("{kind} sessions 1")], "{facts}");
        assert_eq!(answer.findings[0].severity, severity);
        assert!(answer.findings[0].examples[0].as_str().unwrap().starts_with("session 1 process"));
    }
}

#[test]
fn queues_that_failed_are_named() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let fact =
        "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::1::queue_error', 'queue 1 of GPU 0: X')";
    dir.open(&trace).execute_batch(fact).unwrap();
    let answer = check(&dir, &[&trace]);
    assert_eq!(answer.found(), ["queue-failed sessions 1"]);
    assert_eq!(answer.findings[0].examples[0].as_str(), Some("session 1: queue 1 of GPU 0: X"));
}

#[test]
fn a_session_that_is_being_recorded_is_neither_judged_nor_repaired() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let damage = "DELETE FROM rocpd_api WHERE id IN (3, 4294967299); UPDATE rocpd_op SET \"end\" = 1 WHERE id = 4294967300;
        DELETE FROM rocpd_api_ops WHERE op_id = 4294967302;";
    let facts = session_here(1, std::process::id(), NOW_OR_LATER);
    dir.open(&trace).execute_batch(&(facts + damage)).unwrap();
    let answer = check(&dir, &[&trace]);
    assert_eq!(
        answer.found(),
        [
            "dangling-id rocpd_api_ops.api_id 1",
            "dangling-id rocpd_kernelapi.api_ptr_id 1",
            "session-running sessions 1"
        ]
    );
    let before = fs::read(dir.path(&trace)).unwrap();
    let pid = std::process::id().to_string();
    dir.run(&["check", "--repair", &trace]).expect(1).says(&["t.rpd", "not repaired", &pid, "recording"]);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
}

#[test]
fn a_large_file_that_is_being_recorded_is_not_read_page_by_page() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let facts = session_here(1, std::process::id(), NOW_OR_LATER);
    let large = "CREATE TABLE ballast (x); INSERT INTO ballast VALUES (zeroblob(70000000));";
    dir.open(&trace).execute_batch(&(facts + large)).unwrap();
    assert_eq!(check(&dir, &[&trace]).found(), ["pages-not-checked file 1", "session-running sessions 1"]);
}

#[test]
fn a_file_that_another_process_has_open_is_not_repaired() {
    let dir = Dir::new();
    let trace = sound(&dir, "t.rpd");
    let other = dir.open(&trace);
    other.execute("UPDATE rocpd_api SET \"end\" = 1 WHERE id = 3", []).unwrap();
    let pid = format!("process {}", std::process::id());
    let refused = dir.run(&["check", "--repair", &trace]);
    refused.expect(1).says(&["t.rpd", "not repaired", &pid, "open for writing"]);
    drop(other);
    assert_eq!(check(&dir, &["--repair", &trace]).errors, 0);
}

#[test]
fn a_trace_of_schema_1_is_checked_but_not_repaired() {
    let dir = Dir::new();
    dir.open("v1.rpd")
        .execute_batch(
            r#"CREATE TABLE rocpd_string (id integer primary key, string varchar(4096));
               CREATE TABLE rocpd_api (id integer primary key, pid integer, tid integer, start integer, "end" integer,
                   apiName_id integer, args_id integer);
               CREATE TABLE rocpd_op (id integer primary key, gpuId, queueId, sequenceId, completionSignal, start integer,
                   "end" integer, description_id integer, opType_id integer);
               CREATE TABLE rocpd_kernelop (op_ptr_id integer primary key REFERENCES rocpd_op (id));
               INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'k');
               INSERT INTO rocpd_op VALUES (1, 0, 0, 1, '', 10, 20, 3, 2), (2, 0, 0, 1, '', 10, 20, 9, 2);
               INSERT INTO rocpd_kernelop VALUES (1), (7);"#,
        )
        .unwrap();
    let answer = check(&dir, &["v1.rpd"]);
    assert_eq!(answer.schema, "1");
    let result = answer.found();
    assert_eq!(
        result[..2],
        ["dangling-id rocpd_op.description_id 1", "dangling-id rocpd_kernelop.op_ptr_id 1"]
    );
    dir.run(&["check", "--repair", "v1.rpd"]).expect(1).says(&["v1.rpd", "schema 2 and 3"]);
}
