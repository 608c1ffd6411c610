//! Symbol interposition of HIP's functions: the same rows as by HIP's own callbacks, and no HIP where there is none.

use std::path::PathBuf;

use crate::harness::{
    Dir, Loading, Run, Trace, aql_code_object, hip_library, hip_symbols, library_symbols, newer_rocm,
    program, recorder, tool,
};

/// HIP 5.2's callbacks say nothing of them.
const WITHOUT_CALLBACK: [&str; 2] = ["hipGetDeviceCount ", "hipMemcpyFromArray "];

/// Every call but those [`WITHOUT_CALLBACK`] with its arguments, launch, copy and ops, but for addresses; sorted.
fn calls(trace: &Trace) -> Vec<String> {
    let sql = "
        select A.apiName || ' ' || A.args
            || ' kernel ' || coalesce(N.string || ' ' || K.gridX || ' ' || K.workgroupX || ' ' || K.groupSegmentSize, '-')
            || ' copy ' || coalesce(C.size || ' ' || C.width || ' ' || C.height || ' ' || C.kind || ' ' || C.sync || ' ' || C.pinned, '-')
            || ' ops ' || coalesce((select group_concat(what) from (
                select O.opType || ':' || O.description as what
                    from rocpd_api_ops L join op O on O.id = L.op_id where L.api_id = A.id order by 1)), '-')
        from api A
            left join rocpd_kernelapi K on K.api_ptr_id = A.id
            left join rocpd_string N on N.id = K.kernelName_id
            left join rocpd_copyapi C on C.api_ptr_id = A.id";
    let mut calls: Vec<String> = trace.texts(sql).iter().map(|call| without_addresses(call)).collect();
    calls.retain(|call| !WITHOUT_CALLBACK.iter().any(|name| call.starts_with(name)));
    calls.sort();
    calls
}

/// `text` with every hexadecimal number as `0x`.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + "0x" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

fn observed_by(trace: &Trace) -> Vec<String> {
    trace.texts("select value from rocpd_metadata where tag like 'session::%::hip_door'")
}

#[test]
fn the_rows_are_those_of_hips_own_callbacks() {
    for (name, argument) in
        [("symbols", Some(aql_code_object("gfx900"))), ("streams", None), ("copies", None), ("graph", None)]
    {
        let dir = Dir::new();
        let run = || argument.iter().fold(Run::new(&dir, program(name)), |run, argument| run.arg(argument));
        let plain = run().run();
        let callbacks = run().env("RPDT_FILENAME", "callbacks.rpd").recorded(Loading::Preload).run();
        let symbols = run().env("RPDT_FILENAME", "symbols.rpd").recorded(Loading::Symbols).run();
        for ran in [&callbacks, &symbols] {
            assert_eq!(ran.expect(0).expect_silent().stdout, plain.stdout, "{ran}");
        }
        let (callbacks, symbols) = (dir.trace("callbacks.rpd"), dir.trace("symbols.rpd"));
        assert_eq!(observed_by(&callbacks), ["callbacks"], "{name}");
        assert_eq!(observed_by(&symbols), ["symbols"], "{name}");
        let (by_symbols, by_callbacks) = (calls(&symbols), calls(&callbacks));
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
    run().env("RPDT_FILENAME", "symbols.rpd").recorded(Loading::Symbols).run().expect(0);
    let (callbacks, symbols) = (dir.trace("callbacks.rpd"), dir.trace("symbols.rpd"));
    assert_eq!(
        (observed_by(&callbacks), observed_by(&symbols)),
        (vec!["callbacks".to_string()], vec!["symbols".to_string()])
    );
    assert_eq!(calls(&symbols), calls(&callbacks));
}

#[test]
fn launches_of_threads_and_modules_have_their_own_kernels() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("symbols")).arg(aql_code_object("gfx900"));
    run.recorded(Loading::RpdRecord).record_option("--hip-calls=symbols").run().expect(0);
    let trace = dir.trace("trace.rpd");
    assert_eq!(observed_by(&trace), ["symbols"]);
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
    assert_eq!(ask(Run::new(&dir, &asking).recorded(Loading::Symbols)), none, "nor are there others");
    // Who only refers to them has them; what they say is that there is no GPU.
    let weak = ask(Run::new(&dir, program("weak_hip")).recorded(Loading::Symbols));
    assert_eq!(weak, "status 100\n");
    assert_eq!(dir.names(), Vec::<String>::new(), "and nothing is recorded");
}

