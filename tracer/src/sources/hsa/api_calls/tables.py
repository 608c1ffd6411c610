#!/usr/bin/env python3
"""Writes tables.txt, the places of functions in the tables of the HSA runtime, from its own hsa_api_trace.h.

    tables.py HEADER... > tables.txt     oldest first

A line: TABLE SINCE OFFSET NAME. SINCE: the layout of tables of that many bytes and more, up to the next that the table has. A header
whose table has the functions of the one before, and others behind them, has the same layout.
"""

import re
import sys
from pathlib import Path

VERSION = 16
TABLES = {"core": "CoreApiTable", "amd": "AmdExtTable"}


def functions(header, table):
    body = re.search(rf"struct {table}\s*\{{(.*?)\}};", Path(header).read_text(), re.S)[1]
    return re.findall(r"decltype\((\w+)\)\s*\*\s*\w+;", re.sub(r"//.*", "", body))


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
        for place, function in enumerate(found):
            print(table, since, VERSION + 8 * place, function)
