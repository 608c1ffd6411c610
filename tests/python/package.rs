//! `pip install ./python`: what it installs works alone, away from the checkout.

use std::fs;

use super::sources;
use crate::harness::{Dir, Run, recorder, rpd, tool};

/// A python3 that can build packages without the network.
fn builder() -> &'static str {
    let known = ["python3", "/usr/bin/python3"];
    let able = known.into_iter().find(|python| {
        let probe = std::process::Command::new(python).args(["-c", "import setuptools, wheel, pip"]).output();
        probe.is_ok_and(|output| output.status.success())
    });
    able.expect("no python3 has pip, setuptools and wheel; `make setup` installs them")
}

#[test]
fn an_installed_package_needs_nothing_else() {
    let dir = Dir::new();
    // Built from target/release, so that must be up to date; and the sources stay as they are.
    let binaries = [recorder(), rpd()];
    let repository = dir.path("repository");
    fs::create_dir(&repository).unwrap();
    for part in ["python", "sql", "Cargo.toml"] {
        let from = sources().with_file_name(part);
        tool("cp", &["-r".as_ref(), from.as_os_str(), repository.as_os_str()]);
    }
    fs::create_dir_all(repository.join("target/release")).unwrap();
    for built in binaries {
        fs::copy(&built, repository.join("target/release").join(built.file_name().unwrap())).unwrap();
    }
    let site = dir.path("site");
    let pip =
        ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target"];
    let mut arguments: Vec<String> = pip.map(String::from).into();
    arguments.extend([site.display().to_string(), repository.join("python").display().to_string()]);
    tool(builder(), &arguments);
    fs::remove_dir_all(&repository).unwrap();

    let python = || Run::new(&dir, builder()).env("PYTHONPATH", &site).env("PATH", "/usr/bin:/bin");
    let script = "from rpdTracerControl import rpdTracerControl\nwith rpdTracerControl() as p:\n \
         p.rangePush('', 'UserMarker', 'installed'); p.rangePop()";
    python().arg("-c").arg(script).run().expect(0).expect_silent();
    assert_eq!(dir.trace("trace.rpd").texts("select args from api"), ["installed"]);
    let ran = python().arg("-m").arg("rpd").arg("info").arg("trace.rpd").run();
    assert!(ran.expect(0).stdout.contains("trace.rpd"), "{ran}");
    python().arg("-m").arg("rocpd.schema").arg("--create").arg("fresh.rpd").run().expect(0).expect_silent();
    python().arg("-m").arg("rocpd.callstack").arg("trace.rpd").run().expect(0);
    let libraries = fs::read_dir(site.join("rpd/native")).unwrap().count();
    assert_eq!(libraries, 2, "the recorder and the command");
}
