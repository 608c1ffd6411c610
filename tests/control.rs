//! What programs and variables control: starting, stopping, flushing, file names, wrong values.

use crate::harness::{Dir, Loading, Ran, Run, program, rpd, tool};

/// The program that does what its arguments say, with the recorder.
fn control<'a>(dir: &'a Dir, acts: &[&str]) -> Run<'a> {
    let run = acts.iter().fold(Run::new(dir, program("control")), |run, act| run.arg(*act));
    run.recorded(Loading::Preload)
}

/// Markers in the file: name, start, end.
fn markers(dir: &Dir, file: &str) -> Vec<(String, i64, i64)> {
    let sql = "select args, start, end from api where apiName = 'UserMarker' order by start, end desc, id";
    dir.trace(file).rows(sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

fn names(dir: &Dir, file: &str) -> Vec<String> {
    markers(dir, file).into_iter().map(|(name, ..)| name).collect()
}

#[test]
fn every_marker_of_a_program() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("marks")).recorded(Loading::Preload).env("RPDT_AUTOSTART", "0").run();
    ran.expect(0).expect_silent();
    let markers = markers(&dir, "trace.rpd");
    let with = |text: &str| markers.iter().filter(|(name, ..)| name == text).cloned().collect::<Vec<_>>();
    let odd = "quote ' newline \n percent %s umlaut \u{e4}";
    for (text, rows) in [("inner", 1), ("a mark", 1), ("", 1), (odd, 1), ("thread 0", 1), ("thread 1", 1)] {
        assert_eq!(with(text).len(), rows, "{text:?}: {markers:?}");
    }
    assert_eq!(with("on a thread").len(), 2, "{markers:?}");
    assert_eq!(with("while stopped").len(), 0, "{markers:?}");
    // Open when recording stopped: it ends there, and goes on where recording does.
    let outer = with("outer");
    assert_eq!(outer.len(), 2, "{markers:?}");
    assert!(outer[0].2 <= outer[1].1, "{outer:?}");
    let (inner, mark) = (&with("inner")[0], &with("a mark")[0]);
    assert!(outer[0].1 <= inner.1 && inner.2 <= outer[0].2, "{markers:?}");
    assert!(inner.1 <= mark.1 && mark.1 == mark.2 && mark.2 <= inner.2, "{markers:?}");
    assert_eq!(with("left open").len(), 1, "{markers:?}");
    assert_eq!(markers.len(), 11);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let threads = "select count(distinct tid) from api where args like 'thread _'";
    assert_eq!(trace.number(threads), 2);
    let nested = "select count(*) from api a join api b on a.tid = b.tid and a.args = 'on a thread' \
         and b.args like 'thread _' and b.start <= a.start and a.end <= b.end";
    assert_eq!(trace.number(nested), 2);
    assert_eq!(
        trace.number("select count(*) from api where id & 0xffffffff < 0x80000000"),
        0,
        "ids of markers"
    );
}

#[test]
fn starts_and_stops_are_counted() {
    let dir = Dir::new();
    let acts =
        ["start", "stop", "mark=a", "stop", "mark=b", "stop", "start", "mark=c", "start", "stop", "mark=d"];
    control(&dir, &acts).run().expect(0).expect_silent();
    assert_eq!(names(&dir, "trace.rpd"), ["a", "c", "d"]);
    // The trace says when it was stopped.
    let stopped = dir.trace("trace.rpd").times(0, "stopped");
    let markers = markers(&dir, "trace.rpd");
    let (a, c) = (markers[0].1, markers[1].1);
    assert!(
        matches!(stopped[..], [(from, Some(to), 0)] if a <= from && from <= to && to <= c),
        "{stopped:?} {markers:?}"
    );
}

#[test]
fn without_autostart_nothing_is_recorded_until_asked_for() {
    let dir = Dir::new();
    control(&dir, &["mark=a"]).env("RPDT_AUTOSTART", "0").run().expect(0).expect_silent();
    assert_eq!(dir.names(), Vec::<String>::new());
    let acts = ["mark=a", "push=b", "start", "mark=c", "pop", "stop", "mark=d"];
    control(&dir, &acts).env("RPDT_AUTOSTART", "0").run().expect(0).expect_silent();
    let markers = markers(&dir, "trace.rpd");
    assert_eq!(names(&dir, "trace.rpd"), ["b", "c"], "{markers:?}");
    // From the begin of the process, and from the stop to its end.
    let trace = dir.trace("trace.rpd");
    let began = trace.fact(0, "start_monotonic_ns").parse().unwrap();
    let stopped = trace.times(0, "stopped");
    assert_eq!((stopped.len(), stopped[0].0, stopped[1].1), (2, began, None), "{stopped:?}");
    assert_eq!(stopped[0].1, Some(markers[0].1), "{stopped:?} {markers:?}");
    assert!(markers[0].1 <= markers[1].1, "a range pushed before starts when recording does: {markers:?}");
}

