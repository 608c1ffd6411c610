"""Questions to a dataset (`rpd dataset`): the ready-made queries, the tables, and answers as text. Engines are rpd.duck and rpd.spark."""

import argparse
import contextlib
import csv
import datetime
import decimal
import hashlib
import json
import math
import os
import stat
import sys
from pathlib import Path
from urllib.parse import quote

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
# What a manifest has, and what it says of a file, in so far as it is read here.
_MANIFEST = {"part": str, "trace": str, "job": str, "node": str, "rank": int, "sessions": list, "is_aligned": bool, "rows": dict, "files": list}
_FILE = {"path": str, "rows": int, "bytes": int, "sha256": str}


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


def unreadable(dataset, error):
    """What to say where an engine cannot open a dataset."""
    more = "" if "://" in dataset else f"; rpd dataset check {dataset} says which files are missing or damaged"
    reason = str(error).split("\n\n")[0]
    return Wrong(f"cannot read {dataset}: {reason}{more}")


def files(dataset):
    """The files of each table that the manifests name: a file that none names is of somebody who was killed, or was replaced.

    None for a URL, of which nothing can be listed here: the engine reads all files that are there.
    """
    if "://" in dataset:
        _say(f"{dataset}: no manifest can be read there, so files that no manifest names are read too")
        return None
    found = {table: [] for table in TABLES}
    named, left = set(), []
    for path in _below(dataset, "_manifest"):
        try:
            if not stat.S_ISREG(os.stat(os.path.join(dataset, path)).st_mode):
                raise ValueError("it is no regular file")
            paths = _named(Path(dataset, path).read_text(encoding="utf-8"), path)
            if not named.isdisjoint(paths):
                raise ValueError("it names a file of another one")
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, RecursionError) as error:
            left.append((path, error))
            continue
        named.update(paths)
        for name in paths:
            found.get(name.partition("/")[0], []).append(dataset.rstrip("/") + "/" + name)
    if left:
        path, error = left[0]
        which = f"the manifest {path} is" if len(left) == 1 else f"{len(left)} manifests, the first of them {path}, are"
        _say(f"{dataset}: {which} left out, with all files that no other one names ({error}): rpd dataset check {dataset} says more")
    return found


def _below(dataset, folder):
    """The names of all manifests, from the dataset's directory on, sorted by folders."""

    def fail(error):
        if not isinstance(error, FileNotFoundError):
            raise error

    found = []
    for here, _, names in os.walk(os.path.join(dataset, folder), onerror=fail):
        here = os.path.relpath(here, dataset)
        found += [f"{here}/{name}" for name in names if name.endswith(".json")]
    return sorted(found, key=lambda path: path.split("/"))


def _named(text, path):
    """The files that a manifest names. An error where rpd would not use it: the rules are those of postprocess/src/dataset/manifest.rs."""
    manifest = _typed(json.loads(text), _MANIFEST)
    rank, offset = manifest["rank"], manifest.get("offset_ns")
    offset = 0 if offset is None else offset
    if type(offset) is not int or not -(2**63) <= offset < 2**63:
        raise ValueError("offset_ns is no number of nanoseconds")
    if not 0 <= rank < 2**32:
        raise ValueError(f"rank {rank} is none")
    folder = f"job=j{_encoded(manifest['job'])}/node=n{_encoded(manifest['node'])}/rank={rank}"
    if path != f"_manifest/{folder}/{manifest['part']}.json":
        raise ValueError("the job, node, rank or part in it are not those of its place")
    paths, rows = [], dict.fromkeys(manifest["rows"], 0)
    for file in manifest["files"]:
        folders = _typed(file, _FILE)["path"].split("/")
        rows[folders[0]] = rows.get(folders[0], 0) + file["rows"]
        # A manifest cannot lead out of the dataset.
        paths.append("/".join(folder for folder in folders if folder not in ("", ".", "..")))
    times = [part.get(key) for part in (manifest, *manifest["files"]) for key in ("first_ns", "last_ns")]
    times = [time for time in times if time is not None]
    if any(type(time) is not int or not -(2**63) <= time - offset < 2**63 for time in times):
        raise ValueError(f"offset_ns {offset} does not fit to its times")
    if len(set(paths)) != len(paths):
        raise ValueError("it names a file twice")
    if rows != manifest["rows"]:
        raise ValueError("its files have other rows than it")
    return paths


def _typed(record, kinds):
    for key, kind in kinds.items():
        if type(record) is not dict or type(record.get(key)) is not kind:
            raise ValueError(f"{key} is not there, or of another type")
    return record


def _encoded(text):
    """A job or node as the name of a folder: see postprocess/src/dataset/place.rs."""
    whole = _quoted(text)
    if len(whole) <= 200:
        return whole
    return f"{_quoted(text[:16])}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _quoted(text):
    return quote(text, safe="").replace("~", "%7E")


def _say(line):
    print(f"rpd: {_printable(line)}", file=sys.stderr)


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
            with _replacing(arguments.output) as out:
                _write(out, arguments, columns, rows)
        else:
            # Names are UTF-8 wherever they are read.
            sys.stdout.reconfigure(encoding="utf-8")
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


@contextlib.contextmanager
def _replacing(path):
    """A file that takes the place of the one at `path` when it is written to its end."""
    if os.path.exists(path) and not os.path.isfile(path):
        # A device or a pipe.
        with open(path, "w", encoding="utf-8", newline="") as out:
            yield out
        return
    path = os.path.realpath(path)
    aside = f"{path}.{os.getpid()}"
    try:
        with open(aside, "x", encoding="utf-8", newline="") as out:
            if os.path.exists(path):
                os.chmod(aside, stat.S_IMODE(os.stat(path).st_mode))
            yield out
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(aside)
        raise


def _for_json(value):
    """A value of an engine as JSON has it: numbers for decimals, texts for times, null for what is no number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, decimal.Decimal):
        whole = value.to_integral_value()
        return int(whole) if value == whole else float(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _for_json(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(member) for member in value]
    return str(value)


def _write(out, arguments, columns, rows):
    if arguments.json:
        objects = (json.dumps(_for_json(dict(zip(columns, row))), ensure_ascii=False) for row in rows)
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
        return _printable(f"{value:.3f}" if isinstance(value, float) else str(value))

    cells = [[shown(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells)]
    right = [not any(isinstance(value, str) for value in column) for column in zip(*rows)] or [False] * len(columns)
    for row in [columns, *cells]:
        padded = (cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(row, widths, right))
        out.write("  ".join(padded).rstrip() + "\n")


def _printable(text):
    """Names are of the traces: none may move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
