"""What estimates are learnt from, in the database (the EstimateStore port): past runs, and starts with their estimates.

One row for each, of which the latest are kept.
"""

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import Column, Connection, Engine, Table, delete, select

from slurm_sns.estimates.past_runs import PastRun
from slurm_sns.scheduler.ports import EstimatedStart
from slurm_sns.store.database import replace_rows, transaction
from slurm_sns.store.schema import estimated_starts, past_runs

WHAT_FAILS = "what estimates are learnt from cannot be read from or written to the store"
#: So many rows are kept: of a site with 2,000 jobs a day the runs of ten days, and the starts of a week.
MOST_RUNS, MOST_STARTS = 20_000, 15_000


class StoredEstimates:
    """Keeps past runs in the table `past_runs`, and starts in `estimated_starts`."""

    def __init__(self, engine: Engine) -> None:
        """Use an engine of `open_store`."""
        self._engine = engine

    def load(self) -> tuple[Sequence[PastRun], Sequence[EstimatedStart]]:
        """What is kept, oldest first.

        Raises:
            Unreachable: it cannot be read.
        """
        with transaction(self._engine, WHAT_FAILS) as connection:
            runs = connection.execute(select(past_runs).order_by(past_runs.c.ended_s)).mappings().all()
            starts = connection.execute(select(estimated_starts).order_by(estimated_starts.c.started_s)).mappings()
            return tuple(PastRun(**row) for row in runs), tuple(EstimatedStart(**row) for row in starts)

    def save(self, runs: Sequence[PastRun], starts: Sequence[EstimatedStart]) -> None:
        """Add these in one transaction, and forget the oldest where there are too many.

        Raises:
            Unreachable: nothing was written.
        """
        with transaction(self._engine, WHAT_FAILS) as connection:
            replace_rows(connection, past_runs, [asdict(each) for each in runs])
            replace_rows(connection, estimated_starts, [asdict(each) for each in starts])
            _forget(connection, past_runs, past_runs.c.ended_s, MOST_RUNS)
            _forget(connection, estimated_starts, estimated_starts.c.started_s, MOST_STARTS)


def _forget(connection: Connection, table: Table, moment: "Column[float]", most: int) -> None:
    """Delete all but the latest rows."""
    oldest = connection.execute(select(moment).order_by(moment.desc()).offset(most).limit(1)).scalar_one_or_none()
    if oldest is not None:
        connection.execute(delete(table).where(moment <= oldest))
