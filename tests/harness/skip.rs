//! Tests that this machine cannot run, in whole or in part, say so. `make test` lists them at its end.
//!
//! RPD_SKIPPED names the file that gets a line for each; without it the line goes to standard error. With RPD_NO_SKIP=1 a test fails whose
//! program only has to be installed. What the kernel or the user's rights do not allow stays a skip.

use std::fmt::Display;
use std::io::Write;

/// The kernel, or the rights of whoever runs the tests, do not allow this test or the rest of it.
pub(crate) fn not_tested(why: impl Display) {
    let thread = std::thread::current();
    let why: Vec<String> = why.to_string().split_whitespace().map(String::from).collect();
    let line = format!("{}: {}\n", thread.name().unwrap_or_default(), why.join(" "));
    let Some(list) = std::env::var_os("RPD_SKIPPED") else {
        // The test runner keeps what eprintln! writes.
        let _ = write!(std::io::stderr(), "\nnot tested here: {line}");
        return;
    };
    // One write at the file's end: tests of several processes keep their lines apart.
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&list);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", list.display()));
}

/// This test, or the rest of it, lacks what `make setup` installs.
#[track_caller]
pub(crate) fn not_installed(what: impl Display) {
    let strict = std::env::var_os("RPD_NO_SKIP").is_some_and(|value| value == "1");
    assert!(!strict, "{what}: `make setup` installs it, and RPD_NO_SKIP=1 wants it tested");
    not_tested(format!("{what}: `make setup` installs it"));
}

/// Whether `program` can be called by its name; says it where not.
#[track_caller]
pub(crate) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|place| place.join(program).is_file());
    if !found {
        not_installed(format!("no {program}"));
    }
    found
}
