//! Files that may not grow: full disks, quotas, limits.

use std::fs;

use super::{ended_sessions, hazard, in_own_mounts, lost, marker_count, not_here, recorded};
use crate::harness::{Dir, Loading, Ran, Run, Trace, program, recorder, rpd, tool};

/// Records lost according to what the recorder tells `rpd record`.
pub(super) fn reported_lost(report: &str) -> i64 {
    let ended = report.lines().find(|line| line.starts_with("ended ")).unwrap_or_else(|| panic!("{report}"));
    ended.split(' ').find_map(|word| word.strip_prefix("lost=")).unwrap().parse().unwrap()
}

/// A write fails, here from 400 KB on. SIGXFSZ, which would end the program, is not for it. (The
/// software GPU's memory is a file larger than that, so it is left out.)
#[test]
fn a_limit_of_the_file_size() {
    let dir = Dir::new();
    let report = dir.path("report");
    fs::write(&report, "").unwrap();
    let run = Run::new(&dir, "prlimit")
        .arg("--fsize=400000")
        .arg(hazard("storm"))
        .arg("2")
        .arg("20000")
        .arg("10000");
    let ran = run.env("LD_PRELOAD", recorder()).env("RPDT_REPORT", &report).env("RPDT_AUTOFLUSH", "20").run();
    assert_eq!(ran.expect(0).stdout, "40000 marks\n");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("/trace.rpd: "), "{ran}");
    let there = marks_of_full_file(&dir);
    assert!(there > 0, "what fits is there");
    let missing = reported_lost(&fs::read_to_string(report).unwrap());
    assert_eq!(there + missing, 40_000);
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.session_count(), lost(&trace), ended_sessions(&trace)), (1, missing, 1));
}

#[test]
fn a_file_that_is_full_when_another_begins() {
    let dir = Dir::new();
    // The command line is in the file too.
    let mut run = Run::new(&dir, "prlimit").arg("--fsize=1000000").arg(program("control"));
    for text in ["1", "2", "3", "4"] {
        run = run.arg("flush").arg(format!("mark={}", text.repeat(100_000)));
    }
    let run = run.arg("file=second.rpd").arg("mark=after").arg("finish");
    let ran = run.env("LD_PRELOAD", recorder()).run();
    assert_eq!((ran.expect(0).stderr.lines().count(), ran.stdout.as_str()), (1, ""), "{ran}");
    let (first, second) = (dir.trace("trace.rpd"), dir.trace("second.rpd"));
    assert_eq!((marker_count(&first), ended_sessions(&first)), (2, 1));
    assert_eq!((marker_count(&second), ended_sessions(&second)), (1, 1));
    assert_eq!((lost(&first), lost(&second)), (2, 0), "each tells of what was lost while it was written");
}

/// How many marks there are in a trace whose journal may have been left; whoever opens it next rolls that back.
#[track_caller]
pub(super) fn marks_of_full_file(dir: &Dir) -> i64 {
    let opened = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    opened.query_row("select count(*) from rocpd_api", [], |_| Ok(())).unwrap();
    drop(opened);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    marker_count(&trace)
}

/// Whether a full file system of that kind still takes what replaces something; btrfs writes everything to another place.
fn overwrites(kind: &str) -> bool {
    !kind.starts_with("btrfs")
}

/// Runs for some three seconds on a disk that is full until a second after the recorder has noticed.
fn full_for_a_while(kind: &str) {
    const MARKS: i64 = 20_000;
    let dir = Dir::new();
    fs::write(dir.path("report"), "").unwrap();
    let run = in_own_mounts(&dir, "small_disk.sh").arg(kind).arg("seconds").arg(hazard("storm"));
    let run = run.arg("2").arg((MARKS / 2).to_string()).arg("30000");
    let ran = run.env("RECORDER", recorder()).env("RPDT_BUFFER_MB", "1").run();
    if not_here(&ran) {
        return;
    }
    assert_eq!(ran.expect(0).stdout, format!("{MARKS} marks\n"));
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("no space left"), "{ran}");
    assert_eq!(fs::read_to_string(dir.path("files")).unwrap(), "trace.rpd\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    if overwrites(kind) {
        assert_eq!(trace.session_count(), 1, "one try after the other, in one session");
    }
    let missing = lost(&trace);
    assert!(missing > 0 && missing < MARKS, "{ran}");
    assert_eq!(marker_count(&trace) + missing, MARKS, "{:?}", trace.lost());
    let last = format!("select count(*) from api where args like '%mark {}'", MARKS / 2 - 1);
    assert_eq!(trace.number(&last), 2, "recording goes on when there is room again");
}

