//! `rpd record`, `rpd info` and `rpd top` on what really was recorded.

use serde_json::Value;

use crate::harness::{Dir, Expected, Loading, Ran, Run, Trace, program, rpd, tool};

/// `rpd` with these arguments, in the directory.
fn run(dir: &Dir, arguments: &[&str]) -> Ran {
    arguments.iter().fold(Run::new(dir, rpd()), |run, argument| run.arg(*argument)).run()
}

#[track_caller]
fn summary(ran: &Ran) -> &str {
    ran.stderr
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("rpd: "))
        .unwrap_or_else(|| panic!("no summary{ran}"))
}

/// The summary names what the log has.
#[track_caller]
fn check_summary(ran: &Ran, expected: &Expected, times: usize) {
    let counts =
        [(expected.kernels(), "kernels"), (expected.copies(), "copies"), (expected.fills(), "fills")];
    let counts: Vec<_> = counts.iter().map(|(n, what)| format!("{} {what}", n * times)).collect();
    let begin = format!("trace.rpd: {}, 0 records lost, ", counts.join(", "));
    assert!(summary(ran).starts_with(&begin) && summary(ran).ends_with(" s recorder CPU"), "{begin}{ran}");
}

#[test]
fn numbers_of_the_summary_are_those_of_the_file() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("graph")).recorded(Loading::RpdRecord).run();
    let expected = Expected::of(&dir.logs()[0].1);
    ran.expect(0);
    check_summary(&ran, &expected, 1);
    expected.assert_equals(&dir.trace("trace.rpd"));
}

/// The number in front of that word in the summary.
#[track_caller]
fn number_in_summary(ran: &Ran, word: &str) -> i64 {
    let words = summary(ran).split([' ', ',']).filter(|text| !text.is_empty()).collect::<Vec<_>>();
    let place =
        words.iter().position(|text| text.starts_with(word)).unwrap_or_else(|| panic!("no {word}{ran}"));
    words[place - 1].parse().unwrap()
}

/// Children of a fork, and theirs, belong to the run: what they recorded and what they lost. They end as a kill would end them, so
/// that only the file knows.
#[test]
fn the_summary_counts_forked_children() {
    let dir = Dir::new();
    let large: Vec<String> = (b'a'..=b'o')
        .map(|letter| format!("mark={}", char::from(letter).to_string().repeat(100_000)))
        .collect();
    let before = ["mark=before", "flush", "fork", "fork", "say=written", "wait=locked"];
    let after = ["say=lost", "wait=unlocked", "flush", "raw_exit=0"];
    let acts = before.iter().copied().chain(large.iter().map(String::as_str)).chain(after);
    let run = acts.fold(Run::new(&dir, program("control")), Run::arg).env("RPDT_BUFFER_MB", "1");
    let mut running = run.env("RPDT_WAIT_MS", "10").recorded(Loading::RpdRecord).start();
    running.wait_for_output("written\n");
    let holder = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    holder.execute_batch("begin exclusive").unwrap();
    std::fs::write(dir.path("locked"), "").unwrap();
    running.wait_for_output("lost\n");
    holder.execute_batch("commit").unwrap();
    drop(holder);
    std::fs::write(dir.path("unlocked"), "").unwrap();
    let ran = running.finish();
    ran.expect(0);
    let trace = dir.trace("trace.rpd");
    assert_eq!(trace.session_count(), 4, "the premise of this test: {ran}");
    let lost: i64 = trace.lost().values().map(|count| count.parse::<i64>().unwrap()).sum();
    assert!(lost > 0, "the premise of this test: {ran}");
    let there = trace.number("select count(*) from api where apiName = 'UserMarker'");
    assert_eq!(
        (number_in_summary(&ran, "marker"), number_in_summary(&ran, "record")),
        (there, lost),
        "{ran}"
    );
    assert_eq!(there + lost, 1 + 4 * 15, "{ran}");
    let cpu =
        trace.number("select sum(value) from rocpd_metadata where tag like 'session::%::recorder_cpu_ns'");
    let cpu = format!("{:.2} s recorder CPU", cpu as f64 / 1e9);
    assert!(summary(&ran).contains(&cpu), "{cpu} of all processes: {ran}");
    assert!(
        summary(&ran).ends_with("(killed?): up to 0.5 s before the ends of 4 processes may be missing"),
        "{ran}"
    );
}

