"""python3 -m rocpd.call_stacks FILE: the older name of rocpd.callstack."""

import sys

from rpd.command import run_verb

if __name__ == "__main__":
    run_verb("rocpd.call_stacks", "callstack", sys.argv[1:])
