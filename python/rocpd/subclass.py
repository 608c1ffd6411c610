"""createSubclassTable, and `python3 -m rocpd.subclass FILE --base api|op --name NAME --apis A,B`: arguments as columns; `rpd subclass`."""

from __future__ import annotations

import sys
from typing import Iterable, Mapping

from rocpd.importer import RocpdImportData
from rpd import change
from rpd.command import run_verb

__all__ = ["createSubclassTable"]


def createSubclassTable(
    importData: RocpdImportData, baseClass: str, subClass: str, events: Iterable[str], argTypes: Mapping[str, str]
) -> None:
    """Makes the table rocpd_{subClass}{baseClass} and the view {subClass}{baseClass} of the calls ("api") or ops ("op") with the
    names `events`. `argTypes` has the types of columns, as SQL has them, by the names of arguments; others are text."""
    importData.commitStrings()
    options = ["--base", baseClass, "--name", subClass, "--apis", ",".join(events)]
    types = [f"{name}={_type(declaration)}" for name, declaration in argTypes.items()]
    if types:
        options += ["--types", ",".join(types)]
    change.run(importData.connection, "subclass", *options)
    importData.resumeExisting(importData.connection)


def _type(declaration):
    """What SQLite makes of the declared type of a column."""
    words = declaration.upper()
    for kind, parts in (("integer", ("INT", "BOOL")), ("text", ("CHAR", "CLOB", "TEXT", "BLOB")), ("real", ("",))):
        if any(part in words for part in parts):
            return kind


if __name__ == "__main__":
    run_verb("rocpd.subclass", "subclass", sys.argv[1:])
