//! LOGDUR_LOG_LOCATION: a line for each kernel that has completed, while the program runs. `rpd durations` gives the same lines from the
//! trace, and is what they are compared with.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::{
    Dir, Expected, Loading, Ran, Run, aql_code_object, program, rpd, rpd_remote, tool, wait_for,
};

const HEADER: &str = "kernel,dispatch,startNs,endNs";

/// The program, which does these things; its kernels are logged there.
fn logged<'a>(dir: &'a Dir, location: impl AsRef<Path>, actions: &[&str]) -> Run<'a> {
    let run = Run::new(dir, program("durations")).recorded(Loading::Preload);
    let run = run.env("LOGDUR_LOG_LOCATION", location.as_ref().as_os_str());
    actions.iter().fold(run, |run, action| run.arg(*action))
}

/// Lines that `rpd durations` makes of the trace, without the header, sorted.
fn durations(dir: &Dir, options: &[&str]) -> Vec<String> {
    let trace = dir.path("trace.rpd");
    let text = tool(rpd().to_str().unwrap(), &[&["durations", trace.to_str().unwrap()], options].concat());
    sorted(text.lines().filter(|line| *line != HEADER))
}

fn sorted<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(str::to_string).collect();
    lines.sort();
    lines
}

/// Lines of a log that begins with the header and has it once, sorted.
#[track_caller]
fn lines(log: &str) -> Vec<String> {
    let lines = log.strip_prefix(&format!("{HEADER}\n"));
    let lines = lines.unwrap_or_else(|| panic!("it does not begin with a header: {log:?}"));
    assert!(lines.is_empty() || lines.ends_with('\n'), "a line has no end: {log:?}");
    assert!(!lines.contains(HEADER), "{log}");
    sorted(lines.lines())
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The log has the lines that the trace gives, and so many.
#[track_caller]
fn assert_same(dir: &Dir, log: &str, count: usize) {
    let (logged, durations) = (lines(log), durations(dir, &[]));
    let other: Vec<_> = logged.iter().zip(&durations).filter(|(one, other)| one != other).collect();
    assert!(
        other.is_empty() && logged.len() == durations.len(),
        "{} of {}: {other:?}",
        logged.len(),
        durations.len()
    );
    assert_eq!(logged.len(), count);
}

/// Waits until a file has so many lines.
#[track_caller]
fn wait_for_lines(path: &Path, count: usize) {
    let has = || fs::read_to_string(path).is_ok_and(|text| text.lines().count() >= count);
    wait_for(&format!("{count} lines in {}", path.display()), || has().then_some(()));
}

fn silent(ran: &Ran) {
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "", "{ran}");
}

/// Kernels with a comma in their name, of graphs, of a program without HIP; timed by queues and by HIP; under HIP's callbacks and its
/// symbols.
#[test]
fn the_lines_are_those_of_rpd_durations() {
    for (loading, timing) in [
        (Loading::Preload, "hsa"),
        (Loading::Symbols, "hsa"),
        (Loading::Preload, "hip"),
        (Loading::RpdRecord, "hsa"),
    ] {
        let dir = Dir::new();
        let run = logged(&dir, "log.csv", &["launch=30", "graph=5", "launch=7"]).recorded(loading);
        let ran = run.env("RPDT_TIMING", timing).run();
        assert_eq!(ran.expect(0).stdout, "", "{ran}");
        let log = read(dir.path("log.csv"));
        assert_same(&dir, &log, 30 + 3 * 5 + 7);
        assert!(log.contains("\n\"void scaled<int, 1>(int*, int)\","), "{log}");
        // Where calls are known, each line has the begin of its call, which is that of no other kernel but those of a graph.
        let begun = log.lines().skip(1).map(|line| line.rsplit(',').nth(2).unwrap());
        assert_eq!(begun.collect::<std::collections::BTreeSet<_>>().len(), 30 + 5 + 7, "{log}");
    }
    let dir = Dir::new();
    let aql = Run::new(&dir, program("aql")).arg(aql_code_object("gfx900"));
    let ran = aql.recorded(Loading::Preload).env("LOGDUR_LOG_LOCATION", "log.csv").run();
    ran.expect(0).expect_silent();
    let log = read(dir.path("log.csv"));
    let logs = dir.logs();
    assert_same(&dir, &log, Expected::of(&logs[0].1).kernels());
}

