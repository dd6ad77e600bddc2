"""What would start a waiting job now: the smallest changes of its request with which the last cycle would have.

Each lever changes one demand, the others stay as they are, and gives its candidates, the smallest change first. A
candidate is shown only after the live policy has planned the last cycle again with it and started the job. No change
makes the job another one: it keeps its number of tasks, and a fixed number of nodes.

A new lever is a function of `UnstartedJob` in `LEVERS`. Whatever a time limit may win is a moment in `_moments_s`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, inf
from time import monotonic
from typing import NamedTuple

from slurm_sns.errors import Closed, Infeasible
from slurm_sns.model import Alternative, Job, Plan
from slurm_sns.scheduler.answers.answer_types import StartingChange
from slurm_sns.scheduler.answers.last_cycle import LastCycle, Turn, turns
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.scheduler.snapshot.geometry import is_fixed, names_no_memory
from slurm_sns.scheduler.snapshot.spreading import keeps_geometry
from slurm_sns.submit import record as records

#: Plans take the scheduler's own processor: at most so many for one job, and none that is likely to end later than
#: this; the first is always made.
MOST_PLANS = 6
LONGEST_S = 0.05
#: At most so many candidates of one lever are planned, and so many looked at.
MOST_PLANNED, MOST_LOOKED_AT = 3, 64
#: Memory from here on is rounded down to whole GiB.
LARGE_MB = 8192
#: Time that the owner has to type a shorter limit, and Slurm's unit of limits.
SPARE_S, MINUTE_S = 60, 60
#: The scales that the owner may be asked to allow.
SCALES = (2, 4, 8, 16, 32, 64)


class ChangedRequest(NamedTuple):
    """A changed request: as its owner would write it, and the job that Slurm would show."""

    options: str
    observed: ObservedJob


@dataclass(frozen=True, slots=True)
class UnstartedJob:
    """The job to be started: as Slurm shows it, and as the cycle planned it (None: it was closed to it), its turns."""

    cycle: LastCycle
    observed: ObservedJob
    job: Job | None
    turns: list[Turn]

    def made(self, change: ChangedRequest) -> Job | None:
        """The changed job; None where nothing changes for the policy, or the change cannot win at any turn."""
        try:
            made, _ = self.cycle.job_of(change.observed, self.job)
        except (Closed, Infeasible):
            return None
        if made == self.job or (self.turns and not any(self._may_win(turn, made) for turn in self.turns)):
            return None
        return made

    def _may_win(self, turn: Turn, made: Job) -> bool:
        """Whether it fits at this turn; a job that only ends sooner must end before the first promised start, too."""
        is_shorter_only = self.job is not None and replace(made, expected_run_s=self.job.expected_run_s) == self.job
        return turn.holds(made) and (turn.passes(made) or not is_shorter_only)


Lever = Callable[[UnstartedJob], Iterator[ChangedRequest]]


def starting_changes(
    cycle: LastCycle, observed: ObservedJob, job: Job | None, plan: Plan, now_s: Callable[[], float] = monotonic
) -> list[StartingChange]:
    """The smallest change of each kind with which the job would have started in the cycle that gave this plan."""
    asked = UnstartedJob(cycle, observed, job, list(turns(plan, observed.id)))
    if job is not None and not asked.turns:  # behind the queue depth, or no node has room even for the smallest job
        return []
    found: list[StartingChange] = []
    left, longest_s, until_s = MOST_PLANS, 0.0, now_s() + LONGEST_S
    for kind, lever in LEVERS.items():
        looked_at = ((change, asked.made(change)) for change in islice(lever(asked), MOST_LOOKED_AT))
        possible = ((change, made) for change, made in looked_at if made is not None)
        for change, made in islice(possible, MOST_PLANNED):
            began_s = now_s()
            if not left or (left < MOST_PLANS and began_s + longest_s > until_s):
                return found
            start = cycle.start_of(made)
            left, longest_s = left - 1, max(longest_s, now_s() - began_s)
            if start is not None:
                found.append({"kind": kind, "options": change.options, "nodes": list(start.nodes)})
                break
    return found


def _by_time(asked: UnstartedJob) -> Iterator[ChangedRequest]:
    """Shorter time limits, the longest first, each of which ends before something that keeps the job from nodes."""
    limit_s = asked.observed.walltime_s
    shorter = {_typed_limit_s(each) for each in _moments_s(asked)}
    for each in sorted(shorter, reverse=True):
        if MINUTE_S <= each < (inf if limit_s is None else limit_s):
            yield ChangedRequest(f"-t {_time(each)}", replace(asked.observed, walltime_s=each))


def _moments_s(asked: UnstartedJob) -> Iterator[float]:
    """The time limits in seconds before which the job would have to end to win something."""
    now_s = float(asked.cycle.now_s)
    yield from (turn.first_promise_s - SPARE_S for turn in asked.turns if turn.first_promise_s < inf)
    yield from (each.start_s - now_s - SPARE_S for each in asked.cycle.observation.reservations)
    yield from (each.start_s - now_s - SPARE_S for each in asked.cycle.claims)
    partitions = (each for each in asked.cycle.observation.partitions if each.name in asked.observed.partitions)
    yield from (each.walltime_s for each in partitions if each.walltime_s is not None)


def _by_memory(asked: UnstartedJob) -> Iterator[ChangedRequest]:
    """Less memory, the most first: as much as the nodes had at the job's turn, in each member's cycle.

    A member that matches one job more may win the pass or not: amounts come first with which a winner has the job. For
    a job that would run into a promised start, what the nodes without promised places had is a candidate, too.
    """
    if asked.job is None:
        return
    most_mb = [_most_memory_mb(asked, asked.job, turn) for turn in asked.turns]
    kept_out = [turn for turn in asked.turns if not turn.passes(asked.job)]
    besides_mb = [_most_memory_mb(asked, asked.job, turn, off_promised=True) for turn in kept_out]

    def wins(memory_mb: int) -> bool:
        having = [memory_mb <= each for each in most_mb]
        best = max((turn.matched + 1 for turn, has in zip(asked.turns, having, strict=True) if has), default=0)
        rival = max((turn.matched for turn, has in zip(asked.turns, having, strict=True) if not has), default=0)
        return having[0] or best > rival  # the first turn is that of the chosen member

    for memory_mb in sorted({*most_mb, *besides_mb} - {0}, key=lambda each: (not wins(each), -each)):
        yield _with_memory(asked.observed, memory_mb)


def _most_memory_mb(asked: UnstartedJob, job: Job, turn: Turn, *, off_promised: bool = False) -> int:
    """The most memory, as one would type it, with which one of the job's alternatives had its nodes; 0 for none."""
    found = 0
    for each in job.alternatives:
        most_mb = turn.most_memory_mb(each, job, off_promised=off_promised)
        if most_mb < each.demand.memory_mb:
            found = max(found, _typed_memory_mb(most_mb // _parts(asked.observed, each)))
    return found


def _parts(observed: ObservedJob, alternative: Alternative) -> int:
    """By how many CPUs of a node the memory is counted; 1 where it is given by node."""
    if observed.memory_per_cpu_mb is None:
        return 1
    return max(1, alternative.demand.memory_mb // max(1, observed.memory_per_cpu_mb))


def _with_memory(observed: ObservedJob, memory_mb: int) -> ChangedRequest:
    if observed.memory_per_cpu_mb is None:
        return ChangedRequest(f"--mem={_memory(memory_mb)}", replace(observed, memory_per_node_mb=memory_mb))
    return ChangedRequest(f"--mem-per-cpu={_memory(memory_mb)}", replace(observed, memory_per_cpu_mb=memory_mb))


def _by_tasks_per_node(asked: UnstartedJob) -> Iterator[ChangedRequest]:
    """Fewer tasks on each node, all tasks kept: as even as its fixed nodes allow, or on more nodes."""
    observed, job = asked.observed, asked.job
    if job is None or observed.tasks == 1 or not keeps_geometry(observed):
        return
    tasks, now = observed.tasks, observed.tasks_per_node
    if is_fixed(observed) and observed.nodes_max is not None:
        counts = [observed.nodes_max] if observed.nodes_max > 1 else []
    else:
        counts = list(range(job.alternatives[0].nodes + 1, min(tasks, len(asked.cycle.snapshot.nodes)) + 1))
    for each in sorted({ceil(tasks / count) for count in counts}, reverse=True):
        if now is None or each < now:
            nodes = max(ceil(tasks / each), observed.fewest_nodes if is_fixed(observed) else 1)
            changed = replace(_fixed(observed), tasks_per_node=each, nodes_min=nodes, nodes_max=nodes)
            yield ChangedRequest(f"--ntasks-per-node={each}", changed)


def _by_cpus(asked: UnstartedJob) -> Iterator[ChangedRequest]:
    """Fewer CPUs for each task, the most first; memory on each node and the number of tasks stay."""
    observed, job = asked.observed, asked.job
    if job is None or observed.is_alone or names_no_memory(observed):
        return
    memory_mb = job.alternatives[0].demand.memory_mb
    beside = "" if observed.memory_per_cpu_mb is None else f" --mem={_memory(memory_mb)}"
    kept = replace(observed, memory_per_cpu_mb=None, memory_per_node_mb=memory_mb)
    for cpus in range(observed.cpus_per_task - 1, 0, -1):
        of_tasks = observed.tasks * cpus
        yield ChangedRequest(
            f"-c {cpus}{beside}", replace(kept, cpus_per_task=cpus, cpus=of_tasks, min_cpus_per_node=cpus)
        )


def _by_scale(asked: UnstartedJob) -> Iterator[ChangedRequest]:
    """Larger scales of a spreadable job, the smallest first."""
    observed, hints = asked.observed, asked.observed.hints
    if hints is None or keeps_geometry(observed):
        return
    for scale in SCALES:
        if scale > (hints.max_scale or 1):
            yield ChangedRequest(f"--sns-max-scale={scale}", _hinted(observed, max_scale=scale))


#: One demand each; the first ones change least of what the job does.
LEVERS: dict[str, Lever] = {
    "time": _by_time,
    "memory": _by_memory,
    "scale": _by_scale,
    "tasks per node": _by_tasks_per_node,
    "cpus per task": _by_cpus,
}


def _fixed(observed: ObservedJob) -> ObservedJob:
    """The job as one whose owner has said its geometry; without a record Slurm's fields alone say so."""
    return observed if observed.hints is None else _hinted(observed, fixed=True)


def _hinted(observed: ObservedJob, **hints: int | bool) -> ObservedJob:
    record = observed.record
    if record is None:
        return observed
    noted = replace(record, hints=replace(record.hints, **hints))  # type: ignore[arg-type]  # each has its field's type
    return replace(observed, admin_comment=records.written(observed.admin_comment, noted))


def _typed_limit_s(limit_s: float) -> int:
    """Rounded down to minutes, from an hour on to five: what one would type."""
    unit_s = MINUTE_S if limit_s < 3600 else 5 * MINUTE_S
    return int(limit_s // unit_s) * unit_s


def _typed_memory_mb(memory_mb: int) -> int:
    return memory_mb if memory_mb < LARGE_MB else memory_mb // 1024 * 1024


def _memory(memory_mb: int) -> str:
    return f"{memory_mb}M" if memory_mb % 1024 else f"{memory_mb // 1024}G"


def _time(limit_s: int) -> str:
    """`2:00:00`, `1-00:00:00`."""
    days, left_s = divmod(limit_s, 86_400)
    clock = f"{left_s // 3600}:{left_s % 3600 // 60:02}:{left_s % 60:02}"
    return f"{days}-{clock:0>8}" if days else clock
