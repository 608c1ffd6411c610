//! The trace while its owner does what owners do with files.

use std::fs;
use std::path::Path;

use super::{assert_clean, ended_sessions, is_root, lost, marker_count, markers, recorded};
use crate::harness::{Dir, Loading, Ran, Run, Trace, program, rpd};

/// Marks "before", lets `meddle` do something to the written file, marks "after".
fn meddled_with(dir: &Dir, meddle: impl FnOnce()) -> Ran {
    let acts =
        ["mark=before", "flush", "say=written", "wait=go", "mark=after", "flush", "mark=last", "say=end"];
    let run = acts.iter().fold(Run::new(dir, program("control")), |run, act| run.arg(*act));
    let mut running = run.recorded(Loading::Preload).start();
    running.wait_for_output("written\n");
    meddle();
    fs::write(dir.path("go"), "").unwrap();
    let ran = running.finish();
    fs::remove_file(dir.path("go")).unwrap();
    assert_eq!(ran.expect(0).stdout, "written\nend\n", "{ran}");
    ran
}

fn names(trace: &Trace) -> Vec<String> {
    markers(trace).into_keys().collect()
}

/// Sound, ended well, and it says how many records went with the file that was there before.
#[track_caller]
fn goes_on(dir: &Dir, ran: &Ran, gone: i64) {
    ran.expect_silent();
    assert_eq!(dir.names(), ["trace.rpd"], "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(names(&trace), ["after", "last"], "{ran}");
    assert_eq!(trace.session_count(), 1);
    assert_gone(&trace, gone);
}

#[track_caller]
fn assert_gone(trace: &Trace, gone: i64) {
    let of_it = trace.metadata("session::%::lost::file_gone");
    assert_eq!(of_it.values().map(|count| count.parse::<i64>().unwrap()).sum::<i64>(), gone);
    assert_eq!(lost(trace), gone, "{:?}", trace.lost());
}

#[test]
fn deleted() {
    let dir = Dir::new();
    let ran = meddled_with(&dir, || fs::remove_file(dir.path("trace.rpd")).unwrap());
    goes_on(&dir, &ran, 1);
}

/// Nothing comes any more that would need another file: the count needs one.
#[test]
fn deleted_at_the_end() {
    let dir = Dir::new();
    let acts = ["mark=a", "mark=b", "flush", "say=written", "wait=go"];
    let run = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    let mut running = run.recorded(Loading::RpdRecord).start();
    running.wait_for_output("written\n");
    fs::remove_file(dir.path("trace.rpd")).unwrap();
    fs::write(dir.path("go"), "").unwrap();
    let ran = running.finish();
    assert!(ran.expect(0).stderr.contains(" 0 copies, 2 records lost, "), "{ran}");
    assert_gone(&dir.trace("trace.rpd"), 2);
}

#[test]
fn moved_away() {
    let dir = Dir::new();
    let ran = meddled_with(&dir, || fs::rename(dir.path("trace.rpd"), dir.path("old.rpd")).unwrap());
    ran.expect_silent();
    let old = dir.trace("old.rpd");
    old.check_integrity();
    assert_eq!(names(&old), ["before"]);
    fs::remove_file(dir.path("old.rpd")).unwrap();
    goes_on(&dir, &ran, 0);
}

#[test]
fn deleted_and_made_again() {
    let dir = Dir::new();
    let ran = meddled_with(&dir, || {
        fs::remove_file(dir.path("trace.rpd")).unwrap();
        let made = crate::harness::command(rpd()).arg("create").arg(dir.path("trace.rpd")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    });
    goes_on(&dir, &ran, 1);
}

#[test]
fn deleted_and_made_again_without_tables() {
    let dir = Dir::new();
    let ran = meddled_with(&dir, || {
        fs::remove_file(dir.path("trace.rpd")).unwrap();
        fs::write(dir.path("trace.rpd"), "").unwrap();
    });
    goes_on(&dir, &ran, 1);
}

#[test]
fn replaced() {
    let (dir, other) = (Dir::new(), Dir::new());
    let run = Run::new(&other, program("control")).arg("mark=of another run").recorded(Loading::Preload);
    run.run().expect(0);
    let ran = meddled_with(&dir, || {
        // On the same file system this is one rename; the temporary directories are.
        fs::rename(other.path("trace.rpd"), dir.path("trace.rpd")).unwrap();
    });
    ran.expect_silent();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.session_count(), 2);
    assert_eq!(names(&trace), ["after", "last", "of another run"]);
    assert_gone(&trace, 1);
}

/// Two sessions of one process in one file: each tells of what it has itself, so that their sums are the file's.
#[test]
fn replaced_by_a_copy_of_itself() {
    let dir = Dir::new();
    let large: Vec<String> = (b'a'..=b'l')
        .map(|letter| format!("mark={}", char::from(letter).to_string().repeat(100_000)))
        .collect();
    let before = ["mark=before", "flush", "say=written", "wait=locked"];
    let between = ["say=lost", "wait=unlocked", "flush", "say=flushed", "wait=go", "mark=after", "mark=last"];
    let acts = before.iter().copied().chain(large.iter().map(String::as_str)).chain(between);
    let run = acts.fold(Run::new(&dir, program("control")), Run::arg).env("RPDT_BUFFER_MB", "1");
    let mut running = run.env("RPDT_WAIT_MS", "10").recorded(Loading::Preload).start();
    running.wait_for_output("written\n");
    let trace = dir.path("trace.rpd");
    let holder = rusqlite::Connection::open(&trace).unwrap();
    holder.execute_batch("begin exclusive").unwrap();
    fs::write(dir.path("locked"), "").unwrap();
    running.wait_for_output("lost\n");
    holder.execute_batch("commit").unwrap();
    drop(holder);
    fs::write(dir.path("unlocked"), "").unwrap();
    running.wait_for_output("flushed\n");
    fs::copy(&trace, dir.path("copy")).unwrap();
    fs::rename(dir.path("copy"), &trace).unwrap();
    fs::write(dir.path("go"), "").unwrap();
    running.finish().expect(0);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.session_count(), 2);
    let sum = |key: &str| -> i64 {
        trace
            .metadata(&format!("session::%::{key}"))
            .values()
            .map(|count| count.parse::<i64>().unwrap())
            .sum()
    };
    let there = marker_count(&trace);
    assert!((4..15).contains(&there), "the premise of this test: {there} marks");
    assert_eq!((sum("recorded::mark"), sum("lost::buffer_full")), (there, 15 - there), "{:?}", trace.lost());
}

