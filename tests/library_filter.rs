//! LOGDUR_LIBRARY_FILTER: kernels of a cache run only in the place of kernels from the files that it selects.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::harness::{Dir, Loading, Run, Trace, code_object, program};

const PROGRAM: &str = "of_the_program(int*)";

/// A program with a kernel of its own, two of libraries, one of a module file and one of a module in memory; a candidate for each.
fn run(dir: &Dir) -> Run<'_> {
    fs::create_dir_all(dir.path("cache")).unwrap();
    fs::copy(code_object("code_candidates.co", "gfx900"), dir.path("cache/all.hsaco")).unwrap();
    fs::create_dir_all(dir.path("lib-1.0")).unwrap();
    let first = dir.path("lib-1.0/libfirst.so.1");
    let second = dir.path("lib-1.0/libsecond.so.2");
    let module = dir.path("lib-1.0/module.co");
    for (name, path) in [("code_first", &first), ("code_second", &second), ("module.co", &module)] {
        fs::copy(program(name), path).unwrap();
    }
    let _ = symlink("lib-1.0", dir.path("lib"));
    let library = |name: &str, path: &str| format!("library={name}:{}", dir.path(path).display());
    Run::new(dir, program("load_code"))
        .arg("fat")
        .arg(library("none", "lib/libsecond.so.2"))
        .arg(library("first", "lib/libfirst.so.1"))
        .arg(format!("file={}", dir.path("lib/module.co").display()))
        .arg(format!("memory={}", module.display()))
        .env("LOGDUR_KERNEL_CACHE", "cache")
        .env("LD_LIBRARY_PATH", dir.path("lib"))
}

/// The kernels that were replaced, and how often, and how many there were.
fn replaced(trace: &Trace) -> (BTreeMap<String, i64>, i64) {
    let all = trace.number("select count(*) from op where opType = 'KernelExecution'");
    if !trace.has_table("ext_replacement") {
        return (BTreeMap::new(), all);
    }
    let sql =
        "select description, count(*) from op where id in (select op_id from ext_replacement) group by 1";
    (trace.rows(sql, |row| Ok((row.get(0)?, row.get(1)?))).into_iter().collect(), all)
}

fn expected(kernels: &[(&str, i64)]) -> (BTreeMap<String, i64>, i64) {
    (kernels.iter().map(|(name, count)| (name.to_string(), *count)).collect(), 5)
}

#[test]
fn kernels_of_the_selected_files_are_replaced() {
    let cases: &[(&str, &[(&str, i64)])] = &[
        ("{}", &[(PROGRAM, 1), ("of_first", 1), ("of_second", 1), ("scale", 2)]),
        (
            r#"{"exclude": ["**/module.co"]}"#,
            &[(PROGRAM, 1), ("of_first", 1), ("of_second", 1), ("scale", 1)],
        ),
        (r#"{"include": ["**/load_code"]}"#, &[(PROGRAM, 1)]),
        (r#"{"include": ["DIR/lib/*.co"]}"#, &[("scale", 1)]),
        (r#"{"include": ["DIR/*"]}"#, &[]),
        (r#"{"include": ["**/libfirst.so"]}"#, &[]),
        (r#"{"include": ["**/libfirst.so.1"]}"#, &[("of_first", 1)]),
        (r#"{"include_with_deps": ["**/libfirst.so.1"]}"#, &[("of_first", 1), ("of_second", 1)]),
        (
            r#"{"include_with_deps": ["DIR/lib/libfirst*"], "exclude": ["**/libfirst.so.1"]}"#,
            &[("of_second", 1)],
        ),
        (
            r#"{"include_with_deps": ["DIR/lib-1.0/**"], "exclude": ["**/*.2"]}"#,
            &[("of_first", 1), ("scale", 1)],
        ),
    ];
    for (filter, kernels) in cases {
        let dir = Dir::new();
        let directory = fs::canonicalize(dir.path(".")).unwrap();
        fs::write(dir.path("filter.json"), filter.replace("DIR", directory.to_str().unwrap())).unwrap();
        run(&dir)
            .env("LOGDUR_LIBRARY_FILTER", "filter.json")
            .recorded(Loading::Preload)
            .run()
            .expect_silent();
        assert_eq!(replaced(&dir.trace("trace.rpd")), expected(kernels), "{filter}");
    }
}

#[test]
fn by_rpd_record() {
    let dir = Dir::new();
    fs::write(dir.path("filter.json"), r#"{"include": ["**/module.co"]}"#).unwrap();
    let run = run(&dir).recorded(Loading::RpdRecord).record_option("--kernel-cache=cache");
    run.record_option("--library-filter=filter.json").run().expect(0);
    assert_eq!(replaced(&dir.trace("trace.rpd")), expected(&[("scale", 1)]));
}

/// The recorder says what is wrong and goes on; `rpd record` does not run the program.
#[test]
fn a_file_that_is_wrong() {
    let all = expected(&[(PROGRAM, 1), ("of_first", 1), ("of_second", 1), ("scale", 2)]);
    let none_but_the_program = expected(&[(PROGRAM, 1)]);
    for (text, why, instead) in [
        (Some("include: x"), "it is not JSON: expected value at line 1 column 1", &all),
        (None, "No such file or directory (os error 2)", &all),
        (Some(r#"{"include": "x"}"#), "\"include\" is not an array of texts", &all),
        (
            Some(r#"{"includes": ["/x"], "include": ["**/load_code"]}"#),
            "\"includes\" is none of include, include_with_deps, exclude, and is ignored; did you mean include?",
            &none_but_the_program,
        ),
    ] {
        let dir = Dir::new();
        let file = dir.path("filter.json");
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let ran = run(&dir).env("LOGDUR_LIBRARY_FILTER", &file).recorded(Loading::Preload).run();
        let says = |file: &Path, rest: &str| format!("{}: {why}{rest}\n", file.display());
        let rest = if instead == &all { "; kernels of all libraries may be replaced" } else { "" };
        assert!(ran.expect(0).stderr.ends_with(&says(&file, rest)), "{ran}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
        assert_eq!(&replaced(&dir.trace("trace.rpd")), instead, "{text:?}");
        fs::remove_file(dir.path("trace.rpd")).unwrap();
        let run = run(&dir).recorded(Loading::RpdRecord).record_option("--kernel-cache=cache");
        let ran = run.record_option("--library-filter=filter.json").run();
        assert!(ran.expect(2).stderr.contains(why), "{ran}");
        assert!(!dir.path("trace.rpd").exists());
    }
}