#[test]
fn the_summary_counts_kernels_of_forked_children() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("hip_forked")).recorded(Loading::RpdRecord).run();
    ran.expect(0);
    assert_eq!((number_in_summary(&ran, "kernel"), number_in_summary(&ran, "record")), (5, 0), "{ran}");
    let trace = dir.trace("trace.rpd");
    assert_eq!(
        trace.number("select count(distinct pid) from rocpd_api join rocpd_api_ops on api_id = rocpd_api.id"),
        2
    );
}

/// It has no session: the summary knows of it from the line of its loading alone.
#[test]
fn the_summary_says_what_a_kill_before_the_first_commit_may_have_cost() {
    let dir = Dir::new();
    let run = ["mark=a", "raise=9"].iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    let ran = run.env("RPDT_AUTOFLUSH", "1").recorded(Loading::RpdRecord).run();
    ran.expect_signal(libc::SIGKILL);
    assert!(summary(&ran).ends_with("; SIGKILL ended it: up to 1 s before its end may be missing"), "{ran}");
}

/// The child has no line of its loading, and no session: others have the file until it is killed.
#[test]
fn the_summary_names_a_forked_child_that_was_killed_before_its_first_commit() {
    let dir = Dir::new();
    let script = "\
import ctypes, os, signal, sqlite3, time
recorder = ctypes.CDLL(None)
recorder.rpd_mark(b'', b'parent', b'')
recorder.rpdflush()
other = sqlite3.connect('trace.rpd', isolation_level=None)
other.execute('begin exclusive')
child = os.fork()
if child == 0:
    recorder.rpd_mark(b'', b'child', b'')
    for _ in range(6000):
        if f'records pid={os.getpid()} ' in open(os.environ['RPDT_REPORT']).read(): break
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
other.execute('rollback')
print(child)
";
    let ran = Run::new(&dir, "python3").arg("-c").arg(script).recorded(Loading::RpdRecord).run();
    let named = format!("; nothing that process {} recorded is in the file", ran.expect(0).stdout.trim());
    let said = "; not all ended by their exit handlers (killed?): up to 0.5 s before its end may be missing";
    assert!(summary(&ran).ends_with(&(named + said)), "{ran}");
}

/// What the caller has closed is closed for the command.
#[test]
fn a_command_has_the_streams_that_it_would_have() {
    let dir = Dir::new();
    for (stream, command) in
        [(">&-", "/bin/echo a"), ("<&-", "/bin/cat"), ("2>&-", "/bin/sh -c 'echo a >&2'")]
    {
        let script = |before: &str| format!("{before} {command} {stream}");
        let run = |before: &str| Run::new(&dir, "sh").arg("-c").arg(script(before)).run();
        let record = format!("{} record --force -o t.rpd --", rpd().display());
        let (plain, ran) = (run(""), run(&record));
        assert_eq!(plain.status, ran.status, "{plain}{ran}");
        assert_ne!(plain.status.code(), Some(0), "{plain}");
    }
}

#[test]
fn the_summary_names_a_process_that_still_runs() {
    let dir = Dir::new();
    let script =
        "sleep 600 >/dev/null 2>&1 & until grep -q 'exe=[^ ]*sleep ' \"$RPDT_REPORT\"; do :; done; echo $!";
    let ran = Run::new(&dir, "sh").arg("-c").arg(script).recorded(Loading::RpdRecord).run();
    let sleeps = ran.expect(0).stdout.trim().parse().unwrap();
    // SAFETY: no pointers; the process is the one that the program has left.
    unsafe { libc::kill(sleeps, libc::SIGKILL) };
    assert!(summary(&ran).ends_with(" still runs, and has written no operation yet"), "{ran}");
}

