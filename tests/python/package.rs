//! `pip install ./python`: what it installs is what `make install` does, and works alone, away from the checkout.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{root, sources};
use crate::harness::{Dir, Run, program, rpd, tool};
use crate::installed::{build_and_install, files};

/// A python3 that can build packages without the network.
fn builder() -> &'static str {
    let known = ["python3", "/usr/bin/python3"];
    let able = known.into_iter().find(|python| {
        let probe = crate::harness::command(python).args(["-c", "import setuptools, wheel, pip"]).output();
        probe.is_ok_and(|output| output.status.success())
    });
    able.expect("no python3 has pip, setuptools and wheel; `make setup` installs them")
}

/// What pip installs from a copy of the repository that has only what the package is made of, and is gone afterwards.
fn install(dir: &Dir) -> PathBuf {
    let repository = dir.path("repository");
    fs::create_dir(&repository).unwrap();
    // Building a package writes into its sources.
    tool("cp", &["-r".as_ref(), sources().as_os_str(), repository.as_os_str()]);
    for part in ["Cargo.toml", "LICENSE", "Makefile", "include", "scripts", "sql"] {
        symlink(root().join(part), repository.join(part)).unwrap();
    }
    fs::create_dir(repository.join("target")).unwrap();
    symlink(rpd().parent().unwrap(), repository.join("target/release")).unwrap();
    let site = dir.path("site");
    let pip =
        ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target"];
    let mut arguments: Vec<String> = pip.map(String::from).into();
    arguments.extend([site.display().to_string(), repository.join("python").display().to_string()]);
    tool(builder(), &arguments);
    fs::remove_dir_all(&repository).unwrap();
    site
}

#[test]
fn an_installed_package_has_what_make_install_installs_and_needs_nothing_else() {
    let dir = Dir::new();
    // Builds all that there is to be packed.
    build_and_install(&dir.path("prefix"));
    let site = install(&dir);
    // pip compiles what is Python.
    let _ = fs::remove_dir_all(site.join("rpd/native/bin/__pycache__"));
    // Manual pages and completions are where man and shells look: in `share` beside `bin`.
    let shared = files(&site.join("share")).into_iter().map(|file| format!("share/{file}"));
    let mut packed: Vec<String> = files(&site.join("rpd/native")).into_iter().chain(shared).collect();
    packed.sort();
    assert_eq!(packed, files(&dir.path("prefix")));
    for page in ["man/man1/rpd-top.1", "bash-completion/completions/rpd", "zsh/site-functions/_rpd"] {
        assert!(site.join("share").join(page).exists(), "{page}");
    }
    assert_eq!(files(&site.join("bin")), files(&site.join("rpd/native/bin")), "each command is on PATH");

    let with_package =
        |program: &Path| Run::new(&dir, program).env("PYTHONPATH", &site).env("PATH", "/usr/bin:/bin");
    let python = || with_package(Path::new(builder()));
    let script = "from rpdTracerControl import rpdTracerControl\nwith rpdTracerControl() as p:\n \
         p.rangePush('', 'UserMarker', 'installed'); p.rangePop()";
    python().arg("-c").arg(script).run().expect(0).expect_silent();
    assert_eq!(dir.trace("trace.rpd").texts("select args from api"), ["installed"]);
    let ran = python().arg("-m").arg("rpd").arg("info").arg("trace.rpd").run();
    assert!(ran.expect(0).stdout.contains("trace.rpd"), "{ran}");
    python().arg("-m").arg("rocpd.schema").arg("--create").arg("fresh.rpd").run().expect(0).expect_silent();
    python().arg("-m").arg("rocpd.callstack").arg("trace.rpd").run().expect(0);

    let command = |name: &str, arguments: &[&str]| {
        let run = with_package(&site.join("bin").join(name));
        arguments.iter().fold(run, |run, argument| run.arg(*argument)).run()
    };
    // HIP's names and roctx are libraries of their own.
    let streams = program("streams").display().to_string();
    command("rpd", &["record", "-o", "hip.rpd", "--hip-calls", "symbols", "--", &streams]).expect(0);
    assert!(dir.trace("hip.rpd").number("select count(*) from api where apiName = 'hipLaunchKernel'") > 0);
    let script = "import ctypes; ctypes.CDLL('libroctx64.so').roctxMarkA(b'by roctx')";
    command("runTracer.sh", &["-o", "roctx.rpd", builder(), "-c", script]).expect(0);
    assert_eq!(dir.trace("roctx.rpd").texts("select args from api"), ["by roctx"]);
    command("loadTracer.sh", &["-o", "paused.rpd", builder(), "-c", script]).expect(0);
    assert!(
        !dir.path("paused.rpd").exists()
            || dir.trace("paused.rpd").number("select count(*) from rocpd_api") == 0
    );
    assert!(command("rpdRemote", &["--help"]).expect(0).stdout.contains("LD_PRELOAD=librpd_remote.so"));
}
