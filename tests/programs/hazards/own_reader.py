"""Marks and, between marks, opens, reads and closes its own trace, as a script does that looks at what it has so far.

Usage: own_reader.py TRACE ROUNDS     Prints how many marks it pushed.
"""
import ctypes
import os
import sqlite3
import sys

trace, rounds = sys.argv[1], int(sys.argv[2])
recorder = ctypes.CDLL(None)
last = 0
for number in range(rounds):
    for step in range(20):
        text = f"{os.getpid()} {number} {step}"
        recorder.rpd_mark(b"python", b"UserMarker", text.encode())
    if number == 0:
        recorder.rpdflush()
    connection = sqlite3.connect(trace, timeout=600)
    (count,) = connection.execute("select count(*) from rocpd_api").fetchone()
    # Every text that a row names is there: a commit is seen whole.
    (missing,) = connection.execute(
        "select count(*) from rocpd_api where args_id not in (select id from rocpd_string)"
    ).fetchone()
    connection.close()
    if missing or count < last:
        sys.exit(f"round {number}: {count} rows after {last}, {missing} without a text")
    last = count
print(rounds * 20)
