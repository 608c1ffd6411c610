//! Every way in, at every moment of a program's life: the program goes on as it would without, and what it launches from then on is
//! recorded.

use std::process::Stdio;
use std::time::Duration;

use super::{check, command, end, with_loader};
use crate::harness::{Dir, Loading, Run, Running, Trace, program, recorder, wait_for};

const MOMENTS: [&str; 5] = ["load", "before", "during", "after", "exit"];

/// How a recording is begun.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Begun {
    /// The recorder was there from the beginning, and was offered the runtime's tables.
    Tables,
    /// The program loads the recorder, which may have nothing but HIP's callbacks.
    Callbacks,
    /// rpdRemote asks by the block.
    Block,
    /// Somebody sends SIGUSR1.
    Signal,
}

fn run<'a>(dir: &'a Dir, begun_by: Begun, moment: &str) -> Run<'a> {
    let run = Run::new(dir, program("moments"));
    let (run, by) = match begun_by {
        Begun::Tables => (run.recorded(Loading::Preload).env("RPDT_AUTOSTART", "0"), "start"),
        Begun::Callbacks => (run.env("RECORDER", recorder()), "load"),
        Begun::Block => (with_loader(dir, program("moments")).env("RPD_REMOTE_FROM", "start"), "outside"),
        Begun::Signal => (with_loader(dir, program("moments")).env("RPD_REMOTE", "signal"), "outside"),
    };
    let run = run.env("RPDT_FILENAME", dir.path("trace.rpd"));
    run.arg(moment).arg(by).arg(program("moments_kernels"))
}

/// Starts from outside, when the program says that it is there.
fn start(dir: &Dir, running: &mut Running, begun_by: Begun, moment: &str) {
    running.wait_for_output(moment);
    let command = (begun_by == Begun::Block).then(|| {
        let mut command = command(&["start", "--wait", &running.pid().to_string()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    if begun_by == Begun::Signal {
        running.signal(libc::SIGUSR1);
    }
    // Where this is too short the start comes a little after that moment, and nothing fails for it.
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(dir.path("go"), "").unwrap();
    if let Some(command) = command {
        let said = command.wait_with_output().unwrap();
        let why = String::from_utf8_lossy(&said.stderr).into_owned();
        let late = moment == "exit" && (why.contains("ended") || why.contains("ending"));
        assert!(said.status.success() || late, "{moment}: {why}");
    }
    std::fs::write(dir.path("started"), "").unwrap();
}

#[track_caller]
fn begin(begun_by: Begun, moment: &str) {
    let dir = Dir::new();
    let mut running = run(&dir, begun_by, moment).start();
    let is_outside = matches!(begun_by, Begun::Block | Begun::Signal);
    if moment == "exit" {
        end(&dir);
    }
    if is_outside {
        start(&dir, &mut running, begun_by, moment);
    }
    if moment != "exit" {
        let kernels = || Trace::count_so_far(&dir.path("trace.rpd"), "select count(*) from dispatch");
        wait_for(&format!("kernel in the file, {begun_by:?} at {moment}"), || {
            assert!(running.is_alive(), "{begun_by:?} at {moment}: it has ended");
            (kernels() > 0).then_some(())
        });
        end(&dir);
    }
    let ran = running.finish();
    // A recorder that the program loads when HIP is there says whose times it has.
    let is_late = |line: &&str| begun_by == Begun::Callbacks && line.contains("whose own times are used");
    assert_eq!(ran.expect(0).stderr.lines().find(|line| !is_late(line)), None, "{ran}");
    let counts = ran.stdout.lines().find(|line| line.contains(' ')).unwrap_or_else(|| panic!("{ran}"));
    let (before, after) = counts.split_once(' ').unwrap();
    let (before, after): (i64, i64) = (before.parse().unwrap(), after.parse().unwrap());
    if moment == "exit" {
        return;
    }
    let trace = dir.trace("trace.rpd");
    check(&trace);
    let recorded = trace.number("select count(*) from dispatch");
    let launches = trace.number("select count(*) from api where apiName = 'hipLaunchKernel'");
    // A signal's start may come when a launch has begun: then its kernel is recorded, and it is not.
    let begun = i64::from(begun_by == Begun::Signal);
    assert!(
        (launches..=launches + begun).contains(&recorded),
        "{begun_by:?} at {moment}: {recorded} operations for {launches} launches{ran}"
    );
    assert!(trace.lost().is_empty(), "{begun_by:?} at {moment}: {:?}", trace.lost());
    assert!(recorded <= after + before * i64::from(moment == "after"), "{begun_by:?} at {moment}{ran}");
    // Where a start has returned before the first launch, all are there.
    let is_before = matches!(moment, "load" | "before") || (moment == "during" && begun_by == Begun::Tables);
    if is_before && begun_by != Begun::Signal || moment == "during" && begun_by == Begun::Block {
        assert_eq!(recorded, after, "{begun_by:?} at {moment}{ran}");
    }
}

#[test]
fn by_the_runtimes_tables() {
    MOMENTS.iter().for_each(|moment| begin(Begun::Tables, moment));
}

#[test]
fn by_hips_callbacks() {
    MOMENTS.iter().for_each(|moment| begin(Begun::Callbacks, moment));
}

#[test]
fn by_the_block() {
    MOMENTS.iter().for_each(|moment| begin(Begun::Block, moment));
}

#[test]
fn by_a_signal() {
    MOMENTS.iter().for_each(|moment| begin(Begun::Signal, moment));
}