/// Marks "before", has `copy` made, marks "between", has `put` put it in the trace's place, marks "after" and "last".
fn with_an_older_copy(dir: &Dir, put: impl FnOnce(&Path, &Path)) {
    let before = ["mark=before", "flush", "say=written", "wait=copied", "mark=between", "flush", "say=more"];
    let acts = before.into_iter().chain(["wait=go", "mark=after", "flush", "mark=last", "say=end"]);
    let run = acts.fold(Run::new(dir, program("control")), Run::arg);
    let mut running = run.recorded(Loading::Preload).start();
    running.wait_for_output("written\n");
    let (trace, copy) = (dir.path("trace.rpd"), dir.path("copy"));
    fs::copy(&trace, &copy).unwrap();
    dir.touch("copied");
    running.wait_for_output("more\n");
    put(&copy, &trace);
    dir.touch("go");
    running.finish().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(names(&trace), ["after", "before", "last"]);
    assert_eq!(trace.session_count(), 2);
    assert_gone(&trace, 1);
}

/// It has what had been recorded when it was made; the rest is gone.
#[test]
fn replaced_by_an_older_copy_of_itself() {
    with_an_older_copy(&Dir::new(), |copy, trace| fs::rename(copy, trace).unwrap());
}

/// The file stays the same, what is in it does not.
#[test]
fn overwritten_by_an_older_copy_of_itself() {
    with_an_older_copy(&Dir::new(), |copy, trace| fs::write(trace, fs::read(copy).unwrap()).unwrap());
}

