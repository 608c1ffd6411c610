"""python3 -m rocpd.deserialize FILE: calls and ops that a program wrote as markers become rows; `rpd deserialize`."""

import sys

from rpd.command import run_verb

if __name__ == "__main__":
    run_verb("rocpd.deserialize", "deserialize", sys.argv[1:])
