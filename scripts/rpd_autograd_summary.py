#!/usr/bin/env python3
"""Writes which kernels PyTorch's operators launched as HTML, with the arguments and columns of rocmProfileData's rpd_autograd_summary.py.

The trace needs the tables of `rpd autograd`. The file has everything in it and works without a network.
"""

import argparse
import html
import itertools
import json
import os
import shutil
import subprocess
import sys

QUERY = """
SELECT autogradName AS operator, kernelName AS kernel, sizes, sum(calls) AS calls, sum(total_gpu) AS total_gpu
FROM autogradKernel GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

HEAD = """<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<title>Kernels by Autograd Operator</title>
<style>
th { text-align: left; }
td.number { text-align: right; }
tr.group { cursor: pointer; background-color: rgb(230,230,230); }
tr.group > td:first-child::before { content: "\\25B6"; display: inline-block; }
tr.group.open > td:first-child::before { transform: rotate(90deg); }
tr[hidden] { display: none; }
</style>
</head>
<body>
<h2>Kernels by Autograd Operator</h2>
<p>Average GPU and Total GPU are in nanoseconds. A click on a row shows what it consists of.</p>
<table>
<tr><th></th><th>Autograd Operator</th><th>Kernel Name</th><th>Sizes</th><th>Total Call</th><th>Average GPU</th><th>Total GPU</th></tr>
"""

TAIL = """</table>
<script>
function show(row, shown) {
  row.classList.toggle("open", shown);
  for (const child of document.querySelectorAll('tr[data-in="' + row.id + '"]')) {
    child.hidden = !shown;
    if (!shown) show(child, false);
  }
}
for (const row of document.querySelectorAll("tr.group"))
  row.addEventListener("click", () => show(row, !row.classList.contains("open")));
</script>
</body>
</html>
"""


def command():
    """rpd beside this script, in the build of its checkout, or on PATH."""
    here = os.path.dirname(os.path.realpath(__file__))
    for place in (here, os.path.join(os.path.dirname(here), "target", "release")):
        path = os.path.join(place, "rpd")
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return shutil.which("rpd") or sys.exit("rpd_autograd_summary.py: there is no rpd command; `make install` installs it")


def shown(text):
    """A text of any characters as a piece of HTML."""
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(text))
    return f"<bdi>{html.escape(plain)}</bdi>"


class Summary:
    """Writes the rows; a group of one is that one."""

    def __init__(self, out):
        self.out = out
        self.groups = 0

    def row(self, labels, rows, within, is_group):
        calls, total = sum(row["calls"] for row in rows), sum(row["total_gpu"] for row in rows)
        name = f"g{self.groups}"
        self.groups += is_group
        attributes = (f' class="group" id="{name}"' if is_group else "") + (f' data-in="{within}" hidden' if within else "")
        cells = "".join(f"<td>{shown(label)}</td>" for label in labels)
        numbers = "".join(f'<td class="number">{number}</td>' for number in (calls, round(total / calls, 1) if calls else 0, total))
        self.out.write(f"<tr{attributes}><td></td>{cells}{numbers}</tr>\n")
        return name if is_group else within

    def operator(self, name, rows):
        within = self.row([name, "", ""], rows, None, True) if len(rows) > 1 else None
        for kernel, of in itertools.groupby(rows, key=lambda row: row["kernel"]):
            of = list(of)
            label = "" if within else name
            inner = self.row([label, kernel, ""], of, within, True) if len(of) > 1 else within
            for row in of:
                self.row([label, "" if inner != within else kernel, row["sizes"]], [row], inner, False)


def destination(path):
    """The file to write, and whether it takes the place of `path` when it is complete. A device or a pipe is written as it is; a trace stays."""
    if os.path.exists(path) and not os.path.isfile(path):
        return path, False
    place = os.path.realpath(path)
    try:
        with open(place, "rb") as there:
            is_database = there.read(16) == b"SQLite format 3\0"
    except OSError:
        is_database = False
    if is_database:
        sys.exit(f"rpd_autograd_summary.py: {path} is a trace, which stays: name another file")
    return f"{place}.part-{os.getpid()}", True


def main():
    parser = argparse.ArgumentParser(prog="rpd_autograd_summary.py", description="Write the kernels of PyTorch's operators as HTML.")
    parser.add_argument("input_rpd", help="a trace with the tables of rpd autograd")
    parser.add_argument("output_html", help="the HTML file, replaced if it exists")
    parser.add_argument("--start", type=int, help="has no effect, as in the original: trim the trace first")
    parser.add_argument("--end", type=int, help="as --start")
    given = parser.parse_args()
    if given.start is not None or given.end is not None:
        print("rpd_autograd_summary.py: --start and --end have no effect, as in the original; rpd trim cuts a trace", file=sys.stderr)
    # The old file stays until the new one is there.
    unfinished, is_new = destination(given.output_html)
    asked = subprocess.run([command(), "sql", "--json", "--timeout", "0", "--", given.input_rpd, QUERY], stdout=subprocess.PIPE)
    if asked.returncode != 0:
        if asked.returncode == 1:
            print("rpd_autograd_summary.py: the tables of operators come from: rpd autograd FILE", file=sys.stderr)
        sys.exit(asked.returncode)
    try:
        with open(unfinished, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write(HEAD)
            summary = Summary(out)
            for name, rows in itertools.groupby(json.loads(asked.stdout), key=lambda row: row["operator"]):
                summary.operator(name, list(rows))
            out.write(TAIL)
        if is_new:
            os.replace(unfinished, os.path.realpath(given.output_html))
    except OSError as error:
        sys.exit(f"rpd_autograd_summary.py: cannot write {given.output_html}: {error.strerror}")
    finally:
        if is_new and os.path.exists(unfinished):
            os.unlink(unfinished)


if __name__ == "__main__":
    main()
