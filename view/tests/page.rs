//! The page's modules, without a browser: `node --test view/page/tests/`.

// Tests may unwrap: a panic is how they fail.
#![allow(clippy::unwrap_used)]

use std::process::Command;

#[path = "../../tests/harness/skip.rs"]
mod skip;

#[test]
fn the_modules_of_the_page_compute_what_they_should() {
    if !skip::installed("node") {
        return;
    }
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/page/tests/");
    let ran = Command::new("node").args(["--test", tests]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let passed = said.lines().find_map(|line| line.strip_prefix("# pass ")?.parse().ok());
    assert!(passed.is_some_and(|passed: u32| passed >= 10), "{said}");
}
