"""python3 -m rpd.duck QUERY DATASET: asks a dataset by DuckDB, on this machine."""

import re

from rpd.jobs import FOLDERS, TABLES, Wrong, files, place, run, unreadable


def _columns(columns, between):
    return ", ".join(f'"{name}"{between}{"VARCHAR" if kind == "STRING" else kind}' for name, kind in columns.items())


def _escaped(path):
    """A path that is no pattern to DuckDB, whatever its name is."""
    return re.sub(r"[*?\[]", r"[\g<0>]", path)


def _ask(arguments, statement):
    try:
        import duckdb
    except ImportError:
        raise Wrong("this needs DuckDB: pip install duckdb") from None
    connection = duckdb.connect()
    named = files(arguments.dataset)
    found = 0
    for table, columns in TABLES.items():
        try:
            if named is None:
                pattern = place(arguments.dataset, table) + "/**/*.parquet"
                paths = [path for path, in connection.execute("SELECT file FROM glob(?)", [pattern]).fetchall()]
            else:
                paths = [_escaped(path) for path in named[table]]
            # No rank has rows of every table.
            if not paths:
                connection.execute(f'CREATE TABLE "{table}" ({_columns(columns, " ")})')
                continue
            # In the text of the view, every query would read the list anew.
            connection.execute(f'SET VARIABLE "{table}" = ?', [paths])
            types = f"hive_partitioning = true, hive_types = {{{_columns(FOLDERS, ': ')}}}"
            connection.execute(f'CREATE VIEW "{table}" AS SELECT * FROM read_parquet(getvariable(\'{table}\'), {types})')
            found += 1
        except duckdb.Error as error:
            raise unreadable(arguments.dataset, error) from None
    if not found:
        raise Wrong(f"{arguments.dataset} has no rows: add traces with rpd dataset --append")
    try:
        answer = connection.execute(statement)
        if answer is None or answer.description is None:
            raise Wrong("the query has no answer: it has to be one statement that begins with SELECT or WITH")
        return [column[0] for column in answer.description], answer.fetchall()
    except duckdb.Error as error:
        raise Wrong(f"the query cannot be run: {error}") from None


if __name__ == "__main__":
    run("rpd.duck", _ask)
