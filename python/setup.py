"""Puts the recorder, the rpd command and the format's SQL into the package: `pip install ./python` in a checkout is all it takes.

The binaries are those of target/release where they are there, otherwise cargo builds them, otherwise an installed recorder is used
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
RELEASE = REPOSITORY / "target" / "release"
BINARIES = ("librpd_tracer.so", "rpd")
INSTALLED = [Path(prefix) / "lib" / "librpd_tracer.so" for prefix in ("/usr/local", "/usr")]


def version():
    manifest = REPOSITORY / "Cargo.toml"
    if not manifest.exists():
        raise SystemExit("rpd is built from a checkout of its repository: pip install ./python there")
    return re.search(r'^version = "(.+)"', manifest.read_text(), re.MULTILINE).group(1)


def binaries():
    """The files to put into the package; none where an installed recorder serves."""
    files = [RELEASE / name for name in BINARIES]
    if not all(file.exists() for file in files) and shutil.which("cargo"):
        build = ["cargo", "build", "--release", "-p", "rpd-tracer", "-p", "rpd-postprocess"]
        subprocess.run(build, cwd=REPOSITORY, check=True)
    if all(file.exists() for file in files):
        return files
    if not any(file.exists() for file in INSTALLED):
        raise SystemExit(
            "there is no librpd_tracer.so: not in " + str(RELEASE) + ", no cargo to build it (https://rustup.rs), and not in "
            + " or ".join(str(file.parent) for file in INSTALLED)
        )
    return []


class Build(build_py):
    """Copies what is not Python: the format has one source, the repository's sql/."""

    def run(self):
        super().run()
        package = Path(self.build_lib) / "rpd"
        for folder, files in (("sql", sql()), ("native", binaries())):
            shutil.rmtree(package / folder, ignore_errors=True)
            (package / folder).mkdir(parents=True)
            for file in files:
                shutil.copy2(file, package / folder / file.name)


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
