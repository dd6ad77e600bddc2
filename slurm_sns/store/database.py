"""How the database is opened: SQLite by default, MariaDB or PostgreSQL by URL.

An empty database gets the tables of `schema`, and the table `schema_version` says their version. One of an older
version for which `upgrades` has the steps is upgraded; any other is refused and left alone. Of several processes that
open such a database, the first makes or upgrades the tables and the others wait. MariaDB has no transactions for DDL:
there, the next process completes what one that was killed has begun.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    create_engine,
    delete,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.store.schema import VERSION, metadata, schema_version
from slurm_sns.store.upgrades import UPGRADES

MOVE_IT_AWAY = "stop the scheduler, move the file away, start: what it did with a job stands in the job"

#: A part of SQLite's error text -> the remedy.
_REMEDIES = {
    "not a database": MOVE_IT_AWAY,
    "malformed": MOVE_IT_AWAY,
    "readonly": "the file and its directory must belong to SlurmUser and be writable",
    "unable to open": "the file and its directory must belong to SlurmUser and be writable",
    "disk is full": "make room there",
    "disk I/O error": "make room there, or check the disk",
}

#: SQLite's busy_timeout does not cover every lock: a process that switches a new file to WAL, or closes it as the last
#: one, makes the others fail at once. Such a lock passes quickly, so they wait so long and try again.
WAITS_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
#: The lock under which tables are made: its name on MariaDB, its number on PostgreSQL (any that others do not use).
LOCK_NAME, LOCK_NUMBER = "slurm_sns upgrade", 7_386_001
#: The longest wait for that lock.
MARIADB_PATIENCE_S = 60
#: Rows that a statement deletes by their keys. SQLite before 3.32 takes 999 values, and a key has up to three.
KEYS_AT_ONCE = 300


def open_store(url: str) -> Engine:
    """Open the database at `url`; make the tables if it is empty, upgrade them if they are of an older version.

    Raises:
        BadInput: the URL does not name a kind of database that we support.
        Unreachable: the database cannot be opened, or its tables are of a version that is not known.
    """
    try:
        # A server closes connections that nobody has used for hours: one is tried before it is used.
        engine = create_engine(make_url(url), pool_pre_ping=True)
    except (SQLAlchemyError, ImportError) as problem:
        # The text leaves out the URL, which may hold a password.
        raise BadInput(
            f"store.url: {problem}; valid: sqlite:////absolute/path; with its driver installed (pip install pymysql, "
            "pip install pg8000) mariadb+pymysql://... or postgresql+pg8000://..."
        ) from None
    if engine.dialect.name == "sqlite":
        _make_private(engine.url.database)
        event.listen(engine, "connect", _tune_sqlite)
    try:
        _have_tables(engine)
    except SQLAlchemyError as problem:
        raise Unreachable(f"the store at {engine.url} cannot be opened: {in_words(problem)}") from None
    return engine


@contextmanager
def transaction(engine: Engine, what_fails: str) -> Iterator[Connection]:
    """A transaction that ends with the block; `what_fails` begins the text of an error.

    Raises:
        Unreachable: the database refuses a statement or does not answer; nothing was written.
    """
    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as problem:
        raise Unreachable(f"{what_fails}: {in_words(problem)}") from None


def replace_rows(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], gone: Iterable[Mapping[str, Any]] = ()
) -> None:
    """Write these rows in the place of those with the same primary keys, and delete those with the keys `gone`.

    Delete, then insert: the only form of "insert or update" that all supported databases know.
    """
    keys = tuple(table.primary_key.columns)
    outdated = [tuple(row[key.name] for key in keys) for row in (*gone, *rows)]
    for at in range(0, len(outdated), KEYS_AT_ONCE):
        some = outdated[at : at + KEYS_AT_ONCE]
        matched = keys[0].in_([key for (key,) in some]) if len(keys) == 1 else tuple_(*keys).in_(some)
        connection.execute(delete(table).where(matched))
    insert_rows(connection, table, rows)


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write these rows, many in a statement."""
    if not rows:
        return
    written = insert(table)
    if connection.dialect.name == "postgresql":  # with pg8000, only what returns something is not sent row by row
        written = written.returning(*table.primary_key.columns)
    connection.execute(written, rows)


