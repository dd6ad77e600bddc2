"""Job arrays: which waiting tasks are split off to be planned one by one, and how many may be placed at a time.

Slurm keeps the waiting tasks of an array in one job record, and a change of that record changes them all. A task that
is split off has a job id of its own, and is an ordinary held job from then on, at its array's place in the queue.
Splitting is cheap (one RPC splits many), but nothing joins the tasks again. So an array has at most a window of tasks
split off: as many as its nodes could hold if they were empty. That is enough for the next cycle, whatever ends until
then. The rest of the record stays held and is not planned. The last task needs no splitting: the record is then that
task's own. An owner may change a task that is split off. It may then find no nodes where the others would, so these do
not wait for it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slurm_sns.model import Alternative, Resources
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import JobState, ObservedJob

#: The statuses of tasks that have left the queue and count towards the array's limit.
_BUSY = (
    *(JobStatus.PLACED, JobStatus.OVERDUE, JobStatus.UNHELD, JobStatus.REQUEUED),
    *(JobStatus.RUNNING, JobStatus.SUSPENDED),
)


@dataclass(frozen=True, slots=True)
class Split:
    """Give these tasks of the array job ids of their own.

    The split is sent as a change of nice to `nice`, the value that the array has already, so nothing else changes. It
    is not sent if the array has another value by now, or another mark than `extra`: its owner has changed it.
    """

    array_id: int
    tasks: tuple[int, ...]
    nice: int
    extra: str


@dataclass(frozen=True, slots=True)
class Tasks:
    """The array tasks that are jobs of their own: by array id, how many of them we hold and how many are busy.

    A held task is not counted if the others need not wait for it: if it may begin later only, such as one that was
    requeued, or if it asks for something else than those that are not split off yet.
    """

    held: Counter[int] = field(default_factory=Counter)
    busy: Counter[int] = field(default_factory=Counter)


def count(jobs: Iterable[ObservedJob], statuses: Mapping[int, JobStatus], now_s: float) -> Tasks:
    """Count the tasks among the jobs of one observation."""
    tasks = Tasks()
    of_arrays = [job for job in jobs if job.array_id is not None]
    kinds = {job.id: _kind(job) for job in of_arrays if job.is_array_record}
    for job in of_arrays:
        if job.array_id is None or job.is_array_record:
            continue
        status = statuses[job.id]
        if status is JobStatus.WAITING and job.begin_s <= now_s:
            tasks.held[job.array_id] += int(kinds.get(job.array_id) in (None, _kind(job)))
        elif status in _BUSY and job.state is not JobState.ENDED:
            tasks.busy[job.array_id] += 1
    return tasks


#: What a task asks for. Of tasks that ask for the same, one finds no nodes where another finds none.
Kind = tuple[object, ...]
#: How long the turn of a kind lasts: Slurm's own main pass runs once a minute.
TURN_S = 60.0


def _kind(job: ObservedJob) -> Kind:
    asked = (job.fewest_nodes, job.cpus, job.memory_per_cpu_mb, job.memory_per_node_mb, job.walltime_s)
    hinted = (False, None) if job.hints is None else (job.hints.exclusive, job.hints.program)
    return job.partitions, job.qos, *asked, *hinted


def over_limit(waiting: Iterable[ObservedJob], tasks: Tasks, now_s: float) -> dict[int, str]:
    """The waiting tasks that must not be planned now because of their array's limit, with the reason.

    Of each array as many tasks are planned as may still be placed, the first ones. But if its owner has changed some,
    the first ones may find no nodes where others would. So as many tasks of another kind are planned beside them; the
    other kinds take turns. `beyond_limit` says which starts of the plan are then too many.
    """
    limited = sorted((*job.task, job.id, job) for job in waiting if job.task and job.array_limit)
    kinds: dict[int, dict[Kind, list[ObservedJob]]] = {}
    for array_id, *_, job in limited:
        kinds.setdefault(array_id, {}).setdefault(_kind(job), []).append(job)
    held_back: dict[int, str] = {}
    for array_id, of_array in kinds.items():
        first, *others = of_array
        turns = {first, others[int(now_s // TURN_S) % len(others)]} if others else {first}
        for kind, alike in of_array.items():
            for at, job in enumerate(alike):
                limit = job.array_limit or 0
                if kind not in turns or tasks.busy[array_id] + at >= limit:
                    held_back[job.id] = _at_most(limit)
    return held_back


def beyond_limit(planned: Iterable[ObservedJob], tasks: Tasks) -> dict[int, str]:
    """The tasks among the jobs to be placed that are too many for their array's limit, with the reason."""
    taken: Counter[int] = Counter()
    beyond: dict[int, str] = {}
    for job in planned:
        if job.task is None or not job.array_limit:
            continue
        array_id, _ = job.task
        taken[array_id] += 1
        if tasks.busy[array_id] + taken[array_id] > job.array_limit:
            beyond[job.id] = _at_most(job.array_limit)
    return beyond


