//! Door D, HIP's functions by their names: the same rows as by HIP's own callbacks, and no HIP where there is none.

use std::ffi::OsString;

use crate::harness::{
    Dir, Loading, Run, Trace, aql_code_object, hip_symbols, program, recorder, software_gpu, tool,
};

/// LD_PRELOAD with librpd_hip.so, as `rpd record --hip-door symbols` sets it.
fn with_symbols() -> OsString {
    std::env::join_paths([recorder(), hip_symbols(), software_gpu()]).unwrap()
}

/// HIP 5.2's callbacks say nothing of it.
const UNTOLD: &str = "hipGetDeviceCount";

/// Every call but [`UNTOLD`] with its arguments, launch, copy and, if asked for, ops, but for addresses; sorted.
fn calls(trace: &Trace, ops: bool) -> Vec<String> {
    let linked = if ops { "A.id" } else { "null" };
    let sql = format!(
        "
        select A.apiName || ' ' || A.args
            || ' kernel ' || coalesce(N.string || ' ' || K.gridX || ' ' || K.workgroupX || ' ' || K.groupSegmentSize, '-')
            || ' copy ' || coalesce(C.size || ' ' || C.width || ' ' || C.height || ' ' || C.kind || ' ' || C.sync || ' ' || C.pinned, '-')
            || ' ops ' || coalesce((select group_concat(what) from (
                select O.opType || ':' || O.description as what
                    from rocpd_api_ops L join op O on O.id = L.op_id where L.api_id = {linked} order by 1)), '-')
        from api A
            left join rocpd_kernelapi K on K.api_ptr_id = A.id
            left join rocpd_string N on N.id = K.kernelName_id
            left join rocpd_copyapi C on C.api_ptr_id = A.id"
    );
    let mut calls: Vec<String> = trace.texts(&sql).iter().map(|call| without_addresses(call)).collect();
    calls.retain(|call| !call.starts_with(UNTOLD));
    calls.sort();
    calls
}

/// `text` with every hexadecimal number as `0x`.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + "0x" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

fn door(trace: &Trace) -> Vec<String> {
    trace.texts("select value from rocpd_metadata where tag like 'session::%::hip_door'")
}

#[test]
fn the_rows_are_those_of_hips_own_callbacks() {
    // Threads that share a queue ring its doorbell for each other, so whose call an op is linked to is not the doors' matter there.
    for (name, argument, threads) in [
        ("doors", Some(aql_code_object("gfx900")), true),
        ("streams", None, true),
        ("copies", None, false),
        ("graph", None, false),
    ] {
        let dir = Dir::new();
        let run = || argument.iter().fold(Run::new(&dir, program(name)), |run, argument| run.arg(argument));
        let plain = run().run();
        let callbacks = run().env("RPDT_FILENAME", "callbacks.rpd").recorded(Loading::Preload).run();
        let symbols = run().env("RPDT_FILENAME", "symbols.rpd").env("LD_PRELOAD", with_symbols()).run();
        for ran in [&callbacks, &symbols] {
            assert_eq!(ran.expect(0).expect_silent().stdout, plain.stdout, "{ran}");
        }
        let (callbacks, symbols) = (dir.trace("callbacks.rpd"), dir.trace("symbols.rpd"));
        assert_eq!(door(&callbacks), ["callbacks"], "{name}");
        assert_eq!(door(&symbols), ["symbols"], "{name}");
        let (by_symbols, by_callbacks) = (calls(&symbols, !threads), calls(&callbacks, !threads));
        let different = by_symbols.iter().zip(&by_callbacks).find(|(one, other)| one != other);
        assert_eq!(different, None, "{name}");
        assert_eq!(by_symbols.len(), by_callbacks.len(), "{name}");
        let linked = |trace: &Trace| trace.number("select count(*) from rocpd_api_ops");
        assert_eq!(linked(&symbols), linked(&callbacks), "{name}");
        assert_eq!(symbols.lost().len(), 0, "{:?}", symbols.lost());
    }
}