def in_words(problem: SQLAlchemyError) -> str:
    """The error in one line, with a remedy for the admin where we know one.

    The SQL statement is left out: it can hold text that users wrote.
    """
    text = " ".join(_message(problem).split())
    remedy = next((each for part, each in _REMEDIES.items() if part in text), "")
    return f"{text}; {remedy}" if remedy else text


def _message(problem: SQLAlchemyError) -> str:
    """What the database says. pg8000 gives PostgreSQL's fields, of which the details can hold whole rows."""
    match getattr(getattr(problem, "orig", None), "args", ()):
        case ({"M": message}, *_):
            return str(message)
    return str(problem.args[0] if problem.args else problem)


def _have_tables(engine: Engine) -> None:
    """Make the tables of an empty database, or upgrade them. One that has them is only read."""
    for wait_s in WAITS_S:
        try:
            return _make_or_upgrade(engine)
        except OperationalError:
            time.sleep(wait_s)
    return _make_or_upgrade(engine)


def _make_or_upgrade(engine: Engine) -> None:
    with engine.connect() as connection:
        if _version(connection) == VERSION:
            return
    with _alone(engine) as connection:
        version = _version(connection)  # another process may have been faster
        if version is None:
            schema_version.create(connection, checkfirst=True)  # first: an empty one says: the tables are not complete
            metadata.create_all(connection)
            connection.execute(insert(schema_version), {"version": VERSION})
            return
        for older in range(version, VERSION):
            UPGRADES[older](connection)
            connection.execute(update(schema_version).values(version=older + 1))


def _version(connection: Connection) -> int | None:
    """The version of the tables, VERSION or one with an upgrade; None if there are none, or they were not completed.

    Raises:
        Unreachable: they are of another version.
    """
    there = set(inspect(connection).get_table_names())
    if schema_version.name not in there:
        if not there & {*metadata.tables, "job_records"}:
            return None
        found = "made before versions were counted"
    else:
        version = connection.execute(select(schema_version.c.version)).scalar()
        if version is None or version == VERSION or version in UPGRADES:
            return version
        found = f"of version {version}"
    raise Unreachable(
        f"the store at {connection.engine.url} is {found}; this slurm_sns has version {VERSION}: install the slurm_sns "
        "that made it, or stop the scheduler, move the database away, start (what was done with a job stands in the "
        "job; programs and decisions stay in the old database)"
    )


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction during which no other process makes tables."""
    with engine.begin() as connection:
        match connection.dialect.name:
            case "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")  # Python's sqlite3 begins no transaction before DDL
            case "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(LOCK_NUMBER)))
            case "mysql" | "mariadb":
                if connection.execute(select(func.get_lock(LOCK_NAME, MARIADB_PATIENCE_S))).scalar() != 1:
                    raise Unreachable(f"another process is making the tables of the store at {engine.url}")
        try:
            yield connection
        finally:
            if connection.dialect.name in {"mysql", "mariadb"}:  # this lock does not end with the transaction
                connection.execute(select(func.release_lock(LOCK_NAME)))


def _tune_sqlite(connection: object, _record: ConnectionPoolEntry) -> None:
    """Use WAL, so that readers do not wait for the writer, and save one fsync for each commit.

    A crash of the process loses no committed row.
    """
    cursor = connection.cursor()  # type: ignore[attr-defined]  # a connection of the driver
    cursor.execute("PRAGMA busy_timeout=5000")  # first, because the next statement may already have to wait for a lock
    if cursor.execute("PRAGMA page_count").fetchone() == (0,):  # later it would need a VACUUM; see store.retention
        cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def _make_private(database: str | None) -> None:
    """Let the owner alone read the SQLite file, because it tells who ran what.

    All permissions of others are taken off the file, or it is created without them before SQLite writes into it. SQLite
    gives the files that it creates beside it the same permissions. If root runs this (`sns release`), the file gets the
    owner of its directory. Errors are ignored here: they show when the database is opened.
    """
    if not database or database == ":memory:" or database.startswith("file:"):
        return
    path = Path(database)
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            found, folder = os.fstat(descriptor), path.parent.stat()
            if found.st_mode & 0o077:
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~0o077)
            if os.geteuid() == 0 and found.st_uid != folder.st_uid:
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
        finally:
            os.close(descriptor)
