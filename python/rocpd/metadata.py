"""Metadata: the facts of a trace by name; `python3 -m rocpd.metadata FILE` lists them."""

from __future__ import annotations

import argparse
import sqlite3

from rocpd.importer import RocpdImportData

__all__ = ["Metadata"]


class Metadata:
    """Rows of rocpd_metadata, through the connection of a RocpdImportData. Who sets or clears one commits."""

    def __init__(self, importer):
        self.importer = importer

    def get(self, tag: str) -> str | None:
        """The value of a tag; None without one."""
        rows = self._execute("select value from rocpd_metadata where tag = ? order by id limit 1", tag).fetchall()
        return rows[0][0] if rows else None

    def set(self, tag: str, value: object) -> None:
        """Gives a tag a value."""
        if self._execute("update rocpd_metadata set value = ? where tag = ?", value, tag).rowcount == 0:
            self._execute("insert into rocpd_metadata (tag, value) values (?, ?)", tag, value)

    def clear(self, tag: str) -> None:
        """Removes a tag."""
        self._execute("delete from rocpd_metadata where tag = ?", tag)

    def listAll(self) -> None:
        """Prints all tags and values, by the tags' names."""
        for row in self._execute("select tag, value from rocpd_metadata order by tag, id"):
            print(row)

    def _execute(self, statement, *values):
        return self.importer.connection.execute(statement, values)


def main():
    parser = argparse.ArgumentParser(prog="rocpd.metadata", description="List the facts of a trace.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--list", action="store_true", help="what it does without this too")
    # Never makes a file of a mistyped name.
    connection = sqlite3.connect(parser.parse_args().file)
    importer = RocpdImportData()
    importer.connection = connection
    Metadata(importer).listAll()


if __name__ == "__main__":
    main()
