//! Programs and moments that make it hard.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Said, ask, check, command, early, end, limited, remote, said, service, status, threads};
use crate::harness::{Dir, HeldThread, Run, not_tested, program, tool, wait_for};

fn marks(dir: &Dir) -> Vec<String> {
    dir.trace("trace.rpd").texts("select args from api where apiName = 'UserMarker' order by start")
}

#[test]
fn a_stop_when_nothing_was_started() {
    let dir = Dir::new();
    let mut running = early(&dir, "control").arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    for verb in ["stop", "flush"] {
        let said = ask(verb, &["--wait"], &running).done();
        assert_eq!(said.stdout, format!("{}: was not recording\n", running.pid()));
    }
    end(&dir);
    running.finish().expect(0).expect_silent();
    assert_eq!(dir.names(), ["end"]);
}

#[test]
fn for_a_while_and_into_another_file() {
    let dir = Dir::new();
    let mut running = ["say=ready", "wait=go", "mark=x", "say=marked", "wait=end"]
        .into_iter()
        .fold(early(&dir, "control"), Run::arg)
        .start();
    running.wait_for_output("ready");
    let template = dir.path("%p.rpd");
    let options = ["-o", template.to_str().unwrap(), "--wait"];
    ask("start", &options, &running).done();
    std::fs::write(dir.path("go"), "").unwrap();
    running.wait_for_output("marked");
    let again = ask("start", &options, &running).done();
    assert!(again.stdout.contains("is recording already"), "{again:?}");
    ask("start", &["-o", "/tmp/elsewhere.rpd", "--wait"], &running)
        .failed("the file cannot be changed any more");
    ask("stop", &["--wait"], &running).done();
    let file = format!("{}.rpd", running.pid());
    assert_eq!(dir.names(), [&*file, "go"]);
    // It ends by itself, and has ended when the command returns.
    let said = ask("start", &["--for", "100ms", "--wait"], &running).done();
    assert!(said.stdout.contains("recorded; "), "{said:?}");
    assert_eq!(status(&running)["state"], "stopped");
    // Also where nobody waits.
    let said = ask("start", &["--for", "50ms", "--no-wait"], &running).done();
    assert_eq!(said.stdout, format!("{}: asked\n", running.pid()));
    ask("start", &["--wait", "--for", "50ms"], &running).done();
    assert_eq!(status(&running)["state"], "stopped");
    end(&dir);
    running.finish().expect(0).expect_silent();
    assert_eq!(dir.trace(&file).number("select count(*) from api"), 1);
}

#[test]
fn a_file_that_cannot_be_written_is_what_start_answers() {
    let dir = Dir::new();
    std::fs::write(dir.path("trace.rpd"), "not a trace").unwrap();
    let mut running =
        early(&dir, "control").arg("say=ready").arg("wait=go").arg("mark=x").arg("wait=end").start();
    running.wait_for_output("ready");
    ask("start", &["--wait"], &running).failed("trace.rpd");
    assert_eq!(status(&running)["state"], "stopped");
    assert_eq!(std::fs::read(dir.path("trace.rpd")).unwrap(), b"not a trace");
    ask("start", &["--wait", "-o", "/nowhere/x.rpd"], &running).failed("/nowhere/x.rpd");
    // What was wrong is put right, and the next start records.
    let right = dir.path("right.rpd");
    ask("start", &["--wait", "-o", right.to_str().unwrap()], &running).done();
    std::fs::write(dir.path("go"), "").unwrap();
    end(&dir);
    let ran = running.finish();
    ran.expect(0);
    assert_eq!(ran.stderr.lines().count(), 1, "said once a minute: {ran}");
    assert_eq!(dir.trace("right.rpd").number("select count(*) from api"), 1);
}

#[test]
fn a_recorder_that_is_not_there() {
    let dir = Dir::new();
    let library = dir.path("librpd_remote.so");
    std::fs::copy(crate::harness::loader(), &library).unwrap();
    let mut running =
        early(&dir, "control").env("LD_PRELOAD", &library).arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    ask("start", &["--wait"], &running).failed("the recorder cannot be loaded: ");
    assert_eq!(status(&running)["state"], "ready");
    // It is put there, and the next start finds it.
    std::fs::copy(crate::harness::recorder(), dir.path("librpd_tracer.so")).unwrap();
    ask("start", &["--wait"], &running).done();
    end(&dir);
    running.finish().expect(0).expect_silent();
}

