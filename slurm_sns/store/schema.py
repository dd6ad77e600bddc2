"""The tables of the database. A change here or in what a column holds counts VERSION up, with a step in `upgrades`."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, LargeBinary, MetaData, String, Table, Text
from sqlalchemy.dialects.mysql import LONGTEXT

#: The version of the tables.
VERSION = 4

metadata = MetaData()

#: MariaDB's TEXT is limited to 64 KiB.
_LONG_TEXT = Text().with_variant(LONGTEXT(), "mysql", "mariadb")

#: MariaDB's default takes `mg` and `MG` for one key, and refuses characters where it is an old one.
_BYTEWISE = {"charset": "utf8mb4", "collate": "utf8mb4_bin"}


def _table(name: str, *columns: Column[Any]) -> Table:
    options: dict[str, Any] = {
        f"{dialect}_{key}": value for dialect in ("mysql", "mariadb") for key, value in _BYTEWISE.items()
    }
    return Table(name, metadata, *columns, **options)


#: One row: the VERSION that made the tables. It is written when all of them are there.
schema_version = _table("schema_version", Column("version", Integer, nullable=False))

#: What came of the last placements of waiting jobs; see scheduler.gate.failed_placements.
tries = _table(
    "tries",
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("submit_s", BigInteger, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("tried_s", Float(53), nullable=False),
    Column("retry_s", Float(53), nullable=False),
    Column("note", _LONG_TEXT, nullable=False),
    Column("limited_by", String(64), nullable=False),
)

#: One row for each cycle that changed something.
cycles = _table(
    "cycles",
    Column("id", Integer, primary_key=True),
    Column("at_s", Float(53), nullable=False, index=True),
    Column("chosen", String(64), nullable=False),
    Column("matched", _LONG_TEXT, nullable=False),  # JSON: member -> jobs matched
)

#: The newest keep_snapshots snapshots (JSON, zlib) on which cycles were planned, not always of each of these cycles.
snapshots = _table(
    "snapshots",
    Column("cycle_id", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary(2**24), nullable=False),
)

#: What was done with one job in one cycle, and why.
decisions = _table(
    "decisions",
    Column("id", Integer, primary_key=True),
    Column("cycle_id", Integer, nullable=False, index=True),
    Column("job_id", BigInteger, nullable=False, index=True),
    Column("user_id", BigInteger, nullable=False),
    Column("at_s", Float(53), nullable=False),
    Column("action", String(16), nullable=False),  # "start" or "note"
    Column("nodes", _LONG_TEXT, nullable=False),
    Column("reason", _LONG_TEXT, nullable=False),
    Column("scale", Integer, nullable=False),
    Column("exclusive", Boolean, nullable=False),
    Column("demand", _LONG_TEXT, nullable=False),  # JSON: resource -> amount on each node
    Column("considered", _LONG_TEXT, nullable=True),  # JSON: how a spreadable job's alternatives came about
    Column("times", Integer, nullable=False, server_default="1"),
)

#: The array and the task that a job is, for array jobs about which something was decided. A task that was placed from
#: its array's record has two ids: ours (slurm_sns.task_ids), and Slurm's after that.
array_tasks = _table(
    "array_tasks",
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("array_id", BigInteger, nullable=False, index=True),
    Column("task", BigInteger, nullable=False),
    Column("at_s", Float(53), nullable=False, index=True),
)

#: What an agent has measured of a run on its node; see scheduler.measured_runs. Without a user only admins see it.
measured_runs = _table(
    "measured_runs",
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("restarts", BigInteger, primary_key=True, autoincrement=False),
    Column("node", String(255), primary_key=True),
    Column("user_id", BigInteger, nullable=True),
    Column("ended_s", Float(53), nullable=False, index=True),
    Column("least_ways", Integer, nullable=False),
    Column("most_ways", Integer, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("ipc", Float(53), nullable=True),
    Column("bandwidth_gbps", Float(53), nullable=True),
    Column("alone_s", Float(53), nullable=False),
    Column("ipc_alone", Float(53), nullable=True),
)

#: The profiles of programs: one row for each program, and one for each of its runs (processes, scale).
profiled_programs = _table(
    "profiled_programs",
    Column("program", String(64), primary_key=True),
    Column("source", Text, nullable=False),
    Column("max_scale", Integer, nullable=True),
)

profiled_runs = _table(
    "profiled_runs",
    Column("program", String(64), primary_key=True),
    Column("processes", Integer, primary_key=True, autoincrement=False),
    Column("scale", Integer, primary_key=True, autoincrement=False),
    Column("time_s", Float(53), nullable=False),
    Column("curves", Text, nullable=False),  # JSON: ways, ipc, bandwidth_gbps, provenance
)

#: The history of each policy after its last plan; see scheduler.history.
policy_memory = _table(
    "policy_memory",
    Column("policy", String(64), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("text", _LONG_TEXT, nullable=False),  # JSON
)

#: What is learnt of each (program, processes); see scheduler.learning. The contents of these three tables are JSON.
learnt_programs = _table(
    "learnt_programs",
    Column("program", String(64), primary_key=True),
    Column("processes", BigInteger, primary_key=True, autoincrement=False),
    Column("used_s", Float(53), nullable=False),
    Column("content", _LONG_TEXT, nullable=False),
)

#: The runs that are placed or run, or whose measurement is not complete.
runs_to_learn_from = _table(
    "runs_to_learn_from",
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("restarts", Integer, primary_key=True, autoincrement=False),
    Column("content", _LONG_TEXT, nullable=False),
)

#: The reports about these runs, one from each node; deleted with their run.
run_reports = _table(
    "run_reports",
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("restarts", Integer, primary_key=True, autoincrement=False),
    Column("node", String(255), primary_key=True),
    Column("content", _LONG_TEXT, nullable=False),
)

#: The jobs that have ended lately, for expected run times; see estimates.past_runs.
past_runs = _table(
    "past_runs",
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ended_s", Float(53), nullable=False, index=True),
    Column("owner", BigInteger, nullable=False),
    Column("program", String(64), nullable=False),
    Column("share", Float(53), nullable=False),
)

#: The jobs that have started lately, with the estimate that was told first; see scheduler.start_estimates.
estimated_starts = _table(
    "estimated_starts",
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    Column("started_s", Float(53), nullable=False, index=True),
    Column("made_s", Float(53), nullable=False),
    Column("owner", BigInteger, nullable=False),
    Column("burst_s", Float(53), nullable=False),
    Column("raw_low_s", Float(53), nullable=False),
    Column("raw_high_s", Float(53), nullable=False),
    Column("low_s", Float(53), nullable=False),
    Column("middle_s", Float(53), nullable=False),
    Column("high_s", Float(53), nullable=False),
)
