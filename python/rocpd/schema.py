"""RocpdSchema, and `python3 -m rocpd.schema --create FILE`: an empty trace."""

import argparse
import os
import sqlite3
import sys

from rpd.schema import RocpdSchema

__all__ = ["RocpdSchema"]


def main():
    parser = argparse.ArgumentParser(prog="rocpd.schema", description="Create an empty trace, or print the schema.")
    parser.add_argument("--create", metavar="FILE", help="the trace to create; it must not exist, or have no bytes")
    file = parser.parse_args().create
    schema = RocpdSchema()
    if file is None:
        print(schema.tableSchema)
        return
    if os.path.exists(file) and os.path.getsize(file) > 0:
        sys.exit(f"rocpd.schema: {file} is there already: it is left as it is")
    print(f"Creating empty rpd: {file}")
    try:
        connection = sqlite3.connect(file)
        schema.writeSchema(connection)
        connection.close()
    except sqlite3.Error as error:
        sys.exit(f"rocpd.schema: cannot create {file}: {error}")


if __name__ == "__main__":
    main()
