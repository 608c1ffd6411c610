//! Workloads of libraries that only newer distributions pack: `make matrix` runs these where they are.

use crate::harness::{Dir, Expected, Loading, Ran, Run, Trace, program};

/// Runs the program without the recorder and with it; the file equals the device's log, every kernel has its name.
#[track_caller]
fn recorded<'a>(run: impl Fn(&'a Dir) -> Run<'a>, without: &'a Dir, with: &'a Dir) -> (Ran, Ran, Trace) {
    let plain = run(without).run();
    plain.expect(0);
    let ran = run(with).recorded(Loading::Preload).env("RPDT_TICKS", "1").run();
    ran.expect(0);
    let trace = with.trace("trace.rpd");
    trace.check_integrity();
    // Calls of HIP by destructors of thread-local data are counted, not recorded: rocBLAS 6.4 frees its handles so.
    let lost = trace.lost().into_iter().filter(|(cause, _)| !cause.ends_with("::ending_thread"));
    assert_eq!(lost.collect::<Vec<_>>(), []);
    let logs = with.logs();
    assert_eq!(logs.len(), 1);
    let expected = Expected::of(&logs[0].1);
    assert!(expected.kernels() > 0);
    expected.assert_equals(&trace);
    assert_eq!(trace.number("select count(*) from kernel where kernelName like 'kernel object %'"), 0);
    (plain, ran, trace)
}

#[test]
#[ignore = "make matrix: needs librccl-dev"]
fn rccl_adds_what_two_gpus_have() {
    let (without, with) = (Dir::new(), Dir::new());
    let (plain, ran, trace) = recorded(|dir| Run::new(dir, program("rccl")).gpus(2), &without, &with);
    assert_eq!(plain.stdout, "the sum is right on 2 GPUs\n");
    assert_eq!(ran.stdout, plain.stdout);
    // RCCL misses the kernel's driver, in words, and not always in as many.
    assert!(ran.stderr.lines().all(|line| plain.stderr.contains(line)), "{ran}");
    let kernels = "select count(distinct gpuId) from op where description like 'ncclKernel%'";
    assert_eq!(trace.number(kernels), 2);
}

#[test]
#[ignore = "make matrix: needs librocblas-dev"]
fn rocblas_multiplies_matrices() {
    let (without, with) = (Dir::new(), Dir::new());
    let (plain, ran, trace) = recorded(|dir| Run::new(dir, program("rocblas")), &without, &with);
    assert_eq!(plain.stdout, "the product is right\n");
    assert_eq!(ran.expect_silent().stdout, plain.stdout);
    assert!(trace.number("select count(*) from kernel where kernelName like 'Cijk_%'") >= 1);
}

#[test]
#[ignore = "make matrix: needs llama.cpp-tests and libggml0-backend-hip"]
fn llama_cpp_adds_tensors() {
    const TEST: &str = "/usr/libexec/x86_64-linux-gnu/llama.cpp-tests/test-backend-ops";
    let (without, with) = (Dir::new(), Dir::new());
    let run = |dir| ["test", "-o", "SUM_ROWS"].into_iter().fold(Run::new(dir, TEST), Run::arg);
    let (plain, ran, _) = recorded(run, &without, &with);
    for ran in [&plain, &ran] {
        assert!(ran.stdout.contains("ROCm0"), "{ran}");
        assert!(ran.stdout.contains("tests passed"), "{ran}");
    }
}