#[test]
fn hip_that_is_loaded_is_found_by_whom_it_is_loaded_for() {
    let (hip, library) = (PathBuf::from(hip_library()), program("ask_for_hip_library"));
    let found = "status 0, 1 devices\nstatus 0\n";
    for (loaded, scope, answer) in [
        (&hip, Some("all"), format!("program's handle 1\n{found}")),
        (&hip, None, "program's handle 0\nno HIP\n".to_string()),
        (&library, None, format!("program's handle 0\n{found}")),
    ] {
        let (dir, other) = (Dir::new(), Dir::new());
        let run = |dir| {
            scope.iter().fold(Run::new(dir, program("ask_for_hip")).arg(loaded), |run, scope| run.arg(scope))
        };
        assert_eq!(run(&other).run().expect(0).stdout, answer, "without us");
        let ran = run(&dir).recorded(Loading::Symbols).run();
        assert_eq!(ran.expect(0).expect_silent().stdout, answer, "{ran}");
        if answer.ends_with(found) {
            let calls = dir.trace("trace.rpd").texts("select apiName from api order by start");
            assert_eq!(calls, ["hipGetDeviceCount", "hipDeviceSynchronize"]);
        }
    }
}

/// Sizes of the program's allocations, as its calls have them.
fn sizes(trace: &Trace) -> Vec<String> {
    trace.texts(
        "select substr(args, instr(args, 'size=') + 5) from api where apiName = 'hipMalloc' order by start",
    )
}

#[test]
fn functions_that_were_looked_up_are_the_linked_ones() {
    let dir = Dir::new();
    let plain = Run::new(&dir, program("look_up")).run();
    assert!(plain.expect(0).stdout.contains("one function: 1\n"), "{plain}");
    let all: Vec<String> = (1..=7).map(|number| format!("0x100{number}")).collect();
    for how in ["auto", "callbacks", "symbols"] {
        let run = Run::new(&dir, program("look_up")).recorded(Loading::RpdRecord);
        let ran = run.record_option(&format!("--hip-calls={how}")).record_option("--force").run();
        assert_eq!(ran.expect(0).stdout, plain.stdout, "{how}");
        let trace = dir.trace("trace.rpd");
        // From HIP 5.3 on its callbacks cost the program next to nothing.
        let best = if newer_rocm() { "callbacks" } else { "symbols" };
        assert_eq!(observed_by(&trace), [if how == "auto" { best } else { how }]);
        assert_eq!(sizes(&trace), all, "{how}");
        assert_eq!(trace.number("select count(*) from api where apiName = 'hipFree'"), 7, "{how}");
    }
}

#[test]
fn a_source_of_calls_that_is_not_there_is_one_line() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("look_up")).recorded(Loading::Preload).env("RPDT_HIP_CALLS", "symbols");
    let ran = run.run();
    assert_eq!(ran.expect(0).stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("RPDT_HIP_CALLS=symbols needs librpd_hip.so in LD_PRELOAD"), "{ran}");
    let trace = dir.trace("trace.rpd");
    assert_eq!((observed_by(&trace), sizes(&trace).len()), (vec!["callbacks".to_string()], 7));
}

#[test]
fn what_others_look_up_is_as_without_us() {
    let dir = Dir::new();
    // A library behind ours has its own idea of what comes next.
    let preload = [recorder(), hip_symbols(), program("next_getppid")];
    let ran = Run::new(&dir, program("look_up")).preload(&preload).run();
    assert!(ran.expect(0).expect_silent().stdout.ends_with("getppid 1\n"), "{ran}");
    assert_eq!(sizes(&dir.trace("trace.rpd")).len(), 7);
}

#[test]
fn a_program_with_a_dlsym_of_its_own() {
    let (dir, other) = (Dir::new(), Dir::new());
    let plain = Run::new(&other, program("look_up_by_own")).run();
    let ran = Run::new(&dir, program("look_up_by_own")).recorded(Loading::Symbols).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, plain.expect(0).stdout, "{ran}");
    // It asks past us: its own handle has HIP's own function. Everything else is seen.
    let sizes = sizes(&dir.trace("trace.rpd"));
    assert_eq!(sizes, ["0x1001", "0x1003", "0x1004", "0x1005", "0x1006", "0x1007"]);
}

/// Runs a program that calls hipGetDeviceCount once, with the recorder as `with` has it: it says what it says without us.
#[track_caller]
fn counts_devices(name: &str, says: &str, with: impl for<'a> FnOnce(Run<'a>) -> Run<'a>) {
    let dir = Dir::new();
    let ran = with(Run::new(&dir, program(name))).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, says, "{ran}");
    assert_eq!(dir.trace("trace.rpd").texts("select apiName from api"), ["hipGetDeviceCount"]);
}

