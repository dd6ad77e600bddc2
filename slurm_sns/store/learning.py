"""What is learnt of programs, in the database (the LearningStore port).

The contents of the rows are JSON. Reports have the form in which agents send them (wire.messages).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from sqlalchemy import Engine, RowMapping, bindparam, delete, select

from slurm_sns.scheduler.learning.values import LearningChanges, LearningState, Learnt, RunToLearn
from slurm_sns.store.database import replace_rows, transaction
from slurm_sns.store.schema import learnt_programs, run_reports, runs_to_learn_from
from slurm_sns.typed_json import read as read_json
from slurm_sns.typed_json import written
from slurm_sns.wire.messages import BadMessage, decode, encode
from slurm_sns.wire.values import RunId, RunReport

_Value = TypeVar("_Value")

WHAT_FAILS = "what is learnt of programs cannot be read from or written to the store"


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
        with transaction(self._engine, WHAT_FAILS) as connection:
            programs, runs, reports = (
                connection.execute(select(table)).mappings().all()
                for table in (learnt_programs, runs_to_learn_from, run_reports)
            )
        damaged: list[str] = []
        learnt = {
            (row["program"], row["processes"]): found
            for row, found in _readable(
                programs,
                partial(read_json, Learnt),
                lambda row: f"what is learnt of {row['program']!a} with {row['processes']} processes",
                damaged,
            )
        }
        known = {
            RunId(row["job_id"], row["restarts"]): found
            for row, found in _readable(
                runs, partial(read_json, RunToLearn), lambda row: f"the run of job {row['job_id']}", damaged
            )
        }
        by_run: dict[RunId, dict[str, RunReport]] = {}
        for _, report in _readable(
            reports, report_of, lambda row: f"the report of job {row['job_id']} from {row['node']!a}", damaged
        ):
            if report.run in known:
                by_run.setdefault(report.run, {})[report.node] = report
        return LearningState(learnt, known, by_run), tuple(damaged)

    def save(self, changes: LearningChanges) -> None:
        """Write the changes in one transaction.

        Raises:
            Unreachable: nothing was written.
        """
        programs = [
            {"program": key[0], "processes": key[1], "used_s": each.used_s, "content": written(Learnt, each)}
            for key, each in changes.learnt.items()
        ]
        runs = [{**each.run._asdict(), "content": written(RunToLearn, each)} for each in changes.runs]
        reports = [
            {**each.run._asdict(), "node": each.node, "content": encode(each).decode()} for each in changes.reports
        ]
        forgotten = [{"program": name, "processes": processes} for name, processes in changes.forgotten]
        about_it = (run_reports.c.job_id == bindparam("id")) & (run_reports.c.restarts == bindparam("number"))
        with transaction(self._engine, WHAT_FAILS) as connection:
            replace_rows(connection, learnt_programs, programs, forgotten)
            replace_rows(connection, runs_to_learn_from, runs, [run._asdict() for run in changes.gone])
            if changes.gone:
                gone = [{"id": run.job_id, "number": run.restarts} for run in changes.gone]
                connection.execute(delete(run_reports).where(about_it), gone)
            replace_rows(connection, run_reports, reports)


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


def _readable(
    rows: Iterable[RowMapping], read: Callable[[str], _Value], name: Callable[[RowMapping], str], damaged: list[str]
) -> Iterator[tuple[RowMapping, _Value]]:
    """The rows with what their contents say; adds a line to `damaged` for each one that cannot be read."""
    for row in rows:
        try:
            yield row, read(row["content"])
        except ValueError as problem:
            damaged.append(f"the store: {name(row)} cannot be read and is left out: {problem}")
