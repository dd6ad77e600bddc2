"""The planned starts in the database, for a report on a scheduler that sends nothing. It only reads."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from sqlalchemy import Engine, distinct, func, select

from slurm_sns.errors import SnsError
from slurm_sns.scheduler.restarts.words import CHOSEN, COMPLETES, LOST
from slurm_sns.store.database import transaction
from slurm_sns.store.decisions import UNREADABLE, unpack
from slurm_sns.store.schema import array_tasks, cycles, decisions, snapshots
from slurm_sns.task_ids import label, task_id


class RecordedStart(NamedTuple):
    """A planned start: of this job, which a task of an array is by one id only; `cores` are those on all nodes."""

    job_id: int
    at_s: float
    nodes: tuple[str, ...]
    heuristic: str
    cores: int

    @property
    def label(self) -> str:
        """What Slurm calls the job."""
        return label(self.job_id)


class RecordedRestart(NamedTuple):
    """A restart of a suspended job, or a proposal of one, by its terms when it was decided.

    In `stays_s` the job would have completed where it was, in `restarts_s` elsewhere; the work lost is in core-seconds.
    """

    job_id: int
    user_id: int
    at_s: float
    is_proposal: bool
    stays_s: float
    restarts_s: float
    lost_core_s: float

    @property
    def label(self) -> str:
        """What Slurm calls the job."""
        return label(self.job_id)


class RecordedPlans:
    """What the decision record says of planned starts and of restarts.

    Raises:
        Unreachable: from each method, if the database does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def starts(self) -> Iterator[RecordedStart]:
        """All starts, oldest first."""
        tasks = self._tasks
        columns = (decisions.c.job_id, decisions.c.at_s, decisions.c.nodes, cycles.c.chosen, decisions.c.demand)
        of_starts = select(*columns).join(cycles, cycles.c.id == decisions.c.cycle_id)
        with transaction(self._engine, UNREADABLE) as connection:
            found = of_starts.where(decisions.c.action == "start").order_by(decisions.c.id)
            for job_id, at_s, nodes, chosen, demand in connection.execute(found):
                parts = tuple(filter(None, nodes.split(",")))
                cores = int(json.loads(demand).get("cores", 0)) * len(parts)
                yield RecordedStart(tasks.get(job_id, job_id), at_s, tuple(dict.fromkeys(parts)), chosen, cores)

    def restarts(self) -> list[RecordedRestart]:
        """All restarts of suspended jobs and proposals, oldest first; a pause where jobs share cores is none."""
        tasks = self._tasks
        of_restarts = select(decisions).where(decisions.c.action.in_(("restart", "proposal"))).order_by(decisions.c.id)
        with transaction(self._engine, UNREADABLE) as connection:
            rows = connection.execute(of_restarts).mappings().all()
        found: list[RecordedRestart] = []
        for row in rows:
            terms = json.loads(row["considered"])["considered"]
            if not terms:  # a pause
                continue
            stays, *others = terms
            chosen = next((each["figures"] for each in others if each["outcome"] == CHOSEN), stays["figures"])
            found.append(
                RecordedRestart(
                    tasks.get(row["job_id"], row["job_id"]),
                    row["user_id"],
                    row["at_s"],
                    row["action"] == "proposal",
                    stays["figures"][COMPLETES],
                    chosen[COMPLETES],
                    chosen[LOST],
                )
            )
        return found

    def count_cycles(self) -> int:
        """How many cycles planned a start that is recorded."""
        with transaction(self._engine, UNREADABLE) as connection:
            count = select(func.count(distinct(decisions.c.cycle_id))).where(decisions.c.action == "start")
            return int(connection.execute(count).scalar() or 0)

    def snapshots(self) -> list[int]:
        """The cycles whose snapshots are kept, oldest first."""
        with transaction(self._engine, UNREADABLE) as connection:
            kept = select(snapshots.c.cycle_id).order_by(snapshots.c.cycle_id)
            return [int(each) for each in connection.execute(kept).scalars()]

    def waiting(self, cycle: int) -> tuple[float, frozenset[int]]:
        """When the snapshot of that cycle was taken, and the jobs that waited for a start then.

        Raises:
            SnsError: it is no longer kept, or damaged.
        """
        with transaction(self._engine, UNREADABLE) as connection:
            data = connection.execute(select(snapshots.c.data).where(snapshots.c.cycle_id == cycle)).scalar()
        if data is None:
            raise SnsError("it is no longer kept")
        tasks, snapshot = self._tasks, unpack(data)
        return float(snapshot.now_s), frozenset(tasks.get(job.id, job.id) for job in snapshot.waiting)

    @cached_property
    def _tasks(self) -> dict[int, int]:
        """Our id of each task that has had one of Slurm's, too."""
        with transaction(self._engine, UNREADABLE) as connection:
            rows = connection.execute(select(array_tasks.c.job_id, array_tasks.c.array_id, array_tasks.c.task)).all()
        return {job_id: task_id(array_id, task) for job_id, array_id, task in rows}
