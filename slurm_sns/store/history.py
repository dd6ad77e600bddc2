"""The tries of waiting jobs and the history of each policy, in the database (the History port)."""

from collections.abc import Iterable, Mapping

from sqlalchemy import Engine, select

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.ports import PolicyHistory
from slurm_sns.store.database import replace_rows, transaction
from slurm_sns.store.schema import policy_memory, tries

#: Part of SQLite's error for a text that is not UTF-8, so that we have not written it.
NOT_UTF_8 = "Could not decode to UTF-8"
#: The fields of a try, which are the columns. `dataclasses.asdict` would take ten times as long.
_FIELDS = tuple(tries.c.keys())
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
        with transaction(self._engine, "the store's tries cannot be read") as connection:
            rows = connection.execute(select(tries)).mappings().all()
        return {row["job_id"]: Try(**row) for row in rows}

    def load_memory(self, policy: str) -> PolicyHistory | None:
        """The last stored history of the policy with that name; None if there is none. Its text is not checked here.

        Raises:
            Unreachable: the table cannot be read.
        """
        row = select(policy_memory).where(policy_memory.c.policy == policy)
        try:
            with transaction(self._engine, f"the history of policy {policy} in the store cannot be read") as connection:
                found = connection.execute(row).one_or_none()
        except Unreachable as problem:
            if NOT_UTF_8 in str(problem):
                return PolicyHistory(policy, UNREADABLE, "")
            raise
        return None if found is None else PolicyHistory(*found)

    def check_writable(self) -> None:
        """Check that the store is writable, with a delete that matches no row.

        Raises:
            Unreachable: nothing can be written.
        """
        self.save([], [0])  # no job has this id

    def save(self, changed: Iterable[Try], gone: Iterable[int], memory: PolicyHistory | None = None) -> None:
        """Write the changed tries and `memory`, and delete the tries of the jobs `gone`, in one transaction."""
        with transaction(self._engine, "the store's tries cannot be written") as connection:
            rows = [{name: getattr(each, name) for name in _FIELDS} for each in changed]
            replace_rows(connection, tries, rows, [{"job_id": each} for each in gone])
            if memory is not None:
                replace_rows(connection, policy_memory, [memory._asdict()])
