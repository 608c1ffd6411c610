//! Kernels that never end, devices that run out of memory; children; ends of all kinds. The program sees what it would see without us.

use crate::harness::{Dir, Expected, Loading, Ran, Run, Trace, program};

/// Launches of the kernel that never ends.
const LAUNCHES: &str = "select count(*) from rocpd_kernelapi join rocpd_string S on S.id = kernelName_id \
     where string like 'hanging_kernel(%'";

const HANGS: &str = "[[fault]]\nkind = \"hang\"\nkernel = \"hanging_kernel\"\n";

fn hanging<'a>(dir: &'a Dir, how: &str) -> Run<'a> {
    Run::new(dir, program("hang")).arg(how).config(HANGS).recorded(Loading::Preload)
}

/// Eight kernels and their copy and fill are there; of the one that never ended only its launch is.
#[track_caller]
fn check_hung(trace: &Trace, ran: &Ran) {
    assert_eq!(ran.stdout, "launched\n", "{ran}");
    let kernels =
        trace.texts("select distinct kernelName || ' ' || count(*) from kernel group by kernelName");
    assert_eq!(kernels, ["short_kernel(int*) 8"], "{ran}");
    trace.check_integrity();
}

#[test]
fn a_kernel_that_never_ends_and_an_alarm() {
    let dir = Dir::new();
    let running = hanging(&dir, "alarm").start();
    dir.wait_for_rows("trace.rpd", "select count(*) from dispatch", 8);
    // A second after it was launched the file names it, while the process lives.
    dir.wait_for_rows("trace.rpd", LAUNCHES, 1);
    dir.touch("go");
    let ran = running.finish();
    ran.expect_signal(libc::SIGALRM).expect_silent();
    let trace = dir.trace("trace.rpd");
    check_hung(&trace, &ran);
    assert_eq!((trace.number(LAUNCHES), trace.number("select count(*) from rocpd_kernelapi")), (1, 9));
}

#[test]
fn a_kernel_that_never_ends_and_an_exit() {
    for how in ["exit", "_exit"] {
        let dir = Dir::new();
        let ran = hanging(&dir, how).run();
        ran.expect(3);
        let trace = dir.trace("trace.rpd");
        check_hung(&trace, &ran);
        assert_eq!(trace.lost().into_values().collect::<Vec<_>>(), ["1"], "{ran}");
        assert_eq!(trace.metadata("session::0::lost::incomplete").len(), 1);
        assert!(ran.stderr.lines().count() == 1 && ran.stderr.contains("had not completed"), "{ran}");
        let launches = (trace.number(LAUNCHES), trace.number("select count(*) from rocpd_kernelapi"));
        assert_eq!(launches, (1, 9), "its launch is recorded, and each once");
    }
}

#[test]
fn an_allocation_that_fails_is_the_programs_own_error() {
    let run =
        |dir| Run::new(dir, program("copies")).config("[[fault]]\nkind = \"allocation\"\nabove_mb = 32\n");
    let (dir, with) = (Dir::new(), Dir::new());
    let plain = run(&dir).run();
    let ran = run(&with).recorded(Loading::Preload).run();
    plain.expect(1);
    assert!(plain.stderr.contains("hipErrorOutOfMemory"), "{plain}");
    assert_eq!(
        (plain.status, &plain.stdout, &plain.stderr),
        (ran.status, &ran.stdout, &ran.stderr),
        "{plain}{ran}"
    );
}

#[test]
fn a_machine_without_a_gpu() {
    // A mistake in the configuration: there is no GPU then.
    let run = |dir| Run::new(dir, program("graph")).env("SIMGPU_GPUS", "many");
    let (dir, with) = (Dir::new(), Dir::new());
    let plain = run(&dir).run();
    let ran = run(&with).recorded(Loading::Preload).run();
    plain.expect(1);
    assert_eq!(
        (plain.status, &plain.stdout, &plain.stderr),
        (ran.status, &ran.stdout, &ran.stderr),
        "{plain}{ran}"
    );
    assert_eq!(with.names(), Vec::<String>::new());
}

#[test]
fn children_leave_the_parents_trace_alone() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("forks")).recorded(Loading::Preload).run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "65 kernels, 5 children\n", "{ran}");
    let trace = dir.trace("trace.rpd");
    let log = dir.logs().into_iter().find(|(pid, _)| *pid == ran.pid).unwrap().1;
    Expected::of(&log).assert_equals(&trace);
    assert_eq!(trace.session_count(), 1, "children that do nothing have no session");
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    trace.check_integrity();
}

#[test]
fn a_runtime_that_finds_no_nodes() {
    let run = |dir| Run::new(dir, program("demo")).config("[device]\ntopology = false\n");
    let (dir, with) = (Dir::new(), Dir::new());
    let plain = run(&dir).run();
    plain.expect(1);
    for loading in Loading::ALL.into_iter().filter(|loading| *loading != Loading::RpdRecord) {
        let ran = run(&with).recorded(loading).run();
        let same = |ran: &Ran| (ran.status, ran.stdout.clone(), ran.stderr.clone());
        assert_eq!(same(&plain), same(&ran), "{loading:?}{plain}{ran}");
    }
}
