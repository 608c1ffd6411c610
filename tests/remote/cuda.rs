//! Programs that use CUDA, on the stand-ins for NVIDIA's libraries: the loader is what the driver starts, and tells the recorder.

use super::{ask, remote, status, with_loader};
use crate::cuda::{libraries, subscriptions};
use crate::harness::{Dir, Run, Running, loader, program, recorder, wait_for};

/// work.c, which launches by turns with waits for [`go`].
fn work<'a>(dir: &'a Dir, what: &str) -> Run<'a> {
    let run = with_loader(dir, program("cuda_work")).env("LD_LIBRARY_PATH", libraries(dir, 130_001));
    what.split(' ').fold(run, |run, word| run.arg(word)).env("RPDT_FILENAME", dir.path("trace.rpd"))
}

/// The program is at its wait of that number.
fn is_at(running: &mut Running, number: u32) {
    running.wait_for_output(&format!("await {number} "));
}

fn go(dir: &Dir, number: u32) {
    std::fs::write(dir.path(&format!("awaited-{number}")), "").unwrap();
}

/// At that wait rpdRemote does `verb`, and the program goes on.
fn ask_at(dir: &Dir, running: &mut Running, number: u32, verb: &str) {
    is_at(running, number);
    ask(verb, &["--wait"], running).done();
    go(dir, number);
}

#[track_caller]
fn expect(dir: &Dir, kernels: i64) {
    let trace = dir.trace("trace.rpd");
    assert_eq!(trace.number("select count(*) from op where opType = 'KernelExecution'"), kernels);
    assert_eq!(trace.number("select count(*) from api where apiName = 'cuLaunchKernel'"), kernels);
    let linked = "select count(*) from rocpd_api_ops L join rocpd_op O on O.id = L.op_id join rocpd_api A on A.id = L.api_id
        where O.start >= A.start";
    assert_eq!(trace.number(linked), kernels);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
}

#[test]
fn a_start_and_a_stop_between_launches() {
    let dir = Dir::new();
    let mut running =
        work(&dir, "launch=100 await=1 launch=30 await=2 launch=50 await=3 launch=7 await=4").start();
    ask_at(&dir, &mut running, 1, "start");
    ask_at(&dir, &mut running, 2, "stop");
    expect(&dir, 30);
    ask_at(&dir, &mut running, 3, "start");
    is_at(&mut running, 4);
    assert_eq!(status(&running)["lost"], 0);
    go(&dir, 4);
    running.finish().expect(0);
    expect(&dir, 37);
}

#[test]
fn a_start_before_cuda_is_initialised() {
    let dir = Dir::new();
    let mut running =
        work(&dir, "await=0 launch=30 await=1 launch=50").env("RPD_REMOTE_FROM", "start").start();
    is_at(&mut running, 0);
    ask("start", &[], &running).done();
    wait_for("recording", || (status(&running)["state"] == "recording").then_some(()));
    go(&dir, 0);
    ask_at(&dir, &mut running, 1, "stop");
    running.finish().expect(0);
    expect(&dir, 30);
}

#[test]
fn a_start_while_cuda_is_initialised() {
    let dir = Dir::new();
    let run = work(&dir, "await=0 await=1 launch=30").env("RPD_REMOTE_FROM", "start");
    let mut running = run.env("SIMCUDA_INIT_MS", "1500").env("SIMCUPTI_LOG", dir.path("cupti.log")).start();
    is_at(&mut running, 0);
    go(&dir, 0);
    ask("start", &["--wait"], &running).done();
    wait_for("subscription", || (subscriptions(&dir) > 0).then_some(()));
    go(&dir, 1);
    running.finish().expect(0);
    expect(&dir, 30);
}

