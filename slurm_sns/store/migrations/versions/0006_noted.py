"""A column for whether the mark of a job that was given to Slurm was seen to say so."""

from alembic import op
from sqlalchemy import Boolean, Column, false, inspect

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column."""
    if "is_noted" not in {column["name"] for column in inspect(op.get_bind()).get_columns("job_records")}:
        op.add_column("job_records", Column("is_noted", Boolean, nullable=False, server_default=false()))
