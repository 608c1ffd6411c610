"""Schema 2 of rocmProfileData, from the same SQL text as the recorder's."""

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
        utility = ("api.sql", "views.sql", "metadata.sql", "ext/dispatch.sql")
        self.utilitySchema = "".join(map(_read, utility))

    def writeSchema(self, connection):
        """All of it, in one transaction: other processes see a complete trace or none. What is there stays."""
        script = self.tableSchema + self.indexSchema + self.utilitySchema
        connection.executescript("BEGIN IMMEDIATE;\n" + script + "\nCOMMIT;")