#[test]
fn a_range_that_ends_in_a_pause_does_not_go_on_after_it() {
    let dir = Dir::new();
    control(&dir, &["push=a", "stop", "pop", "start", "spin=20"]).run().expect(0).expect_silent();
    assert_eq!(names(&dir, "trace.rpd"), ["a"], "one range, up to the stop");
}

#[test]
fn the_first_marker_after_a_delay_is_recorded_also_in_a_child() {
    let dir = Dir::new();
    // The first marker comes, and the fork, when the library has been loaded for less than that, whatever else the machine does.
    let run = |acts| control(&dir, acts).env("RPDT_DELAY", "3");
    let alone = run(&["mark=early", "spin=3100", "mark=a"]).env("RPDT_FILENAME", "alone.rpd");
    let forked = run(&["fork", "spin=3100", "mark=a"]).env("RPDT_FILENAME", "forked.rpd");
    for running in Run::start_all(&[alone, forked]) {
        running.finish().expect(0).expect_silent();
    }
    assert_eq!(names(&dir, "alone.rpd"), ["a"]);
    assert_eq!(names(&dir, "forked.rpd"), ["a", "a"], "forked inside the delay");
}

#[test]
fn kernels_of_a_paused_program_are_not_recorded() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("graph")).recorded(Loading::Preload).env("RPDT_AUTOSTART", "0").run();
    ran.expect(0).expect_silent();
    assert_eq!(dir.names(), Vec::<String>::new());
}

#[test]
fn what_is_open_at_the_end_ends_there() {
    for end in ["exit=0", "_exit=0", "say=last"] {
        let dir = Dir::new();
        control(&dir, &["push=open", "mark=before", "spin=20", "mark=last", end])
            .run()
            .expect(0)
            .expect_silent();
        let markers = markers(&dir, "trace.rpd");
        assert_eq!(names(&dir, "trace.rpd"), ["open", "before", "last"], "{end}: {markers:?}");
        assert!(markers[0].2 >= markers[2].1, "{end}: {markers:?}");
    }
}