#[test]
fn lines_of_json_and_of_selected_kernels() {
    let dir = Dir::new();
    let run = logged(&dir, "log.json", &["launch=9"]).env("LOGDUR_LOG_FORMAT", "json");
    silent(&run.env("LOGDUR_FILTER", r"^void scaled<\w+, 1>").run());
    let log = read(dir.path("log.json"));
    let json = sorted(log.lines());
    assert_eq!(json, durations(&dir, &["--format", "json", "--kernel", "scaled"]));
    assert_eq!(json.len(), 5, "{log}");
    let first: serde_json::Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!(first["kernel"], "void scaled<int, 1>(int*, int)");
    assert!(first["dispatch"].as_i64() < first["startNs"].as_i64());
    assert_eq!(durations(&dir, &[]).len(), 9, "the trace has them all");
}

#[test]
fn without_a_place_there_is_no_log_and_a_wrong_format_is_said() {
    let dir = Dir::new();
    silent(&logged(&dir, "", &["launch=3"]).run());
    assert_eq!(dir.names(), ["trace.rpd"]);
    let ran = logged(&dir, "/dev/null", &["launch=3"]).run();
    silent(&ran);
    let ran = logged(&dir, "log-%p-%r", &["launch=3"]).env("LOGDUR_LOG_FORMAT", "xml").env("RANK", "7").run();
    assert_eq!(
        ran.expect(0).stderr.matches("LOGDUR_LOG_FORMAT=xml is not csv or json; csv is used").count(),
        1
    );
    assert_eq!(lines(&read(dir.path(&format!("log-{}-7", ran.pid)))).len(), 3);
}

/// Whoever follows the log sees a kernel within moments, with the program still there.
#[test]
fn lines_come_while_the_program_runs() {
    let dir = Dir::new();
    let running = logged(&dir, "log.csv", &["launch=5", "wait=more", "launch=5", "wait=end"]).start();
    wait_for_lines(&dir.path("log.csv"), 6);
    dir.touch("more");
    wait_for_lines(&dir.path("log.csv"), 11);
    dir.touch("end");
    silent(&running.finish());
    assert_same(&dir, &read(dir.path("log.csv")), 10);
}

#[test]
fn the_console_is_standard_output_between_the_programs_own_lines() {
    let dir = Dir::new();
    let ran = logged(&dir, "console", &["say=first", "launch=3000", "say=second"]).run();
    ran.expect(0).expect_silent();
    let own = |line: &&str| ["first", "second"].contains(line);
    assert_eq!(ran.stdout.lines().filter(own).collect::<Vec<_>>(), ["first", "second"]);
    let log: String = ran.stdout.split_inclusive('\n').filter(|line| !own(&line.trim_end())).collect();
    assert_same(&dir, &log, 3000);

    // A file, in which both write at one place.
    let dir = Dir::new();
    let shell = format!("'{}' say=first launch=10 say=second > out", program("durations").display());
    silent(&through(&dir, "console", &shell).run());
    let out = read(dir.path("out"));
    assert_eq!(out.lines().filter(own).count(), 2, "{out}");
    let log: String = out.split_inclusive('\n').filter(|line| !own(&line.trim_end())).collect();
    assert_same(&dir, &log, 10);
}

/// A command line of the shell, in which the program is logged there.
fn through<'a>(dir: &'a Dir, location: &str, shell: &str) -> Run<'a> {
    let run = Run::new(dir, "sh").arg("-c").arg(shell).recorded(Loading::Preload);
    run.env("LOGDUR_LOG_LOCATION", location)
}

/// Standard output that the program has replaced is a file of its own.
#[test]
fn what_the_program_puts_in_the_place_of_its_output_stays_clean() {
    let dir = Dir::new();
    let run = logged(&dir, "console", &["launch=4", "wait=logged", "output=own", "say=mine", "launch=6"]);
    let mut running = run.start();
    running.wait_for_output(HEADER);
    dir.touch("logged");
    let ran = running.finish();
    ran.expect(0);
    assert_eq!(read(dir.path("own")), "mine\n");
    assert_eq!(lines(&ran.stdout).len(), 4);
    let said: Vec<&str> = ran.stderr.lines().map(|line| line.split_once(": ").unwrap().1).collect();
    assert_eq!(
        said,
        [
            "standard output: lines cannot be logged (the program has put something else in its place); recording goes on",
            "6 of 10 lines are not in the log"
        ]
    );
}

