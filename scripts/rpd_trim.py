#!/usr/bin/env python3
"""Keeps a range of time of a trace, in the file itself, with the arguments of rocmProfileData's rpd_trim.py; `rpd trim` can do more."""

import argparse
import os
import shutil
import sys


def command():
    """rpd beside this script, in the build of its checkout, or on PATH."""
    here = os.path.dirname(os.path.realpath(__file__))
    for place in (here, os.path.join(os.path.dirname(here), "target", "release")):
        path = os.path.join(place, "rpd")
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return shutil.which("rpd") or sys.exit("rpd_trim.py: there is no rpd command; `make install` installs it")


def main():
    parser = argparse.ArgumentParser(
        prog="rpd_trim.py", description="Remove from a trace, for good, what lies outside a range of time."
    )
    parser.add_argument("input_rpd", help="the trace")
    parser.add_argument("--start", metavar="T", help="ns, a percentage (25%%), or +ns from the beginning [default: the first call]")
    parser.add_argument("--end", metavar="T", help="as --start [default: the last call]")
    parser.add_argument("--dryrun", action="store_true", help="say what would be removed, and remove nothing")
    parser.add_argument("--no-dryrun", dest="dryrun", action="store_false", help=argparse.SUPPRESS)
    given = parser.parse_args()
    # With the equals sign, because a time may begin with a minus.
    arguments = [f"--start={given.start}"] if given.start else []
    arguments += [f"--end={given.end}"] if given.end else []
    arguments += ["--dry-run"] if given.dryrun else ["--in-place"]
    path = command()
    sys.stdout.flush()
    os.execv(path, ["rpd", "trim", *arguments, "--", given.input_rpd])


if __name__ == "__main__":
    main()
