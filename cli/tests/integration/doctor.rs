//! `rpd doctor` on made-up machines and on this one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Dir, RPD, Ran, not_tested, ran};

/// A machine with AMD's GPU and all that a recording needs, in the folder `machine`.
fn machine(dir: &Dir) {
    for (file, content) in [
        (
            "sys/class/kfd/kfd/topology/nodes/1/properties",
            "simd_count 440\ngfx_target_version 90402\ndrm_render_minor 128\n",
        ),
        ("sys/module/amdgpu/version", "6.12\n"),
        ("etc/group", "root:x:0:\nrender:x:1234:\n"),
        ("dev/kfd", ""),
        ("dev/dri/renderD128", ""),
        ("opt/rocm/lib/libhsa-runtime64.so.1.14.60403", ""),
        ("opt/rocm/lib/libamdhip64.so.6.4.43484", ""),
    ] {
        let path = format!("machine/{file}");
        fs::create_dir_all(dir.path(&path).parent().unwrap()).unwrap();
        dir.write(&path, content);
    }
}

/// A recorder, so that what is tested is the machine.
fn recorder(dir: &Dir) {
    dir.compile("librpd_tracer.so", "int rpd;", &["-shared", "-fPIC"]);
}

fn doctor(dir: &Dir, arguments: &[&str]) -> Command {
    let mut command = dir.rpd(&[&["doctor"], arguments].concat());
    command.env("RPD_TRACER_PATH", dir.path("."));
    command
}

/// The finding of that subject.
#[track_caller]
fn of(ran: &Ran, subject: &str) -> Value {
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"));
    let findings = report["findings"].as_array().unwrap_or_else(|| panic!("{ran}"));
    findings
        .iter()
        .find(|finding| finding["subject"] == subject)
        .unwrap_or_else(|| panic!("{subject}: {ran}"))
        .clone()
}

#[test]
fn a_whole_machine_is_0_and_a_broken_one_1() {
    let dir = Dir::new();
    machine(&dir);
    recorder(&dir);
    let whole = ran(&mut doctor(&dir, &["--root", "machine"]));
    let lines: Vec<Vec<&str>> =
        whole.expect(0).stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["status", "subject", "found"]);
    assert!(lines.contains(&vec!["ok", "AMD", "GPUs", "gfx942"]), "{whole}");
    assert!(lines.last().unwrap().ends_with(&["nothing", "missing"]), "{whole}");
    fs::remove_file(dir.path("machine/opt/rocm/lib/libhsa-runtime64.so.1.14.60403")).unwrap();
    let broken = ran(&mut doctor(&dir, &["--root", "machine", "--json"]));
    assert_eq!(of(broken.expect(1), "HSA runtime")["status"], "missing");
    let report: Value = serde_json::from_str(&broken.stdout).unwrap();
    assert_eq!(report["missing"], 1, "{broken}");
    for columns in ["40", "80", "200"] {
        let narrow = ran(doctor(&dir, &["--root", "machine"]).env("COLUMNS", columns));
        assert!(narrow.expect(1).stdout.contains("mend: "), "{narrow}");
        let text: String = narrow.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("no libhsa-runtime64.so in LD_LIBRARY_PATH"), "whole at any width: {narrow}");
    }
    ran(&mut doctor(&dir, &["--root", "elsewhere"])).expect(1).says(&["elsewhere is no directory"]);
    ran(&mut doctor(&dir, &["here"])).expect(2);
}

#[test]
fn a_device_that_may_not_be_used_names_its_group() {
    let dir = Dir::new();
    machine(&dir);
    recorder(&dir);
    let kfd = dir.path("machine/dev/kfd");
    for path in [".", "machine", "machine/dev"] {
        fs::set_permissions(dir.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let is_root = ran(dir.command("id").arg("-u")).stdout.trim() == "0";
    let mut command = if is_root {
        std::os::unix::fs::chown(&kfd, None, Some(1234)).unwrap();
        fs::set_permissions(&kfd, fs::Permissions::from_mode(0o660)).unwrap();
        // Where the build is may be closed to others.
        dir.install(RPD, "rpd");
        let mut other = dir.command("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(dir.path("rpd"));
        other
    } else {
        fs::set_permissions(&kfd, fs::Permissions::from_mode(0o000)).unwrap();
        dir.command(RPD)
    };
    command.args(["doctor", "--json", "--root", "machine"]).env("RPD_TRACER_PATH", dir.path("."));
    let denied = ran(&mut command);
    if denied.stdout.is_empty() {
        not_tested(format!("rpd as another user: {}", denied.stderr));
        return;
    }
    let finding = of(denied.expect(1), "AMD driver");
    assert_eq!(finding["status"], "missing");
    assert!(finding["found"].as_str().unwrap().contains("Permission denied"), "{finding}");
    if is_root {
        let mend = finding["mend"].as_str().unwrap();
        assert!(mend.contains("usermod -a -G render ") && mend.contains("--group-add render"), "{mend}");
    }
}

#[test]
fn the_recorder_is_tried() {
    let dir = Dir::new();
    recorder(&dir);
    let silent = ran(&mut doctor(&dir, &["--json"]));
    let finding = of(silent.expect(1), "recorder");
    assert!(
        finding["found"].as_str().unwrap().contains("does not load into"),
        "it reports nothing: {finding}"
    );
    dir.write("librpd_tracer.so", "no library");
    let refused = ran(&mut doctor(&dir, &["--json"]));
    let finding = of(refused.expect(1), "recorder");
    assert!(
        finding["found"].as_str().unwrap().contains("cannot be preloaded"),
        "what the loader says: {finding}"
    );
    fs::remove_file(dir.path("librpd_tracer.so")).unwrap();
    let none = ran(&mut doctor(&dir, &["--json"]));
    assert!(of(none.expect(1), "recorder")["found"].as_str().unwrap().contains("RPD_TRACER_PATH"), "{none}");
}

#[test]
fn texts_of_the_machine_are_harmless() {
    let dir = Dir::new();
    machine(&dir);
    recorder(&dir);
    dir.write("machine/sys/module/amdgpu/version", "\u{1b}[31m\u{202e}<b>=1+1\n");
    let text = ran(&mut doctor(&dir, &["--root", "machine"]));
    assert!(!text.expect(0).stdout.contains('\u{1b}') && !text.stdout.contains('\u{202e}'), "{text}");
    let json = ran(&mut doctor(&dir, &["--root", "machine", "--json"]));
    assert!(!json.expect(0).stdout.contains('\u{1b}'), "{json}");
    assert_eq!(of(&json, "AMD driver")["found"], "amdgpu \u{1b}[31m\u{202e}<b>=1+1, /dev/kfd");
}

#[test]
fn a_directory_that_is_gone_or_closed_is_missing() {
    let dir = Dir::new();
    machine(&dir);
    recorder(&dir);
    let root = dir.path("machine").display().to_string();
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    let mut gone = dir.command("sh");
    gone.args(["-c", script, "sh", RPD, "doctor", "--json", "--root", &root]);
    let gone = ran(gone.env("RPD_TRACER_PATH", dir.path(".")));
    assert_eq!(of(gone.expect(1), "directory")["status"], "missing", "{gone}");
    let mut closed = doctor(&dir, &["--json", "--root", &root]);
    let closed = ran(closed.current_dir(Path::new("/proc")));
    assert_eq!(of(closed.expect(1), "directory")["status"], "missing", "{closed}");
}