/// What cannot be written: the program and its trace are as without the log, one line says why, one how many kernels are missing.
#[test]
fn where_nothing_can_be_written_the_program_runs_as_without() {
    let dir = Dir::new();
    fs::create_dir(dir.path("directory")).unwrap();
    rusqlite::Connection::open(dir.path("other")).unwrap().execute_batch("create table t (a)").unwrap();
    symlink("trace.rpd", dir.path("link")).unwrap();
    for (location, why) in [
        ("/dev/full", "No space left on device"),
        ("missing/log.csv", "No such file or directory"),
        ("directory", "Is a directory"),
        ("trace.rpd", "it is a database, which stays as it is"),
        ("link", "it is a database, which stays as it is"),
        ("other", "it is a database, which stays as it is"),
    ] {
        let _ = fs::remove_file(dir.path("trace.rpd"));
        let ran = logged(&dir, location, &["launch=12"]).run();
        assert_eq!(ran.expect(0).stdout, "", "{ran}");
        let said: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(said.len(), 2, "{location}{ran}");
        assert!(said[0].contains(why) && said[0].ends_with("recording goes on"), "{location}{ran}");
        assert!(said[1].ends_with("12 of 12 lines are not in the log"), "{location}{ran}");
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        assert!(trace.lost().is_empty());
        assert_eq!(durations(&dir, &[]).len(), 12, "{location}");
    }
    let other = rusqlite::Connection::open(dir.path("other")).unwrap();
    assert_eq!(other.query_row("pragma integrity_check", [], |row| row.get::<_, String>(0)).unwrap(), "ok");
    assert_eq!(fs::read_dir(dir.path("directory")).unwrap().count(), 0);
}

/// A limit of the file's size cuts a line in two; the program gets no signal.
#[test]
fn a_file_that_may_not_grow_has_whole_lines_but_for_the_last() {
    let dir = Dir::new();
    // The software GPU writes nothing then.
    let run = logged(&dir, "log.csv", &["launch=2", "limit=5000", "launch=198", "say=done"]);
    let ran = run.env("SIMGPU_EXECLOG", "").run();
    assert_eq!(ran.expect(0).stdout, "done\n");
    assert!(ran.stderr.contains("log.csv: lines cannot be logged (File too large"), "{ran}");
    let log = read(dir.path("log.csv"));
    assert_eq!(log.len(), 5000, "filled up to the limit");
    let whole = log.rsplit_once('\n').unwrap().0;
    let lines = lines(&format!("{whole}\n"));
    assert!(lines.iter().all(|line| line.rsplit(',').take(3).all(|field| field.parse::<u64>().is_ok())));
    let missing = format!("{} of 200 lines are not in the log", 200 - lines.len());
    assert!(ran.stderr.contains(&missing), "{missing}{ran}");
}

fn fifo(dir: &Dir) -> File {
    tool("mkfifo", &[dir.path("fifo")]);
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(dir.path("fifo")).unwrap()
}

/// A reader that reads nothing: the program ends all the same, and what the pipe holds is whole lines.
#[test]
fn a_reader_that_reads_nothing_holds_nobody_up() {
    let dir = Dir::new();
    let mut reader = fifo(&dir);
    let run = logged(&dir, "fifo", &["launch=50000", "say=done"]).env("RPDT_BUFFER_MB", "16");
    let ran = run.env("RPDT_EXIT_MS", "2000").run();
    assert_eq!(ran.expect(0).stdout, "done\n");
    let mut log = String::new();
    reader.read_to_string(&mut log).unwrap();
    let logged = lines(&log);
    let all = durations(&dir, &[]);
    assert_eq!(all.len(), 50_000);
    assert!(logged.iter().all(|line| all.binary_search(line).is_ok()));
    assert!(logged.len() > 100, "{}", logged.len());
    let missing = format!("{} of 50000 lines are not in the log", 50_000 - logged.len());
    assert!(ran.stderr.contains(&missing), "{missing}{ran}");
    assert!(dir.trace("trace.rpd").lost().is_empty());
}