#[test]
fn a_program_that_ends_during_a_start() {
    for round in 0..20 {
        let dir = Dir::new();
        let mut running = early(&dir, "control").arg("say=ready").arg("wait=go").arg("mark=x").start();
        running.wait_for_output("ready");
        let pid = running.pid().to_string();
        let start =
            command(&["start", "--wait", &pid]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_micros(500 * round));
        std::fs::write(dir.path("go"), "").unwrap();
        running.finish().expect(0).expect_silent();
        let started = start.wait_with_output().unwrap();
        let why = String::from_utf8(started.stderr).unwrap();
        let words = [
            "the process ended before",
            "the process is ending",
            "there is no such process",
            "no GPU runtime",
        ];
        let said = started.status.success() || words.iter().any(|word| why.contains(word));
        assert!(said, "{:?}: {why}", started.status);
        if dir.path("trace.rpd").exists() {
            check(&dir.trace("trace.rpd"));
        }
    }
}

#[test]
fn a_program_that_is_killed_during_a_stop() {
    for round in 0..10 {
        let dir = Dir::new();
        let mut running = service(&dir).start();
        running.wait_for_output("ready");
        ask("start", &["--wait"], &running).done();
        sleep(Duration::from_millis(20));
        let pid = running.pid().to_string();
        let stop =
            command(&["stop", "--wait", &pid]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_micros(300 * round));
        running.signal(libc::SIGKILL);
        running.finish().expect_signal(libc::SIGKILL);
        let stopped = stop.wait_with_output().unwrap();
        let why = String::from_utf8(stopped.stderr).unwrap();
        let words = ["the process ended before", "there is no such process"];
        assert!(stopped.status.success() || words.iter().any(|word| why.contains(word)), "{why}");
        check(&dir.trace("trace.rpd"));
    }
}

/// What the first thread of a process is doing, by the letter of proc(5).
fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

/// Whether a command waits for its answer: the thread that has asked is in the system call futex, and so is the first one, which waits for it.
fn waits(pid: u32) -> bool {
    let futex = libc::SYS_futex.to_string();
    let in_futex = |task: std::fs::DirEntry| {
        let syscall = std::fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
        syscall.split(' ').next() == Some(&futex)
    };
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let waiting: Vec<bool> = tasks.map(in_futex).collect();
    waiting.len() == 2 && waiting.iter().all(|waits| *waits)
}

#[test]
fn a_command_that_is_killed_blocks_nobody() {
    let dir = Dir::new();
    let mut running = early(&dir, "control").arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    running.signal(libc::SIGSTOP);
    let pid = running.pid().to_string();
    // It waits for an answer that does not come. After a second it would give up by itself.
    let killed_while_it_waits = || {
        let mut first = crate::harness::command(crate::harness::rpd_remote());
        let mut first = first.args(["start", "--wait", &pid]).stderr(Stdio::null()).spawn().unwrap();
        wait_for("command that waits", || (waits(first.id()) || state(first.id()) == 'Z').then_some(()));
        first.kill().unwrap();
        first.wait().unwrap().signal() == Some(libc::SIGKILL)
    };
    wait_for("command that is killed while it waits", || killed_while_it_waits().then_some(()));
    ask("status", &[], &running).failed("the process is stopped");
    running.signal(libc::SIGCONT);
    // What the first had asked for is done.
    ask("flush", &["--wait"], &running).done();
    assert_eq!(status(&running)["state"], "recording");
    end(&dir);
    running.finish().expect(0).expect_silent();
}

#[test]
fn two_shells_at_once() {
    let dir = Dir::new();
    let mut running = early(&dir, "control").arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    let pid = running.pid().to_string();
    let shell = || {
        for _ in 0..30 {
            remote(&["start", "--wait", &pid]).done();
            remote(&["status", &pid]).done();
            remote(&["stop", "--wait", &pid]).done();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(shell);
        scope.spawn(shell);
    });
    assert_eq!(status(&running)["state"], "stopped");
    assert_eq!(threads(&running), ["control", "rpd-remote", "rpd-writer"]);
    end(&dir);
    running.finish().expect(0).expect_silent();
}