#[test]
fn a_name_that_no_trace_can_have_is_refused_and_recording_goes_on() {
    let dir = Dir::new();
    let text = "no trace\n".repeat(100);
    std::fs::write(dir.path("notes.txt"), &text).unwrap();
    std::fs::create_dir(dir.path("folder")).unwrap();
    tool("sqlite3", &["-batch".as_ref(), dir.path("other.db").as_os_str(), "create table x (y)".as_ref()]);
    for (name, reason) in [
        ("notes.txt", "not an SQLite database"),
        ("folder", "not a regular file"),
        ("other.db", "but not an .rpd trace"),
        ("no/such/x.rpd", "no such file or directory"),
    ] {
        let wrong = format!("file={name}");
        let ran =
            control(&dir, &["mark=a", &wrong, "mark=b", &wrong, "mark=c", "file=good.rpd", "mark=d"]).run();
        assert_eq!(ran.expect(0).stdout, "refused\nrefused\n", "{ran}");
        assert_eq!(names(&dir, "trace.rpd"), ["a", "b", "c"], "{name}");
        assert_eq!(names(&dir, "good.rpd"), ["d"], "{name}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
        assert!(
            ran.stderr.contains(reason) && ran.stderr.ends_with("; the trace stays the one that it was\n"),
            "{ran}"
        );
        for trace in ["trace.rpd", "good.rpd"] {
            assert!(dir.trace(trace).lost().is_empty(), "{name}");
            std::fs::remove_file(dir.path(trace)).unwrap();
        }
    }
    assert_eq!(std::fs::read_to_string(dir.path("notes.txt")).unwrap(), text);
}

#[test]
fn recording_that_a_wrong_name_ended_goes_on_with_the_next_good_one() {
    let dir = Dir::new();
    std::fs::write(dir.path("notes.txt"), "no trace\n".repeat(100)).unwrap();
    let wrong_from_the_start = |acts: &[&str]| {
        let acts = [&["mark=lost", "flush", "mark=off", "file=no/such/x.rpd", "mark=off"], acts].concat();
        let ran = control(&dir, &acts).env("RPDT_FILENAME", dir.path("notes.txt")).run();
        assert!(ran.expect(0).stdout.starts_with("refused\n"), "{ran}");
        assert_eq!(ran.stderr.matches("recording is off").count(), 1, "{ran}");
    };
    wrong_from_the_start(&["file=good.rpd", "mark=a", "file=better.rpd", "mark=b"]);
    assert_eq!(names(&dir, "good.rpd"), ["a"]);
    assert_eq!(names(&dir, "better.rpd"), ["b"]);
    // A child is off as its parent is, and goes on as its parent does.
    wrong_from_the_start(&["fork", "mark=off", "file=child.rpd", "mark=c"]);
    assert_eq!(names(&dir, "child.rpd"), ["c", "c"]);
    // What stands in a file is not looked at before there is something to record.
    let ran = control(&dir, &["file=notes.txt", "mark=lost", "flush", "file=late.rpd", "mark=d"]).run();
    assert_eq!(ran.expect(0).stdout, "", "{ran}");
    assert_eq!(names(&dir, "late.rpd"), ["d"]);
    let ran = control(&dir, &["file=no/such/x.rpd", "mark=e"]).run();
    assert_eq!(ran.expect(0).stdout, "refused\n", "{ran}");
    assert_eq!(names(&dir, "trace.rpd"), ["e"]);
}

#[test]
fn a_relative_name_without_a_working_directory_is_said_to_lead_nowhere() {
    let dir = Dir::new();
    let name = "no-working-directory.rpd";
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    let here = format!("cd={}", dir.path("").display());
    let acts = ["mark=lost", "flush", &here, "mark=off", "file=good.rpd", "mark=a"];
    let run = Run::new(&dir, "sh").arg("-c").arg(script).arg("sh").arg(program("control"));
    let run = acts.iter().fold(run, |run, act| run.arg(*act)).recorded(Loading::Preload);
    let ran = run.env("RPDT_FILENAME", name).run();
    ran.expect(0);
    let said: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("rpd_tracer")).collect();
    assert_eq!(said.len(), 1, "{ran}");
    assert!(said[0].contains(": no-working-directory.rpd: the working directory is gone"), "{ran}");
    assert!(!std::path::Path::new("/").join(name).exists() && !dir.path(name).exists(), "{:?}", dir.names());
    assert_eq!(names(&dir, "good.rpd"), ["a"]);
}

#[test]
fn names_without_room_for_the_journal_and_links_that_lead_nowhere_have_their_reasons() {
    let dir = Dir::new();
    let marked = |name: &str| control(&dir, &["mark=a"]).env("RPDT_FILENAME", name).run();
    let longest = "x".repeat(255 - "-journal".len());
    marked(&longest).expect(0).expect_silent();
    assert_eq!(names(&dir, &longest), ["a"]);
    std::fs::remove_file(dir.path(&longest)).unwrap();
    for name in ["x".repeat(252), "x".repeat(300), format!("{}x", "d/".repeat(250))] {
        let ran = marked(&name);
        assert!(
            ran.expect(0).stderr.contains("the name is too long: SQLite needs one with -journal"),
            "{ran}"
        );
        assert_eq!(dir.names(), Vec::<String>::new(), "nothing is left behind");
    }
    std::os::unix::fs::symlink("elsewhere/x.rpd", dir.path("link.rpd")).unwrap();
    let ran = marked("link.rpd");
    let reason =
        format!("a symbolic link to {}, whose directory is not there", dir.path("elsewhere/x.rpd").display());
    assert!(ran.expect(0).stderr.contains(&reason), "{ran}");
}

#[test]
fn a_rank_does_not_lead_to_another_directory() {
    let dir = Dir::new();
    for (rank, name, expected) in [
        ("../../../evil", "%r.rpd", "_._.._.._evil.rpd"),
        ("/evil", "%r.rpd", "_evil.rpd"),
        (".", "%r%r.rpd", "__.rpd"),
    ] {
        let marked = control(&dir, &["mark=a"]).env("RPDT_FILENAME", name).env("RANK", rank).run();
        marked.expect(0).expect_silent();
        assert_eq!(dir.names(), [expected], "{rank}");
        std::fs::remove_file(dir.path(expected)).unwrap();
    }
}

