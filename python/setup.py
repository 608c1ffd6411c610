"""Puts what `make install` installs, and the format's SQL, into the package: `pip install ./python` in a checkout is all it takes.

The binaries are those of target/release where they are all there, otherwise cargo builds them, otherwise an installed recorder is used
from where it is.
"""

import re
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

REPOSITORY = Path(__file__).resolve().parent.parent
# Folders that shells and man look for in `share`, beside the folder of commands.
SHARED = ("man", "bash-completion", "zsh", "fish")
INSTALLED = [Path(prefix) / folder / "librpd_tracer.so" for prefix in ("/usr/local", "/usr") for folder in ("lib", "lib64")]


def version():
    manifest = REPOSITORY / "Cargo.toml"
    if not manifest.exists():
        raise SystemExit("rpd is built from a checkout of its repository: pip install ./python there")
    return re.search(r'^version = "(.+)"', manifest.read_text(), re.MULTILINE).group(1)


def install(prefix):
    """Installs into `prefix` as `make install` does; nothing where an installed recorder serves."""
    make = ["make", "--silent", "-C", str(REPOSITORY), f"PREFIX={prefix}"]
    has_make = shutil.which("make") is not None
    if has_make and subprocess.run([*make, "install"], capture_output=True).returncode == 0:
        return
    shutil.rmtree(prefix, ignore_errors=True)
    if has_make and shutil.which("cargo"):
        subprocess.run([*make, "build"], check=True)
        subprocess.run([*make, "install"], check=True)
    elif not any(file.exists() for file in INSTALLED):
        raise SystemExit(
            "there is no librpd_tracer.so: not all of rpd is in " + str(REPOSITORY / "target" / "release")
            + ", no make and cargo to build it (https://rustup.rs), and no recorder in "
            + " or ".join(str(file.parent) for file in INSTALLED)
        )


class Build(build_py):
    """Copies what is not Python: the format has one source, the repository's sql/."""

    def run(self):
        super().run()
        package = Path(self.build_lib).resolve() / "rpd"
        for folder in ("sql", "native"):
            shutil.rmtree(package / folder, ignore_errors=True)
        (package / "sql").mkdir(parents=True)
        for file in sql():
            shutil.copy2(file, package / "sql" / file.name)
        shutil.copytree(REPOSITORY / "sql" / "job_queries", package / "sql" / "job_queries")
        install(package / "native")
        self.distribution.data_files = shared(package / "native" / "share", Path(self.build_lib).resolve().parent / "share")


def shared(installed, share):
    """Moves what is for shells and man out of `installed` into `share`; returns `data_files`: folders of an environment, each with its files."""
    shutil.rmtree(share, ignore_errors=True)
    for folder in SHARED:
        if (installed / folder).exists():
            share.mkdir(parents=True, exist_ok=True)
            shutil.move(installed / folder, share / folder)
    files = [file for file in sorted(share.rglob("*")) if file.is_file()]
    return [(str("share" / file.relative_to(share).parent), [str(file)]) for file in files]


def sql():
    return [*(REPOSITORY / "sql").glob("*.sql"), *(REPOSITORY / "sql" / "ext").glob("*.sql")]


class Wheel(bdist_wheel):
    """For this platform, whatever the Python: the binaries are programs, not extension modules."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(version=version(), cmdclass={"build_py": Build, "bdist_wheel": Wheel})
