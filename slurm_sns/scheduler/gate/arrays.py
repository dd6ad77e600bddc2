"""Job arrays: which of an array's waiting tasks a cycle plans.

Slurm keeps the waiting tasks of an array in one job record. To a policy the next of them are jobs of their own, with
ids of ours (task_ids), as many as the nodes could hold if they were empty. Placing one names the task to Slurm, which
splits it off its record by the same RPC. A task that was split off by anything else is an ordinary job.

Slurm itself keeps an array's limit (`%5`). No more tasks are planned than may run by it, because the others would take
nodes in vain.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from slurm_sns.model import Alternative, Reason, Resources, WaitKind
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.task_ids import task_id

#: The most tasks of one account's arrays that a cycle looks at: where one RPC may place several tasks, and where each
#: takes a process of scontrol, of which 33 a second were seen (tests/benchmarks/placement.py --array).
MOST_TASKS, MOST_TASKS_BY_SCONTROL = 10_000, 1000
#: Where an array's limit leaves room for some of its tasks only, and an owner has changed some, these take turns: each
#: is the first for so long. Slurm's own main pass runs once a minute.
TURN_S = 60.0


def busy_tasks(jobs: Iterable[ObservedJob], statuses: Mapping[int, Status]) -> Counter[int]:
    """How many tasks of each array have left the queue and count towards its limit, ours or not, by array id."""
    return Counter(
        job.array_id
        for job in jobs
        if job.array_id is not None
        and job.task is not None
        and (statuses[job.id].has_placement or job.state.occupies_nodes)
    )


def within_limits(
    waiting: Iterable[ObservedJob], busy: Mapping[int, int], now_s: float
) -> tuple[dict[int, int], dict[int, str]]:
    """How many tasks of each limited array's record may be planned now, and why other jobs must wait, both by job id.

    The waiting tasks of an array that have ids of their own come before those of its record, but they take turns with
    them: an owner may have changed them so that they find no nodes where the others would.
    """
    limited: dict[int, list[ObservedJob]] = {}
    for job in waiting:
        if job.array_id is not None and job.array_limit:
            limited.setdefault(job.array_id, []).append(job)
    rooms: dict[int, int] = {}
    blocked: dict[int, str] = {}
    for array_id, jobs in limited.items():
        limit = max(job.array_limit or 0 for job in jobs)
        most = max(0, limit - busy.get(array_id, 0))
        singles = sorted((job for job in jobs if not job.is_array_record), key=lambda job: (job.array_task, job.id))
        in_turn = [*singles, *(job for job in jobs if job.is_array_record for _ in range(most))]
        first = int(now_s // TURN_S) % len(in_turn) if singles and in_turn else 0
        chosen = Counter(job.id for job in [*in_turn[first:], *in_turn[:first]][:most])
        rooms |= {job.id: chosen[job.id] for job in jobs if job.is_array_record}
        blocked |= {job.id: limit_reached(limit) for job in jobs if not chosen[job.id]}
    return rooms, blocked


def limit_reached(limit: int) -> Reason:
    """Why a task waits that the limit of its array leaves no room."""
    return Reason(f"at most {limit} tasks of its array run at a time", WaitKind.ARRAY_LIMIT)


def planned_tasks(record: ObservedJob, most: int) -> Iterator[ObservedJob]:
    """The next tasks of an array's record, at most so many, each as a job of its own."""
    for task in islice(listed(record.array_tasks), most):
        yield replace(record, id=task_id(record.id, task), array_task=task, array_tasks="")


def room(alternatives: Sequence[Alternative], capacities: Mapping[Resources, int]) -> int:
    """How many tasks of an array the nodes could hold if empty, by the alternative with which most of them fit.

    `capacities` gives the number of nodes of each capacity.
    """
    return max(
        sum(_parts(alternative, each) * number for each, number in capacities.items()) // alternative.nodes
        for alternative in alternatives
    )


def _parts(alternative: Alternative, capacity: Resources) -> int:
    """How many times the demand of one task on a node fits on a node of that capacity."""
    if not alternative.demand.within(capacity):
        return 0
    if alternative.exclusive:
        return 1
    demand, gpus = alternative.demand, dict(capacity.gpus)
    pairs = [
        *zip(capacity.all_but_gpus, demand.all_but_gpus, strict=True),
        *((gpus[name], wants) for name, wants in demand.gpus),
    ]
    return min(has // wants for has, wants in pairs if wants)


def listed(expression: str) -> Iterator[int]:
    """The tasks of Slurm's expression (`3-9,12,20-40:4`), smallest first; without the last part if it is cut off."""
    parts = expression.split(",")
    for part in parts[:-1] if expression.endswith("...") else parts:
        numbers, _, step = part.partition(":")
        first, _, last = numbers.partition("-")
        yield from range(int(first), int(last or first) + 1, int(step or 1))