#[test]
fn overwritten_by_another_trace() {
    let (dir, other) = (Dir::new(), Dir::new());
    // As many transactions and pages: SQLite takes it for the same file.
    meddled_with(&other, || {});
    let ran = meddled_with(&dir, || {
        fs::write(dir.path("trace.rpd"), fs::read(other.path("trace.rpd")).unwrap()).unwrap();
    });
    ran.expect_silent();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.session_count(), 2);
    let of = "select args || ' ' || count(*) from api where apiName = 'UserMarker' group by args order by 1";
    assert_eq!(trace.texts(of), ["after 2", "before 1", "last 2"]);
    assert_gone(&trace, 1);
}

/// A range that begins while nothing can be written, and ends when it can: what is lost of it does not end another one.
#[test]
fn ranges_that_begin_while_the_directory_is_gone() {
    let dir = Dir::new();
    let directory = dir.path("there");
    fs::create_dir(&directory).unwrap();
    let large = format!("mark={}", "x".repeat(100_000));
    let before = ["push=outer", "mark=a", "flush", "say=written", "wait=gone", "push=inner"];
    let between = ["flush", "say=lost", "wait=back", "pop", "flush", "mark=later", "pop", "mark=last"];
    let acts = before.into_iter().chain([&*large; 4]).chain(between);
    let run = acts.fold(Run::new(&dir, program("control")), Run::arg).env("RPDT_BUFFER_MB", "1");
    let mut running = run.env("RPDT_FILENAME", "there/trace.rpd").recorded(Loading::Preload).start();
    running.wait_for_output("written\n");
    fs::rename(&directory, dir.path("elsewhere")).unwrap();
    fs::write(dir.path("gone"), "").unwrap();
    running.wait_for_output("lost\n");
    fs::rename(dir.path("elsewhere"), &directory).unwrap();
    fs::write(dir.path("back"), "").unwrap();
    running.finish().expect(0);
    let trace = dir.trace("there/trace.rpd");
    trace.check_integrity();
    assert!(lost(&trace) > 4, "the premise of this test: {:?}", trace.lost());
    let texts = trace.texts("select args from api where apiName = 'UserMarker' order by end");
    assert_eq!(texts, ["a", "inner", "later", "outer", "last"]);
}

/// What is not mapped cannot fault, and works where there is no shared memory: on network file systems, with a small /dev/shm.
#[test]
fn nothing_is_mapped_shared() {
    let dir = Dir::new();
    let acts = ["mark=before", "flush", "say=written", "wait=go", "mark=after"];
    let run = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    let mut running = run.recorded(Loading::Preload).start();
    running.wait_for_output("written\n");
    let maps = fs::read_to_string(format!("/proc/{}/maps", running.pid())).unwrap();
    fs::write(dir.path("go"), "").unwrap();
    running.finish().expect(0).expect_silent();
    assert!(maps.contains("librpd_tracer.so"), "{maps}");
    let shared: Vec<_> = maps
        .lines()
        .filter(|line| line.split(' ').nth(1).is_some_and(|access| access.ends_with('s')))
        .collect();
    assert_eq!(shared, [""; 0]);
    assert!(!maps.contains("trace.rpd") && !maps.contains("/dev/shm"), "{maps}");
}

#[test]
fn truncated_in_place() {
    let dir = Dir::new();
    let ran = meddled_with(&dir, || drop(fs::File::create(dir.path("trace.rpd")).unwrap()));
    goes_on(&dir, &ran, 1);
}

#[test]
fn cut_short_in_place() {
    let dir = Dir::new();
    let ran = meddled_with(&dir, || {
        let trace = fs::OpenOptions::new().write(true).open(dir.path("trace.rpd")).unwrap();
        let half = trace.metadata().unwrap().len() / 2;
        trace.set_len(half).unwrap();
    });
    says_once(&ran, "recording goes on in a new file");
    let damaged = dir.path(&format!("trace.rpd-damaged-{}", ran.pid));
    assert!(fs::metadata(&damaged).unwrap().len() > 0, "what is left is its owner's");
    fs::remove_file(damaged).unwrap();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(
        (names(&trace), trace.session_count()),
        (vec!["after".to_string(), "last".to_string()], 1),
        "{ran}"
    );
    assert_gone(&trace, 1);
}

