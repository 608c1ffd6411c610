//! RPDT_STACKFRAMES: who made a call, from every kind of place that a walk over a stack meets (tests/programs/frames.c).

use std::collections::BTreeMap;

use crate::harness::{Dir, Loading, Run, Trace, program};

/// A program that calls HIP from these places, recorded with stack frames.
fn frames<'a>(dir: &'a Dir, name: &str, places: &[&str]) -> Run<'a> {
    let run = places.iter().fold(Run::new(dir, program(name)), |run, place| run.arg(*place));
    run.recorded(Loading::Preload).env("RPDT_STACKFRAMES", "1")
}

/// The stack of the one hipMalloc of that size, nearest first.
#[track_caller]
fn stack(trace: &Trace, size: u32) -> Vec<String> {
    let calls = trace.rows(
        &format!("select id from api where apiName = 'hipMalloc' and args like '% | size={size:#x}'"),
        |row| row.get::<_, i64>(0),
    );
    assert_eq!(calls.len(), 1, "hipMalloc of {size:#x}");
    let sql = format!(
        "select depth, string from rocpd_stackframe F join rocpd_string N on N.id = name_id \
         where api_ptr_id = {} order by depth",
        calls[0]
    );
    let frames = trace.rows(&sql, |row| Ok((row.get::<_, isize>(0)? as usize, row.get::<_, String>(1)?)));
    assert!(frames.iter().enumerate().all(|(place, (depth, _))| place == *depth), "{frames:?}");
    frames.into_iter().map(|(_, name)| name).collect()
}

