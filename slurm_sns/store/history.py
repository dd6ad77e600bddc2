"""The records of held and placed jobs, and the history of each policy, in the database (the History port)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Engine, RowMapping, bindparam, delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.observe.records import JobRecord, Memory, Stage, TakenBack
from slurm_sns.store.database_errors import MOVE_IT_AWAY, in_words
from slurm_sns.store.schema import job_records, policy_memory

#: Part of SQLite's error for a text that is not UTF-8, so that we have not written it.
NOT_UTF_8 = "Could not decode to UTF-8"
#: The version that such a history gets. No policy has it: policies count their versions from 1.
UNREADABLE = 0


class StoredHistory:
    """Keeps job records in the table `job_records` and the history of each policy in `policy_memory`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self) -> Mapping[int, JobRecord]:
        """All records by job id.

        Raises:
            Unreachable: they cannot be read, or hold values that we never write.
        """
        try:
            with self._engine.connect() as connection:
                rows = connection.execute(select(job_records)).mappings().all()
            return {row["job_id"]: _record(row) for row in rows}
        except SQLAlchemyError as problem:
            raise Unreachable(f"the store's job records cannot be read: {in_words(problem)}") from None
        except (ValueError, TypeError, AttributeError) as problem:
            raise Unreachable(f"the store's job records are damaged ({problem}); {MOVE_IT_AWAY}") from None

    def load_memory(self, policy: str) -> Memory | None:
        """The last stored history of the policy with that name; None if there is none. Its text is not checked here.

        Raises:
            Unreachable: the table cannot be read.
        """
        row = select(policy_memory).where(policy_memory.c.policy == policy)
        try:
            with self._engine.connect() as connection:
                found = connection.execute(row).one_or_none()
        except SQLAlchemyError as problem:
            if NOT_UTF_8 in str(problem):
                return Memory(policy, UNREADABLE, "")
            raise Unreachable(
                f"the history of policy {policy} in the store cannot be read: {in_words(problem)}"
            ) from None
        return None if found is None else Memory(*found)

    def check_writable(self) -> None:
        """Check that the store is writable, with a delete that matches no row.

        Raises:
            Unreachable: nothing can be written.
        """
        self.save([], [0])  # no job has this id

    def save(self, changed: Iterable[JobRecord], gone: Iterable[int], memory: Memory | None = None) -> None:
        """Write the changed records and `memory`, and delete the records of jobs that are gone, in one transaction."""
        rows = [_row(record) for record in changed]
        outdated = [{"old": job_id} for job_id in (*(row["job_id"] for row in rows), *gone)]
        if not outdated and memory is None:
            return
        try:
            with self._engine.begin() as connection:
                # Delete, then insert: the only form of "insert or update" that all supported databases know.
                if outdated:
                    connection.execute(delete(job_records).where(job_records.c.job_id == bindparam("old")), outdated)
                if rows:
                    connection.execute(insert(job_records), rows)
                if memory is not None:
                    connection.execute(delete(policy_memory).where(policy_memory.c.policy == memory.policy))
                    connection.execute(insert(policy_memory), memory._asdict())
        except SQLAlchemyError as problem:
            raise Unreachable(f"the store's job records cannot be written: {in_words(problem)}") from None


def _row(record: JobRecord) -> dict[str, Any]:
    taken_back = None if record.taken_back is None else json.dumps(record.taken_back._asdict())
    return {**asdict(record), "nodes": ",".join(record.nodes), "taken_back": taken_back}


def _record(row: RowMapping) -> JobRecord:
    nodes = tuple(filter(None, row["nodes"].split(",")))
    taken_back = None if row["taken_back"] is None else TakenBack(**json.loads(row["taken_back"]))
    if taken_back is not None:
        taken_back = taken_back._replace(nodes=tuple(taken_back.nodes))
    return JobRecord(**{**row, "stage": Stage(row["stage"]), "nodes": nodes, "taken_back": taken_back})