/// Changes `trace.rpd` as its owner may.
fn change(dir: &Dir, sql: &str) {
    let trace = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    trace.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    trace.execute_batch(&format!("pragma foreign_keys = off; {sql}")).unwrap();
}

/// A file that refuses rows for good says how many, in the one session that the process has.
#[test]
fn a_trigger_that_raises() {
    let dir = Dir::new();
    let ran = meddled_with(&dir, || {
        change(&dir, "create trigger no before insert on rocpd_api begin select raise(abort, 'no'); end");
    });
    says_once(&ran, "no");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(
        (names(&trace), lost(&trace), trace.session_count()),
        (vec!["before".to_string()], 2, 1),
        "{ran}"
    );
    assert_eq!(trace.metadata("session::%::end_monotonic_ns").len(), 1);
}

#[test]
fn tables_that_are_gone() {
    for gone in ["rocpd_api", "rocpd_string"] {
        let dir = Dir::new();
        let ran = meddled_with(&dir, || change(&dir, &format!("drop table {gone}")));
        ran.expect_silent();
        let trace = dir.trace("trace.rpd");
        assert_eq!((lost(&trace), trace.session_count()), (0, 1), "{gone}: {ran}");
        let marks = "select count(*) from rocpd_api join rocpd_string on args_id = rocpd_string.id where string in ('after', 'last')";
        assert_eq!(trace.number(marks), 2, "{gone}: {ran}");
    }
}

/// Texts that the recorder remembers are not in the file any more: those that come again get new rows.
#[test]
fn texts_that_are_deleted() {
    let dir = Dir::new();
    // Its marks have one name, and the first comes again.
    let acts =
        ["mark=same", "mark=other", "flush", "say=written", "wait=go", "mark=same", "mark=last", "say=end"];
    let run = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    let mut running = run.recorded(Loading::Preload).start();
    running.wait_for_output("written\n");
    change(
        &dir,
        "delete from rocpd_api; delete from rocpd_string; delete from rocpd_metadata where tag like 'session::0::%'",
    );
    fs::write(dir.path("go"), "").unwrap();
    running.finish().expect(0).expect_silent();
    fs::remove_file(dir.path("go")).unwrap();
    assert_eq!(names(&assert_clean(&dir, 1)), ["last", "same"]);
}

#[test]
fn names_of_kernels_that_are_deleted() {
    let dir = Dir::new();
    let running = recorded(&dir, "waits").arg("1").arg("fork").env("RPDT_AUTOFLUSH", "20").start();
    let kernels = "select count(*) from op where description like 'tick(%'";
    dir.wait_for_rows("trace.rpd", kernels, 3);
    change(
        &dir,
        "delete from rocpd_op; delete from rocpd_api; delete from rocpd_api_ops; delete from rocpd_string",
    );
    dir.wait_for_rows("trace.rpd", kernels, 3);
    ["fork", "end"].iter().for_each(|name| dir.touch(name));
    running.finish().expect(0);
    let trace = dir.trace("trace.rpd");
    let unnamed = "select count(*) from rocpd_op where description_id not in (select id from rocpd_string) \
        or opType_id not in (select id from rocpd_string)";
    assert_eq!(trace.number(unnamed), 0);
}

#[test]
fn replaced_by_something_that_is_no_trace() {
    let dir = Dir::new();
    let text = "shopping list: milk, bread\n".repeat(100);
    let ran = meddled_with(&dir, || {
        fs::remove_file(dir.path("trace.rpd")).unwrap();
        fs::write(dir.path("trace.rpd"), &text).unwrap();
    });
    says_once(&ran, "recording is off for this process");
    assert_eq!(fs::read_to_string(dir.path("trace.rpd")).unwrap(), text);
    let dir = Dir::new();
    let ran = meddled_with(&dir, || {
        fs::remove_file(dir.path("trace.rpd")).unwrap();
        // A database without any table: nobody asked for it to be a trace.
        let database = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
        database.execute_batch("create table t (a); drop table t; vacuum").unwrap();
    });
    says_once(&ran, "recording is off for this process");
}

