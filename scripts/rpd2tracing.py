#!/usr/bin/env python3
"""Writes a trace as Chrome's JSON, with the arguments of rocmProfileData's rpd2tracing.py; `rpd export chrome` can do more.

Times are those of the trace's clock, as the original has them; --relative counts them from the first event.
"""

import argparse
import os
import shutil
import sys


def moment(text, last_ns):
    """A time as rpd has it: a percentage, or whole microseconds, of which the last one belongs to the range."""
    if text.endswith("%"):
        return text
    try:
        return str(int(text) * 1000 + last_ns)
    except ValueError:
        sys.exit(f"rpd2tracing.py: {text!r} is no time: write whole microseconds, or a percentage (25%)")


def command():
    """rpd beside this script, in the build of its checkout, or on PATH."""
    here = os.path.dirname(os.path.realpath(__file__))
    for place in (here, os.path.join(os.path.dirname(here), "target", "release")):
        path = os.path.join(place, "rpd")
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return shutil.which("rpd") or sys.exit("rpd2tracing.py: there is no rpd command; `make install` installs it")


def main():
    parser = argparse.ArgumentParser(prog="rpd2tracing.py", description="Write a trace as JSON for chrome://tracing and Perfetto.")
    parser.add_argument("input_rpd", help="the trace")
    parser.add_argument("output_json", nargs="?", help="the JSON file, replaced if it exists [default: the trace's name with .json]")
    parser.add_argument("--start", metavar="T", help="whole microseconds on the trace's clock, or a percentage (25%%)")
    parser.add_argument("--end", metavar="T", help="as --start")
    parser.add_argument("--format", choices=("object", "array"), default="object")
    parser.add_argument("--relative", action="store_true", help="count times from the first event: viewers show them exactly")
    given = parser.parse_args()
    output = given.output_json or os.path.splitext(given.input_rpd)[0] + ".json"
    arguments = ["--force", "-o", output, "--format", given.format]
    arguments += [] if given.relative else ["--absolute"]
    arguments += [f"--start={moment(given.start, 0)}"] if given.start else []
    arguments += [f"--end={moment(given.end, 999)}"] if given.end else []
    path = command()
    sys.stdout.flush()
    os.execv(path, ["rpd", "export", "chrome", *arguments, "--", given.input_rpd])


if __name__ == "__main__":
    main()
