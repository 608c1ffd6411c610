//! The library file: what it exports, what it needs, how it is linked.

use crate::harness::{recorder, tool};

/// Names of the dynamic symbols that `nm` lists with this option.
fn symbols(option: &str) -> Vec<String> {
    let text = tool("nm", &["-D".as_ref(), option.as_ref(), recorder().as_os_str()]);
    let mut names: Vec<_> =
        text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_string).collect();
    names.sort();
    names
}

#[test]
fn exports_are_those_listed() {
    let listed = include_str!("exports.txt");
    let names: Vec<_> = listed.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(symbols("--defined-only"), names, "tests/exports.txt lists what may be exported");
}

#[test]
fn sqlite_is_inside_and_hidden() {
    for option in ["--defined-only", "--undefined-only"] {
        let sqlite: Vec<_> = symbols(option).into_iter().filter(|name| name.contains("sqlite")).collect();
        assert_eq!(sqlite, Vec::<String>::new(), "{option}");
    }
}

#[test]
fn it_needs_the_c_library_alone_and_stays_loaded() {
    let dynamic = tool("readelf", &["-dW".as_ref(), recorder().as_os_str()]);
    let needed: Vec<_> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    for library in &needed {
        let allowed = ["libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"];
        assert!(allowed.iter().any(|name| library.contains(&format!("[{name}]"))), "{library}");
    }
    assert!(dynamic.contains("Library soname: [librpd_tracer.so]"), "{dynamic}");
    let flags = dynamic.lines().find(|line| line.contains("(FLAGS_1)")).unwrap();
    assert!(flags.contains("NODELETE"), "{flags}");
    assert!(
        !dynamic.contains("(RPATH)") && !dynamic.contains("(RUNPATH)") && !dynamic.contains("(TEXTREL)"),
        "{dynamic}"
    );
}
