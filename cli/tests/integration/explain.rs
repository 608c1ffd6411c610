//! `rpd record`: why a trace has nothing in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::{Dir, not_tested, ran};

const EMPTY_PROGRAM: &str = "int main(void) { return 0; }";

#[test]
fn a_program_without_a_gpu_runtime() {
    let dir = Dir::new();
    dir.run(&["record", "--", "/bin/true"]).expect(0).says(&[
        "0 kernels",
        "no GPU runtime was loaded",
        "libhsa-runtime64",
    ]);
}

#[test]
fn a_program_on_an_nvidia_gpu() {
    let dir = Dir::new();
    dir.compile("libcuda.so.1", "int cuInit;", &["-shared", "-fPIC"]);
    let source = "#include <dlfcn.h>\nint main(void) { return !dlopen(\"./libcuda.so.1\", RTLD_NOW); }";
    dir.compile("program", source, &["-ldl"]);
    dir.run(&["record", "--", "./program"]).expect(0).says(&["program", "NVIDIA", "did not initialise it"]);
}

#[test]
fn a_static_program() {
    let dir = Dir::new();
    for (name, options) in [("static", &["-static"][..]), ("static-pie", &["-static-pie"])] {
        dir.compile(name, EMPTY_PROGRAM, options);
        dir.run(&["record", "--", &format!("./{name}")]).expect(0).says(&[name, "statically linked"]);
    }
}

#[test]
fn a_program_that_another_one_became() {
    let dir = Dir::new();
    dir.compile("real-one", EMPTY_PROGRAM, &["-static"]);
    let result = dir.run(&["record", "--", "env", "./real-one"]);
    result.expect(0).says(&["/env (process ", "became real-one", "statically linked"]);
    let killed = dir.run(&["record", "--", "env", "-u", "LD_PRELOAD", "sh", "-c", "kill -KILL $$"]);
    killed.expect_signal(9).says(&["/env (process ", "became sh", "LD_PRELOAD was cleared", "SIGKILL"]);
}

#[test]
fn a_program_run_through_a_link_is_still_itself() {
    let dir = Dir::new();
    let killed = "#include <signal.h>\nint main(void) { return raise(SIGKILL); }";
    let program = dir.compile("program-1.2", killed, &[]);
    std::os::unix::fs::symlink(program, dir.path("program")).unwrap();
    let words = ["/program-1.2 (process ", ") was killed, or ended"];
    dir.run(&["record", "--", "./program"]).expect_signal(9).says(&words);
    let mut wrapped = dir.rpd(&["record", "--append", "--", "env", "program"]);
    wrapped.env("PATH", format!("{}:/usr/bin:/bin", dir.path("").display()));
    ran(&mut wrapped).expect_signal(9).says(&words);
}

#[test]
fn a_script_run_by_a_static_program() {
    let dir = Dir::new();
    let interpreter = dir.compile("static", EMPTY_PROGRAM, &["-static"]);
    dir.script("script", &format!("#!{}\n", interpreter.display()));
    dir.run(&["record", "--", "./script"]).expect(0).says(&["static is statically linked"]);
}

#[test]
fn a_program_that_changes_user() {
    let dir = Dir::new();
    dir.compile("program", EMPTY_PROGRAM, &[]);
    // Only root can give the file to somebody else, which makes the set-user-id bit mean something.
    if std::os::unix::fs::chown(dir.path("program"), Some(65534), Some(65534)).is_err() {
        return not_tested("only root can make a program of another user");
    }
    fs::set_permissions(dir.path("program"), fs::Permissions::from_mode(0o4755)).unwrap();
    dir.run(&["record", "--", "./program"]).expect(0).says(&["setuid", "LD_PRELOAD"]);
    fs::set_permissions(dir.path("program"), fs::Permissions::from_mode(0o2755)).unwrap();
    dir.run(&["record", "--", "./program"]).expect(0).says(&["setgid", "LD_PRELOAD"]);
}

#[test]
fn a_command_that_does_not_let_the_recorder_in() {
    let dir = Dir::new();
    // A library that is no recorder stands for one that never gets to speak.
    let library = dir.compile("mute.so", "int nothing;", &["-shared", "-fPIC"]);
    let mut command = dir.rpd(&["record", "--", "true"]);
    let result = ran(command.env("RPD_TRACER_PATH", &library));
    result.expect(0).says(&["the recorder was not loaded", "LD_PRELOAD"]);
}

#[test]
fn a_command_that_is_killed() {
    let dir = Dir::new();
    let result = dir.run(&["record", "--", "sh", "-c", "kill -KILL $$"]);
    result.expect_signal(9).says(&["0 kernels", "killed"]);
}

#[test]
fn a_gpu_runtime_that_finds_no_gpu() {
    let dir = Dir::new();
    let runtime = dir.compile("libhsa-runtime64.so.1", "int hsa_nothing;", &["-shared", "-fPIC"]);
    dir.compile("program", EMPTY_PROGRAM, &["-Wl,--no-as-needed", runtime.to_str().unwrap()]);
    let result = dir.run(&["record", "--", "./program"]);
    // What the program's own /dev/kfd is like decides which of the causes it is.
    let usable = fs::File::options().read(true).write(true).open("/dev/kfd").is_ok();
    result.expect(0).says(&["/program (process", if usable { "did not initialise it" } else { "/dev/kfd" }]);
}
