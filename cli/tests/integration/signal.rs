//! Signals and job control: of `rpd record`, and a terminal's while a trace is being made.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::harness::{Dir, RPD, ran};
use crate::trim_failure::long;

/// A command under rpd that says when it is ready and counts the signals it gets, until its input ends. A signal between two waits
/// ends the next one: Python writes it to the pipe, so it is never left to wait for input. An alarm ends the command where a test fails.
const COUNTER: &str = r#"
import os, select, signal, sys
names = {signal.SIGINT: "INT", signal.SIGTERM: "TERM", signal.SIGHUP: "HUP", signal.SIGQUIT: "QUIT",
         signal.SIGUSR1: "USR1", signal.SIGUSR2: "USR2", signal.SIGCONT: "CONT"}
# Not print: a handler may come in the middle of one.
def say(text):
    os.write(1, (text + "\n").encode())
def got(number, frame):
    say(names[number])
signal.alarm(300)
came, written = os.pipe()
os.set_blocking(written, False)
signal.set_wakeup_fd(written)
for number in names:
    signal.signal(number, got)
say("ready " + str(os.getpid()))
while True:
    ready = select.select([0, came], [], [])[0]
    if came in ready:
        os.read(came, 100)
    elif os.read(0, 1000) == b"":
        sys.exit(9)
"#;

struct Running {
    rpd: Child,
    lines: BufReader<std::process::ChildStdout>,
    pid: u32,
}