/// What own_iterate.c says.
const COUNTED: &str = "status 0, 1 devices, getppid 1\n";

#[test]
fn a_program_with_a_dl_iterate_phdr_of_its_own() {
    counts_devices("own_iterate", COUNTED, |run| run.recorded(Loading::Symbols));
}

#[test]
fn names_of_others_in_front_are_not_taken_for_ours() {
    let preload = [recorder(), program("in_front"), hip_symbols()];
    counts_devices("own_iterate", COUNTED, |run| run.preload(&preload));
    let printed = "finds its own 1 1\nstatus 0, 1 devices\n";
    counts_devices("in_a_variable", printed, |run| run.recorded(Loading::Symbols));
}

#[test]
fn a_look_up_before_the_library_is_relocated() {
    for names in [hip_symbols(), library_symbols()] {
        let dir = Dir::new();
        let preload = [recorder(), names, program("indirect")];
        let ran = Run::new(&dir, program("noop")).preload(&preload).run();
        assert_eq!(ran.expect(0).expect_silent().stdout, "nothing to do with a GPU\n", "{ran}");
    }
}

#[test]
fn a_first_call_waits_for_no_thread_that_loads_a_library() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("constructor")).arg(program("constructor_library"));
    let ran = run.recorded(Loading::Symbols).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, "status 0\nstatus 0\nstatus 0\n", "{ran}");
    let calls = dir.trace("trace.rpd").texts("select apiName from api order by start");
    assert_eq!(calls, ["hipMalloc", "hipFree", "hipGetDeviceCount"]);
}

#[test]
fn without_the_recorder_calls_go_to_hip() {
    let dir = Dir::new();
    let plain = Run::new(&dir, program("streams")).run();
    let ran = Run::new(&dir, program("streams")).preload(&[hip_symbols()]).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, plain.stdout, "{ran}");
}

#[test]
fn the_library_has_names_of_hip_and_of_the_loader_alone() {
    let names = tool("nm", &["-D".as_ref(), "--defined-only".as_ref(), hip_symbols().as_os_str()]);
    let names: Vec<&str> = names.lines().filter_map(|line| line.split(' ').next_back()).collect();
    let known = |name: &&str| {
        let name = name.trim_start_matches("_Z").trim_start_matches(|digit: char| digit.is_ascii_digit());
        name.starts_with("hip") || name.starts_with("__hip") || ["dlclose", "dlsym", "dlvsym"].contains(&name)
    };
    assert!(names.len() > 300 && names.iter().all(known), "{names:?}");
    // Of HIP's own, all that are of functions which have wrappers: those of C++ too.
    let hip = tool("nm", &["-D", "--defined-only", "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"]);
    let exported = hip.lines().filter_map(|line| line.split(' ').next_back()?.split('@').next());
    let plain = |symbol: &str| {
        let symbol = symbol.trim_start_matches("_Z").trim_start_matches(|digit: char| digit.is_ascii_digit());
        names.iter().find(|name| symbol.starts_with(*name) && symbol != **name).copied()
    };
    let missing = exported.filter(|symbol| symbol.starts_with("_Z") && plain(symbol).is_some());
    let missing: Vec<&str> = missing.filter(|symbol| !names.contains(symbol)).collect();
    assert_eq!(missing, Vec::<&str>::new());
    let dynamic = tool("readelf", &["-dW".as_ref(), hip_symbols().as_os_str()]);
    assert!(dynamic.contains("NODELETE") && !dynamic.contains("amdhip64"), "{dynamic}");
}

/// A function of the program's, or of another preloaded library, has the name of one that the library jumps to or speaks of.
#[test]
fn no_relocation_of_the_library_is_by_a_name_that_it_has() {
    for library in [hip_symbols(), library_symbols()] {
        let symbols = tool("nm", &["-D".as_ref(), "--defined-only".as_ref(), library.as_os_str()]);
        let own: Vec<&str> = symbols.lines().filter_map(|line| line.split(' ').next_back()).collect();
        assert!(own.contains(&"dlsym") && own.len() > 100, "{own:?}");
        let relocations = tool("readelf", &["-rW".as_ref(), library.as_os_str()]);
        let named = relocations.lines().filter_map(|line| line.split_whitespace().nth(4)?.split('@').next());
        let named: Vec<&str> = named.filter(|name| own.contains(name)).collect();
        assert_eq!(named, Vec::<&str>::new(), "{}", library.display());
    }
}
