"""What is learnt of programs, in the database (the LearningStore port).

The contents of the rows are JSON. Reports have the form in which agents send them (wire.messages).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, bindparam, delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from slurm_sns.errors import Unreachable
from slurm_sns.policies.spread_n_share.learning import Key
from slurm_sns.scheduler.learning.values import LearningChanges, LearningState, Learnt, RunToLearn
from slurm_sns.store.database import in_words
from slurm_sns.store.schema import learnt_programs, run_reports, runs_to_learn_from
from slurm_sns.typed_json import read as read_json
from slurm_sns.typed_json import written
from slurm_sns.wire.messages import BadMessage, decode, encode
from slurm_sns.wire.values import RunId, RunReport

_Value = TypeVar("_Value")


class StoredEvidence:
    """Keeps evidence, the runs that it comes from, and the reports about these runs."""

    def __init__(self, engine: Engine) -> None:
        """Use an engine of `open_store`."""
        self._engine = engine

    def load(self) -> tuple[LearningState, tuple[str, ...]]:
        """Everything, and a line for each row that cannot be read: such a row is left out, and stays in the store.

        Raises:
            Unreachable: the tables cannot be read.
        """
        try:
            with self._engine.connect() as connection:
                programs = connection.execute(select(learnt_programs)).mappings().all()
                runs = connection.execute(select(runs_to_learn_from)).mappings().all()
                reports = connection.execute(select(run_reports)).mappings().all()
        except SQLAlchemyError as problem:
            raise _unreachable(problem) from None
        damaged: list[str] = []
        learnt: dict[Key, Learnt] = {}
        for row in programs:
            key = (row["program"], row["processes"])
            what = f"what is learnt of {key[0]!a} with {key[1]} processes"
            found = _read(what, damaged, partial(read_json, Learnt, row["content"]))
            if found is not None:
                learnt[key] = found
        known: dict[RunId, RunToLearn] = {}
        for row in runs:
            run = RunId(row["job_id"], row["restarts"])
            read = _read(f"the run of job {run.job_id}", damaged, partial(read_json, RunToLearn, row["content"]))
            if read is not None:
                known[run] = read
        by_run: dict[RunId, dict[str, RunReport]] = {}
        for row in reports:
            what = f"the report of job {row['job_id']} from {row['node']!a}"
            report = _read(what, damaged, partial(report_of, row["content"]))
            if report is not None and report.run in known:
                by_run.setdefault(report.run, {})[report.node] = report
        return LearningState(learnt, known, by_run), tuple(damaged)

    def save(self, changes: LearningChanges) -> None:
        """Write the changes in one transaction.

        Raises:
            Unreachable: nothing was written.
        """
        try:
            with self._engine.begin() as connection:
                _save_learnt(connection, changes)
                _save_runs(connection, changes)
        except SQLAlchemyError as problem:
            raise _unreachable(problem) from None


def report_text(report: RunReport) -> str:
    """The content of a row of run_reports."""
    return encode(report).decode()


def report_of(text: str) -> RunReport:
    """The report in a row of run_reports.

    Raises:
        ValueError: there is none in it.
    """
    try:
        found = decode(text.encode())
    except BadMessage as problem:
        raise ValueError(str(problem)) from None
    if not isinstance(found, RunReport):
        raise ValueError(f"a {type(found).__name__}, not a report")  # noqa: TRY004  callers expect the one error
    return found


def _read(what: str, damaged: list[str], read: Callable[[], _Value]) -> _Value | None:
    try:
        return read()
    except ValueError as problem:
        damaged.append(f"the store: {what} cannot be read and is left out: {problem}")
        return None


def _save_learnt(connection: Connection, changes: LearningChanges) -> None:
    """Delete, then insert, as in store.history."""
    table = learnt_programs
    old = [{"name": name, "number": number} for name, number in (*changes.learnt, *changes.forgotten)]
    is_old = (table.c.program == bindparam("name")) & (table.c.processes == bindparam("number"))
    _execute(connection, delete(table).where(is_old), old)
    rows = [
        {
            "program": key[0],
            "processes": key[1],
            "used_s": each.used_s,
            "content": written(Learnt, each),
        }
        for key, each in changes.learnt.items()
    ]
    _execute(connection, insert(table), rows)


def _save_runs(connection: Connection, changes: LearningChanges) -> None:
    runs, reports = runs_to_learn_from, run_reports
    gone = [{"id": job_id, "number": restarts} for job_id, restarts in changes.gone]
    old = [*gone, *({"id": each.run.job_id, "number": each.run.restarts} for each in changes.runs)]
    is_old = (runs.c.job_id == bindparam("id")) & (runs.c.restarts == bindparam("number"))
    _execute(connection, delete(runs).where(is_old), old)
    is_about_it = (reports.c.job_id == bindparam("id")) & (reports.c.restarts == bindparam("number"))
    _execute(connection, delete(reports).where(is_about_it), gone)
    _execute(
        connection,
        insert(runs),
        [{**each.run._asdict(), "content": written(RunToLearn, each)} for each in changes.runs],
    )
    rows = [{**each.run._asdict(), "node": each.node, "content": report_text(each)} for each in changes.reports]
    is_there = is_about_it & (reports.c.node == bindparam("name"))  # as a row that could not be read
    stored = [{"id": row["job_id"], "number": row["restarts"], "name": row["node"]} for row in rows]
    _execute(connection, delete(reports).where(is_there), stored)
    _execute(connection, insert(reports), rows)


def _execute(connection: Connection, statement: Any, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(statement, list(rows))


def _unreachable(problem: SQLAlchemyError) -> Unreachable:
    return Unreachable(f"what is learnt of programs cannot be read from or written to the store: {in_words(problem)}")
