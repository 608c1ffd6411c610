"""Runs a command; the last line on standard error is its most memory in MiB and its CPU time in s: peak.py COMMAND..."""

import os
import resource
import subprocess
import sys

status = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss / 1024, used.ru_utime + used.ru_stime, file=sys.stderr, flush=True)
os._exit(status & 255)