/// CUPTI would miss a context that is being created, and the next launch would end the program. The driver tells of primary contexts; of others the
/// recorder sees that devices are mapped meanwhile.
#[test]
fn a_start_while_the_first_context_is_created() {
    for own in [false, true] {
        let dir = Dir::new();
        let run = work(&dir, if own { "own await=1 launch=30" } else { "await=1 launch=30" });
        let mut run = run.env("RPD_REMOTE_FROM", "start").env("SIMCUDA_CONTEXT_MS", "700");
        if own {
            std::fs::create_dir(dir.path("dev")).unwrap();
            std::fs::write(dir.path("dev/nvidia0"), [0; 4096]).unwrap();
            run = run.env("SIMCUDA_DEVICE", dir.path("dev/nvidia0"));
        }
        let mut running = run.start();
        running.wait_for_output("cuInit 0 ");
        ask("start", &["--wait"], &running).done();
        go(&dir, 1);
        running.finish().expect(0);
        expect(&dir, 30);
    }
}

#[test]
fn a_start_does_not_wait_for_a_context_that_takes_long() {
    let dir = Dir::new();
    let run =
        work(&dir, "await=1 launch=30").env("RPD_REMOTE_FROM", "start").env("SIMCUDA_CONTEXT_MS", "8000");
    let mut running = run.env("SIMCUPTI_LOG", dir.path("cupti.log")).start();
    running.wait_for_output("cuInit 0 ");
    ask("start", &["--wait"], &running).done();
    assert_eq!(status(&running)["state"], "recording");
    assert_eq!(subscriptions(&dir), 0, "the context is not there yet");
    is_at(&mut running, 1);
    wait_for("subscription", || (subscriptions(&dir) > 0).then_some(()));
    // A start waits for what is being attached.
    ask("stop", &["--wait"], &running).done();
    ask("start", &["--wait"], &running).done();
    go(&dir, 1);
    running.finish().expect(0);
    expect(&dir, 30);
}

#[test]
fn a_signal_before_and_after_cuda_is_initialised() {
    for first in [0, 1] {
        let dir = Dir::new();
        let what = "await=0 await=1 launch=30 await=2 launch=50";
        let mut running = work(&dir, what).env("RPD_REMOTE", "signal").start();
        is_at(&mut running, 0);
        if first == 0 {
            running.signal(libc::SIGUSR1);
        }
        go(&dir, 0);
        is_at(&mut running, 1);
        if first == 1 {
            running.signal(libc::SIGUSR1);
        }
        wait_for("recording", || (status(&running)["state"] == "recording").then_some(()));
        go(&dir, 1);
        is_at(&mut running, 2);
        running.signal(libc::SIGUSR2);
        wait_for("stop", || (status(&running)["state"] == "stopped").then_some(()));
        go(&dir, 2);
        running.finish().expect(0);
        expect(&dir, 30);
    }
}

#[test]
fn the_recorder_is_preloaded_too() {
    let both = [[recorder(), loader()], [loader(), recorder()]];
    for libraries in both {
        let dir = Dir::new();
        let run = work(&dir, "launch=100 await=1 launch=30").preload(&libraries).env("RPDT_AUTOSTART", "0");
        let mut running = run.start();
        ask_at(&dir, &mut running, 1, "start");
        running.finish().expect(0);
        expect(&dir, 30);
        // And from the beginning on.
        let dir = Dir::new();
        let mut running = work(&dir, "launch=100 await=1 launch=30").preload(&libraries).start();
        ask_at(&dir, &mut running, 1, "stop");
        running.finish().expect(0);
        expect(&dir, 100);
    }
}

#[test]
fn another_tool_that_the_driver_starts_has_its_way() {
    let dir = Dir::new();
    let mut running =
        work(&dir, "launch=100 await=1 launch=30").env("CUDA_INJECTION64_PATH", "/nowhere/tool.so").start();
    is_at(&mut running, 1);
    let pid = running.pid().to_string();
    remote(&["start", &pid]).failed("CUDA_INJECTION64_PATH names another tool");
    go(&dir, 1);
    running.finish().expect(0);
    assert!(!dir.path("trace.rpd").exists());
}