/// A user that nobody else has, not even another test, so that `--all` means nobody else's processes. Containers have users up to 65535.
fn nobody_elses_user() -> String {
    static USERS: AtomicU32 = AtomicU32::new(0);
    let number = USERS.fetch_add(1, Ordering::Relaxed);
    (30_000 + std::process::id() % 3_000 * 10 + number).to_string()
}

/// Why a test that runs programs of two users cannot run.
const TWO_USERS: &str = "only root can run programs of two users";

/// Whether this is root, who can be somebody else.
fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// `command` as that user.
fn as_user(user: &str, mut command: std::process::Command) -> Said {
    use std::os::unix::process::CommandExt;
    let id: u32 = user.parse().unwrap();
    command.uid(id).gid(id);
    said(command)
}

/// A directory that everybody may use, with copies of everything that is run.
fn for_everybody() -> Dir {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    for file in [
        crate::harness::loader(),
        crate::harness::recorder(),
        crate::harness::rpd_remote(),
        program("control"),
    ] {
        std::fs::copy(&file, dir.path(file.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    std::fs::set_permissions(dir.path(""), PermissionsExt::from_mode(0o777)).unwrap();
    dir
}

fn of_user<'a>(dir: &'a Dir, user: &str) -> Run<'a> {
    let run =
        Run::new(dir, "setpriv").arg("--clear-groups").arg("--reuid").arg(user).arg("--regid").arg(user);
    run.arg("--")
        .arg("env")
        .arg(format!("LD_PRELOAD={}", dir.path("librpd_remote.so").display()))
        .arg("RPD_REMOTE_FROM=start")
        .arg(dir.path("control"))
}

fn copied_command(dir: &Dir, arguments: &[&str]) -> std::process::Command {
    limited(&dir.path("rpdRemote"), arguments)
}

#[test]
fn sixty_four_processes_at_once() {
    if !is_root() {
        return not_tested(TWO_USERS);
    }
    let (dir, user) = (for_everybody(), nobody_elses_user());
    let acts = ["say=ready", "wait=go", "mark=x", "say=marked", "wait=end"];
    let runs: Vec<_> = (0..64).map(|_| acts.into_iter().fold(of_user(&dir, &user), Run::arg)).collect();
    let mut all = Run::start_all(&runs);
    all.iter_mut().for_each(|running| running.wait_for_output("ready"));
    let listed = as_user(&user, copied_command(&dir, &["list", "--json"])).done();
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
    let pids: Vec<u64> = listed.iter().map(|report| report["pid"].as_u64().unwrap()).collect();
    let mut expected: Vec<u64> = all.iter().map(|running| running.pid().into()).collect();
    expected.sort_unstable();
    assert_eq!(pids, expected);
    let started = as_user(&user, copied_command(&dir, &["start", "--all", "--wait"])).done();
    assert_eq!(started.stdout.lines().count(), 64);
    std::fs::write(dir.path("go"), "").unwrap();
    all.iter_mut().for_each(|running| running.wait_for_output("marked"));
    as_user(&user, copied_command(&dir, &["stop", "--all", "--wait"])).done();
    assert_eq!(marks(&dir), vec!["x"; 64]);
    end(&dir);
    for running in all {
        running.finish().expect(0).expect_silent();
    }
    let trace = dir.trace("trace.rpd");
    check(&trace);
    assert_eq!(trace.session_count(), 64);
    as_user(&user, copied_command(&dir, &["stop", "--all"]))
        .failed("no process of this user can be controlled");
}

#[test]
fn another_user_is_refused() {
    if !is_root() {
        return not_tested(TWO_USERS);
    }
    let (dir, user, other) = (for_everybody(), nobody_elses_user(), nobody_elses_user());
    let mut running = ["say=ready", "wait=end"].into_iter().fold(of_user(&dir, &user), Run::arg).start();
    running.wait_for_output("ready");
    let pid = running.pid().to_string();
    for verb in ["start", "stop", "status"] {
        as_user(&other, copied_command(&dir, &[verb, &pid]))
            .failed(&format!("belongs to another user (uid {user})"));
    }
    let nothing = as_user(&other, copied_command(&dir, &["list", "--json"])).done();
    assert_eq!(nothing.stdout, "[]\n");
    // Neither read, nor write, nor a lock: there is no way to it.
    let mut look = crate::harness::command("sh");
    look.arg("-c")
        .arg(format!("ls /proc/{pid}/fd || ls /proc/{pid}/map_files; ls -l /dev/shm | grep rpd; true"));
    let looked = as_user(&other, look);
    assert!(!looked.stdout.contains("rpd") && looked.stdout.trim().is_empty(), "{looked:?}");
    // The user itself, and root.
    as_user(&user, copied_command(&dir, &["start", "--wait", &pid])).done();
    remote(&["stop", "--wait", &pid]).done();
    end(&dir);
    running.finish().expect(0).expect_silent();
}

#[test]
fn a_process_in_a_pid_namespace() {
    let tried =
        crate::harness::command("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        return not_tested("PID namespaces are not allowed here");
    }
    let dir = Dir::new();
    let acts = ["say=ready", "wait=go", "mark=x", "say=marked", "wait=end"];
    let run = super::with_loader(&dir, "unshare").env("RPD_REMOTE_FROM", "start");
    let run = run.arg("--pid").arg("--fork").arg(program("control"));
    let mut running = acts.into_iter().fold(run, Run::arg).start();
    running.wait_for_output("ready");
    let outer = tool("pgrep", &["-P", &running.pid().to_string()]);
    let outer = outer.trim();
    let shown = remote(&["status", outer]).done();
    assert!(shown.stdout.contains("itself 1, in a PID namespace of its own"), "{shown:?}");
    remote(&["start", "--wait", outer]).done();
    std::fs::write(dir.path("go"), "").unwrap();
    running.wait_for_output("marked");
    remote(&["stop", "--wait", outer]).done();
    assert_eq!(marks(&dir), ["x"]);
    end(&dir);
    running.finish().expect(0).expect_silent();
}

#[test]
fn a_program_with_the_rights_of_another_user() {
    use std::os::unix::fs::{PermissionsExt, chown};
    if !is_root() {
        return not_tested(TWO_USERS);
    }
    let (dir, user) = (for_everybody(), nobody_elses_user());
    let program = dir.path("control");
    chown(&program, Some(nobody_elses_user().parse().unwrap()), None).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    // The loader is loaded also there: by a trusted directory's name it would be; by dlopen, as ROCr does it, it is here.
    let mut running = ["say=ready", "wait=end"].into_iter().fold(of_user(&dir, &user), Run::arg).start();
    running.wait_for_output("ready");
    let pid = running.pid().to_string();
    let refused = as_user(&user, copied_command(&dir, &["start", &pid]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let root = remote(&["start", &pid]);
    assert_eq!(root.code, Some(1), "{root:?}");
    end(&dir);
    running.finish().expect(0).expect_silent();
    assert!(!dir.path("trace.rpd").exists());
}

#[test]
fn processes_that_do_not_answer_are_asked_at_the_same_time() {
    let dir = Dir::new();
    const PROCESSES: usize = 8;
    let runs: Vec<_> =
        (0..PROCESSES).map(|_| early(&dir, "control").arg("say=ready").arg("wait=end")).collect();
    let mut all = Run::start_all(&runs);
    all.iter_mut().for_each(|running| running.wait_for_output("ready"));
    // Each loader's thread is held; the rest of the process goes on.
    let held: Vec<HeldThread> = all.iter().map(|running| HeldThread::of(running, "rpd-remote")).collect();
    let pids: Vec<String> = all.iter().map(|running| running.pid().to_string()).collect();
    let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
    let begin = Instant::now();
    let said = remote(&[&["stop", "--wait"], &pids[..]].concat()).failed("has not answered for 5 s");
    assert_eq!(said.stderr.lines().count(), PROCESSES, "{said:?}");
    assert!(begin.elapsed().as_secs() < 5 * PROCESSES as u64, "asked one after the other");
    drop(held);
    remote(&[&["status"], &pids[..]].concat()).done();
    end(&dir);
    for running in all {
        running.finish().expect(0).expect_silent();
    }
}
