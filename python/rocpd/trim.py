"""python3 -m rocpd.trim FILE [--start T] [--end T] [--dryrun]: keeps a range of time, in FILE itself, with the arguments of
rocmProfileData's rpd_trim.py; `rpd trim` can do more."""

import argparse

from rpd.command import run_verb


def main():
    parser = argparse.ArgumentParser(
        prog="rocpd.trim", description="Remove from FILE, for good, what lies outside a range of time."
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--start", metavar="T", help="ns, a percentage (25%%), or +ns from the beginning")
    parser.add_argument("--end", metavar="T", help="as --start")
    parser.add_argument("--dryrun", action="store_true", help="say what would be removed")
    parser.add_argument("--no-dryrun", dest="dryrun", action="store_false", help=argparse.SUPPRESS)
    given = parser.parse_args()
    arguments = [given.file]
    # With the equals sign, because a time may begin with a minus.
    arguments += [f"--start={given.start}"] if given.start else []
    arguments += [f"--end={given.end}"] if given.end else []
    arguments += ["--dry-run"] if given.dryrun else ["--in-place"]
    run_verb("rocpd.trim", "trim", arguments)


if __name__ == "__main__":
    main()
