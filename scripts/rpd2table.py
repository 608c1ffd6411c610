#!/usr/bin/env python3
"""Writes what ranges of markers launched as CSV, with the arguments and columns of rocmProfileData's rpd2table.py; `rpd table` can do more."""

import argparse
import os
import shutil
import subprocess
import sys


def command():
    """rpd beside this script, in the build of its checkout, or on PATH."""
    here = os.path.dirname(os.path.realpath(__file__))
    for place in (here, os.path.join(os.path.dirname(here), "target", "release")):
        path = os.path.join(place, "rpd")
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return shutil.which("rpd") or sys.exit("rpd2table.py: there is no rpd command; `make install` installs it")


def destination(path):
    """The file to write, and whether it takes the place of `path` when it is complete. A device or a pipe is written as it is; a trace stays."""
    if os.path.exists(path) and not os.path.isfile(path):
        return path, False
    place = os.path.realpath(path)
    try:
        with open(place, "rb") as there:
            is_database = there.read(16) == b"SQLite format 3\0"
    except OSError:
        is_database = False
    if is_database:
        sys.exit(f"rpd2table.py: {path} is a trace, which stays: name another file")
    return f"{place}.part-{os.getpid()}", True


def main():
    parser = argparse.ArgumentParser(prog="rpd2table.py", description="Write what ranges of markers launched as a table in CSV.")
    parser.add_argument("input_rpd", help="the trace")
    parser.add_argument("user_marker", nargs="*", help="texts of markers, also several as 'A, B'; none or an empty one: the whole trace")
    parser.add_argument("output_csv", help="the CSV file, replaced if it exists")
    given = parser.parse_args()
    markers = [marker for markers in given.user_marker for marker in markers.split(", ") if marker]
    if markers:
        print(f"Extracting markers for: {markers}")
    # The old table stays until the new one is there.
    unfinished, is_new = destination(given.output_csv)
    print("Generating report...")
    sys.stdout.flush()
    try:
        with open(unfinished, "wb") as table:
            made = subprocess.run([command(), "table", "--csv", "--", given.input_rpd, *markers], stdout=table)
        if made.returncode == 0:
            if is_new:
                os.replace(unfinished, os.path.realpath(given.output_csv))
            print(f"Summary table saved to {given.output_csv}")
        sys.exit(made.returncode)
    except OSError as error:
        sys.exit(f"rpd2table.py: cannot write {given.output_csv}: {error.strerror}")
    finally:
        if is_new and os.path.exists(unfinished):
            os.unlink(unfinished)


if __name__ == "__main__":
    main()