/// A reader that is slow gets all lines, also those that wait when the program has come to its end.
#[test]
fn a_reader_that_is_slow_gets_all_lines() {
    let dir = Dir::new();
    let mut reader = fifo(&dir);
    let mut running = logged(&dir, "fifo", &["launch=3000", "say=launched"]).start();
    running.wait_for_output("launched");
    // Some time for an end that does not wait.
    std::thread::sleep(Duration::from_millis(300));
    let mut log = String::new();
    wait_for("all lines", || {
        let mut some = vec![0; 1000];
        let length = reader.read(&mut some).unwrap_or(1);
        log.push_str(std::str::from_utf8(&some[..length]).unwrap().trim_end_matches('\0'));
        (length == 0).then_some(())
    });
    running.finish().expect(0).expect_silent();
    assert_same(&dir, &log, 3000);
}

/// A reader that is gone: no SIGPIPE, no end.
#[test]
fn a_reader_that_is_gone_ends_nothing() {
    let dir = Dir::new();
    let shell =
        format!("{{ '{}' launch=5 make=ran; echo $? > status; }} | true", program("durations").display());
    // Its first lines may find the reader still there.
    let ran = through(&dir, "console", &shell).run();
    assert_eq!(read(dir.path("status")), "0\n", "{ran}");
    assert_eq!(durations(&dir, &[]).len(), 5);

    let dir = Dir::new();
    let reader = fifo(&dir);
    let running = logged(&dir, "fifo", &["launch=5", "make=ran", "wait=gone", "launch=5"]).start();
    wait_for("the first kernels", || dir.path("ran").exists().then_some(()));
    drop(reader);
    dir.touch("gone");
    let ran = running.finish();
    ran.expect(0);
    assert!(ran.stderr.contains("fifo: lines cannot be logged ("), "{ran}");
    assert!(ran.stderr.contains(" of 10 lines are not in the log"), "{ran}");
    assert_eq!(durations(&dir, &[]).len(), 10);
}

/// Files are followed by their name: what was moved away stays as it is.
#[test]
fn a_file_that_is_moved_away_is_made_again() {
    let dir = Dir::new();
    let log = dir.path("log.csv");
    let actions = ["launch=4", "wait=moved", "launch=5", "wait=emptied", "launch=6"];
    let running = logged(&dir, "log.csv", &actions).start();
    wait_for_lines(&log, 5);
    fs::rename(&log, dir.path("older.csv")).unwrap();
    dir.touch("moved");
    wait_for_lines(&log, 6);
    let second = read(log.clone());
    File::create(&log).unwrap();
    dir.touch("emptied");
    silent(&running.finish());
    let counts = [read(dir.path("older.csv")), second, read(log)].map(|text| lines(&text).len());
    assert_eq!(counts, [4, 5, 6]);
}

/// A log is added to, with the header of the one who began it.
#[test]
fn processes_append_whole_lines_to_one_file() {
    let dir = Dir::new();
    let runs: Vec<_> =
        (0..4).map(|_| logged(&dir, "log.csv", &["launch=1000", "wait=go", "launch=4000"])).collect();
    let running = Run::start_all(&runs);
    wait_for_lines(&dir.path("log.csv"), 4001);
    dir.touch("go");
    running.into_iter().for_each(|running| silent(&running.finish()));
    assert_same(&dir, &read(dir.path("log.csv")), 4 * 5000);
    silent(&logged(&dir, "log.csv", &["launch=50"]).run());
    assert_same(&dir, &read(dir.path("log.csv")), 4 * 5000 + 50);

    // Children that log to the pipe of their parent.
    let dir = Dir::new();
    let ran = logged(&dir, "console", &["fork", "fork", "launch=2500"]).run();
    ran.expect(0).expect_silent();
    let lines = sorted(ran.stdout.lines().filter(|line| *line != HEADER));
    assert_eq!(ran.stdout.lines().count(), lines.len() + 4, "a header of each process");
    assert_eq!(lines, durations(&dir, &[]));
}

#[test]
fn a_program_that_another_takes_the_place_of_is_followed_by_its_lines() {
    let dir = Dir::new();
    let running = logged(&dir, "log.csv", &["launch=20", "wait=go", "exec", "launch=30"]).start();
    wait_for_lines(&dir.path("log.csv"), 21);
    wait_for("the trace's rows", || (durations(&dir, &[]).len() == 20).then_some(()));
    dir.touch("go");
    silent(&running.finish());
    assert_same(&dir, &read(dir.path("log.csv")), 50);
}

