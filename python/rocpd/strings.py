"""python3 -m rocpd.strings FILE --dedupe: each text once; `rpd strings`."""

import sys

from rpd.command import run_verb

if __name__ == "__main__":
    if "--clean_autograd" in sys.argv:
        sys.exit("rocpd.strings: --clean_autograd is what `rpd autograd FILE` does to the operators' markers, reversibly")
    run_verb("rocpd.strings", "strings", sys.argv[1:])
