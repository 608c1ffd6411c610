//! What tests say of what they leave out.

use std::process::Command;

/// Run by the test below, with another environment.
#[test]
#[ignore = "run by a_missing_program_is_listed_or_a_failure"]
fn lacks_a_program() {
    assert!(!crate::skip::installed("rpd-no-such-program"));
}

#[test]
fn a_missing_program_is_listed_or_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("skipped");
    let run = |strict| {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "skips::lacks_a_program", "--ignored"]).env("RPD_SKIPPED", &list);
        test.env("RPD_NO_SKIP", strict).output().unwrap()
    };
    assert!(run("0").status.success() && run("0").status.success());
    let line = "skips::lacks_a_program: no rpd-no-such-program: `make setup` installs it\n";
    assert_eq!(std::fs::read_to_string(&list).unwrap(), line.repeat(2));
    let failed = run("1");
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stdout).contains("RPD_NO_SKIP=1"), "{failed:?}");
    assert_eq!(std::fs::read_to_string(&list).unwrap(), line.repeat(2), "no skip");
}
