"""deserializeApis, and `python3 -m rocpd.deserialize FILE`: calls and ops that a program wrote as markers become rows; `rpd deserialize`."""

from __future__ import annotations

import sys
from typing import Iterable

from rocpd.importer import RocpdImportData
from rpd import change
from rpd.command import run_verb

__all__ = ["deserializeApis"]


def deserializeApis(imp: RocpdImportData, srcApis: Iterable[str]) -> None:
    """Makes rows of what stands in the arguments of the calls with the names `srcApis`, in the trace of a RocpdImportData."""
    imp.commitStrings()
    change.run(imp.connection, "deserialize", "--apis", ",".join(srcApis))
    imp.resumeExisting(imp.connection)


if __name__ == "__main__":
    run_verb("rocpd.deserialize", "deserialize", sys.argv[1:])
