"""Job arrays: which waiting tasks are split off to be planned one by one, and how many may be placed at a time.

Slurm keeps the waiting tasks of an array in one record, and a change of it moves them all. A task that is split off has
a job id of its own, and is an ordinary held job from then on, at its array's place in the queue. Splitting is cheap
(one RPC splits many), but nothing puts the tasks together again, so an array has no more of them split off than its
window: as many as its nodes could hold if they were empty. That is enough for the next cycle, whatever ends until then.
The rest of the record stays held and is planned by nobody. Its last task needs no splitting: the record is then that
task's own.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slurm_sns.model import Alternative, Resources
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import JobState, ObservedJob

#: Tasks that have left the queue, and count for the array's limit.
_BUSY = (
    *(JobStatus.PLACED, JobStatus.OVERDUE, JobStatus.UNHELD, JobStatus.REQUEUED),
    *(JobStatus.RUNNING, JobStatus.SUSPENDED),
)


@dataclass(frozen=True, slots=True)
class Split:
    """Give these tasks of the array job ids of their own. `nice` is what the array has: the change changes nothing."""

    array_id: int
    tasks: tuple[int, ...]
    nice: int


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of all arrays that are jobs of their own: by array, how many are held by us and how many are busy."""

    held: Counter[int] = field(default_factory=Counter)
    busy: Counter[int] = field(default_factory=Counter)


def count(jobs: Iterable[ObservedJob], statuses: Mapping[int, JobStatus]) -> Tasks:
    """Count the tasks in a look at Slurm."""
    tasks = Tasks()
    for job in jobs:
        if job.array_id is None or job.is_array_record:
            continue
        what = statuses[job.id]
        if what is JobStatus.WAITING:
            tasks.held[job.array_id] += 1
        elif what in _BUSY and job.state is not JobState.ENDED:
            tasks.busy[job.array_id] += 1
    return tasks


def over_limit(waiting: Iterable[ObservedJob], tasks: Tasks) -> dict[int, str]:
    """The waiting tasks that must not be placed now, with the reason: their array's limit would be passed."""
    limited = [(job.task, job.array_limit, job.id) for job in waiting if job.task and job.array_limit]
    taken: Counter[int] = Counter()
    held_back: dict[int, str] = {}
    for (array_id, _), limit, job_id in sorted(limited):
        taken[array_id] += 1
        if tasks.busy[array_id] + taken[array_id] > limit:
            held_back[job_id] = f"at most {limit} tasks of its array run at a time"
    return held_back


#: Tasks are split off by one command, whose arguments are limited to 128 KiB: further ones come with the next cycles.
MOST_IN_ONE = 1000


def splits(records: Sequence[tuple[ObservedJob, int]], tasks: Tasks, queue_depth: int) -> list[Split]:
    """What to split off now. `records`: the held arrays in queue order, each with the tasks that its nodes could hold.

    The windows of one account's arrays together are as many tasks as a cycle looks at jobs, `queue_depth`. Each array
    has at least one task among the planned jobs, so that none waits for another account's or partition's.
    """
    ahead: Counter[str] = Counter()
    found = []
    for record, room in records:
        array_id = record.id
        held = tasks.held[array_id]
        window = max(1, min(room, queue_depth - ahead[record.account]))
        if record.array_limit is not None:
            window = min(window, record.array_limit - tasks.busy[array_id])
        ahead[record.account] += max(window, held)
        if 2 * held > window:  # refilled when it is half empty: fewer RPCs, and never empty before the next look
            continue
        chosen = next_tasks(record.array_tasks, min(window - held, MOST_IN_ONE))
        if chosen:
            found.append(Split(array_id, chosen, record.nice))
    return found


def waits_because(record: ObservedJob, tasks: Tasks) -> str:
    """What an array's waiting tasks that are not split off wait for."""
    limit = f", at most {record.array_limit} at a time" if record.array_limit else ""
    return f"its tasks are planned one by one{limit}; {tasks.held[record.id]} are next"


def room(alternatives: Sequence[Alternative], capacities: Mapping[Resources, int]) -> int:
    """How many tasks of an array so many nodes of each capacity could hold if empty, in the way that takes most."""
    return max(
        sum(_parts(alternative, each) * number for each, number in capacities.items()) // alternative.nodes
        for alternative in alternatives
    )


def _parts(alternative: Alternative, capacity: Resources) -> int:
    """How many times a node of that capacity holds what one task takes on a node."""
    if not alternative.demand.within(capacity):
        return 0
    if alternative.exclusive:
        return 1
    return min(has // wants for has, wants in zip(capacity, alternative.demand, strict=True) if wants)


def next_tasks(expression: str, most: int) -> tuple[int, ...]:
    """The first tasks of Slurm's expression (`3-9,12,20-40:4`), at most so many, never the last one of all."""
    chosen: list[int] = []
    for task in listed(expression):
        if len(chosen) >= most:
            return tuple(chosen)
        chosen.append(task)
    return tuple(chosen) if expression.endswith("...") else tuple(chosen[:-1])


def listed(expression: str) -> Iterator[int]:
    """The tasks of an expression, smallest first. Where it is cut off, the last part may be, too: it is left out."""
    parts = expression.split(",")
    for part in parts[:-1] if expression.endswith("...") else parts:
        numbers, _, step = part.partition(":")
        first, _, last = numbers.partition("-")
        yield from range(int(first), int(last or first) + 1, int(step or 1))
