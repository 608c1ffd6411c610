"""Verbs of the rpd command on the file of an sqlite3 connection: what the rocpd modules do for programs that import them."""

import os
import sqlite3
import subprocess
import tempfile

from rpd.command import find


def run(connection, verb, *arguments):
    """Runs `rpd VERB ARGUMENTS FILE`, where FILE is the connection's, and returns when the connection sees what it did.

    What the connection has not committed is committed first. A database without a file is copied to one for this. Raises
    RuntimeError, with what rpd says, where it was not done; the file is as it was then.
    """
    connection.commit()
    path = next(file for _, name, file in connection.execute("pragma database_list").fetchall() if name == "main")
    if path:
        _run(verb, *arguments, path)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = sqlite3.connect(os.path.join(folder, "memory.rpd"))
        try:
            connection.backup(copy)
            _run(verb, *arguments, os.path.join(folder, "memory.rpd"))
            copy.backup(connection)
        finally:
            copy.close()


def _run(verb, *arguments):
    command = find()
    if command is None:
        raise RuntimeError("there is no rpd command: not in this package, and not on PATH; `make install` installs it")
    ran = subprocess.run([command, verb, *arguments], capture_output=True, text=True, errors="replace")
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr.strip() or f"rpd {verb} ended with status {ran.returncode}")