/// A signal ends the program: the summary says which, and what that may have cost.
#[test]
fn the_summary_names_the_signal_that_ended_the_program() {
    for (signal, name) in [(libc::SIGKILL, "SIGKILL"), (libc::SIGTERM, "SIGTERM"), (libc::SIGSEGV, "SIGSEGV")]
    {
        let dir = Dir::new();
        let acts = ["mark=a", "flush", "say=written", "wait=never"];
        let run = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
        let mut running = run.env("RPDT_AUTOFLUSH", "4").recorded(Loading::RpdRecord).start();
        running.wait_for_output("written\n");
        let pid = dir.trace("trace.rpd").sessions().into_keys().next().unwrap();
        // SAFETY: no pointers; the process is the program, which waits for this.
        unsafe { libc::kill(pid as i32, signal) };
        let ran = running.finish();
        ran.expect_signal(signal);
        let said = format!("; {name} ended it: up to 0.25 s before its end may be missing");
        assert!(
            summary(&ran).starts_with("trace.rpd: 0 kernels, 0 copies, 1 marker, 0 records lost, "),
            "{ran}"
        );
        assert!(summary(&ran).ends_with(&said), "{ran}");
    }
}

#[test]
fn a_second_recording_is_refused_appended_or_replaces() {
    let dir = Dir::new();
    let record = || Run::new(&dir, program("graph")).recorded(Loading::RpdRecord);
    record().run().expect(0);
    let expected = Expected::of(&dir.logs()[0].1);
    let refused = record().run();
    refused.expect(1);
    assert_eq!(refused.stdout, "", "the program has not run{refused}");
    assert!(refused.stderr.contains("--append") && refused.stderr.contains("--force"), "{refused}");
    assert_eq!(dir.trace("trace.rpd").session_count(), 1);
    // What was recorded by this run, not what is in the file.
    let appended = record().record_option("--append").run();
    appended.expect(0);
    check_summary(&appended, &expected, 1);
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.session_count(), trace.number("select count(*) from dispatch")), (2, 2 * 1005));
    trace.check_integrity();
    record().record_option("--force").run().expect(0);
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.session_count(), trace.number("select count(*) from dispatch")), (1, 1005));
}

/// Of a trace whose first transaction was killed nothing stays when it is rolled back: the file is empty for who reads it, and a place for who
/// records. It is not a trace as it lies there, so that only the rollback tells.
#[test]
fn a_trace_that_was_being_made_when_its_writer_was_killed() {
    let killed = "import os, sqlite3
trace = sqlite3.connect('trace.rpd', isolation_level=None)
trace.execute('PRAGMA cache_size = 10')
trace.execute('BEGIN')
trace.execute('CREATE TABLE rocpd_string (id integer PRIMARY KEY, string text)')
trace.executemany('INSERT INTO rocpd_string (string) VALUES (?)', ((str(n) * 50,) for n in range(20000)))
os.kill(os.getpid(), 9)";
    let left = || {
        let dir = Dir::new();
        Run::new(&dir, "python3").arg("-c").arg(killed).run().expect_signal(libc::SIGKILL);
        assert_eq!(dir.names(), ["trace.rpd", "trace.rpd-journal"]);
        dir
    };
    for verb in ["info", "check", "top"] {
        let dir = left();
        let said = run(&dir, &[verb, "trace.rpd"]);
        assert!(said.expect(1).stderr.contains("the file is empty; record into it"), "{said}");
        assert_eq!(dir.names(), ["trace.rpd"]);
    }
    // Killed in its commit: as it lies there it is a whole trace.
    let in_commit = || {
        let dir = Dir::new();
        run(&dir, &["create", "trace.rpd"]).expect(0);
        let journal = "import sqlite3
header = bytes.fromhex('d9d505f920a163d7') + (0).to_bytes(4, 'big') + bytes(4) + (0).to_bytes(4, 'big') + (512).to_bytes(4, 'big') + (4096).to_bytes(4, 'big')
open('trace.rpd-journal', 'wb').write(header.ljust(512, bytes(1)))";
        Run::new(&dir, "python3").arg("-c").arg(journal).run().expect(0);
        dir
    };
    for (left, options) in [&left as &dyn Fn() -> Dir, &in_commit]
        .into_iter()
        .flat_map(|left| [&[][..], &["--append"], &["--force"]].map(|options| (left, options)))
    {
        let dir = left();
        let ran = record_a_mark(&dir, options).run();
        ran.expect(0);
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        assert_eq!(
            trace.number("select count(*) from api where apiName = 'UserMarker'"),
            1,
            "{options:?}{ran}"
        );
    }
}

