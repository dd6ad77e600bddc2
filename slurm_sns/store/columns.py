"""Columns that a newer version has are added to the tables of an older one, so that an upgrade keeps its database.

A column that is added to a table in a later version is nullable or has a `server_default`: rows are there already.
"""

from sqlalchemy import Engine, MetaData, Table, inspect
from sqlalchemy.schema import CreateColumn


def add_missing_columns(engine: Engine, metadata: MetaData) -> None:
    """Bring the tables that are there up to `metadata`. What they have beyond it stays."""
    for table in metadata.sorted_tables:
        for definition in _missing(engine, table):
            with engine.begin() as connection:
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {definition}")


def _missing(engine: Engine, table: Table) -> list[str]:
    """`name TYPE ...` of each column that the database's table lacks."""
    there = {column["name"] for column in inspect(engine).get_columns(table.name)}
    return [str(CreateColumn(each).compile(engine)) for each in table.columns if each.name not in there]
