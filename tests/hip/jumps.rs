//! Calls that are left without returning (tests/programs/hip/jumps.hip), and calls that no record can be taken of.

use crate::harness::{Dir, Loading, Run, program, rpd, tool};

fn left(loading: Loading, argument: &str) {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("hip_jumps")).arg(argument).recorded(loading).run();
    assert_eq!(ran.expect(0).stdout, "left 5\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let calls = trace.texts("select apiName || ' ' || count(*) from api group by apiName order by apiName");
    // The last call was interrupted and returned; what the handler called is part of it.
    assert_eq!(calls, ["hipDeviceGetAttribute 8", "hipFree 7", "hipMalloc 7", "hipMemset 7"], "{loading:?}");
    let fills = "select count(distinct api_id) from rocpd_api_ops join api on api.id = api_id where apiName = 'hipMemset'";
    assert_eq!(trace.number(fills), 7, "each fill belongs to its own call");
    let lost: Vec<(String, String)> = trace.lost().into_iter().collect();
    assert_eq!(lost, [("session::0::lost::abandoned".to_string(), "5".to_string())]);
    let info = tool(rpd().to_str().unwrap(), &["info".as_ref(), trace.path.as_os_str()]);
    assert!(info.contains("abandoned"), "{info}");
}

#[test]
fn the_next_ones_are_recorded() {
    for loading in Loading::BOTH {
        left(loading, "here");
    }
}

#[test]
fn also_from_further_down_the_stack() {
    left(Loading::Symbols, "deeper");
}

#[test]
fn on_the_stack_of_a_coroutine_that_is_gone() {
    for loading in Loading::BOTH {
        left(loading, "coroutine");
        left(loading, "coroutines");
    }
}

#[test]
fn calls_from_handlers_and_destructors_are_recorded_or_counted() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("hip_handlers")).recorded(Loading::Symbols).run();
    let made: Vec<i64> =
        ran.expect(0).stdout.split_whitespace().map(|count| count.parse().unwrap()).collect();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let lost = trace.lost();
    let lost = |cause: &str| {
        lost.get(&format!("session::0::lost::{cause}")).map_or(0, |count| count.parse::<i64>().unwrap())
    };
    let recorded = trace.number("select count(*) from api where apiName = 'hipDeviceGetAttribute'");
    assert!(lost("reentered") > 0, "no handler interrupted a push");
    assert_eq!(made[1], 1, "{made:?}");
    assert_eq!(lost("ending_thread"), made[1]);
    assert_eq!(recorded + lost("reentered") + lost("ending_thread"), made.iter().sum::<i64>());
}
