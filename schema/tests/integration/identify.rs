//! What a file is: each kind told apart on a real file of that kind, and none of them changed by the look.

use rpd_schema::{
    Appender, ErrorKind, Version, create, create_or_check, identify, identify_within, open_read,
};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::sample;
use crate::sample::{names, number};

/// Asserts that everything that opens this file for anything names the same kind, in one line, and leaves it alone.
fn refused(path: &Path, kind: &ErrorKind) {
    let before = std::fs::read(path).ok();
    let beside = path.parent().filter(|parent| parent.is_dir()).map(names);
    let errors = [
        identify(path).unwrap_err(),
        open_read(path).map(|_| ()).unwrap_err(),
        create_or_check(path).unwrap_err(),
        Appender::open(path).map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.path(), path);
        let line = error.to_string();
        assert!(!line.contains('\n') && !line.ends_with('.'), "{line}");
        assert!(line.contains(path.file_name().unwrap().to_str().unwrap()), "{line}");
    }
    assert_eq!(std::fs::read(path).ok(), before, "left as it was");
    assert_eq!(path.parent().filter(|parent| parent.is_dir()).map(names), beside, "nothing beside it");
}

fn database(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

const VERSION_1: &str = "
    CREATE TABLE rocpd_string (id integer PRIMARY KEY, string varchar(4096));
    CREATE TABLE rocpd_op (id integer PRIMARY KEY, gpuId integer);
    CREATE TABLE rocpd_api (id integer PRIMARY KEY, pid integer);
    CREATE TABLE rocpd_kernelop (op_ptr_id integer PRIMARY KEY);
    CREATE TABLE rocpd_metadata (id integer PRIMARY KEY, tag varchar(4096), value varchar(4096));";

#[test]
fn versions_are_distinguished() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    create(&path("2.rpd")).unwrap();
    database(&path("no-row.rpd"), VERSION_1);
    database(&path("no-table.rpd"), &format!("{VERSION_1} DROP TABLE rocpd_metadata"));
    let version = |text: &str| {
        format!("{VERSION_1} INSERT INTO rocpd_metadata (tag, value) VALUES ('schema_version', {text})")
    };
    database(&path("1.rpd"), &version("'1'"));
    database(&path("3.rpd"), &version("'3'"));
    database(&path("3-as-a-number.rpd"), &version("3"));
    assert_eq!(identify(&path("2.rpd")).unwrap(), Version::V2);
    assert_eq!(identify(&path("no-row.rpd")).unwrap(), Version::V1);
    assert_eq!(identify(&path("no-table.rpd")).unwrap(), Version::V1);
    assert_eq!(identify(&path("1.rpd")).unwrap(), Version::V1);
    assert_eq!(identify(&path("3.rpd")).unwrap(), Version::V3);
    assert_eq!(identify(&path("3-as-a-number.rpd")).unwrap(), Version::V3);
    assert_eq!(open_read(&path("1.rpd")).unwrap().1, Version::V1);
    assert_eq!(open_read(&path("3.rpd")).unwrap().1, Version::V3);

    database(&path("4.rpd"), &version("'4 beta'"));
    refused(&path("4.rpd"), &ErrorKind::UnsupportedVersion("4 beta".to_owned()));
    database(&path("bytes.rpd"), &version("x'ff0a'"));
    refused(&path("bytes.rpd"), &ErrorKind::UnsupportedVersion("\u{fffd}".to_owned()));
}

#[test]
fn other_versions_are_read_but_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.rpd");
    database(&path, VERSION_1);
    let before = std::fs::read(&path).unwrap();
    for error in [create_or_check(&path).unwrap_err(), Appender::open(&path).map(|_| ()).unwrap_err()] {
        assert_eq!(error.kind(), &ErrorKind::NotWritable(Version::V1));
    }
    assert_eq!(create(&path).unwrap_err().kind(), &ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn other_databases_are_named_for_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let rocprofv3 = directory.path().join("results.db");
    database(
        &rocprofv3,
        "CREATE TABLE rocpd_info_agent_0000a1b2_c3d4 (id integer); CREATE TABLE rocpd_region_0000a1b2_c3d4 (id integer);
         CREATE TABLE rocpd_kernel_dispatch_0000a1b2_c3d4 (id integer); CREATE TABLE rocpd_string_0000a1b2_c3d4 (id integer);
         CREATE VIEW rocpd_string AS SELECT * FROM rocpd_string_0000a1b2_c3d4;",
    );
    refused(&rocprofv3, &ErrorKind::Rocprofv3);
    let other = directory.path().join("cookies.sqlite");
    database(&other, "CREATE TABLE cookies (id integer, crumbs text)");
    refused(&other, &ErrorKind::OtherSqlite);
    let begun = directory.path().join("begun.rpd");
    database(&begun, "CREATE TABLE rocpd_string (id integer); CREATE TABLE rocpd_op (id integer)");
    refused(&begun, &ErrorKind::Unfinished);
    let bare = directory.path().join("bare.sqlite");
    database(&bare, "PRAGMA user_version = 7");
    refused(&bare, &ErrorKind::OtherSqlite);
}

