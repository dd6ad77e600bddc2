"""Tables for what is learnt of programs: evidence, the runs to learn from, and the agents' reports of these runs."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, String, Text
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0004"
down_revision = "0003"

LONG_TEXT = Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    """Make the tables; where the database's DDL knows no transaction, a cut off upgrade may have made some."""
    op.create_table(
        "learnt_programs",
        Column("program", String(64), primary_key=True),
        Column("processes", BigInteger, primary_key=True, autoincrement=False),
        Column("used_s", Float(53), nullable=False),
        Column("content", LONG_TEXT, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "runs_to_learn_from",
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("restarts", Integer, primary_key=True, autoincrement=False),
        Column("content", LONG_TEXT, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "run_reports",
        Column("job_id", BigInteger, primary_key=True, autoincrement=False),
        Column("restarts", Integer, primary_key=True, autoincrement=False),
        Column("node", String(255), primary_key=True),
        Column("content", LONG_TEXT, nullable=False),
        if_not_exists=True,
    )
