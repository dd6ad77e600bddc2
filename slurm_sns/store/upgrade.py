"""A database of any earlier revision, or an empty one, is brought to the newest revision: all of it or nothing.

On MariaDB, where DDL knows no transaction, an upgrade that is cut off is taken up by the next one: revisions make
nothing that is there already. Several processes open the store; the first of them upgrades it, the others wait. A
downgrade is not offered.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, String, column, func, inspect, select, table
from sqlalchemy.exc import SQLAlchemyError

from slurm_sns.errors import Unreachable
from slurm_sns.store.migrations import NEWEST, REVISIONS

#: What SQLite's busy_timeout does not cover, such as several processes that switch a new file to WAL, is over at once.
ATTEMPTS = 7
#: The lock that upgrades take, by MariaDB's name and by PostgreSQL's number (any that other programs do not use).
LOCK_NAME, LOCK_NUMBER = "slurm_sns upgrade", 7_386_001
#: Above the seconds in which a large table gets a column.
MARIADB_PATIENCE_S = 60

#: Alembic keeps what it works on in global variables.
_one_thread = threading.Lock()


def bring_up_to_date(engine: Engine) -> None:
    """Run the revisions that the database lacks. One that has all of them is looked at and no more.

    Raises:
        Unreachable: the database is of a revision that we do not know; nothing was changed in it.
        SQLAlchemyError: it does not answer, or cannot be changed.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _look_and_upgrade(engine)
        except SQLAlchemyError:
            continue
    return _look_and_upgrade(engine)


def _look_and_upgrade(engine: Engine) -> None:
    with engine.connect() as connection:
        if _is_newest(connection):
            return
    # Loaded here: only an upgrade needs it. Before the lock is taken: loading takes a while.
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
        Unreachable: it has one that we do not know.
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
    """A transaction beside which no other process upgrades."""
    with engine.begin() as connection:
        match connection.dialect.name:
            case "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")  # Python's sqlite3 begins none before DDL
            case "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(LOCK_NUMBER)))
            case "mysql" | "mariadb":
                if connection.execute(select(func.get_lock(LOCK_NAME, MARIADB_PATIENCE_S))).scalar() != 1:
                    raise Unreachable(f"the store at {engine.url} is being upgraded by another process")
        try:
            yield connection
        finally:
            if connection.dialect.name in {"mysql", "mariadb"}:  # the one lock that outlives the transaction
                connection.execute(select(func.release_lock(LOCK_NAME)))
