"""The tries of waiting jobs replace the records of held and placed jobs, which the jobs carry themselves since."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, String, Text

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the one table and drop the other; without DDL in transactions, a cut off upgrade may have made the one."""
    op.create_table(
        "tries",
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("submit_s", BigInteger, nullable=False),
        Column("failures", Integer, nullable=False),
        Column("tried_s", Float(53), nullable=False),
        Column("retry_s", Float(53), nullable=False),
        Column("note", Text, nullable=False),
        Column("limited_by", String(64), nullable=False),
        if_not_exists=True,
    )
    op.drop_table("job_records", if_exists=True)