/// A recorder has the file: it is replaced only when that is said twice, and then who loses rows by it says how many.
#[test]
fn a_file_that_is_being_recorded_into_is_not_replaced() {
    let dir = Dir::new();
    let acts = ["mark=a", "mark=b", "flush", "say=written", "wait=go", "mark=c"];
    let run = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    let mut running = run.recorded(Loading::RpdRecord).start();
    running.wait_for_output("written\n");
    let other = |options: &[&str]| {
        let mut command = std::process::Command::new(rpd());
        command.arg("record").args(options).arg("-o").arg(dir.path("trace.rpd")).arg("--");
        command.arg(program("control")).args(["mark=of the other", "say=ran"]).output().unwrap()
    };
    let refused = other(&["--force"]);
    assert_eq!((refused.status.code(), &*refused.stdout), (Some(1), &b""[..]), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr);
    let pid = dir.trace("trace.rpd").sessions().into_keys().next().unwrap();
    assert!(said.contains(&format!("process {pid}: ")) && said.contains("--force --force"), "{said}");
    let taken = other(&["--force", "--force"]);
    assert_eq!((taken.status.code(), &*taken.stdout), (Some(0), &b"ran\n"[..]), "{taken:?}");
    let said = String::from_utf8_lossy(&taken.stderr);
    assert!(said.contains(" 1 marker, 0 records lost, "), "{said}");
    std::fs::write(dir.path("go"), "").unwrap();
    let ran = running.finish();
    ran.expect(0);
    assert!(summary(&ran).contains(" 1 marker, 2 records lost, "), "{ran}");
    let trace = dir.trace("trace.rpd");
    assert_eq!(trace.texts("select args from api order by args"), ["c", "of the other"]);
    assert_eq!(trace.metadata("session::1::lost::file_gone")["session::1::lost::file_gone"], "2");
    // Nobody records into it any more.
    let again = other(&["--force"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
}

/// `rpd record` with these options on a program that makes a marker.
fn record_a_mark<'a>(dir: &'a Dir, options: &[&str]) -> Run<'a> {
    let control = program("control").display().to_string();
    let arguments = [&["record"], options, &["--", &control, "mark=a"]].concat();
    arguments.iter().fold(Run::new(dir, rpd()), |run, argument| run.arg(*argument))
}

#[test]
fn each_process_records_into_a_trace_of_its_own() {
    let dir = Dir::new();
    let control = program("control").display().to_string();
    let both = format!("{control} mark=a; {control} mark=b");
    let ran = run(&dir, &["record", "-o", "of-%p.rpd", "--", "sh", "-c", &both]);
    ran.expect(0);
    let traces: Vec<String> = dir.names().into_iter().filter(|name| name.ends_with(".rpd")).collect();
    assert_eq!(traces.len(), 2, "{ran}");
    for name in &traces {
        assert!(summary(&ran).contains(name.as_str()), "{name}: {ran}");
        assert_eq!(dir.trace(name).number("select count(*) from api"), 1);
    }
    assert!(summary(&ran).contains("2 markers, 0 records lost"), "{ran}");
}

#[test]
fn ranks_of_one_job_step_share_a_trace_whenever_they_start() {
    let dir = Dir::new();
    let rank = |step: &str| {
        record_a_mark(&dir, &["-o", "job.rpd"]).env("SLURM_JOB_ID", "77").env("SLURM_STEP_ID", step).run()
    };
    rank("0").expect(0);
    let late = rank("0");
    late.expect(0);
    assert!(summary(&late).contains("1 marker, "), "what it recorded itself: {late}");
    assert_eq!(dir.trace("job.rpd").session_count(), 2);
    let next = rank("1");
    assert!(next.expect(1).stderr.contains("already holds a recording"), "{next}");
}

