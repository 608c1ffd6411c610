"""Questions to a dataset (`rpd dataset`): the ready-made queries, the tables, and answers as text. Engines are rpd.duck and rpd.spark."""

import argparse
import csv
import json
import os
import sys
from pathlib import Path

_OF_OP = "id BIGINT, gpuId BIGINT, queueId BIGINT, sequenceId BIGINT, start BIGINT, end BIGINT, "
_OF_CALL = "id BIGINT, pid BIGINT, tid BIGINT, start BIGINT, end BIGINT, apiName STRING, "
# Columns of each table, without those of the folders.
_COLUMNS = {
    "op": _OF_OP + "description STRING, opType STRING, api_id BIGINT",
    "kernel": _OF_OP + "stream STRING, gridX BIGINT, gridY BIGINT, gridZ BIGINT, workgroupX BIGINT, workgroupY BIGINT, "
    "workgroupZ BIGINT, groupSegmentSize BIGINT, privateSegmentSize BIGINT, kernelName STRING, api_id BIGINT",
    "api": _OF_CALL + "args STRING, domain STRING, category STRING",
    "copy": _OF_CALL + "stream STRING, size BIGINT, width BIGINT, height BIGINT, kind BIGINT, dst STRING, src STRING, "
    "dstDevice BIGINT, srcDevice BIGINT, sync BIGINT, pinned BIGINT",
    "monitor": "id BIGINT, deviceType STRING, deviceId BIGINT, monitorType STRING, start BIGINT, end BIGINT, value STRING",
    "session": "session BIGINT, key STRING, value STRING",
    "gpu": "gpuId BIGINT, key STRING, value STRING",
}
# As they are in the names of folders: without a type, engines guess one from the names that are there.
FOLDERS = {"job": "STRING", "node": "STRING", "rank": "BIGINT", "slice": "BIGINT"}
TABLES = {
    table: {**dict(column.split() for column in columns.split(", ")), "part": "BIGINT", **FOLDERS}
    for table, columns in _COLUMNS.items()
}


class Wrong(Exception):
    """What is wrong with what was asked, and what to do."""


def _queries():
    here = Path(__file__).resolve().parent
    # In the package, or in a checkout.
    for folder in (here / "sql" / "job_queries", here.parent.parent / "sql" / "job_queries"):
        if folder.is_dir():
            return {file.stem: file for file in sorted(folder.glob("*.sql"))}
    return {}


def statement(query):
    """The text of a ready-made query, or of a file."""
    files = _queries()
    if query in files:
        return files[query].read_text(encoding="utf-8")
    if not query.endswith(".sql"):
        raise Wrong(f"there is no query {query!r}: there are {', '.join(files)}, and files whose names end with .sql")
    try:
        text = Path(query).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Wrong(f"cannot read {query}: {error}") from None
    return text.rstrip(";")


def check(dataset):
    """Whether a dataset is there, as far as can be seen without its object store."""
    if "://" in dataset:
        return
    if not os.path.isfile(os.path.join(dataset, "_dataset.json")):
        raise Wrong(f"{dataset} is no dataset: it has no _dataset.json; rpd dataset DIR FILE... makes one")


def place(dataset, table):
    return dataset.rstrip("/") + "/" + table


def run(program, engine, options=lambda parser: None):
    """The command of an engine; `engine` gives the columns and rows of an answer."""
    parser = argparse.ArgumentParser(
        prog=f"python3 -m {program}",
        description=f"Asks a dataset, as rpd dataset makes it, a question. Ready-made ones: {', '.join(_queries())}.",
    )
    parser.add_argument("query", metavar="QUERY", help="a ready-made query, or a file FILE.sql with a statement")
    parser.add_argument("dataset", metavar="DATASET", help="the directory, or where it is in an object store")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="write comma-separated values with a header line")
    form.add_argument("--json", action="store_true", help="write a JSON array with an object for each row")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file")
    options(parser)
    arguments = parser.parse_args()
    try:
        text = statement(arguments.query)
        check(arguments.dataset)
        columns, rows = engine(arguments, text)
        if arguments.output:
            with open(arguments.output, "w", encoding="utf-8", newline="") as out:
                _write(out, arguments, columns, rows)
        else:
            _write(sys.stdout, arguments, columns, rows)
            sys.stdout.flush()
    except BrokenPipeError:
        # Who read it has seen enough; at its end Python would try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Wrong as wrong:
        print(f"{program}: {wrong}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(1)


def _write(out, arguments, columns, rows):
    if arguments.json:
        objects = (json.dumps(dict(zip(columns, row)), ensure_ascii=False) for row in rows)
        out.write("[\n" + ",\n".join(objects) + "\n]\n")
    elif arguments.csv:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    else:
        _write_table(out, columns, rows)


def _write_table(out, columns, rows):
    def shown(value):
        if value is None:
            return ""
        text = f"{value:.3f}" if isinstance(value, float) else str(value)
        # Names are of the traces: none may move the cursor of a terminal.
        return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)

    cells = [[shown(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells)]
    right = [not any(isinstance(value, str) for value in column) for column in zip(*rows)] or [False] * len(columns)
    for row in [columns, *cells]:
        padded = (cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(row, widths, right))
        out.write("  ".join(padded).rstrip() + "\n")