#[test]
fn a_foreign_database_in_wal_mode_is_left_without_a_trace_of_the_look() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wal.sqlite");
    database(&path, "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    assert_eq!(names(directory.path()), ["wal.sqlite"]);
    refused(&path, &ErrorKind::OtherSqlite);
}

#[test]
fn what_is_no_database_is_never_touched() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.rpd");
    std::fs::write(&text, "remember the milk\n".repeat(500)).unwrap();
    refused(&text, &ErrorKind::NotSqlite);
    let short = directory.path().join("short.rpd");
    std::fs::write(&short, "x").unwrap();
    refused(&short, &ErrorKind::NotSqlite);
    let folder = directory.path().join("folder.rpd");
    std::fs::create_dir(&folder).unwrap();
    refused(&folder, &ErrorKind::NotAFile);
    let pipe = directory.path().join("pipe.rpd");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(identify(&pipe).unwrap_err().kind(), &ErrorKind::NotAFile);
    assert_eq!(Appender::open(&pipe).map(|_| ()).unwrap_err().kind(), &ErrorKind::NotAFile);
    assert_eq!(identify(Path::new("/dev/null")).unwrap_err().kind(), &ErrorKind::NotAFile);
}

#[test]
fn missing_and_empty_files_are_for_readers_an_error_and_for_writers_a_place() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.rpd");
    assert_eq!(identify(&missing).unwrap_err().kind(), &ErrorKind::NotFound);
    assert_eq!(open_read(&missing).map(|_| ()).unwrap_err().kind(), &ErrorKind::NotFound);
    assert_eq!(names(directory.path()), [""; 0], "looking creates nothing");
    refused(&directory.path().join("no/such/place.rpd"), &ErrorKind::NotFound);

    let empty = directory.path().join("empty.rpd");
    for fill in [create, create_or_check, |path: &Path| Appender::open(path).map(|_| ())] {
        std::fs::write(&empty, "").unwrap();
        assert_eq!(identify(&empty).unwrap_err().kind(), &ErrorKind::Empty);
        assert_eq!(open_read(&empty).map(|_| ()).unwrap_err().kind(), &ErrorKind::Empty);
        fill(&empty).unwrap();
        assert_eq!(identify(&empty).unwrap(), Version::V2);
        assert_eq!(create(&empty).unwrap_err().kind(), &ErrorKind::AlreadyExists);
    }
}

#[test]
fn truncated_and_damaged_files_are_distinguished() {
    let directory = tempfile::tempdir().unwrap();
    let whole = sample::real_trace("matmul_result.rpd", directory.path());
    let bytes = std::fs::read(&whole).unwrap();
    let path = directory.path().join("cut.rpd");
    for length in [bytes.len() - 1, bytes.len() / 2, 4096, 4000, 600] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        refused(&path, &ErrorKind::Truncated);
    }
    for length in [99, 50, 16] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let kind = identify(&path).unwrap_err().kind().clone();
        assert!(
            matches!(kind, ErrorKind::Truncated | ErrorKind::NotSqlite | ErrorKind::Corrupt),
            "{length}: {kind:?}"
        );
        refused(&path, &kind);
    }
    let mut damaged = bytes.clone();
    damaged[100..200].fill(0xa5);
    std::fs::write(&path, damaged).unwrap();
    refused(&path, &ErrorKind::Corrupt);
}