#[test]
fn hips_own_times_know_their_kernels() {
    let dir = Dir::new();
    let run = || Run::new(&dir, program("graph")).env("RPDT_TIMING", "hip");
    run().env("RPDT_FILENAME", "callbacks.rpd").recorded(Loading::Preload).run().expect(0);
    run().env("RPDT_FILENAME", "symbols.rpd").env("LD_PRELOAD", with_symbols()).run().expect(0);
    let (callbacks, symbols) = (dir.trace("callbacks.rpd"), dir.trace("symbols.rpd"));
    assert_eq!(
        (door(&callbacks), door(&symbols)),
        (vec!["callbacks".to_string()], vec!["symbols".to_string()])
    );
    assert_eq!(calls(&symbols, true), calls(&callbacks, true));
}

#[test]
fn launches_of_threads_and_modules_have_their_own_kernels() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("doors")).arg(aql_code_object("gfx900"));
    run.recorded(Loading::RpdRecord).record_option("--hip-door=symbols").run().expect(0);
    let trace = dir.trace("trace.rpd");
    assert_eq!(door(&trace), ["symbols"]);
    // 4 threads of 8 rounds: `add` with odd numbers of workgroups, the module's kernel with even ones, each once and on a thread of its own.
    let wrong = "select count(*) from rocpd_kernelapi K join rocpd_string N on N.id = K.kernelName_id
        where (N.string like 'add(%') != (K.gridX % 2 = 1)";
    assert_eq!(trace.number(wrong), 0);
    let launched = "select count(*) from rocpd_kernelapi K join rocpd_api_ops L on L.api_id = K.api_ptr_id
        join api A on A.id = K.api_ptr_id
        join rocpd_string N on N.id = K.kernelName_id
        where (A.apiName = 'hipLaunchKernel' and N.string like 'add(%')
            or (A.apiName = 'hipModuleLaunchKernel' and N.string like 'aql_count%')";
    assert_eq!(trace.number(launched), 64);
    assert_eq!(trace.number("select count(distinct gridX) from rocpd_kernelapi where gridX <= 64"), 64);
    assert_eq!(
        trace.number(
            "select count(distinct tid) from api where apiName in ('hipLaunchKernel', 'hipModuleLaunchKernel')"
        ),
        4
    );
}

#[test]
fn a_process_without_hip_has_none() {
    let ask = |run: Run<'_>| run.run().expect(0).stdout.clone();
    let dir = Dir::new();
    let (asking, none) = (program("ask_for_hip"), "no HIP\n");
    assert_eq!(ask(Run::new(&dir, &asking)), none);
    assert_eq!(
        ask(Run::new(&dir, &asking).recorded(Loading::Preload)),
        none,
        "the recorder has none of HIP's names"
    );
    // Asked for, they are there; what they say is that there is no GPU.
    let there = ask(Run::new(&dir, &asking).env("LD_PRELOAD", with_symbols()));
    assert_eq!(there, "status 100, -1 devices\nstatus 100\n");
    assert_eq!(dir.names(), Vec::<String>::new(), "and nothing is recorded");
}

#[test]
fn hip_that_a_program_has_loaded_for_itself_is_found() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("ask_for_hip")).arg("libamdhip64.so.5");
    let ran = run.env("LD_PRELOAD", with_symbols()).run();
    assert_eq!(ran.expect(0).stdout, "status 0, 1 devices\nstatus 0\n", "{ran}");
    let trace = dir.trace("trace.rpd");
    assert_eq!(
        trace.texts("select apiName from api order by start"),
        ["hipGetDeviceCount", "hipDeviceSynchronize"]
    );
}

#[test]
fn without_the_recorder_calls_go_to_hip() {
    let dir = Dir::new();
    let preload = std::env::join_paths([hip_symbols(), software_gpu()]).unwrap();
    let plain = Run::new(&dir, program("streams")).run();
    let ran = Run::new(&dir, program("streams")).env("LD_PRELOAD", preload).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, plain.stdout, "{ran}");
}

#[test]
fn the_library_has_names_of_hip_alone() {
    let names = tool("nm", &["-D".as_ref(), "--defined-only".as_ref(), hip_symbols().as_os_str()]);
    let names: Vec<&str> = names.lines().filter_map(|line| line.split(' ').next_back()).collect();
    let of_hip = |name: &&str| name.starts_with("hip") || name.starts_with("__hip");
    assert!(names.len() > 300 && names.iter().all(of_hip), "{names:?}");
    let dynamic = tool("readelf", &["-dW".as_ref(), hip_symbols().as_os_str()]);
    assert!(dynamic.contains("NODELETE") && !dynamic.contains("amdhip64"), "{dynamic}");
}