/// Children that use no GPU write nothing, and have nothing of the log.
#[test]
fn children_of_a_program_that_is_logged() {
    let dir = Dir::new();
    let mut reader = fifo(&dir);
    let actions = ["launch=8", "wait=logged", "orphan=end", "launch=8"];
    let running = logged(&dir, "fifo", &actions).start();
    let mut log = String::new();
    let mut more = |log: &mut String| {
        let mut some = vec![0; 4096];
        if let Ok(length) = reader.read(&mut some) {
            log.push_str(std::str::from_utf8(&some[..length]).unwrap());
            return length;
        }
        1
    };
    wait_for("the first lines", || {
        more(&mut log);
        (log.lines().count() == 9).then_some(())
    });
    dir.touch("logged");
    // The end of the pipe comes with the program's end, while the child lives.
    wait_for("the end of the log", || (more(&mut log) == 0).then_some(()));
    dir.touch("end");
    silent(&running.finish());
    assert_same(&dir, &log, 16);
}

/// A program may close what it does not know, and open something else under the same number.
#[test]
fn a_descriptor_that_the_program_has_closed_is_its_own() {
    let dir = Dir::new();
    let mut reader = fifo(&dir);
    let path = dir.path("fifo").canonicalize().unwrap();
    let close = format!("close={}", path.display());
    let running = logged(&dir, "fifo", &["launch=4", "wait=logged", &close, "launch=5"]).start();
    let mut log = String::new();
    wait_for("the first lines", || {
        let mut some = vec![0; 4096];
        if let Ok(length) = reader.read(&mut some) {
            log.push_str(std::str::from_utf8(&some[..length]).unwrap());
        }
        (log.lines().count() == 5).then_some(())
    });
    dir.touch("logged");
    running.finish().expect(0).expect_silent();
    reader.read_to_string(&mut log).unwrap();
    assert_same(&dir, &log, 9);
    assert_eq!(read(dir.path("mine")), "");
}

/// The same while lines wait for the reader.
#[test]
fn a_descriptor_that_the_program_closes_while_lines_wait_is_its_own() {
    let dir = Dir::new();
    let reader = fifo(&dir);
    let close = format!("close={}", dir.path("fifo").canonicalize().unwrap().display());
    let run = logged(&dir, "fifo", &["launch=5000", "wait=full", &close, "wait=end"]);
    let running = run.env("RPDT_EXIT_MS", "2000").start();
    wait_for("a full pipe", || {
        let mut waiting: libc::c_int = 0;
        // SAFETY: an open pipe, and a place for the number of bytes in it.
        unsafe { libc::ioctl(reader.as_raw_fd(), libc::FIONREAD, &mut waiting) };
        (waiting > 60_000).then_some(())
    });
    dir.touch("full");
    // Time for a write that is tried again.
    wait_for("the program's own file", || dir.path("mine").exists().then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    dir.touch("end");
    running.finish().expect(0);
    assert_eq!(read(dir.path("mine")), "");
}

/// Every way in which a process may end, the last lines being on their way.
#[test]
fn the_last_lines_are_there_however_the_program_ends() {
    for (last, code) in
        [("exit=5", 5), ("_exit=6", 6), ("quick_exit=7", 7), ("abort", -libc::SIGABRT), ("leave", 0)]
    {
        let dir = Dir::new();
        let ran = logged(&dir, "log.csv", &["launch=300", last, "launch=200"]).run();
        match code {
            0.. => ran.expect(code),
            _ => ran.expect_signal(-code),
        };
        let count = if last == "leave" { 500 } else { 300 };
        assert_same(&dir, &read(dir.path("log.csv")), count);
    }
    let dir = Dir::new();
    let running = logged(&dir, "log.csv", &["launch=300", "wait=end", "kill"]).start();
    wait_for_lines(&dir.path("log.csv"), 301);
    dir.touch("end");
    running.finish().expect_signal(libc::SIGKILL);
    assert_eq!(lines(&read(dir.path("log.csv"))).len(), 300);
}

/// Starts and stops from outside: the log has what the trace has.
#[test]
fn the_log_of_a_program_that_is_controlled_from_outside() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("service")).recorded(Loading::Remote).arg("4").arg("end").arg("steps");
    let mut running = run.env("LOGDUR_LOG_LOCATION", "log.csv").start();
    running.wait_for_output("ready");
    let ask =
        |verb: &str| tool(rpd_remote().to_str().unwrap(), &[verb, "--wait", &running.pid().to_string()]);
    let mut most = 1;
    for _ in 0..3 {
        ask("start");
        wait_for_lines(&dir.path("log.csv"), most + 20);
        ask("stop");
        most = read(dir.path("log.csv")).lines().count();
    }
    ask("start");
    dir.touch("end");
    running.finish().expect(0).expect_silent();
    let log = read(dir.path("log.csv"));
    assert_same(&dir, &log, log.lines().count() - 1);
}

