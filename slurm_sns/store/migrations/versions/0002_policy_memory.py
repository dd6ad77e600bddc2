"""A table for what policies remember between cycles."""

from alembic import op
from sqlalchemy import Column, Integer, String, Text
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table; where the database's DDL knows no transaction, an upgrade that was cut off may have made it."""
    op.create_table(
        "policy_memory",
        Column("policy", String(64), primary_key=True),
        Column("version", Integer, nullable=False),
        Column("text", Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        if_not_exists=True,
    )
