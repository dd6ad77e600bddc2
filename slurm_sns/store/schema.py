"""The tables, and how the database is opened (SQLite by default, MariaDB or PostgreSQL by URL).

The tables here are equal to what the newest revision (`migrations`) makes: a change here needs a new revision.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.store.database_errors import in_words
from slurm_sns.store.private_file import make_private
from slurm_sns.store.upgrade import bring_up_to_date

metadata = MetaData()

#: What came of the last placements of waiting jobs; see scheduler.remembered.
tries = Table(
    "tries",
    metadata,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("submit_s", BigInteger, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("tried_s", Float(53), nullable=False),
    Column("retry_s", Float(53), nullable=False),
    Column("note", Text, nullable=False),
    Column("limited_by", String(64), nullable=False),
)

#: One row for each cycle that changed something, with the snapshot on which it was planned (JSON, zlib).
cycles = Table(
    "cycles",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at_s", Float(53), nullable=False, index=True),
    Column("chosen", String(64), nullable=False),
    Column("matched", Text, nullable=False),  # JSON: member -> jobs matched
    Column("snapshot", LargeBinary(2**24), nullable=True),  # null once it is older than keep_snapshots
)

#: What was done with one job in one cycle, and why.
decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("cycle_id", Integer, nullable=False, index=True),
    Column("job_id", BigInteger, nullable=False, index=True),
    Column("user_id", BigInteger, nullable=False),
    Column("at_s", Float(53), nullable=False),
    Column("action", String(16), nullable=False),  # "start" or "note"
    Column("nodes", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("scale", Integer, nullable=False),
    Column("exclusive", Boolean, nullable=False),
    Column("demand", Text, nullable=False),  # JSON: resource -> amount on each node
    Column("considered", Text, nullable=True),  # JSON: how a spreadable job's alternatives came about
    Column("times", Integer, nullable=False, server_default="1"),
)

#: The array and the task that a job is, for array jobs about which something was decided. A task that was placed from
#: its array's record has two ids: ours (scheduler.observe.task_ids), and Slurm's after that.
array_tasks = Table(
    "array_tasks",
    metadata,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("array_id", BigInteger, nullable=False, index=True),
    Column("task", BigInteger, nullable=False),
    Column("at_s", Float(53), nullable=False, index=True),
)

#: The profiles of programs: one row for each program, and one for each of its runs (processes, scale).
profiled_programs = Table(
    "profiled_programs",
    metadata,
    Column("program", String(64), primary_key=True),
    Column("source", Text, nullable=False),
    Column("max_scale", Integer, nullable=True),
)

profiled_runs = Table(
    "profiled_runs",
    metadata,
    Column("program", String(64), primary_key=True),
    Column("processes", Integer, primary_key=True, autoincrement=False),
    Column("scale", Integer, primary_key=True, autoincrement=False),
    Column("time_s", Float(53), nullable=False),
    Column("curves", Text, nullable=False),  # JSON: ways, ipc, bandwidth_gbps, provenance
)

#: The history of each policy after its last plan; see scheduler.history.
policy_memory = Table(
    "policy_memory",
    metadata,
    Column("policy", String(64), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),  # JSON; LONGTEXT on MariaDB, whose TEXT is limited to 64 KiB
)

#: What is learnt of each (program, processes); see scheduler.learning. The contents of these three tables are JSON
#: (LONGTEXT on MariaDB, as above).
learnt_programs = Table(
    "learnt_programs",
    metadata,
    Column("program", String(64), primary_key=True),
    Column("processes", BigInteger, primary_key=True, autoincrement=False),
    Column("used_s", Float(53), nullable=False),
    Column("content", Text, nullable=False),
)

#: The runs that are placed or run, or whose measurement is not complete.
runs_to_learn_from = Table(
    "runs_to_learn_from",
    metadata,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("restarts", Integer, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
)

#: The reports about these runs, one from each node; deleted with their run.
run_reports = Table(
    "run_reports",
    metadata,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("restarts", Integer, primary_key=True, autoincrement=False),
    Column("node", String(255), primary_key=True),
    Column("content", Text, nullable=False),
)


def open_store(url: str) -> Engine:
    """Open the database at `url` and upgrade it to the newest revision.

    Raises:
        BadInput: the URL does not name a kind of database that we support.
        Unreachable: the database cannot be opened, or has a newer revision than we know.
    """
    try:
        engine = create_engine(make_url(url))
    except (SQLAlchemyError, ImportError) as problem:
        # The text leaves out the URL, which may hold a password.
        raise BadInput(
            f"store.url: {problem}; valid: sqlite:////absolute/path, mysql+pymysql://..., postgresql+psycopg://..."
        ) from None
    if engine.dialect.name == "sqlite":
        make_private(engine.url.database)
        event.listen(engine, "connect", _tune_sqlite)
    try:
        bring_up_to_date(engine)
    except SQLAlchemyError as problem:
        raise Unreachable(f"the store at {engine.url} cannot be opened: {in_words(problem)}") from None
    return engine


def _tune_sqlite(connection: object, _record: ConnectionPoolEntry) -> None:
    """Use WAL, so that readers do not wait for the writer, and save one fsync for each commit.

    A crash of the process loses no committed row.
    """
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("PRAGMA busy_timeout=5000")  # first, because the next statement may already have to wait for a lock
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()
