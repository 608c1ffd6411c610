//! ROCr 5.2 to 5.7 abort a program whose intercepted queue is full while one doorbell covers several packets
//! (intercept_queue.cpp, fixed in 6.0). The recorder asks for larger queues.

use crate::harness::{Dir, Expected, Loading, Run, aql_code_object, program};

#[test]
fn a_small_queue_filled_to_the_brim_runs_with_the_recorder() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("aql")).arg(aql_code_object("gfx900")).recorded(Loading::ToolsLib);
    run.run().expect(0);
    let expected = Expected::of(&dir.logs()[0].1);
    assert_eq!(expected.kernels(), 100 + 1000 + 2 + 640 + 4000);
    expected.assert_equals(&dir.trace("trace.rpd"));
}

#[test]
fn the_same_program_aborts_under_a_tool_that_keeps_the_size() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("aql")).arg(aql_code_object("gfx900"));
    let ran = run.env("HSA_TOOLS_LIB", program("plain_interceptor")).run();
    ran.expect_signal(libc::SIGABRT);
    assert!(ran.stderr.contains("overflow_.empty()"), "{ran}");
}