/// The ranks are the command's own: which files they record into, rpd does not know beforehand.
#[test]
fn a_second_run_is_not_mixed_into_files_that_ranks_below_the_command_name() {
    let dir = Dir::new();
    let control = program("control").display().to_string();
    let ranks = format!("for r in 0 1; do RANK=$r {control} mark=a; done");
    let record = |options: &[&str]| {
        run(&dir, &[&["record", "-o", "w%r.rpd"], options, &["--", "sh", "-c", &ranks]].concat())
    };
    let marks = || ["w0.rpd", "w1.rpd"].map(|name| dir.trace(name).number("select count(*) from api"));
    let first = record(&[]);
    assert!(summary(&first).contains("2 markers, 0 records lost"), "{first}");
    assert_eq!(marks(), [1, 1]);
    let second = record(&[]);
    second.expect(0);
    let refused: Vec<&str> = second.stderr.lines().filter(|line| line.starts_with("rpd_tracer[")).collect();
    assert_eq!(refused.len(), 2, "{second}");
    for (line, name) in refused.iter().zip(["w0.rpd", "w1.rpd"]) {
        let says = |words: &str| line.contains(words);
        assert!(
            says(name) && says("another run") && says("--append") && says("recording is off"),
            "{second}"
        );
    }
    assert_eq!(marks(), [1, 1], "{second}");
    assert!(summary(&second).contains("2 records lost"), "{second}");
    record(&["--append"]).expect(0);
    assert_eq!(marks(), [2, 2]);
    // Ranks of one step that each have their rpd record.
    let dir = Dir::new();
    let step = |step: &str| {
        let run = record_a_mark(&dir, &["-o", "s%r.rpd"]).env("SLURM_JOB_ID", "77").env("SLURM_PROCID", "1");
        run.env("SLURM_STEP_ID", step).run()
    };
    for _ in 0..2 {
        step("0").expect(0);
    }
    assert!(step("1").expect(1).stderr.contains("s1.rpd already holds a recording"));
    assert_eq!(dir.trace("s1.rpd").number("select count(*) from api"), 2);
}

#[test]
fn misspelt_names_are_one_line_each_with_the_nearest() {
    let dir = Dir::new();
    let control = Run::new(&dir, program("control")).arg("mark=a").recorded(Loading::Preload);
    let run = control.env("RPDT_FILENAM", "x.rpd").env("RPDT_HIP_APIS", "+hipMaloc");
    let ran = run.env("LOGDUR_FILTRE", "add").env("LOGDUR_VERBOSE", "1").run();
    let lines: Vec<&str> = ran.expect(0).stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{ran}");
    assert!(lines.iter().any(|line| line.contains("LOGDUR_FILTRE is not a variable of rpd")), "{ran}");
    assert!(lines.iter().any(|line| line.contains("+hipMaloc (did you mean +hipMalloc?)")), "{ran}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("RPDT_FILENAM is not a variable") && line.contains("RPDT_FILENAME?")),
        "{ran}"
    );
}

#[test]
fn without_a_start_nothing_is_recorded() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("graph")).recorded(Loading::RpdRecord).record_option("--no-start").run();
    ran.expect(0);
    assert!(
        summary(&ran).starts_with("trace.rpd: 0 kernels") && summary(&ran).contains("rpdstart()"),
        "{ran}"
    );
    let dir = Dir::new();
    let acts = ["mark=a", "start", "mark=b"];
    let control = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    control.recorded(Loading::RpdRecord).record_option("--no-start").run().expect(0);
    let marks = dir.trace("trace.rpd").texts("select args from api");
    assert_eq!(marks, ["b"]);
}

#[test]
fn an_empty_trace_is_explained() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("noop")).recorded(Loading::RpdRecord).run();
    ran.expect(0);
    assert!(summary(&ran).contains("no HSA runtime") || summary(&ran).contains("GPU runtime"), "{ran}");

    let dir = Dir::new();
    tool(
        "cc",
        &[
            "-static".into(),
            "-x".into(),
            "c".into(),
            source("noop.c"),
            "-o".into(),
            dir.path("static").into(),
        ],
    );
    let ran = Run::new(&dir, dir.path("static")).recorded(Loading::RpdRecord).run();
    ran.expect(0);
    assert!(summary(&ran).contains("static"), "{ran}");
}