#[test]
fn a_flush_makes_rows_readable_at_once() {
    let dir = Dir::new();
    // Without the flush the writer would come by a second later.
    let acts = ["mark=first", "flush", "say=one", "wait=go", "mark=second", "flush", "say=two", "wait=gone"];
    let mut running = control(&dir, &acts).env("RPDT_AUTOFLUSH", "1").start();
    running.wait_for_output("one\n");
    assert_eq!(names(&dir, "trace.rpd"), ["first"]);
    std::fs::write(dir.path("go"), "").unwrap();
    running.wait_for_output("two\n");
    assert_eq!(names(&dir, "trace.rpd"), ["first", "second"]);
    std::fs::write(dir.path("gone"), "").unwrap();
    running.finish().expect(0);
}

#[test]
fn without_a_flush_rows_come_by_themselves_and_survive_a_kill() {
    for hertz in ["", "0", "1", "20"] {
        let dir = Dir::new();
        let acts = ["mark=first", "say=one", "wait=never"];
        let mut running = control(&dir, &acts).env("RPDT_AUTOFLUSH", hertz).start();
        running.wait_for_output("one\n");
        dir.wait_for_rows("trace.rpd", "select count(*) from rocpd_api", 1);
        running.signal(libc::SIGKILL);
        running.finish().expect_signal(libc::SIGKILL);
        assert_eq!(names(&dir, "trace.rpd"), ["first"]);
        dir.trace("trace.rpd").check_integrity();
    }
}

#[test]
fn file_names() {
    let dir = Dir::new();
    let run = control(&dir, &["mark=x"]).env("RPDT_FILENAME", "a-%p-%h-%r-100%%.rpd").env("RANK", "7");
    let ran = run.run();
    ran.expect(0).expect_silent();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let name = format!("a-{}-{}-7-100%.rpd", ran.pid, host.trim());
    assert_eq!(dir.names(), [&*name]);
    assert_eq!(dir.trace(&name).metadata("session::0::env::RANK").into_values().collect::<Vec<_>>(), ["7"]);
}

#[test]
fn a_job_or_rank_that_there_is_not_is_said_once() {
    let dir = Dir::new();
    let run = |name: &str| control(&dir, &["mark=x", "mark=y"]).env("RPDT_FILENAME", name.to_string());
    run("j%j.rpd").env("SLURM_JOB_ID", "77").run().expect(0).expect_silent();
    let ran = run("%r-%j.rpd").run();
    assert_eq!(
        ran.expect(0).stderr,
        format!(
            "rpd_tracer[{}]: RPDT_FILENAME: no launcher says a rank and a job for this process: %r and %j in %r-%j.rpd are 0\n",
            ran.pid
        )
    );
    let ran = run("%q.rpd").run();
    assert!(ran.expect(0).stderr.contains("RPDT_FILENAME: %q in %q.rpd stays"), "{ran}");
    assert_eq!(dir.names(), ["%q.rpd", "0-0.rpd", "j77.rpd"]);
}

/// A line for each problem, at the end of what is there; standard error where the file cannot be written.
#[test]
fn lines_of_the_recorder_in_a_file() {
    let dir = Dir::new();
    let run = |file: &str| {
        let run = control(&dir, &["mark=x"]).env("RPDT_BUFFER_MB", "lots").env("RANK", "3");
        run.env("RPDT_LOG_FILE", file.to_string()).run()
    };
    let line = |pid: u32| format!("rpd_tracer[{pid}]: RPDT_BUFFER_MB=lots is not a size such as ");
    let first = run("rank%r.log");
    first.expect(0).expect_silent();
    let second = run("rank%r.log");
    second.expect(0).expect_silent();
    let written = std::fs::read_to_string(dir.path("rank3.log")).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 2, "{written}");
    assert!(lines[0].starts_with(&line(first.pid)) && lines[1].starts_with(&line(second.pid)), "{written}");
    for file in ["no-such-place/x.log", "."] {
        let ran = run(file);
        assert!(ran.expect(0).stderr.starts_with(&line(ran.pid)), "{ran}");
    }
    let ran = run("trace.rpd");
    assert!(ran.expect(0).stderr.contains("RPDT_LOG_FILE=trace.rpd is the trace, and is ignored"), "{ran}");
    dir.trace("trace.rpd").check_integrity();
}

/// As of `mpirun` in a batch script of Slurm, whose variable all ranks have.
#[test]
fn the_rank_in_the_name_is_the_one_that_info_shows() {
    let dir = Dir::new();
    let run = control(&dir, &["mark=x"]).env("RPDT_FILENAME", "r%r.rpd").env("SLURM_PROCID", "0");
    run.env("OMPI_COMM_WORLD_RANK", "3").run().expect(0).expect_silent();
    assert_eq!(dir.names(), ["r3.rpd"]);
    let info =
        std::process::Command::new(rpd()).args(["info", "--json"]).arg(dir.path("r3.rpd")).output().unwrap();
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(info["sessions"][0]["rank"], "3", "{info}");
}

