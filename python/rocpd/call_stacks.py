"""createCallStackTable, generateCallStacks, and `python3 -m rocpd.call_stacks FILE`: the older name of rocpd.callstack."""

from __future__ import annotations

import sys

from rocpd.importer import RocpdImportData
from rocpd.metadata import Metadata
from rpd import change
from rpd.command import run_verb

__all__ = ["createCallStackTable", "generateCallStacks"]


def createCallStackTable(imp: RocpdImportData) -> None:
    """Nothing: generateCallStacks makes the table and its views with what is in them."""


def generateCallStacks(imp: RocpdImportData) -> None:
    """Makes ext_callstack and its views in the trace of a RocpdImportData. Raises RuntimeError where they are made already."""
    if Metadata(imp).get("Callstack::Generated") is not None:
        raise RuntimeError("the call stacks are in the trace already")
    imp.commitStrings()
    change.run(imp.connection, "callstack", "--redo")


if __name__ == "__main__":
    run_verb("rocpd.call_stacks", "callstack", sys.argv[1:])
