"""The records of held and placed jobs in the database (the History port)."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from sqlalchemy import Engine, RowMapping, bindparam, delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.records import JobRecord, Stage
from slurm_sns.store.schema import job_records
from slurm_sns.store.troubles import MOVE_IT_AWAY, in_words


class StoredHistory:
    """Keeps job records in the table `job_records`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self) -> Mapping[int, JobRecord]:
        """All records by job id.

        Raises:
            Unreachable: they cannot be read, or hold what we have never written.
        """
        try:
            with self._engine.connect() as connection:
                rows = connection.execute(select(job_records)).mappings().all()
            return {row["job_id"]: _record(row) for row in rows}
        except SQLAlchemyError as problem:
            raise Unreachable(f"the store's job records cannot be read: {in_words(problem)}") from None
        except (ValueError, TypeError, AttributeError) as problem:
            raise Unreachable(f"the store's job records are damaged ({problem}); {MOVE_IT_AWAY}") from None

    def check_writable(self) -> None:
        """Try a change that changes nothing.

        Raises:
            Unreachable: nothing can be written.
        """
        self.save([], [0])  # no job has this id

    def save(self, changed: Iterable[JobRecord], gone: Iterable[int]) -> None:
        """Write the changed records and forget the gone ones, in one transaction."""
        rows = [{**asdict(record), "nodes": ",".join(record.nodes)} for record in changed]
        outdated = [{"old": job_id} for job_id in (*(row["job_id"] for row in rows), *gone)]
        if not outdated:
            return
        try:
            with self._engine.begin() as connection:
                # Delete and insert: the one form of "insert or update" that every database takes.
                connection.execute(delete(job_records).where(job_records.c.job_id == bindparam("old")), outdated)
                if rows:
                    connection.execute(insert(job_records), rows)
        except SQLAlchemyError as problem:
            raise Unreachable(f"the store's job records cannot be written: {in_words(problem)}") from None


def _record(row: RowMapping) -> JobRecord:
    nodes = tuple(filter(None, row["nodes"].split(",")))
    return JobRecord(**{**row, "stage": Stage(row["stage"]), "nodes": nodes})