/// One line of the recorder, which names the file.
#[track_caller]
fn says_once(ran: &Ran, what: &str) {
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains(what) && ran.stderr.contains("/trace.rpd: "), "{ran}");
}

fn marks<'a>(dir: &'a Dir, program: impl Into<std::path::PathBuf>) -> Run<'a> {
    Run::new(dir, program).recorded(Loading::Preload)
}

/// As a program does that creates the tables one by one: the recorder sees a few of them first, then all of them and no version.
#[test]
fn somebody_is_creating_it() {
    let sample = Dir::new();
    let made = crate::harness::command(rpd()).arg("create").arg(sample.path("t.rpd")).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let sample = rusqlite::Connection::open(sample.path("t.rpd")).unwrap();
    let of =
        "select sql from sqlite_master where sql is not null and name not like 'sqlite_%' order by rowid";
    let statements: Vec<String> =
        sample.prepare(of).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for created in [2, statements.len()] {
        let dir = Dir::new();
        let trace = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
        statements[..created].iter().for_each(|sql| trace.execute_batch(sql).unwrap());
        let acts = ["mark=a", "flush", "say=tried", "wait=go", "mark=b", "say=end"];
        let run = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
        let mut running = run.recorded(Loading::Preload).start();
        running.wait_for_output("tried\n");
        statements[created..].iter().for_each(|sql| trace.execute_batch(sql).unwrap());
        trace.execute("insert into rocpd_metadata (tag, value) values ('schema_version', '2')", []).unwrap();
        fs::write(dir.path("go"), "").unwrap();
        let ran = running.finish();
        fs::remove_file(dir.path("go")).unwrap();
        assert_eq!(ran.expect(0).stdout, "tried\nend\n");
        says_once(&ran, "somebody is creating it");
        drop(trace);
        assert_eq!(names(&assert_clean(&dir, 1)), ["a", "b"], "{ran}");
    }
}

#[test]
fn something_else_in_its_place() {
    type Place = (&'static str, fn(&Path));
    let places: [Place; 3] = [
        ("a text", |path| fs::write(path, "not a database\n").unwrap()),
        ("a database", |path| {
            rusqlite::Connection::open(path)
                .unwrap()
                .execute_batch("create table mine (a); insert into mine values (1)")
                .unwrap();
        }),
        ("a directory", |path| fs::create_dir(path).unwrap()),
    ];
    for (what, place) in places {
        let dir = Dir::new();
        place(&dir.path("trace.rpd"));
        let before = fs::read(dir.path("trace.rpd")).ok();
        let ran =
            marks(&dir, program("control")).arg("mark=a").arg("flush").arg("mark=b").arg("say=end").run();
        assert_eq!(ran.expect(0).stdout, "end\n", "{what}: {ran}");
        says_once(&ran, "recording is off for this process");
        assert_eq!(fs::read(dir.path("trace.rpd")).ok(), before, "{what} was changed");
        assert_eq!(dir.names(), ["trace.rpd"], "{what}");
    }
}

#[test]
fn the_directory_goes_away() {
    let dir = Dir::new();
    fs::create_dir(dir.path("out")).unwrap();
    let acts =
        ["mark=before", "flush", "say=written", "wait=go", "mark=after", "flush", "say=lost", "wait=back"];
    let run =
        acts.iter().chain(&["mark=last"]).fold(marks(&dir, program("control")), |run, act| run.arg(*act));
    let mut running = run.env("RPDT_FILENAME", dir.path("out/trace.rpd")).start();
    running.wait_for_output("written\n");
    fs::remove_dir_all(dir.path("out")).unwrap();
    fs::write(dir.path("go"), "").unwrap();
    running.wait_for_output("lost\n");
    fs::create_dir(dir.path("out")).unwrap();
    fs::write(dir.path("back"), "").unwrap();
    let ran = running.finish();
    ran.expect(0);
    says_once(&ran, "no such file or directory");
    // What was marked meanwhile waited in the buffers.
    let trace = Trace::open(&dir.path("out/trace.rpd"));
    trace.check_integrity();
    assert_eq!(names(&trace), ["after", "last"], "{ran}");
}

/// Root may do everything; without this right it is an ordinary user.
fn without_privilege<'a>(dir: &'a Dir, acts: &[&str]) -> Run<'a> {
    let run = if is_root() {
        marks(dir, "setpriv").arg("--bounding-set=-dac_override,-dac_read_search").arg(program("control"))
    } else {
        marks(dir, program("control"))
    };
    acts.iter().fold(run, |run, act| run.arg(*act))
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn nowhere_to_write() {
    for place in ["read-only directory", "no directory", "read-only file", "file in a read-only directory"] {
        let dir = Dir::new();
        let file = dir.path("place/trace.rpd");
        fs::create_dir(dir.path("place")).unwrap();
        if place.contains("file") {
            let run = marks(&dir, program("control")).arg("mark=old").env("RPDT_FILENAME", &file);
            run.run().expect(0).expect_silent();
        }
        let before = fs::read(&file).ok();
        match place {
            "no directory" => fs::remove_dir(dir.path("place")).unwrap(),
            "read-only file" => set_mode(&file, 0o444),
            _ => set_mode(&dir.path("place"), 0o555),
        }
        let run = without_privilege(&dir, &["mark=a", "flush", "mark=b", "flush", "say=end"]);
        let ran = run.env("RPDT_FILENAME", &file).run();
        if place != "no directory" {
            set_mode(&dir.path("place"), 0o755);
        }
        assert_eq!(ran.expect(0).stdout, "end\n", "{place}: {ran}");
        says_once(&ran, "what finds no room in the buffers meanwhile is lost and counted");
        assert_eq!(fs::read(&file).ok(), before, "{place}");
    }
}