fn source(name: &str) -> std::ffi::OsString {
    format!("{}/../fixtures/programs/{name}", env!("CARGO_MANIFEST_DIR")).into()
}

/// The trace of the demo on two GPUs, and what the device did.
fn demo(dir: &Dir) -> (Trace, Expected) {
    Run::new(dir, program("demo")).gpus(2).recorded(Loading::RpdRecord).run().expect(0);
    (dir.trace("trace.rpd"), Expected::of(&dir.logs()[0].1))
}

#[test]
fn what_tools_tell_of_the_demo() {
    let dir = Dir::new();
    let (trace, expected) = demo(&dir);
    trace.check_integrity();
    let ops = expected.kernels() + expected.copies() + expected.fills();

    let info = run(&dir, &["info", "trace.rpd", "--json"]);
    let info: Value = serde_json::from_str(&info.expect(0).stdout).unwrap();
    let operations = info["operations"].as_array().unwrap();
    for (kind, count) in
        [("kernel", expected.kernels()), ("copy", expected.copies()), ("fill", expected.fills())]
    {
        let rows = operations.iter().filter(|row| row["kind"] == kind);
        let sum: u64 = rows.map(|row| row["count"].as_u64().unwrap()).sum();
        assert_eq!(sum as usize, count, "{kind}: {info:#}");
    }
    assert!(run(&dir, &["info", "trace.rpd"]).expect(0).stdout.contains("gfx900"));

    let top = run(&dir, &["top", "trace.rpd", "--json"]);
    let top: Value = serde_json::from_str(&top.expect(0).stdout).unwrap();
    let rows = top.as_array().unwrap();
    let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls as usize, ops, "{top:#}");
    let saxpy = rows.iter().find(|row| row["name"].as_str().unwrap().starts_with("saxpy(")).unwrap();
    assert_eq!(saxpy["calls"], 2 * (2 * 10 + 200), "{top:#}");

    // The tools that everybody has.
    let file = trace.path.display().to_string();
    let count = "select count(*) from rocpd_op";
    assert_eq!(tool("sqlite3", &[&file, count]).trim(), ops.to_string());
    let script = format!("import sqlite3; print(sqlite3.connect({file:?}).execute({count:?}).fetchone()[0])");
    assert_eq!(tool("python3", &["-c", &script]).trim(), ops.to_string());
    let top = tool("sqlite3", &[&file, "select sum(TotalCalls) from top"]);
    assert_eq!(top.trim(), ops.to_string(), "the view top");
    let busy = tool("sqlite3", &[&file, "select count(*) from busy where Busy > 0"]);
    assert_eq!(busy.trim(), "2", "GPUs in the view busy");
}

/// The recorder is tried in a program, which leaves no trace; nothing of the device is used.
#[test]
fn the_doctor_finds_the_software_gpu_and_the_runtimes() {
    let doctor = |environment: &[(&str, &str)]| {
        let dir = Dir::new();
        let run = Run::new(&dir, rpd()).gpus(2).arg("doctor").arg("--json");
        let ran = environment.iter().fold(run, |run, (name, value)| run.env(name, *value)).run();
        let report: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
        assert_eq!(dir.names(), Vec::<String>::new(), "{ran}");
        report
    };
    let of = |report: &Value, subject: &str| {
        let findings = report["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["subject"] == subject).unwrap_or(&Value::Null).clone()
    };
    let whole = doctor(&[]);
    assert_eq!(of(&whole, "AMD GPUs")["found"], "gfx900, gfx900", "{whole:#}");
    for subject in ["recorder", "AMD driver", "HSA runtime", "HIP", "other profilers"] {
        assert_eq!(of(&whole, subject)["status"], "ok", "{subject}: {whole:#}");
    }
    assert!(of(&whole, "recorder")["found"].as_str().unwrap().ends_with(" loads into programs"), "{whole:#}");
    let watched = doctor(&[("HSA_TOOLS_LIB", "/opt/other/libtool.so")]);
    assert_eq!(of(&watched, "other profilers")["status"], "warn", "{watched:#}");
}
