//! setup.sh, with commands that stand for those of the system: which packages it asks for, and who may install them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::harness::{Dir, command};

/// An executable script of that name.
fn script(dir: &Dir, name: &str, text: &str) {
    let path = dir.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// setup.sh on a machine of user `uid` where dpkg knows of no package, and which has nothing but what is in `bin`.
fn setup(dir: &Dir, uid: u32) -> Output {
    script(dir, "bin/dpkg-query", "exit 1");
    script(dir, "bin/apt-get", "echo \"$@\" >>\"$ASKED\"");
    setup_without_packages(dir, uid)
}

/// The same on a machine that has neither dpkg nor apt-get.
fn setup_without_packages(dir: &Dir, uid: u32) -> Output {
    script(dir, "bin/id", &format!("echo {uid}"));
    script(dir, "bin/cargo", "exit 0");
    for tool in ["mktemp", "rm", "cat"] {
        script(dir, &format!("bin/{tool}"), &format!("exec /usr/bin/{tool} \"$@\""));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut setup = command("/bin/sh");
    setup.arg(root.join("setup.sh")).env("PATH", dir.path("bin")).env("ASKED", dir.path("asked"));
    setup.env("ROCM_PATH", dir.path("rocm")).output().unwrap()
}

#[test]
fn packages_of_rocm_are_for_machines_without_it() {
    for has_rocm in [false, true] {
        let dir = Dir::new();
        if has_rocm {
            script(&dir, "rocm/bin/hipcc", "exit 0");
            script(&dir, "rocm/lib/libamdhip64.so", "");
        }
        let output = setup(&dir, 0);
        assert!(output.status.success(), "{output:?}");
        let asked = fs::read_to_string(dir.path("asked")).unwrap();
        assert!(asked.contains(" sqlite3 ") && asked.contains("gcc"), "{asked}");
        for package in ["hipcc", "libamdhip64-5", "libhsa-runtime64-1"] {
            assert_eq!(asked.contains(package), !has_rocm, "{asked}");
        }
    }
}

#[test]
fn a_machine_with_rocm_and_the_tools_gets_nothing() {
    let dir = Dir::new();
    script(&dir, "rocm/bin/hipcc", "exit 0");
    script(&dir, "rocm/lib/libamdhip64.so", "");
    for tool in ["gcc", "g++", "make", "ld", "readelf", "python3"] {
        script(&dir, &format!("bin/{tool}"), "exit 0");
    }
    // No Debian, and one tool is not there.
    let output = setup_without_packages(&dir, 0);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said, "setup: this needs Debian packages or their like: sqlite3\n");
    script(&dir, "bin/sqlite3", "exit 0");
    let output = setup_without_packages(&dir, 1000);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    // Nor is apt-get asked where there is one.
    assert!(setup(&dir, 0).status.success());
    assert!(!dir.path("asked").exists());
    // A compiler without the C library's headers is none.
    script(&dir, "bin/gcc", "exit 1");
    assert!(setup(&dir, 0).status.success());
    assert!(fs::read_to_string(dir.path("asked")).unwrap().ends_with("--no-install-recommends libc6-dev\n"));
}

#[test]
fn who_may_not_install_hears_what_is_to_be_installed() {
    let dir = Dir::new();
    let output = setup(&dir, 1000);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("apt-get install ") && said.contains(" hipcc "), "{said}");
    assert!(!dir.path("asked").exists());
    // With sudo it is done.
    script(&dir, "bin/sudo", "exec \"$@\"");
    assert!(setup(&dir, 1000).status.success());
    assert!(fs::read_to_string(dir.path("asked")).unwrap().contains("install"));
}
