//! `make install` and what stands in its PREFIX: the command finds its libraries there, runTracer.sh and loadTracer.sh are the
//! original's, `make uninstall` leaves nothing.

use std::path::{Path, PathBuf};

use crate::harness::{Dir, Run, command, make, program, tool};

/// Builds, and installs that into `prefix`.
pub(crate) fn build_and_install(prefix: &Path) {
    make(&["build"]);
    make(&["install", &format!("PREFIX={}", prefix.display())]);
}

/// As root has it, who has no cargo.
#[test]
fn what_is_built_is_installed_without_cargo() {
    let dir = Dir::new();
    make(&["build"]);
    let prefix = dir.path("prefix");
    make(&["install", "CARGO=/nonexistent", &format!("PREFIX={}", prefix.display())]);
    assert!(files(&prefix).contains(&"bin/rpd".to_string()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let nothing = dir.path("nothing");
    let release = format!("RELEASE={}", nothing.display());
    let mut command = command("make");
    let make = command.arg("--silent").arg("-C").arg(root).args(["install", "CARGO=/nonexistent", &release]);
    let output = make.arg(format!("PREFIX={}", dir.path("other").display())).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("run make build first"), "{said}");
    assert!(!dir.path("other").exists());
}

/// As distributions have it whose libraries of 64 bits are in lib64.
#[test]
fn libraries_may_be_in_lib64() {
    let dir = Dir::new();
    make(&["build"]);
    let prefix = dir.path("prefix");
    let places =
        [format!("PREFIX={}", prefix.display()), format!("LIBDIR={}", prefix.join("lib64").display())];
    make(&["install", &places[0], &places[1]]);
    let installed = files(&prefix);
    assert!(installed.contains(&"lib64/librpd_tracer.so".to_string()), "{installed:?}");
    assert!(!installed.iter().any(|file| file.starts_with("lib/")), "{installed:?}");
    let control = program("control").display().to_string();
    script(&dir, &prefix, "runTracer.sh", &[&control, "mark=a"]).expect(0);
    assert_eq!(dir.trace("trace.rpd").texts("select args from api"), ["a"]);
    make(&["uninstall", &places[0], &places[1]]);
    assert_eq!(files(&prefix), Vec::<String>::new());
}

/// Every file below a directory, relative to it, sorted.
pub(crate) fn files(root: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path().strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// A script of the installation, run in `dir` with these arguments.
fn script(dir: &Dir, prefix: &Path, name: &str, arguments: &[&str]) -> crate::harness::Ran {
    let run = Run::new(dir, prefix.join("bin").join(name));
    arguments.iter().fold(run, |run, argument| run.arg(*argument)).run()
}

/// With nothing but the installation's directory of headers.
fn instrumented_kernels_compile(dir: &Dir, prefix: &Path) {
    let source = dir.path("kernel.hip");
    let kernel = "RPD_INSTRUMENTED(_Z5scalePf)(float *data, void *probe) { RPD_STORE(probe, data, 1.f); }";
    std::fs::write(&source, format!("#include <rpd_probe.h>\n{kernel}\n")).unwrap();
    let include = format!("-I{}", prefix.join("include").display());
    let [source, object] = [source, dir.path("kernel.co")].map(|path| path.display().to_string());
    tool("hipcc", &["--genco", "--offload-arch=gfx900", &include, &source, "-o", &object]);
}

#[test]
fn an_installation_works_alone_and_goes_away() {
    let dir = Dir::new();
    let prefix: PathBuf = dir.path("prefix");
    build_and_install(&prefix);
    let installed = files(&prefix);
    for file in [
        "bin/rpd",
        "bin/runTracer.sh",
        "bin/rpd2table.py",
        "bin/rpd2tracing.py",
        "bin/rpd_autograd_summary.py",
        "bin/rpd_trim.py",
        "bin/loadTracer.sh",
        "include/rpd_handler.h",
        "include/rpd_probe.h",
        "include/rpd_tracer.h",
        "lib/librpd_hip.so",
        "lib/librpd_libraries.so",
        "lib/librpd_tracer.so",
        "share/rpd/LICENSE",
        "share/rpd/job_queries/job_top.sql",
        "share/rpd/queries/ktop.sql",
        "share/rpd/queries/topDiff.sql",
        "lib/rpd/libroctx64.so",
        "lib/rpd/libroctx64.so.4",
        "lib/rpd/librocprofiler-sdk-roctx.so.1",
        "lib/rpd/tsan.suppressions",
        "share/bash-completion/completions/rpd",
        "share/bash-completion/completions/rpdRemote",
        "share/fish/vendor_completions.d/rpd.fish",
        "share/man/man1/rpd.1",
        "share/man/man1/rpd-top.1",
        "share/man/man1/rpd-remote-start.1",
        "share/man/man1/rpdRemote.1",
        "share/zsh/site-functions/_rpd",
    ] {
        assert!(installed.iter().any(|known| known == file), "{file} is not in {installed:?}");
    }
    for file in ["bin/rpd", "lib/librpd_tracer.so", "lib/librpd_hip.so", "lib/librpd_remote.so"] {
        let bytes = std::fs::read(prefix.join(file)).unwrap();
        let has = |name: &[u8]| bytes.windows(name.len()).any(|part| part == name);
        assert!(has(b"\0.shstrtab\0") && !has(b"\0.symtab\0"), "{file} is not stripped");
    }
    instrumented_kernels_compile(&dir, &prefix);
    let control = program("control").display().to_string();
    let args = |file: &str| dir.trace(file).texts("select args from api order by start");

    let ran = script(&dir, &prefix, "runTracer.sh", &[&control, "mark=a", "exit=3"]);
    assert!(ran.expect(3).stderr.starts_with("rpd: trace.rpd: 0 kernels, 0 copies, 1 marker, "), "{ran}");
    assert_eq!(args("trace.rpd"), ["a"]);
    script(&dir, &prefix, "runTracer.sh", &["-o", "own name.rpd", &control, "mark=-o", "mark=with  blanks"])
        .expect(0);
    assert_eq!(args("own name.rpd"), ["-o", "with  blanks"]);
    script(&dir, &prefix, "loadTracer.sh", &["-o", "trace.rpd", &control, "mark=a", "start", "mark=b"])
        .expect(0);
    assert_eq!(args("trace.rpd"), ["b"], "the older trace was replaced, and recording began with the start");

    for arguments in [&[][..], &["-o"], &["-o", "x.rpd"], &["-o", "", "true"]] {
        for name in ["runTracer.sh", "loadTracer.sh"] {
            let ran = script(&dir, &prefix, name, arguments);
            assert_eq!(
                ran.expect(2).stderr,
                "usage: runTracer.sh [-o FILE] COMMAND [ARGUMENT...]\n",
                "{ran}"
            );
        }
    }

    make(&["uninstall", &format!("PREFIX={}", prefix.display())]);
    assert_eq!(files(&prefix), Vec::<String>::new());
}
