"""cleanStrings, and `python3 -m rocpd.strings FILE --dedupe`: each text once; `rpd strings`."""

from __future__ import annotations

import sys

from rocpd.importer import RocpdImportData
from rpd import change
from rpd.command import run_verb

__all__ = ["cleanStrings"]

# What PyTorch's markers have behind an operator's name.
_FIELDS = (", seq", ", op_id", ", sizes", ", input_op_ids")


def cleanStrings(imp: RocpdImportData, fix_autograd: bool) -> None:
    """Leaves each text of the trace of a RocpdImportData once, and none that nothing uses.

    With `fix_autograd` texts first lose what stands behind the names of PyTorch's operators; `rpd autograd` keeps that in a table.
    """
    imp.commitStrings()
    if fix_autograd:
        for field in _FIELDS:
            cut = "update rocpd_string set string = substr(string, 1, instr(string, ?1) - 1) where instr(string, ?1) > 0"
            imp.connection.execute(cut, (field,))
    change.run(imp.connection, "strings", "--dedupe")
    imp.resumeExisting(imp.connection)


if __name__ == "__main__":
    if "--clean_autograd" in sys.argv:
        sys.exit("rocpd.strings: --clean_autograd is what `rpd autograd FILE` does to the operators' markers, reversibly")
    run_verb("rocpd.strings", "strings", sys.argv[1:])