#[test]
fn a_locked_file_says_so_after_the_busy_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("busy.rpd");
    create(&path).unwrap();
    let busy = Duration::from_millis(20);
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(identify_within(&path, busy).unwrap_err().kind(), &ErrorKind::Locked);
    assert_eq!(rpd_schema::open_read_within(&path, busy).map(|_| ()).unwrap_err().kind(), &ErrorKind::Locked);
    assert_eq!(Appender::open_within(&path, busy).map(|_| ()).unwrap_err().kind(), &ErrorKind::Locked);
    holder.execute_batch("ROLLBACK; BEGIN IMMEDIATE").unwrap();
    assert_eq!(
        identify_within(&path, busy).unwrap(),
        Version::V2,
        "a writer at work does not keep readers out"
    );
    assert_eq!(Appender::open_within(&path, busy).map(|_| ()).unwrap_err().kind(), &ErrorKind::Locked);
    holder.execute_batch("ROLLBACK").unwrap();
    let mut appender = Appender::open_within(&path, busy).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(appender.begin().unwrap_err().kind(), &ErrorKind::Locked);
    assert_eq!(appender.next_session().unwrap_err().kind(), &ErrorKind::Locked);
    holder.execute_batch("ROLLBACK").unwrap();
    appender.begin().unwrap();
    appender.commit().unwrap();
}

#[test]
fn odd_names_are_names() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["file:x.rpd", "a b?mode=memory&x#y%41.rpd", "\u{1f409}.rpd", ":memory:"] {
        let path = directory.path().join(name);
        create(&path).unwrap();
        assert_eq!(identify(&path).unwrap(), Version::V2, "{name}");
        assert!(path.is_file(), "{name}");
    }
    let path = directory.path().join("two\nlines\u{1b}[31m.rpd");
    let line = identify(&path).unwrap_err().to_string();
    assert!(line.contains("two\\nlines\\u{1b}[31m.rpd: no such file"), "{line}");
}

#[test]
fn a_reader_cannot_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let (connection, _) = open_read(&path).unwrap();
    assert!(connection.execute("DELETE FROM rocpd_metadata", []).is_err());
    assert_eq!(number(&connection, "SELECT count(*) FROM rocpd_metadata"), 3);
}

/// Root may do anything, so the checks run as nobody if the test does not.
#[test]
fn missing_permissions_are_named() {
    const PLACE: &str = "RPD_TEST_PERMISSIONS";
    let chmod = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    if let Some(place) = std::env::var_os(PLACE) {
        check_permissions(Path::new(&place));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    chmod(place, 0o755);
    for name in ["unreadable.rpd", "unwritable.rpd", "closed/unreachable.rpd", "fixed/writable.rpd"] {
        std::fs::create_dir_all(place.join(name).parent().unwrap()).unwrap();
        create(&place.join(name)).unwrap();
    }
    chmod(&place.join("unreadable.rpd"), 0o000);
    chmod(&place.join("unwritable.rpd"), 0o444);
    chmod(&place.join("closed"), 0o000);
    chmod(&place.join("fixed/writable.rpd"), 0o666);
    chmod(&place.join("fixed"), 0o555);
    // Nobody may not be allowed to reach the place where test programs are built.
    let program = place.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    chmod(&program, 0o755);
    let mut again =
        sample::this_test_again(&program, "identify::missing_permissions_are_named", PLACE, place);
    if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0 {
        std::os::unix::process::CommandExt::uid(&mut again, 65534);
    }
    let output = again.current_dir(place).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "the child must have run the test");
    chmod(&place.join("closed"), 0o755);
    chmod(&place.join("fixed"), 0o755);
}

fn check_permissions(place: &Path) {
    let kind = |result: Result<(), rpd_schema::Error>| result.map_err(|error| error.kind().clone());
    let open = |path: &Path| Appender::open(path).map(|_| ());
    for name in ["unreadable.rpd", "closed/unreachable.rpd"] {
        let path = place.join(name);
        assert_eq!(kind(identify(&path).map(|_| ())), Err(ErrorKind::PermissionDenied), "{name}");
        assert_eq!(kind(open(&path)), Err(ErrorKind::PermissionDenied), "{name}");
    }
    assert_eq!(identify(&place.join("unwritable.rpd")).unwrap(), Version::V2);
    assert_eq!(kind(open(&place.join("unwritable.rpd"))), Err(ErrorKind::ReadOnly));
    assert_eq!(kind(create(&place.join("fixed/new.rpd"))), Err(ErrorKind::PermissionDenied));
    assert_eq!(identify(&place.join("fixed/writable.rpd")).unwrap(), Version::V2);
    assert_eq!(
        kind(open(&place.join("fixed/writable.rpd"))),
        Err(ErrorKind::PermissionDenied),
        "no place for a journal"
    );
}
