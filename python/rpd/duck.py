"""python3 -m rpd.duck QUERY DATASET: asks a dataset by DuckDB, on this machine."""

from rpd.jobs import FOLDERS, TABLES, Wrong, place, run


def _ask(arguments, statement):
    try:
        import duckdb
    except ImportError:
        raise Wrong("this needs DuckDB: pip install duckdb") from None
    connection = duckdb.connect()
    types = ", ".join(f"{name}: {'VARCHAR' if kind == 'STRING' else kind}" for name, kind in FOLDERS.items())
    found = 0
    for table, columns in TABLES.items():
        files = (place(arguments.dataset, table) + "/**/*.parquet").replace("'", "''")
        view = f"SELECT * FROM read_parquet('{files}', hive_partitioning = true, hive_types = {{{types}}})"
        try:
            connection.execute(f'CREATE VIEW "{table}" AS {view}')
            found += 1
        except duckdb.IOException as error:
            # No rank has rows of every table.
            if "No files found" not in str(error):
                raise Wrong(f"cannot read {arguments.dataset}: {error}") from None
            empty = ", ".join(f'"{name}" {"VARCHAR" if kind == "STRING" else kind}' for name, kind in columns.items())
            connection.execute(f'CREATE TABLE "{table}" ({empty})')
        except duckdb.Error as error:
            raise Wrong(f"cannot read {arguments.dataset}: {error}") from None
    if not found:
        raise Wrong(f"{arguments.dataset} has no rows: add traces with rpd dataset --append")
    try:
        answer = connection.execute(statement)
        return [column[0] for column in answer.description], answer.fetchall()
    except duckdb.Error as error:
        raise Wrong(f"the query cannot be run: {error}") from None


if __name__ == "__main__":
    run("rpd.duck", _ask)