/// Where the trace cannot be written, the log has all lines in the end.
#[test]
fn the_log_does_not_need_the_trace() {
    let dir = Dir::new();
    let run = logged(&dir, "log.csv", &["launch=20000", "graph=10"]);
    let ran = run.env("RPDT_FILENAME", "missing/trace.rpd").env("RPDT_EXIT_MS", "2000").run();
    ran.expect(0);
    assert_eq!(ran.stderr.matches("the duration log").count(), 0, "{ran}");
    // What a loaded machine does not get done by then is said.
    let said = ran.stderr.lines().find_map(|line| line.split_once(" of 20030 lines are not in the log"));
    let missing = said.map_or(0, |(line, _)| line.rsplit(' ').next().unwrap().parse().unwrap());
    let written = lines(&read(dir.path("log.csv"))).len();
    assert_eq!((written > 0, written + missing), (true, 20_030), "{ran}");
}

/// `rpd record --log`: as the trace, a log is not mixed with an older one unless that is asked for.
#[test]
fn the_option_of_rpd_record() {
    let dir = Dir::new();
    let record = |trace: &str, options: &[&str], actions: &[&str]| {
        let run = Run::new(&dir, rpd()).arg("record").arg("-o").arg(trace);
        let run =
            options.iter().fold(run, |run, option| run.arg(*option)).arg("--").arg(program("durations"));
        actions.iter().fold(run, |run, action| run.arg(*action)).run()
    };
    let launch: &[&str] = &["launch=4"];
    let ran = record("a.rpd", &["--log", "log.csv", "--kernels", "step"], launch);
    assert!(ran.expect(0).stderr.contains("a.rpd: 4 kernels"), "{ran}");
    let first = read(dir.path("log.csv"));
    assert_eq!(lines(&first).len(), 2);
    let ran = record("b.rpd", &["--log", "log.csv"], launch);
    assert!(
        ran.expect(1).stderr.contains("log.csv has lines already: --append adds to them, --force"),
        "{ran}"
    );
    assert_eq!((read(dir.path("log.csv")), dir.path("b.rpd").exists()), (first, false));
    record("a.rpd", &["--append", "--log", "log.csv"], launch).expect(0);
    assert_eq!(lines(&read(dir.path("log.csv"))).len(), 2 + 4);
    record("a.rpd", &["--force", "--log", "log.csv"], launch).expect(0);
    assert_eq!(lines(&read(dir.path("log.csv"))).len(), 4);

    let ran = record("c.rpd", &["--log", "console", "--log-format", "json"], launch);
    assert_eq!(ran.expect(0).stdout.matches("{\"kernel\":").count(), 4, "{ran}");
    // The working directory of the program need not be that of the command line.
    let ran = record("d.rpd", &["--log", "%%log-%p"], launch);
    ran.expect(0);
    assert!(dir.names().iter().any(|name| name.starts_with("%log-")), "{:?}", dir.names());

    let ran = record("e.rpd", &["--log", "/dev/full"], launch);
    assert!(
        ran.expect(0).stderr.ends_with("0 records lost, 4 lines of the log lost, CPU\n")
            || ran.stderr.contains("4 lines of the log lost"),
        "{ran}"
    );
    assert!(!ran.stderr.contains("are not in the log"), "{ran}");
    for (options, why) in [
        (&["--log", "missing/log.csv"][..], "missing is no directory"),
        (&["--log", "a.rpd"], "a.rpd is a trace"),
        (&["--log", "."], "is a directory"),
    ] {
        let ran = record("f.rpd", options, launch);
        assert!(ran.expect(1).stderr.contains(why), "{ran}");
    }
    record("f.rpd", &["--log-format", "json"], launch).expect(2);
    record("f.rpd", &["--kernels", "step"], launch).expect(2);
}
