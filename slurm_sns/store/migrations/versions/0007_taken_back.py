"""A column for the placement of a job that was taken back last."""

from alembic import op
from sqlalchemy import Column, Text, inspect

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column."""
    if "taken_back" not in {column["name"] for column in inspect(op.get_bind()).get_columns("job_records")}:
        op.add_column("job_records", Column("taken_back", Text, nullable=True))
