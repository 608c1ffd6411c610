"""python3 -m rocpd.autograd FILE [--skip_callstacks]: PyTorch's operators as rows with their sizes; `rpd autograd`."""

import sys

from rpd.command import run_verb

if __name__ == "__main__":
    known = {"--skip_callstacks": "--skip-callstacks"}
    run_verb("rocpd.autograd", "autograd", [known.get(argument, argument) for argument in sys.argv[1:]])