def _at_most(limit: int) -> str:
    return f"at most {limit} tasks of its array run at a time"


#: The most tasks that one command splits off, as its arguments are limited to 128 KiB; the next cycles split off more.
MOST_IN_ONE = 1000
#: The most tasks of one account that are split off and wait. To slurmctld each is a job of its own, of which it takes
#: MaxJobCount, by default 10,000.
MOST_AHEAD = 1000


def splits(records: Sequence[tuple[ObservedJob, int]], tasks: Tasks, queue_depth: int) -> list[Split]:
    """The tasks to split off now.

    `records` are the held arrays in queue order, each with the number of tasks that its nodes could hold. The windows
    of one account's arrays together have as many tasks as a cycle looks at jobs, `queue_depth`, and no more than
    `MOST_AHEAD`. A window has at least one task unless the array's own limit is reached, so that no array waits for
    those of another account or partition.
    """
    found: list[Split] = []
    if not records:
        return found
    ahead: Counter[str] = Counter()
    most = min(queue_depth, MOST_AHEAD)
    for record, room in records:
        array_id = record.id
        held = tasks.held[array_id]
        window = max(1, min(room, most - ahead[record.account]))
        if record.array_limit is not None:
            window = min(window, record.array_limit - tasks.busy[array_id])
        ahead[record.account] += max(window, held)
        if 2 * held > window:  # refilled when half empty: fewer RPCs, and not empty before the next cycle
            continue
        chosen = next_tasks(record.array_tasks, min(window - held, MOST_IN_ONE))
        if chosen:
            found.append(Split(array_id, chosen, record.nice, record.extra))
    return found


def waits_because(record: ObservedJob, tasks: Tasks) -> str:
    """Why the tasks of an array that are not split off wait."""
    limit = f", at most {record.array_limit} at a time" if record.array_limit else ""
    return f"its tasks are planned one by one{limit}; {tasks.held[record.id]} are next"


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
    return min(has // wants for has, wants in zip(capacity, alternative.demand, strict=True) if wants)


def next_tasks(expression: str, most: int) -> tuple[int, ...]:
    """The first tasks, at most `most`, of Slurm's task expression (`3-9,12,20-40:4`), never the last task of all."""
    chosen: list[int] = []
    for task in listed(expression):
        if len(chosen) >= most:
            return tuple(chosen)
        chosen.append(task)
    return tuple(chosen) if expression.endswith("...") else tuple(chosen[:-1])


def listed(expression: str) -> Iterator[int]:
    """The tasks of an expression, smallest first. If Slurm cut it off (`...`), its last part is left out."""
    parts = expression.split(",")
    for part in parts[:-1] if expression.endswith("...") else parts:
        numbers, _, step = part.partition(":")
        first, _, last = numbers.partition("-")
        yield from range(int(first), int(last or first) + 1, int(step or 1))
