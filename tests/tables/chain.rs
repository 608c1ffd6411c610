//! Other tools beside the recorder, where rocprofiler-register hands out the tables: a real rocprofiler-sdk is handed them as well, and
//! tools of HSA_TOOLS_LIB are still started.

use super::{compile, file};
use crate::harness::{Dir, Loading, Ran, Run, recorder};

const SAID: &str = "<sdk hsa 30000 0 1, entry there>\n";

/// Offers HSA's tables of 6.2 through rocprofiler_set_api_table; `sdk` is in the loader's search path under that name.
fn offer(dir: &Dir, sdk: Option<&str>, variable: Option<(&str, &str)>, preloaded: bool) -> Ran {
    let program = compile(dir, "hsa.c", "hsa", &["-ldl"]);
    let mut options = vec!["-ldl"];
    let name = sdk.unwrap_or("unused.so");
    let library = compile(dir, "other_sdk.c", name, &["-shared", "-fPIC", &format!("-Wl,-soname,{name}")]);
    let library = library.display().to_string();
    options.push(&library);
    let program = if preloaded {
        options.insert(0, "-Wl,--no-as-needed");
        compile(dir, "hsa.c", "hsa", &options)
    } else {
        program
    };
    let mut run = Run::new(dir, program).arg(file("fixtures/tables/hsa-6.2.txt")).arg("register");
    if let Some((name, value)) = variable {
        run = run.env(name, value);
    }
    run.env("LD_LIBRARY_PATH", dir.path("")).recorded(Loading::Preload).run()
}

/// The answer and how many hooks there were.
#[track_caller]
fn assert_answer(ran: &Ran, start: &str) {
    assert!(ran.stdout.starts_with(start), "{ran}");
}

#[test]
fn a_profiler_that_is_loaded_is_handed_the_tables() {
    for name in ["librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0", "librocprofiler-sdk.so"] {
        let ran = offer(&Dir::new(), Some(name), None, true);
        assert_answer(&ran, &format!("{SAID}register 5\n"));
    }
}

#[test]
fn none_is_loaded_into_a_process_that_asks_for_none() {
    let ran = offer(&Dir::new(), Some("librocprofiler-sdk.so.1"), None, false);
    ran.expect(0).expect_silent();
    assert_answer(&ran, "register 0\n");
}

#[test]
fn one_that_is_asked_for_is_loaded() {
    let asked = Some(("ROCP_TOOL_LIBRARIES", "libsome_tool.so"));
    let ran = offer(&Dir::new(), Some("librocprofiler-sdk.so.1"), asked, false);
    assert_answer(&ran, &format!("{SAID}register 5\n"));
    let asked = Some(("ROCPROFILER_REGISTER_LIBRARY", "libmy_profiler.so"));
    let ran = offer(&Dir::new(), Some("libmy_profiler.so"), asked, false);
    assert_answer(&ran, &format!("{SAID}register 5\n"));
    // Asked for, but not there.
    let ran = offer(&Dir::new(), None, Some(("ROCP_TOOL_LIBRARIES", "libsome_tool.so")), false);
    ran.expect(0).expect_silent();
    assert_answer(&ran, "register 0\n");
}

#[test]
fn the_recorder_does_not_hand_them_to_itself() {
    let own = recorder().display().to_string();
    let ran = offer(&Dir::new(), None, Some(("ROCPROFILER_REGISTER_LIBRARY", &own)), false);
    ran.expect(0).expect_silent();
    assert_answer(&ran, "register 0\n");
}

#[test]
fn tools_of_the_older_kind_are_still_started() {
    // ROCr looks at HSA_TOOLS_LIB when nobody has taken the table.
    let ran = offer(&Dir::new(), None, Some(("HSA_TOOLS_LIB", "libother_tool.so")), false);
    ran.expect(0).expect_silent();
    assert_answer(&ran, "register 1\n");
}
