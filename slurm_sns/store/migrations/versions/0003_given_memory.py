"""A column for the memory that a placement gave a job with whole nodes."""

from alembic import op
from sqlalchemy import BigInteger, Column, inspect

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; where the database's DDL knows no transaction, an upgrade that was cut off may have added it."""
    if "given_memory_mb" not in {column["name"] for column in inspect(op.get_bind()).get_columns("job_records")}:
        op.add_column("job_records", Column("given_memory_mb", BigInteger, nullable=False, server_default="0"))
