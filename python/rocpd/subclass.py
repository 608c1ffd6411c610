"""python3 -m rocpd.subclass FILE --base api|op --name NAME --apis A,B: arguments as columns; `rpd subclass`."""

import sys

from rpd.command import run_verb

if __name__ == "__main__":
    run_verb("rocpd.subclass", "subclass", sys.argv[1:])