#[test]
fn another_file_in_mid_recording() {
    let dir = Dir::new();
    let acts = ["mark=a", "push=over", "file=second.rpd", "mark=b", "pop", "file=%p.rpd", "file=", "mark=c"];
    let ran = control(&dir, &acts).run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "refused\n", "{ran}");
    let third = format!("{}.rpd", ran.pid);
    assert_eq!(names(&dir, "trace.rpd"), ["a"]);
    assert_eq!(names(&dir, "second.rpd"), ["over", "b"]);
    assert_eq!(names(&dir, &third), ["c"]);
    for (file, ranges, marks) in [("trace.rpd", "0", "1"), ("second.rpd", "1", "1"), (&*third, "0", "1")] {
        let trace = dir.trace(file);
        trace.check_integrity();
        let fact = |key: &str| trace.metadata(key).into_values().collect::<Vec<_>>();
        assert_eq!(fact("session::0::recorded::range"), [ranges], "{file}");
        assert_eq!(fact("session::0::recorded::mark"), [marks], "{file}");
        assert_eq!(fact("session::0::end_monotonic_ns").len(), 1, "{file}");
    }
}

#[test]
fn another_file_before_anything_is_recorded() {
    let dir = Dir::new();
    control(&dir, &["file=own.rpd", "fork", "mark=a"]).run().expect(0).expect_silent();
    assert_eq!(dir.names(), ["own.rpd"]);
    assert_eq!(names(&dir, "own.rpd"), ["a", "a"], "the child goes on in it");
}

#[test]
fn a_process_that_ends_by_a_system_call_can_finish_before() {
    let dir = Dir::new();
    control(&dir, &["push=open", "mark=a", "finish", "mark=late", "raw_exit=3"])
        .run()
        .expect(3)
        .expect_silent();
    assert_eq!(names(&dir, "trace.rpd"), ["open", "a"]);
    assert_eq!(dir.trace("trace.rpd").metadata("session::0::end_monotonic_ns").len(), 1);
}

#[test]
fn a_relative_name_stays_where_the_program_was_loaded() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("sub")).unwrap();
    control(&dir, &["cd=sub", "mark=x"]).env("RPDT_FILENAME", "own.rpd").run().expect(0).expect_silent();
    assert_eq!(dir.names(), ["own.rpd", "sub"]);
    assert_eq!(std::fs::read_dir(dir.path("sub")).unwrap().count(), 0);
}

#[test]
fn a_program_sees_that_it_is_recorded() {
    let dir = Dir::new();
    let ran = control(&dir, &["env=RPDT_LOADED"]).run();
    assert_eq!(ran.expect(0).stdout, "1\n");
    let plain = Run::new(&dir, program("control")).arg("env=RPDT_LOADED").run();
    assert_eq!(plain.expect(0).stdout, "(not set)\n");
}

#[test]
fn a_wrong_value_is_one_line_and_the_default() {
    for (name, value) in [
        ("RPDT_AUTOSTART", "yes"),
        ("RPDT_AUTOFLUSH", "1000"),
        ("RPDT_BUFFER_MB", "-1"),
        ("RPDT_WAIT_MS", "soon"),
        ("RPDT_LOG", "99"),
        ("RPDT_TICKS", "2"),
        ("RPDT_STACKFRAMES", "all"),
    ] {
        let dir = Dir::new();
        let ran: Ran = control(&dir, &["mark=x"]).env(name, value).run();
        ran.expect(0);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
        assert!(ran.stderr.contains(&format!("{name}={value}")), "{ran}");
        assert_eq!(names(&dir, "trace.rpd"), ["x"], "{ran}");
    }
}

#[test]
fn a_child_is_a_session_of_its_own() {
    let dir = Dir::new();
    control(&dir, &["push=open", "fork", "mark=both"]).run().expect(0).expect_silent();
    // The child has no open ranges.
    assert_eq!(names(&dir, "trace.rpd"), ["open", "both", "both"]);
    let trace = dir.trace("trace.rpd");
    assert_eq!(trace.session_count(), 2);
    assert_eq!(trace.number("select count(distinct pid) from api where args = 'both'"), 2);
    trace.check_integrity();
}