#[test]
fn a_disk_that_is_full_for_a_while() {
    full_for_a_while("tmpfs");
    full_for_a_while("ext4");
}

/// What a session has said once (names, code objects, GPUs) it says no second time, and not never.
#[test]
fn kernels_on_a_disk_that_is_full_for_a_while() {
    let dir = Dir::new();
    fs::write(dir.path("report"), "").unwrap();
    let run =
        in_own_mounts(&dir, "small_disk.sh").arg("tmpfs").arg("seconds").arg(hazard("ticker")).arg("4000");
    let ran = run.env("RECORDER", recorder()).env("RPDT_BUFFER_MB", "1").env("RPDT_AUTOFLUSH", "20").run();
    if not_here(&ran) {
        return;
    }
    ran.expect(0);
    assert!(ran.stderr.contains("no space left"), "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!((trace.session_count(), ended_sessions(&trace)), (1, 1));
    assert!(lost(&trace) > 0, "{ran}");
    assert_eq!(trace.number("select count(*) from rocpd_metadata where tag like 'gpu::%::name'"), 1);
    let objects = "select count(*) from dispatch D join rocpd_kernelcodeobject K on K.id = D.codeObject_id";
    let kernels = trace.number("select count(*) from dispatch");
    assert_eq!(trace.number(objects), kernels);
    let last = "select count(*) from op where opType = 'KernelExecution' and start > (select start from api where args = '3900')";
    assert!(trace.number(last) > 50, "recording goes on when there is room again");
}

/// Instrumented kernels wait for the thread that reads them, and that one for nobody.
#[test]
fn instrumented_kernels_on_a_disk_that_is_full() {
    let dir = Dir::new();
    fs::write(dir.path("report"), "").unwrap();
    let run = in_own_mounts(&dir, "small_disk.sh").arg("tmpfs").arg("end").arg(program("probe")).arg("600");
    let run = run.env("RECORDER", recorder()).env("RPDT_BUFFER_MB", "1").env("RPDT_AUTOFLUSH", "20");
    let run = run.env("LOGDUR_INSTRUMENTED", "true").env("RPDT_PROBE_SUB_BUFFERS", "1");
    let ran = run.env("RPDT_PROBE_SUB_BUFFER_KB", "1").run();
    if not_here(&ran) {
        return;
    }
    ran.expect(0);
    assert!(ran.stderr.contains("no space left"), "{ran}");
    // What analyzers found is a record as calls and operations are: in the file, or counted. Where many dispatches wait, some are not
    // instrumented, and the recorder says how many.
    let records = |trace: &Trace, ran: &Ran| -> i64 {
        let analyzed =
            "select count(*) from (select distinct gpuId, queueId, sequenceId from ext_instrumentation)";
        let tables = ["select count(*) from rocpd_api", "select count(*) from rocpd_op", analyzed];
        let plain =
            ran.stderr.lines().find_map(|line| line.split_once(" dispatches ran the application's kernel"));
        let plain = plain.map_or(0, |(before, _)| before.rsplit(' ').next().unwrap().parse().unwrap());
        tables.map(|sql| trace.number(sql)).iter().sum::<i64>() + plain
    };
    let missing = reported_lost(&fs::read_to_string(dir.path("report")).unwrap());
    let there = records(&dir.trace("trace.rpd"), &ran);
    let roomy = Dir::new();
    let run = Run::new(&roomy, program("probe")).arg("600").recorded(Loading::Preload);
    let all = run.env("LOGDUR_INSTRUMENTED", "true").run();
    let all = records(&roomy.succeeded(&all), &all);
    // More where a call is lost and its operation is not, which then has a call that the recorder made up.
    assert!(there + missing >= all, "{there} there, {missing} lost, of {all}: {ran}");
}

/// The program ends before there is room.
#[test]
fn a_disk_that_is_full_to_the_end() {
    for kind in ["tmpfs", "ext4", "btrfs-quota", "ext4-quota"] {
        let dir = Dir::new();
        fs::write(dir.path("report"), "").unwrap();
        let run = in_own_mounts(&dir, "small_disk.sh").arg(kind).arg("end").arg(hazard("storm"));
        let run = run.arg("2").arg("30000").arg("3000");
        let ran = run.env("RECORDER", recorder()).env("RPDT_AUTOFLUSH", "20").run();
        if not_here(&ran) {
            continue;
        }
        assert_eq!(ran.expect(0).stdout, "60000 marks\n");
        assert_eq!(ran.stderr.lines().count(), 1, "{kind}: {ran}");
        let there = marks_of_full_file(&dir);
        let missing = reported_lost(&fs::read_to_string(dir.path("report")).unwrap());
        assert!(missing > 0, "{kind}: {there} there");
        assert_eq!(there + missing, 60_000, "{kind}");
        if overwrites(kind) {
            assert_eq!(fs::read_to_string(dir.path("files")).unwrap(), "trace.rpd\n", "{kind}: no journal");
            let trace = dir.trace("trace.rpd");
            assert_eq!(
                (lost(&trace), ended_sessions(&trace)),
                (missing, 1),
                "{kind}: the file says what is missing"
            );
        }
    }
}

#[test]
fn a_quota_that_is_used_up_for_a_while() {
    full_for_a_while("btrfs-quota");
    full_for_a_while("ext4-quota");
}

#[test]
fn a_slow_disk_and_a_tiny_buffer() {
    let dir = Dir::new();
    recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
    // Nobody else may write meanwhile.
    let holder = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    holder.execute_batch("begin exclusive").unwrap();
    let run =
        recorded(&dir, "storm").arg("4").arg("50000").env("RPDT_BUFFER_MB", "1").env("RPDT_WAIT_MS", "10");
    let mut running = run.start();
    running.wait_for_output("200000 marks\n");
    holder.execute_batch("commit").unwrap();
    let ran = running.finish();
    assert_eq!(ran.expect(0).stdout, "200000 marks\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let by_cause = trace.lost();
    assert!(
        by_cause.keys().all(|tag| tag.ends_with("::buffer_full") || tag.ends_with("::write")),
        "{by_cause:?}"
    );
    assert!(lost(&trace) > 0, "a megabyte held 200000 marks");
    assert_eq!(marker_count(&trace) + lost(&trace), 200_001, "{by_cause:?}");
    // The trace says when they were lost: all of them, after the program began to record.
    let times = trace.times(1, "lost_times");
    assert_eq!(times.iter().map(|(_, _, lost)| lost).sum::<i64>(), lost(&trace), "{times:?}");
    let number = |key: &str| trace.fact(1, key).parse::<i64>().unwrap();
    let (began, ended) = (number("start_monotonic_ns"), number("end_monotonic_ns"));
    assert!(
        times.iter().all(|(from, to, _)| began <= *from && to.is_some_and(|to| to <= ended)),
        "{times:?}"
    );
}

/// The buffers are full, the file belongs to somebody else, and the program ends: its exit takes RPDT_EXIT_MS, not for ever.
#[test]
fn a_file_that_is_locked_at_the_end() {
    let dir = Dir::new();
    recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
    let report = dir.path("report");
    fs::write(&report, "").unwrap();
    let holder = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    holder.execute_batch("begin exclusive").unwrap();
    let run =
        recorded(&dir, "storm").arg("4").arg("50000").env("RPDT_BUFFER_MB", "1").env("RPDT_WAIT_MS", "10");
    let ran = run.env("RPDT_EXIT_MS", "1000").env("RPDT_REPORT", &report).run();
    holder.execute_batch("commit").unwrap();
    drop(holder);
    assert_eq!(ran.expect(0).stdout, "200000 marks\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(marker_count(&trace), 1, "what came before");
    assert_eq!(reported_lost(&fs::read_to_string(&report).unwrap()), 200_000);
    assert!(!dir.path("trace.rpd-journal").exists());
    // Whoever reads the file is told, and the next that writes it takes the note in.
    assert_eq!(lost(&trace), 0, "the file itself cannot say");
    let info = |what: &str| {
        let info = tool(rpd().to_str().unwrap(), &["info".as_ref(), dir.path("trace.rpd").as_os_str()]);
        assert!(info.contains("200000") || info.contains("200,000"), "{what}: {info}");
    };
    info("beside the file");
    recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.session_count(), lost(&trace), marker_count(&trace)), (3, 200_000, 2));
    assert_eq!(ended_sessions(&trace), 3);
    info("in the file");
    let pids = trace.metadata("session::%::pid");
    assert_eq!(pids.get("session::2::pid"), Some(&ran.pid.to_string()), "{pids:?}");
    fs::remove_file(report).unwrap();
    assert_eq!(dir.names(), ["trace.rpd"]);
}

/// The file belongs to somebody else, and a file stands where the directory of the notes should be: what is lost is said on standard
/// error.
#[test]
fn a_note_that_cannot_be_written() {
    let dir = Dir::new();
    recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
    fs::write(dir.path("trace.rpd-lost"), "").unwrap();
    let holder = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    holder.execute_batch("begin exclusive").unwrap();
    let ran = recorded(&dir, "storm").arg("1").arg("1000").env("RPDT_EXIT_MS", "1000").run();
    holder.execute_batch("commit").unwrap();
    assert_eq!(ran.expect(0).stdout, "1000 marks\n");
    let said: Vec<_> = ran.stderr.lines().filter(|line| line.contains("trace.rpd-lost")).collect();
    assert_eq!(said.len(), 1, "{ran}");
    assert!(said[0].contains("1000 records lost") && said[0].contains("not a directory"), "{ran}");
    assert_eq!(dir.names(), ["trace.rpd", "trace.rpd-lost"]);
}

/// Two million marks are there at the end and no time to write them: what fits is in the file, the rest is counted there.
#[test]
fn an_end_that_comes_before_everything_is_written() {
    let dir = Dir::new();
    let ran = recorded(&dir, "storm").arg("4").arg("500000").env("RPDT_EXIT_MS", "12000").run();
    assert_eq!(ran.expect(0).stdout, "2000000 marks\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert!(!dir.path("trace.rpd-journal").exists());
    assert_eq!(trace.metadata("session::0::end_monotonic_ns").len(), 1, "{ran}");
    let missing = trace.lost().get("session::0::lost::write").map_or(0, |count| count.parse().unwrap());
    assert_eq!(marker_count(&trace) + missing, 2_000_000, "{ran}");
    // A machine that is fast enough has nothing to say.
    assert_eq!(ran.stderr.lines().count(), usize::from(missing > 0), "{ran}");
}

/// Somebody else has the file beyond the time for rows, and lets it go before the end's own.
#[test]
fn a_file_that_is_unlocked_at_the_last_moment() {
    let dir = Dir::new();
    recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
    let holder = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    holder.execute_batch("begin exclusive").unwrap();
    let mut running = recorded(&dir, "storm").arg("1").arg("1000").env("RPDT_EXIT_MS", "24000").start();
    running.wait_for_output("1000 marks\n");
    std::thread::sleep(std::time::Duration::from_secs(13));
    holder.execute_batch("commit").unwrap();
    assert_eq!(running.finish().expect(0).stdout, "1000 marks\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.session_count(), 2);
    assert_eq!(trace.metadata("session::1::end_monotonic_ns").len(), 1);
    assert_eq!(marker_count(&trace) + lost(&trace), 1001, "{:?}", trace.lost());
}

/// Launches in the file whose operations found no room: one loss, one count.
#[test]
fn an_operation_that_finds_no_room_is_counted_once() {
    for timing in ["hsa", "hip"] {
        let dir = Dir::new();
        recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
        let holder = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
        holder.execute_batch("begin exclusive").unwrap();
        let run = recorded(&dir, "launches").arg("20000").arg("go").env("RPDT_BUFFER_MB", "1");
        let run = run.env("RPDT_WAIT_MS", "10").env("RPDT_TIMING", timing).env("RPDT_EXIT_MS", "60000");
        let mut running = run.start();
        running.wait_for_output("20000 launches\n");
        holder.execute_batch("commit").unwrap();
        dir.touch("go");
        running.finish().expect(0);
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        let launches = trace.number("select count(*) from api where apiName = 'hipLaunchKernel'");
        let open = "select count(*) from api where apiName = 'hipLaunchKernel' and id not in (select api_id from rocpd_api_ops)";
        let open = trace.number(open);
        assert!(open > 0, "{timing}: the premise of this test: of {launches} launches all have operations");
        let without = trace.metadata("session::1::launches_without_op");
        let without: Vec<_> = without.into_values().collect();
        assert_eq!(without, ["0"], "{timing}: {open} of {launches} lost theirs, {:?}", trace.lost());
    }
}