impl Running {
    /// Starts the counter under rpd, both in a process group of their own, and waits until it counts.
    fn start(dir: &Dir) -> Running {
        dir.write("counter.py", COUNTER);
        let mut command = dir.rpd(&["record", "--", "python3", "counter.py"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut rpd = command.spawn().unwrap();
        let mut lines = BufReader::new(rpd.stdout.take().unwrap());
        let mut ready = String::new();
        lines.read_line(&mut ready).unwrap();
        let pid = ready.trim().strip_prefix("ready ").expect("the counter starts").parse().unwrap();
        Running { rpd, lines, pid }
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_string()
    }

    /// Lets the counter end and says how rpd ended and what the counter got since.
    fn end(mut self) -> (ExitStatus, String) {
        drop(self.rpd.stdin.take());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (self.rpd.wait().unwrap(), rest)
    }
}

fn kill(signal: &str, pid: i64) {
    let sent = Command::new("kill").args([&format!("-{signal}"), "--", &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "kill -{signal} -- {pid}");
}

#[test]
fn a_signal_to_rpd_reaches_the_command_once() {
    let dir = Dir::new();
    let mut running = Running::start(&dir);
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"] {
        kill(signal, i64::from(running.rpd.id()));
        assert_eq!(running.next_line(), signal);
    }
    let (status, rest) = running.end();
    assert_eq!(
        (status.code(), rest.as_str()),
        (Some(9), ""),
        "rpd outlives them and has the command's status"
    );
}

#[test]
fn a_signal_to_the_command_alone_is_its_own() {
    let dir = Dir::new();
    let running = Running::start(&dir);
    kill("TERM", i64::from(running.pid));
    let (status, rest) = running.end();
    assert_eq!((status.code(), rest.as_str()), (Some(9), "TERM\n"));
}

#[test]
fn a_command_that_dies_of_a_forwarded_signal_takes_rpd_along() {
    let dir = Dir::new();
    let mut command = dir.rpd(&["record", "--", "sh", "-c", "echo ready; exec sleep 600"]);
    let mut rpd = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    rpd.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    kill("TERM", i64::from(rpd.id()));
    let output = rpd.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(15));
    assert!(String::from_utf8_lossy(&output.stderr).contains("trace.rpd: "));
}

/// Runs `script` (Python, with `rpd`, `term` and `read` defined) as the leader of a session on a pseudo-terminal.
fn on_a_terminal(dir: &Dir, script: &str) -> crate::harness::Ran {
    let prelude = r#"
import os, pty, select, signal, sys, termios, time
RPD = sys.argv[1]
def spawn(*command):
    pid, term = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    return pid, term
def read_until(term, words):
    text = b""
    while words not in text:
        text += os.read(term, 1000)
    return text
def send_until(term, keys, words):
    """Types `keys`, again when nothing has come of it for a while: a shell drops what is typed before it has the terminal."""
    text = b""
    while words not in text:
        os.write(term, keys)
        while words not in text and select.select([term], [], [], 2)[0]:
            text += os.read(term, 1000)
    return text
def rest(term):
    text = b""
    while True:
        try:
            chunk = os.read(term, 1000)
        except OSError:
            return text
        if not chunk:
            return text
        text += chunk
signal.alarm(600)
"#;
    dir.write("counter.py", COUNTER);
    dir.write("terminal.py", format!("{prelude}{script}"));
    ran(dir.command("python3").args(["terminal.py", RPD]))
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let dir = Dir::new();
    let result = on_a_terminal(
        &dir,
        r#"
pid, term = spawn(RPD, "record", "--", sys.executable, "counter.py")
text = read_until(term, b"ready")
for key, name in ((b"\x03", b"INT"), (b"\x1c", b"QUIT"), (b"\x03", b"INT")):
    os.write(term, key)
    text += read_until(term, name + b"\r\n")
os.write(term, b"\x04")
text += rest(term)
assert (text.count(b"INT"), text.count(b"QUIT")) == (2, 1), text
assert b"trace.rpd: " in text, text
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
"#,
    );
    result.expect(0);
}

#[test]
fn ctrl_c_ends_a_command_that_does_not_handle_it_and_rpd_with_it() {
    let dir = Dir::new();
    let result = on_a_terminal(
        &dir,
        r#"
pid, term = spawn(RPD, "record", "--", "sh", "-c", "echo ready; exec sleep 600")
read_until(term, b"ready\r\n")
os.write(term, b"\x03")
assert b"trace.rpd: " in rest(term)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGINT
"#,
    );
    result.expect(0);
}

#[test]
fn ctrl_c_ends_long_work_that_was_seen_on_the_terminal() {
    let dir = Dir::new();
    long(&dir);
    let result = on_a_terminal(
        &dir,
        r#"
pid, term = spawn(RPD, "trim", "t.rpd", "-o", "out.rpd")
read_until(term, b"\r\x1b[Kext_long")
os.write(term, b"\x03")
assert b"interrupted: out.rpd was not made" in rest(term)
# What a shell calls 130.
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGINT
"#,
    );
    result.expect(0);
    assert_eq!(dir.names(), ["counter.py", "t.rpd", "terminal.py"]);
}

#[test]
fn a_shell_stops_and_continues_both() {
    let dir = Dir::new();
    let result = on_a_terminal(
        &dir,
        r#"
pid, term = spawn("/bin/bash", "--norc", "-i")
os.write(term, b"PS1=; %s record -- %s counter.py\n" % (RPD.encode(), sys.executable.encode()))
read_until(term, b"ready ")
os.write(term, b"\x1a")
read_until(term, b"Stopped")
# A line that is typed a second time goes to the counter, which does not mind.
send_until(term, b"fg; echo status=$?\n", b"CONT\r\n")
text = send_until(term, b"\x04", b"status=9")
assert b"trace.rpd: " in text, text
os.write(term, b"exit\n")
rest(term)
"#,
    );
    result.expect(0);
}

#[test]
fn dispositions_are_inherited() {
    let dir = Dir::new();
    let show = "import signal; print([signal.getsignal(s) == signal.SIG_IGN for s in (1, 2, 3, 15, 17)], \
                sorted(signal.pthread_sigmask(0, [])))";
    dir.write("show.py", show);
    // Ignored and blocked before: so they are for the command, with and without rpd in between.
    let python = "python3 show.py";
    // Python ignores these two itself.
    let kernel = "grep SigIgn /proc/self/status";
    for (before, show) in [
        ("", python),
        ("trap '' HUP; ", python),
        ("trap '' INT QUIT CHLD; ", python),
        ("", kernel),
        ("trap '' PIPE; ", kernel),
        ("trap '' XFSZ; ", kernel),
    ] {
        let direct = ran(dir.command("bash").args(["-c", &format!("{before} exec {show}")]));
        let through = ran(dir.command("bash").args(["-c", &format!("{before} exec {RPD} record -- {show}")]));
        assert_eq!(direct.expect(0).stdout, through.expect(0).stdout, "{before}");
    }
    let status = format!("trap '' CHLD; {RPD} record -- sh -c 'exit 6'");
    ran(dir.command("sh").args(["-c", &status])).expect(6);
    assert_eq!(fs::read_dir(dir.path(".")).unwrap().count(), 2);
}

#[test]
fn a_limit_on_files_is_an_error_before_the_command_runs() {
    let dir = Dir::new();
    let limited = format!("ulimit -f 0; exec {RPD} record -o t.rpd -- touch ran");
    let result = ran(dir.command("bash").args(["-c", &limited]));
    assert!(result.expect(1).stderr.contains("t.rpd"), "{result}");
    // An empty file is no obstacle.
    assert_eq!(dir.names(), ["t.rpd"]);
    ran(dir.command(RPD).args(["record", "-o", "t.rpd", "--", "true"])).expect(0);
}

/// What comes while the trace is prepared is the command's, and nothing is left behind.
#[test]
fn a_signal_before_the_command_begins_is_the_command_s() {
    let dir = Dir::new();
    dir.run(&["create", "t.rpd"]).expect(0);
    let other = dir.open("t.rpd");
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let temporary = dir.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut command = dir.rpd(&["record", "--append", "-o", "t.rpd", "--", "sleep", "100"]);
    command.env("TMPDIR", &temporary).stderr(Stdio::piped());
    let mut rpd = command.spawn().unwrap();
    let made = || fs::read_dir(&temporary).unwrap().count();
    while made() == 0 {
        assert!(rpd.try_wait().unwrap().is_none(), "it waits for the trace");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    kill("TERM", rpd.id().into());
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(rpd.wait_with_output().unwrap().status.signal(), Some(libc::SIGTERM));
    assert_eq!(made(), 0, "what rpd made for itself is gone");
}

#[test]
fn nohup_protects_the_command() {
    let dir = Dir::new();
    let survived = format!("trap '' HUP; exec {RPD} record -- sh -c 'kill -HUP $PPID; echo survived'");
    assert_eq!(ran(dir.command("sh").args(["-c", &survived])).expect(0).stdout, "survived\n");
}
