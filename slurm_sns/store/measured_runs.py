"""What agents have measured of runs, in the database (the Measurements port)."""

from collections.abc import Collection, Sequence
from dataclasses import fields

from sqlalchemy import Engine, RowMapping, select

from slurm_sns.scheduler.ports import MeasuredRun
from slurm_sns.store.database import replace_rows, transaction
from slurm_sns.store.retention import Retention, older_than
from slurm_sns.store.schema import measured_runs
from slurm_sns.wire.values import RunId

WHAT_FAILS = "what was measured of runs cannot be read from or written to the store"
#: The fields that are columns of the same names.
_COLUMNS = tuple(each.name for each in fields(MeasuredRun) if each.name != "run")


class StoredMeasurements:
    """Keeps a row for each run on a node, for `keep_days` days after its end there."""

    def __init__(self, engine: Engine, keep_days: int) -> None:
        """Use an engine of `open_store`."""
        self._engine = engine
        self._retention = Retention(engine, WHAT_FAILS, older_than(keep_days * 86400, measured_runs.c.ended_s))

    def record(self, runs: Sequence[MeasuredRun], now_s: float) -> None:
        """Store these runs in one transaction, in the place of what was stored of them on the same nodes.

        Raises:
            Unreachable: nothing was written.
        """
        rows = [{**each.run._asdict(), **{name: getattr(each, name) for name in _COLUMNS}} for each in runs]
        with transaction(self._engine, WHAT_FAILS) as connection:
            replace_rows(connection, measured_runs, rows)
        self._retention.after_write(now_s)

    def of_jobs(self, job_ids: Collection[int]) -> list[MeasuredRun]:
        """What is stored of all runs of these jobs, by job, run and node.

        Raises:
            Unreachable: the table cannot be read.
        """
        of_them = select(measured_runs).where(measured_runs.c.job_id.in_(job_ids))
        with transaction(self._engine, WHAT_FAILS) as connection:
            rows = connection.execute(of_them.order_by(*measured_runs.primary_key.columns)).mappings().all()
        return [_measured(row) for row in rows]


def _measured(row: RowMapping) -> MeasuredRun:
    return MeasuredRun(RunId(row["job_id"], row["restarts"]), **{name: row[name] for name in _COLUMNS})
