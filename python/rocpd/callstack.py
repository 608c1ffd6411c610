"""python3 -m rocpd.callstack FILE: what each call cost with and without those it made; `rpd callstack`."""

import sys

from rpd.command import run_verb

if __name__ == "__main__":
    run_verb("rocpd.callstack", "callstack", sys.argv[1:])
