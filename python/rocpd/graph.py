"""python3 -m rocpd.graph FILE: the kernels and times of graph launches; `rpd graph`."""

import sys

from rpd.command import run_verb

if __name__ == "__main__":
    run_verb("rocpd.graph", "graph", sys.argv[1:])
