"""The rpd command: where it is, and running its verbs under the names of rocpd modules."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def find():
    """Path of the command: this package's own, then a build's, then PATH's. None if there is none."""
    here = Path(__file__).resolve().parent
    for place in (here / "native" / "rpd", here.parent.parent / "target" / "release" / "rpd"):
        if os.access(place, os.X_OK):
            return str(place)
    # The script that pip puts on PATH is this module again.
    for folder in os.get_exec_path():
        place = shutil.which("rpd", path=folder)
        if place and not _is_script(place):
            return place
    return None


def _is_script(path):
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        # It may be executed but not read: no script then.
        return False


def main():
    """Becomes the command, with this program's arguments."""
    _become(_required("rpd"), sys.argv[1:])


def run_verb(module, verb, arguments):
    """Becomes `rpd VERB ARGUMENTS`; ends this program with one line if there is no such command or verb."""
    command = _required(module)
    known = subprocess.run([command, verb, "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if known.returncode != 0:
        sys.exit(f"{module}: {command} has no verb '{verb}': it is older than this package")
    _become(command, [verb, *arguments])


def _required(name):
    command = find()
    if command is None:
        sys.exit(f"{name}: there is no rpd command: not in this package, and not on PATH; `make install` installs it")
    return command


def _become(command, arguments):
    sys.stdout.flush()
    os.execv(command, ["rpd", *arguments])
