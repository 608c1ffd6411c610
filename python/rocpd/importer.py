"""RocpdImportData: the texts of a trace and the next ids in it, for programs that write rows through a connection of their own."""

from __future__ import annotations

import sqlite3

__all__ = ["RocpdImportData"]


class RocpdImportData:
    """Its passes (rocpd.strings, rocpd.deserialize and so on) take one, and leave it as the trace is then.

    `connection` is the sqlite3 connection, `strings` has the id of each text, `string_id`, `op_id` and `api_id` are the next free
    ids; who writes an op or a call with one counts it up.
    """

    def __init__(self):
        self.connection = None
        self.strings = {}
        self.string_inserts = []
        self.string_id = self.op_id = self.api_id = 1
        self.empty_string_id = 1

    def __del__(self):
        self.commitStrings(True)

    def initNew(self, connection: sqlite3.Connection) -> None:
        """Begins with a trace that has the tables and nothing in them."""
        self.connection = connection
        self.initEmptyString()

    def resumeExisting(self, connection: sqlite3.Connection) -> None:
        """Begins with a trace as it is."""
        self.connection = connection
        self.buildStringCache()
        self.buildCurrentIds()

    def initEmptyString(self) -> None:
        """Gives the empty text an id."""
        self.empty_string_id = self.getStringId("")
        self.commitStrings()

    def buildStringCache(self) -> None:
        """Reads the texts. Of equal ones any id will do."""
        self.string_inserts = []
        self.strings = {text: number for number, text in self.connection.execute("select id, string from rocpd_string")}
        self.string_id = self._next("rocpd_string")
        self.initEmptyString()

    def buildCurrentIds(self) -> None:
        """Finds the next ids of ops and calls."""
        self.op_id = self._next("rocpd_op")
        self.api_id = self._next("rocpd_api")

    def getStringId(self, val: str) -> int:
        """The id of a text, which gets one if it has none; the row is written by the next commitStrings."""
        known = self.strings.get(val)
        if known is None:
            known = self.strings[val] = self.string_id
            self.string_inserts.append((known, val))
            self.string_id += 1
        return known

    def commitStrings(self, commit: bool = False) -> None:
        """Writes the texts that are new; with `commit` the connection commits."""
        if not self.string_inserts:
            return
        self.connection.executemany("insert into rocpd_string (id, string) values (?, ?)", self.string_inserts)
        self.string_inserts = []
        if commit:
            self.connection.commit()

    def _next(self, table):
        return self.connection.execute(f"select coalesce(max(id), 0) + 1 from {table}").fetchone()[0]
