//! `rpd record --hsa-apis`: calls of the HSA runtime as rows, and what they submit.

use std::collections::BTreeMap;

use crate::harness::{Dir, Loading, Run, Trace, aql_code_object, program};
use crate::hazards::hazard;

/// What hsa_calls.c submits.
const KERNELS: i64 = 9;

fn recorded(dir: &Dir, list: &str) -> Trace {
    let run = Run::new(dir, hazard("hsa_calls")).arg(aql_code_object("gfx900"));
    let ran = run.recorded(Loading::RpdRecord).record_option(&format!("--hsa-apis={list}")).run();
    assert_eq!(ran.expect(0).stdout, "done\n", "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.lost().len(), 0, "{:?}", trace.lost());
    trace
}

/// How many rows there are of each function.
fn counts(trace: &Trace) -> BTreeMap<String, i64> {
    let rows = trace.texts("select apiName || ' ' || count(*) from api where apiName like 'hsa\\_%' escape '\\' group by apiName");
    let pair =
        |row: &String| row.split_once(' ').map(|(name, count)| (name.to_string(), count.parse().unwrap()));
    rows.iter().filter_map(pair).collect()
}

/// Each call that has operations: its name and how many.
fn submitted(trace: &Trace) -> Vec<String> {
    trace.texts(
        "select apiName || ' ' || count(*) from api join rocpd_api_ops on rocpd_api_ops.api_id = api.id group by api.id order by api.start",
    )
}

#[test]
fn calls_are_rows_and_operations_are_of_the_call_that_submits_them() {
    let dir = Dir::new();
    let trace = recorded(&dir, "all");
    let counts = counts(&trace);
    for (name, expected) in [
        ("hsa_queue_create", 1),
        ("hsa_queue_destroy", 1),
        ("hsa_executable_freeze", 1),
        ("hsa_signal_create", 8),
        ("hsa_signal_destroy", 5),
        ("hsa_queue_add_write_index_screlease", 7),
        ("hsa_signal_wait_scacquire", 9),
        // The runtime has one function for what a program calls release and screlease.
        ("hsa_signal_store_screlease", 6),
        ("hsa_signal_store_relaxed", 2),
        ("hsa_amd_memory_async_copy", 1),
        ("hsa_amd_memory_async_copy_rect", 2),
    ] {
        assert_eq!(counts.get(name), Some(&expected), "{name}: {counts:?}");
    }
    let one = "hsa_signal_store_screlease 1".to_string();
    let mut expected = vec![one; 5];
    expected.extend(
        [
            "hsa_signal_store_screlease 3",
            "hsa_signal_store_relaxed 1",
            "hsa_amd_memory_async_copy 1",
            "hsa_amd_memory_async_copy_rect 1",
        ]
        .map(String::from),
    );
    assert_eq!(submitted(&trace), expected);
    let number = |sql: &str| trace.number(sql);
    assert_eq!(number("select count(*) from op where opType = 'KernelExecution'"), KERNELS);
    assert_eq!(number("select count(*) from op"), KERNELS + 2);
    let early = "select count(*) from op join rocpd_api_ops o on o.op_id = op.id join api on api.id = o.api_id where op.start < api.start";
    assert_eq!(number(early), 0);
    // One launch for each doorbell that has a kernel, and what each copy moves.
    assert_eq!(number("select count(*) from rocpd_kernelapi"), 7);
    assert_eq!(
        trace.texts("select size || ' ' || width || ' ' || sync from rocpd_copyapi order by size"),
        ["64 16 0", "512 0 0"]
    );
    let elsewhere = "select count(distinct tid) from api where apiName like 'hsa_signal_store%'";
    assert_eq!(number(elsewhere), 2, "the thread that rang is the one whose call it is");
    // What a function calls that the runtime calls is a call of its own.
    let nested = "select count(*) from api inner_call join api outer_call on outer_call.tid = inner_call.tid
        where outer_call.apiName = 'hsa_iterate_agents' and inner_call.apiName = 'hsa_agent_get_info'
        and inner_call.start >= outer_call.start and inner_call.end <= outer_call.end";
    assert!(number(nested) > 0, "{counts:?}");
}

#[test]
fn calls_have_arguments_and_results() {
    let dir = Dir::new();
    let trace = recorded(&dir, "hsa_queue_*,hsa_amd_memory_async_copy*,hsa_executable_create_alt");
    let args =
        |name: &str| trace.texts(&format!("select args from api where apiName = '{name}' order by start"));
    let [create] = &args("hsa_queue_create")[..] else { panic!("not one queue") };
    assert!(create.contains(" | size=1024 | type=0 | ") && create.contains(" | queue=0x"), "{create}");
    let indices = args("hsa_queue_add_write_index_screlease");
    let results: Vec<&str> =
        indices.iter().filter_map(|text| text.rsplit_once(" | ")).map(|(_, end)| end).collect();
    assert_eq!(results, ["result=0", "result=1", "result=2", "result=3", "result=4", "result=5", "result=8"]);
    let rects = args("hsa_amd_memory_async_copy_rect");
    assert!(
        rects[0].contains(" | dir=hsaDeviceToHost | ") && rects[0].contains(" | status=HSA_STATUS_ERROR"),
        "{rects:?}"
    );
    assert!(!rects[1].contains("status="), "{rects:?}");
    let [executable] = &args("hsa_executable_create_alt")[..] else { panic!("not one executable") };
    assert!(executable.starts_with("profile=HSA_PROFILE_FULL | "), "{executable}");
    assert!(!counts(&trace).contains_key("hsa_signal_store_screlease"), "nobody asked for it");
    // Kernels are of no call that was recorded; copies are.
    assert_eq!(
        submitted(&trace).iter().filter(|call| call.starts_with("hsaDispatch")).count() as i64,
        KERNELS
    );
    assert_eq!(
        submitted(&trace).iter().filter(|call| call.starts_with("hsa_amd_memory_async_copy")).count(),
        2
    );
}

#[test]
fn operations_of_hips_calls_stay_theirs() {
    for timing in ["hsa", "hip"] {
        let links = |options: &[&str]| {
            let dir = Dir::new();
            let run = Run::new(&dir, program("streams")).gpus(2).recorded(Loading::RpdRecord);
            let run = options.iter().fold(run, |run, option| run.record_option(option));
            run.env("RPDT_TIMING", timing).run().expect(0);
            let trace = dir.trace("trace.rpd");
            trace.check_integrity();
            let links = trace.texts(
                "select apiName || ' ' || opType || ' ' || count(*) from rocpd_api_ops o join api on api.id = o.api_id
                 join op on op.id = o.op_id group by apiName, opType order by 1",
            );
            let inside = trace.number(
                "select count(*) from api h join api c on c.tid = h.tid and h.start >= c.start and h.end <= c.end
                 where h.apiName = 'hsa_signal_store_screlease' and c.apiName like 'hipLaunchKernel%'",
            );
            (links, inside)
        };
        let (plain, _) = links(&[]);
        assert!(!plain.is_empty());
        let (recorded, inside) = links(&["--hsa-apis=all,-hsa_signal_load_*"]);
        assert_eq!(recorded, plain, "{timing}");
        assert!(inside > 0, "{timing}");
    }
}

#[test]
fn words_that_are_no_function_are_one_line() {
    let dir = Dir::new();
    let run = Run::new(&dir, hazard("hsa_calls")).arg(aql_code_object("gfx900")).recorded(Loading::Preload);
    let ran = run.env("RPDT_HSA_APIS", "hsa_init,hsa_queue_creat").run();
    ran.expect(0);
    let said =
        "]: RPDT_HSA_APIS: hsa_queue_creat; did you mean hsa_queue_create? ignored; it is all, none, or";
    assert!(ran.stderr.contains(said) && ran.stderr.matches("rpd_tracer").count() == 1, "{ran}");
}
