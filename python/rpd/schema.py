"""Schema 2 of rocmProfileData, from the same SQL text as the recorder's."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def _read(name):
    here = Path(__file__).resolve().parent
    # An installed package has a copy, all in one folder; a checkout has the text itself.
    copy = here / "sql" / Path(name).name
    return (copy if copy.exists() else here.parent.parent / "sql" / name).read_text()


class RocpdSchema:
    """Writes the tables, indexes and views of a fresh trace into an sqlite3 connection."""

    def __init__(self):
        self.tableSchema = _read("tables.sql")
        self.indexSchema = _read("indexes.sql")
        self.index2Schema = _read("lookup_indexes.sql")
        utility = ("api.sql", "views.sql", "metadata.sql", "ext/dispatch.sql")
        self.utilitySchema = "".join(map(_read, utility))

    def writeSchema(self, connection: sqlite3.Connection) -> None:
        """All that a recorder needs, in one transaction: other processes see a complete trace or none. What is there stays."""
        _write(connection, self.tableSchema, self.indexSchema, self.utilitySchema)

    def writeBasicSchema(self, connection: sqlite3.Connection) -> None:
        """Tables and the index of texts alone: no views, and no metadata that would say which schema it is."""
        _write(connection, self.tableSchema, self.indexSchema)

    def writeFullSchema(self, connection: sqlite3.Connection) -> None:
        """As writeSchema, and the indexes for looking up what refers to a row, which make writing slower."""
        _write(connection, self.tableSchema, self.indexSchema, self.index2Schema, self.utilitySchema)


def _write(connection, *parts):
    connection.executescript("BEGIN IMMEDIATE;\n" + "".join(parts) + "\nCOMMIT;")