/// `function file:line` of the line that ends in a comment with that word.
fn at(function: &str, source: &str, word: &str) -> String {
    let path = format!("{}/programs/{source}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text.lines().position(|line| line.ends_with(&format!("/* {word} */"))).unwrap() + 1;
    format!("{function} {path}:{line}")
}

/// The stack begins with these frames.
#[track_caller]
fn begins(stack: &[String], frames: &[String]) {
    assert_eq!(&stack[..frames.len().min(stack.len())], frames, "{stack:#?}");
}

#[test]
fn frames_in_order_with_function_file_and_line() {
    for loading in ["callbacks", "symbols"] {
        let dir = Dir::new();
        let run = Run::new(&dir, program("frames")).arg("calls").arg("threads").recorded(Loading::RpdRecord);
        let ran = run.record_option("--stackframes").record_option(&format!("--hip-calls={loading}")).run();
        assert_eq!(ran.expect(0).stdout, "calls\nthreads\n");
        in_order(&dir.trace("trace.rpd"));
    }
}

#[track_caller]
fn in_order(trace: &Trace) {
    trace.check_integrity();
    let own = ["take", "inlined", "outer"].map(|name| at(name, "frames.c", name));
    let here = stack(trace, 0x1001);
    begins(&here, &own);
    assert!(here[3].starts_with("main "), "{here:#?}");
    assert!(
        here.iter().any(|name| name.starts_with("_start (")),
        "to the beginning of the program: {here:#?}"
    );
    for size in [0x2001, 0x2002] {
        begins(&stack(trace, size), &[&own[..], &[at("on_thread", "frames.c", "on_thread")]].concat());
    }
    // The view says which call it was, and the string clean-up of the original tools knows the column.
    let nearest = "select count(*) from stackframe where string = 'hipMalloc' and depth = 0 and \"string:1\" like 'take %'";
    assert_eq!(trace.number(nearest), 3);
    let known = "select value from rocpd_metadata where tag = 'references::rocpd_string.id'";
    assert!(trace.texts(known).contains(&"(\"rocpd_stackframe\", \"name_id\")".to_string()));
}

#[test]
fn without_symbols_module_and_address() {
    let dir = Dir::new();
    frames(&dir, "frames_stripped", &["calls", "threads"]).run().expect(0);
    let trace = dir.trace("trace.rpd");
    let (one, two) = (stack(&trace, 0x2001), stack(&trace, 0x2002));
    assert_eq!(one, two, "two threads came the same way");
    for name in &stack(&trace, 0x1001)[..3] {
        let address = name.strip_prefix("frames_stripped+0x").unwrap_or_else(|| panic!("{name}"));
        assert!(u64::from_str_radix(address, 16).unwrap() > 0, "{name}");
    }
}

#[test]
fn unusual_places() {
    let dir = Dir::new();
    // HIP begins in `calls`: 16 KB of stack are not enough for that, recorded or not.
    let places = ["calls", "deep", "small", "signal", "altstack", "coroutine", "made"];
    let ran = frames(&dir, "frames", &places).run();
    assert_eq!(ran.expect(0).stdout, places.map(|place| format!("{place}\n")).concat());
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();

    let deep = stack(&trace, 0x3001);
    assert_eq!(deep.len(), 128, "cut: the nearest ones are kept");
    assert!(deep[1..].iter().all(|name| name.starts_with("deep ")), "{deep:#?}");

    let signal = stack(&trace, 0x4001);
    assert!(signal[1].starts_with("handler "), "{signal:#?}");
    let interrupted = signal.iter().position(|name| *name == at("interrupted", "frames.c", "interrupted"));
    assert!(interrupted.is_some_and(|place| place > 3), "behind the signal and raise: {signal:#?}");
    assert!(signal.iter().any(|name| name.starts_with("main ")), "{signal:#?}");

    let made = stack(&trace, 0x7001);
    let [_, taken, address, maker, ..] = &made[..] else { panic!("{made:#?}") };
    assert!(taken.starts_with("taken_for_made_code "), "{made:#?}");
    assert!(address.starts_with("0x") && u64::from_str_radix(&address[2..], 16).is_ok(), "{made:#?}");
    assert!(maker.starts_with("made "), "{made:#?}");

    // Stacks of whose end nobody knows, and one too small to walk: the calls are there, without frames.
    for size in [0x5001, 0x6001] {
        assert_eq!(stack(&trace, size), Vec::<String>::new());
    }
    let sql = "select count(*) from rocpd_api A where not exists (select 1 from rocpd_stackframe where api_ptr_id = A.id) \
         and apiName_id in (select id from rocpd_string where string like 'hip%')";
    let without = trace.number(sql);
    assert_eq!(without, 5, "hipMalloc and hipFree twice, and hipStreamQuery");
    let counted = &trace.metadata("session::0::calls_without_stack")["session::0::calls_without_stack"];
    assert_eq!(*counted, without.to_string());
}

/// So many frames that there is no time to write them: what is missing is counted, and the session's end is there.
#[test]
fn an_end_that_comes_before_all_frames_are_written() {
    let dir = Dir::new();
    let ran = frames(&dir, "frames", &["calls", "many"]).env("RPDT_EXIT_MS", "8000").run();
    assert_eq!(ran.expect(0).stdout, "calls\nmany\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.metadata("session::0::end_monotonic_ns").len(), 1, "{ran}");
    let fact = |key: &str| -> i64 {
        let tag = format!("session::0::{key}");
        trace.metadata(&tag)[&tag].parse().unwrap()
    };
    let calls = trace.number("select count(*) from api where apiName like 'hip%'");
    let stacks = trace.number("select count(distinct api_ptr_id) from rocpd_stackframe");
    assert_eq!((fact("recorded::call"), fact("recorded::stack")), (calls, stacks));
    assert_eq!(calls - stacks, fact("calls_without_stack"), "{ran}");
}

#[test]
fn libraries_that_come_and_go() {
    let dir = Dir::new();
    let library = |name: &str| format!("library={}", program(name).display());
    let (first, other) = (library("frames_first"), library("frames_other"));
    // The second comes to lie where the first was: its names are its own all the same.
    let ran = frames(&dir, "frames", &["calls", &first, &other]).run();
    ran.expect(0);
    let trace = dir.trace("trace.rpd");
    for (size, name) in [(0x8001, "first"), (0x8002, "other")] {
        let frames = stack(&trace, size);
        begins(
            &frames[1..],
            &[at(name, "frames_library.c", "library"), at("through", "frames_library.c", "through")],
        );
        assert!(frames[3].starts_with("library ") && frames[4].starts_with("main "), "{frames:#?}");
    }
}

#[test]
fn code_where_a_library_was() {
    let dir = Dir::new();
    let library = format!("instead={}", program("frames_first").display());
    frames(&dir, "frames", &["calls", &library]).run().expect(0);
    // Nothing of the library is looked into for it: its unwind tables are gone.
    let stack = stack(&dir.trace("trace.rpd"), 0x7001);
    assert!(stack[2].starts_with("0x") && stack[3].starts_with("made "), "{stack:#?}");
}

#[test]
fn a_program_whose_file_is_gone() {
    let dir = Dir::new();
    let copy = dir.path("gone");
    std::fs::copy(program("frames"), &copy).unwrap();
    let run = Run::new(&dir, &copy).arg("unlink").arg("calls").recorded(Loading::Preload);
    run.env("RPDT_STACKFRAMES", "1").run().expect(0);
    let stack = stack(&dir.trace("trace.rpd"), 0x1001);
    assert!(stack[0].starts_with("gone") && stack[0].contains("+0x"), "{stack:#?}");
}

/// Calls by name, and kernels by name.
fn counts(trace: &Trace) -> (BTreeMap<String, i64>, BTreeMap<String, i64>) {
    let count = |sql: &str| trace.rows(sql, |row| Ok((row.get(0)?, row.get(1)?))).into_iter().collect();
    (
        count("select apiName, count(*) from api where apiName like 'hip%' group by 1"),
        count("select description, count(*) from op where opType = 'KernelExecution' group by 1"),
    )
}

#[test]
fn nothing_else_changes() {
    for name in ["demo", "graph", "copies", "forks"] {
        let (off, on, plain) = (Dir::new(), Dir::new(), Dir::new());
        let run = |dir| Run::new(dir, program(name)).recorded(Loading::Preload);
        let without = run(&off).run();
        let with = run(&on).env("RPDT_STACKFRAMES", "1").run();
        let bare = Run::new(&plain, program(name)).run();
        assert_eq!(with.expect(0).stdout, bare.expect(0).stdout, "{name}");
        assert_eq!((&with.stderr, &without.expect(0).stderr), (&bare.stderr, &bare.stderr), "{name}");
        let (off, on) = (off.trace("trace.rpd"), on.trace("trace.rpd"));
        on.check_integrity();
        assert_eq!(counts(&on), counts(&off), "{name}");
        assert_eq!(off.number("select count(*) from rocpd_stackframe"), 0, "{name}");
        let calls = on.number("select count(*) from api where apiName like 'hip%'");
        let stacks = on.number("select count(distinct api_ptr_id) from rocpd_stackframe where depth = 0");
        assert_eq!(stacks, calls, "{name}: every call has its stack");
        let own = "select count(*) from stackframe where \"string:1\" like '%librpd_tracer%' or \"string:1\" like '%libamdhip64%'";
        assert_eq!(on.number(own), 0, "{name}: neither the recorder's frames nor HIP's");
        assert!(on.lost().is_empty(), "{name}: {:?}", on.lost());
    }
}
