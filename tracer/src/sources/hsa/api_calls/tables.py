#!/usr/bin/env python3
"""Writes tables.txt, the places of functions in the tables of the HSA runtime, from its own hsa_api_trace.h.

    tables.py HEADER... > tables.txt     oldest first

A line: TABLE SINCE OFFSET NAME. SINCE: the layout of tables of that many bytes and more, up to the next that the table has. A header
whose table has the functions of the one before, and others behind them, has the same layout. What is behind MOVED has changed places
between versions of one layout: SINCE is =SIZE.STEP there, for tables of just that many bytes and that step.
"""

import re
import sys
from pathlib import Path

VERSION = 16
# In AMD's extension, in the versions of 2026.
MOVED = 672
TABLES = {"core": "CoreApiTable", "amd": "AmdExtTable"}


def functions(header, table):
    body = re.search(rf"struct {table}\s*\{{(.*?)\}};", Path(header).read_text(), re.S)[1]
    return re.findall(r"decltype\((\w+)\)\s*\*\s*\w+;", re.sub(r"//.*", "", body))


def step(header):
    text = Path(header).with_name("hsa_api_trace_version.h").read_text()
    return int(re.search(r"HSA_AMD_EXT_API_TABLE_STEP_VERSION\s+(\w+)", text)[1], 0)


for table, name in TABLES.items():
    layouts = []
    for header in sys.argv[1:]:
        found = functions(header, name)
        last = layouts[-1][1] if layouts else None
        if last and found[:len(last)] == last:
            layouts[-1][1] = found
        else:
            layouts.append([VERSION + 8 * len(found) if layouts else 0, found])
    for since, found in layouts:
        size = VERSION + 8 * len(found)
        for place, function in enumerate(found):
            offset = VERSION + 8 * place
            moved = table == "amd" and offset >= MOVED
            print(table, f"={size}.{step(sys.argv[-1])}" if moved else since, offset, function)
