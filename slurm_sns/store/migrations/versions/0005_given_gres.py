"""Columns for the cache ways and the bandwidth that a placement gave a job."""

from alembic import op
from sqlalchemy import BigInteger, Column, inspect

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns; where the database's DDL knows no transaction, a cut off upgrade may have added one."""
    there = {column["name"] for column in inspect(op.get_bind()).get_columns("job_records")}
    for name in ("given_ways", "given_bandwidth_gbps"):
        if name not in there:
            op.add_column("job_records", Column(name, BigInteger, nullable=True))
