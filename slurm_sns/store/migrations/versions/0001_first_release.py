"""The tables of the first release, which made them without alembic.

A database of that release has them already; one of before lacks tables, columns or indexes, and gets them. A column can
be added to a table with rows where it is nullable or has a `server_default`.
"""

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, LargeBinary, String, Text, inspect

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make what is missing; what is there stays, and so does what it has beyond this."""
    _have_table(
        "job_records",
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("submit_s", BigInteger, nullable=False),
        Column("stage", String(16), nullable=False),
        Column("nodes", Text, nullable=False),
        Column("placed_s", Float(53), nullable=False),
        Column("restarts", Integer, nullable=False),
        Column("nice", Integer, nullable=False),
        Column("failures", Integer, nullable=False),
        Column("retry_s", Float(53), nullable=False),
        Column("note", Text, nullable=False),
        Column("tasks", BigInteger, nullable=False, server_default="0"),
        Column("difference", String(1024), nullable=False, server_default=""),
        Column("limited_by", String(64), nullable=False, server_default=""),
        Column("memory_per_cpu_mb", BigInteger, nullable=True),
        Column("memory_per_node_mb", BigInteger, nullable=True),
    )
    _have_table(
        "cycles",
        Column("id", Integer, primary_key=True),
        Column("at_s", Float(53), nullable=False),
        Column("chosen", String(64), nullable=False),
        Column("matched", Text, nullable=False),
        Column("snapshot", LargeBinary(2**24), nullable=True),
    )
    _have_index("cycles", "at_s")
    _have_table(
        "decisions",
        Column("id", Integer, primary_key=True),
        Column("cycle_id", Integer, nullable=False),
        Column("job_id", BigInteger, nullable=False),
        Column("user_id", BigInteger, nullable=False),
        Column("at_s", Float(53), nullable=False),
        Column("action", String(16), nullable=False),
        Column("nodes", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("scale", Integer, nullable=False),
        Column("exclusive", Boolean, nullable=False),
        Column("demand", Text, nullable=False),
        Column("considered", Text, nullable=True),
        Column("times", Integer, nullable=False, server_default="1"),
    )
    _have_index("decisions", "cycle_id")
    _have_index("decisions", "job_id")
    _have_table(
        "array_tasks",
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("array_id", BigInteger, nullable=False),
        Column("task", BigInteger, nullable=False),
        Column("at_s", Float(53), nullable=False),
    )
    _have_index("array_tasks", "array_id")
    _have_index("array_tasks", "at_s")
    _have_table(
        "profiled_programs",
        Column("program", String(64), primary_key=True),
        Column("source", Text, nullable=False),
        Column("max_scale", Integer, nullable=True),
    )
    _have_table(
        "profiled_runs",
        Column("program", String(64), primary_key=True),
        Column("processes", Integer, primary_key=True, autoincrement=False),
        Column("scale", Integer, primary_key=True, autoincrement=False),
        Column("time_s", Float(53), nullable=False),
        Column("curves", Text, nullable=False),
    )


def _have_table(name: str, *columns: Column[Any]) -> None:
    """Make the table, or add the columns that it lacks."""
    inspector = inspect(op.get_bind())
    if not inspector.has_table(name):
        op.create_table(name, *columns)
        return
    there = {column["name"] for column in inspector.get_columns(name)}
    for column in columns:
        if column.name not in there:
            op.add_column(name, column)


def _have_index(table: str, column: str) -> None:
    """Make the index unless it is there."""
    name = f"ix_{table}_{column}"
    if name not in {index["name"] for index in inspect(op.get_bind()).get_indexes(table)}:
        op.create_index(name, table, [column])
