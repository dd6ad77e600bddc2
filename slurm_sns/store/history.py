"""The tries of waiting jobs and the history of each policy, in the database (the History port)."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from sqlalchemy import Engine, bindparam, delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.ports import PolicyHistory
from slurm_sns.store.database import in_words
from slurm_sns.store.schema import policy_memory, tries

#: Part of SQLite's error for a text that is not UTF-8, so that we have not written it.
NOT_UTF_8 = "Could not decode to UTF-8"
#: The version that such a history gets. No policy has it: policies count their versions from 1.
UNREADABLE = 0


class StoredHistory:
    """Keeps tries in the table `tries` and the history of each policy in `policy_memory`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self) -> Mapping[int, Try]:
        """All tries by job id.

        Raises:
            Unreachable: they cannot be read.
        """
        try:
            with self._engine.connect() as connection:
                rows = connection.execute(select(tries)).mappings().all()
        except SQLAlchemyError as problem:
            raise Unreachable(f"the store's tries cannot be read: {in_words(problem)}") from None
        return {row["job_id"]: Try(**row) for row in rows}

    def load_memory(self, policy: str) -> PolicyHistory | None:
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
                return PolicyHistory(policy, UNREADABLE, "")
            raise Unreachable(
                f"the history of policy {policy} in the store cannot be read: {in_words(problem)}"
            ) from None
        return None if found is None else PolicyHistory(*found)

    def check_writable(self) -> None:
        """Check that the store is writable, with a delete that matches no row.

        Raises:
            Unreachable: nothing can be written.
        """
        self.save([], [0])  # no job has this id

    def save(self, changed: Iterable[Try], gone: Iterable[int], memory: PolicyHistory | None = None) -> None:
        """Write the changed tries and `memory`, and delete the tries of the jobs `gone`, in one transaction."""
        rows = [asdict(each) for each in changed]
        outdated = [{"old": job_id} for job_id in (*(row["job_id"] for row in rows), *gone)]
        if not outdated and memory is None:
            return
        try:
            with self._engine.begin() as connection:
                # Delete, then insert: the only form of "insert or update" that all supported databases know.
                if outdated:
                    connection.execute(delete(tries).where(tries.c.job_id == bindparam("old")), outdated)
                if rows:
                    connection.execute(insert(tries), rows)
                if memory is not None:
                    connection.execute(delete(policy_memory).where(policy_memory.c.policy == memory.policy))
                    connection.execute(insert(policy_memory), memory._asdict())
        except SQLAlchemyError as problem:
            raise Unreachable(f"the store's tries cannot be written: {in_words(problem)}") from None
