"""The rpd command and its companions: where they are, and running verbs under the names of rocpd modules."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def find(name="rpd"):
    """Path of the command: this package's own, then a build's, then PATH's. None if there is none."""
    here = Path(__file__).resolve().parent
    repository = here.parent.parent
    for place in (here / "native" / "bin", repository / "target" / "release", repository / "scripts"):
        if os.access(place / name, os.X_OK):
            return str(place / name)
    # The script that pip puts on PATH is this module again.
    for folder in os.get_exec_path():
        place = shutil.which(name, path=folder)
        if place and not _is_pips(place):
            return place
    return None


def _is_pips(path):
    try:
        with open(path, "rb") as file:
            return b"rpd.command" in file.read(1024)
    except OSError:
        # It may be executed but not read: no script then.
        return False


def main():
    """Becomes the command, with this program's arguments."""
    _become(_required("rpd"), sys.argv[1:])


def remote():
    """Becomes rpdRemote."""
    _become(_required("rpdRemote"), sys.argv[1:])


def run_tracer():
    """Becomes runTracer.sh."""
    _become(_required("runTracer.sh"), sys.argv[1:])


def load_tracer():
    """Becomes loadTracer.sh."""
    _become(_required("loadTracer.sh"), sys.argv[1:])


def rpd2tracing():
    """Becomes rpd2tracing.py."""
    _become(_required("rpd2tracing.py"), sys.argv[1:])


def rpd2table():
    """Becomes rpd2table.py."""
    _become(_required("rpd2table.py"), sys.argv[1:])


def rpd_trim():
    """Becomes rpd_trim.py."""
    _become(_required("rpd_trim.py"), sys.argv[1:])


def rpd_autograd_summary():
    """Becomes rpd_autograd_summary.py."""
    _become(_required("rpd_autograd_summary.py"), sys.argv[1:])


def run_verb(module, verb, arguments):
    """Becomes `rpd VERB ARGUMENTS`; ends this program with one line if there is no such command or verb."""
    command = _required("rpd", module)
    known = subprocess.run([command, verb, "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if known.returncode != 0:
        sys.exit(f"{module}: {command} has no verb '{verb}': it is older than this package")
    _become(command, [verb, *arguments])


def _required(command, program=None):
    path = find(command)
    if path is None:
        sys.exit(f"{program or command}: there is no {command} command: not in this package, and not on PATH; `make install` installs it")
    return path


def _become(command, arguments):
    sys.stdout.flush()
    os.execv(command, [os.path.basename(command), *arguments])
