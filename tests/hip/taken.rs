//! Another profiler takes HIP's callbacks away from the recorder.

use crate::harness::{Dir, Loading, Ran, Run, Trace, hip_symbols, program, recorder, rpd, tool};

fn fact(trace: &Trace, name: &str) -> String {
    trace.metadata(&format!("session::0::{name}")).into_values().next().unwrap_or_default()
}

/// Kernels that calls are known of, by name, with their number.
fn linked(trace: &Trace) -> Vec<String> {
    trace.texts(
        "select description || ' ' || count(*) from op join rocpd_api_ops on op_id = op.id join api on api.id = api_id
         where apiName = 'hipLaunchKernel' group by description order by 1",
    )
}

#[track_caller]
fn expect_line(ran: &Ran, says: &str) {
    ran.expect(0);
    let says = format!("another profiler seems to have taken HIP's callbacks: {says}");
    assert!(ran.stderr.contains(&says) && ran.stderr.lines().count() == 1, "{ran}");
}

#[test]
fn calls_go_on_by_the_names_of_functions() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("hip_taken")).preload(&[recorder(), hip_symbols()]);
    let ran = run.env("RPDT_HIP_CALLS", "callbacks").run();
    expect_line(&ran, "its calls are recorded by the names of its functions from now on");
    let trace = dir.trace("trace.rpd");
    assert_eq!(fact(&trace, "hip_door"), "callbacks,symbols");
    // It is noticed at the flush, or a while before.
    let (meanwhile, others): (Vec<String>, Vec<String>) =
        linked(&trace).into_iter().partition(|kernels| kernels.starts_with("meanwhile"));
    assert_eq!(others, ["after(int*) 100", "before(int*) 100"]);
    let by_names: i64 =
        meanwhile.iter().map(|kernels| kernels.rsplit(' ').next().unwrap().parse::<i64>().unwrap()).sum();
    assert!(by_names <= 50, "of the first 64 kernels there are no calls");
    assert_eq!(fact(&trace, "ops_without_call"), (150 - by_names).to_string());
    // Newer versions of HIP do it by a kernel, which does not say where it reads and writes.
    let copies = "select count(*) from op join rocpd_api_ops on op_id = op.id where opType like 'Copy%'";
    assert_eq!(trace.number(copies), 1);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
}

#[test]
fn without_those_the_user_gets_a_line() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("hip_taken")).recorded(Loading::Preload).run();
    expect_line(&ran, "its calls are not recorded from now on");
    let trace = dir.trace("trace.rpd");
    assert_eq!(fact(&trace, "hip_door"), "callbacks,none");
    assert_eq!(linked(&trace), ["before(int*) 100"]);
    let kernels = trace.number("select count(*) from op where opType = 'KernelExecution'");
    assert_eq!(kernels, 350, "they are recorded all the same");
}

#[test]
fn operations_without_a_call_are_counted() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("hip_taken")).recorded(Loading::Preload);
    let ran = run.env("RPDT_HIP_APIS", "-hipLaunchKernel").run();
    ran.expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    // 350 kernels, and the copy at the end.
    assert_eq!(fact(&trace, "ops_without_call"), "351");
    let info = tool(rpd().to_str().unwrap(), &["info".as_ref(), trace.path.as_os_str()]);
    assert!(info.contains("\nlinks   351 of 351 operations are linked to no call of HIP\n"), "{info}");
}
