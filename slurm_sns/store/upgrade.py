"""Upgrades an empty database, or one of any earlier revision, to the newest revision: completely or not at all.

MariaDB has no transactions for DDL. There, the next upgrade completes one that was interrupted, because revisions skip
tables and columns that exist already. Of several processes that open the store, the first upgrades it and the others
wait. There is no downgrade.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, String, column, func, inspect, select, table
from sqlalchemy.exc import SQLAlchemyError

from slurm_sns.errors import Unreachable
from slurm_sns.store.migrations import NEWEST, REVISIONS

#: Errors that SQLite's busy_timeout does not prevent pass quickly, so trying again helps. An example: several processes
#: switch a new file to WAL.
ATTEMPTS = 7
#: The lock that upgrades take: its name on MariaDB, its number on PostgreSQL (any that other programs do not use).
LOCK_NAME, LOCK_NUMBER = "slurm_sns upgrade", 7_386_001
#: The longest wait for that lock: longer than adding a column to a large table takes.
MARIADB_PATIENCE_S = 60

#: Alembic keeps its state in global variables, so only one thread may use it at a time.
_one_thread = threading.Lock()


def bring_up_to_date(engine: Engine) -> None:
    """Run the revisions that the database lacks. A database that has all of them is only read.

    Raises:
        Unreachable: the database has a revision that we do not know; nothing was changed in it.
        SQLAlchemyError: it does not answer, or cannot be changed.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _upgrade_if_older(engine)
        except SQLAlchemyError:
            continue
    return _upgrade_if_older(engine)


def _upgrade_if_older(engine: Engine) -> None:
    with engine.connect() as connection:
        if _is_newest(connection):
            return
    # Imported here, because only an upgrade needs it, and before the lock is taken, because importing takes a while.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", "slurm_sns.store:migrations")
    with _one_thread, _alone(engine) as connection:
        if _is_newest(connection):
            return  # another process was faster
        config.attributes["connection"] = connection
        command.upgrade(config, NEWEST)


def _is_newest(connection: Connection) -> bool:
    """Whether the database has all revisions.

    Raises:
        Unreachable: it has a revision that we do not know.
    """
    if not inspect(connection).has_table("alembic_version"):
        return False
    recorded = select(column("version_num", String)).select_from(table("alembic_version"))
    found = set(connection.execute(recorded).scalars())
    unknown = sorted(found - set(REVISIONS))
    if unknown:
        raise Unreachable(
            f"the store at {connection.engine.url} is of revision '{', '.join(unknown)}', made by another version of "
            f"slurm_sns; this one knows revisions up to '{NEWEST}': install the version that made it, or put a copy of "
            "the database from before its upgrade in its place"
        )
    return NEWEST in found


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction during which no other process upgrades."""
    with engine.begin() as connection:
        match connection.dialect.name:
            case "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")  # Python's sqlite3 begins no transaction before DDL
            case "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(LOCK_NUMBER)))
            case "mysql" | "mariadb":
                if connection.execute(select(func.get_lock(LOCK_NAME, MARIADB_PATIENCE_S))).scalar() != 1:
                    raise Unreachable(f"the store at {engine.url} is being upgraded by another process")
        try:
            yield connection
        finally:
            if connection.dialect.name in {"mysql", "mariadb"}:  # this lock does not end with the transaction
                connection.execute(select(func.release_lock(LOCK_NAME)))