#[test]
fn made_read_only_while_recording() {
    let dir = Dir::new();
    let acts = ["mark=before", "flush", "say=written", "wait=go", "mark=after", "flush", "say=end"];
    let mut running = without_privilege(&dir, &acts).start();
    running.wait_for_output("written\n");
    set_mode(&dir.path("trace.rpd"), 0o444);
    fs::write(dir.path("go"), "").unwrap();
    let ran = running.finish();
    // Who has the file open may go on writing: that is how permissions work.
    ran.expect(0).expect_silent();
    assert_eq!(names(&dir.trace("trace.rpd")), ["after", "before"]);
}

#[test]
fn descriptors_that_the_program_closes_or_replaces() {
    for how in ["close", "replace"] {
        let dir = Dir::new();
        let ran = recorded(&dir, "descriptors").arg(how).run();
        assert_eq!(ran.expect(0).expect_silent().stdout, "untouched\n", "{how}: {ran}");
        assert_eq!(fs::read_to_string(dir.path("victim")).unwrap(), "untouched");
        fs::remove_file(dir.path("victim")).unwrap();
        assert_eq!(dir.names(), ["trace.rpd"]);
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        assert_eq!(markers(&trace).len(), 3000, "{how}");
        assert!(trace.lost().is_empty(), "{how}: {:?}", trace.lost());
        // Each time it goes on in another session, and the one before has ended.
        assert_eq!(ended_sessions(&trace), trace.session_count(), "{how}");
    }
}

/// The program keeps the numbers that it may have for itself, at once or behind the first transaction, for a while or to its end.
#[test]
fn descriptors_that_the_program_has_used_up() {
    let cases = ["first", "later", "hard"].map(|when| [(when, "end"), (when, "then")]);
    for (when, until) in cases.into_iter().flatten() {
        let (dir, report) = (Dir::new(), Dir::new());
        std::fs::write(report.path("report"), "").unwrap();
        let run = recorded(&dir, "out_of_descriptors").arg(when).arg(until);
        let ran = run.env("RPDT_REPORT", report.path("report")).run();
        assert_eq!(ran.expect(0).stdout, "64 as before\n", "{when} {until}: {ran}");
        // The software GPU has a line of its own.
        assert!(!ran.stderr.contains("rpd_tracer"), "{when} {until}: {ran}");
        assert_eq!(marker_count(&assert_clean(&dir, 1)), 300, "{when} {until}");
        let said = std::fs::read_to_string(report.path("report")).unwrap();
        assert!(said.contains("\nended "), "{when} {until}: {said}");
    }
}
