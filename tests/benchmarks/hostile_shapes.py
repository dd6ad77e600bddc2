"""What one user's jobs of all different sizes cost a cycle, and how many cycles everybody else waits for them.

    python tests/benchmarks/hostile_shapes.py [--hostile 1000] [--others 200] [--nodes 1000] [--repeat 7] [--profiled]

The hostile user's jobs are of `-n` alone, each with another `--mem-per-cpu`, of as many tasks as there are nodes and
more memory than half a node's for each: on these nodes they fit on all of them at once or never. The other users' jobs
are ordinary ones, submitted after them. With --profiled the hostile jobs are small and name a profiled program, so that
each has several ways.

Prints JSON: `first_cycle` is the look and plan when all sizes are new, `cycle` is one when they are known, `one_size`
the same with as many hostile jobs of one size, `look` and `plan` the parts of `cycle`; seconds, median and p99, without
collections, as the loop runs its cycles. `cycles_until_*` count cycles in which each placed job leaves the queue and
holds its nodes; the hostile ones are counted until each has been looked at.
"""

import argparse
import json
import resource
import sys
from collections.abc import Callable
from dataclasses import replace

from live_cycle import measured
from profiled_jobs import NAMES, PAPER_NODE, PARTITION, PROCESSES, programs

from slurm_sns.model import NOTHING, Plan
from slurm_sns.policies.combined.combined import combined
from slurm_sns.scheduler.cycle_input import Situation, read
from slurm_sns.scheduler.observe.observed import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.known_alternatives import KnownAlternatives
from slurm_sns.scheduler.snapshot.spreading import Spreading
from slurm_sns.submit import mark
from slurm_sns.submit.hints import NO_HINTS, Hints

HOSTILE, OTHERS = 666, 50
SETTINGS = Settings(mode="enforce", partitions=frozenset({PARTITION}), age_limit_s=None)
#: More cycles than this are not counted.
MOST_CYCLES = 1000


def nodes_of(number: int) -> tuple[ObservedNode, ...]:
    """Empty nodes, all alike."""
    return tuple(ObservedNode(f"n{at:05}", frozenset({PARTITION}), PAPER_NODE, NOTHING) for at in range(number))


def hostile_jobs(number: int, nodes: int, *, sizes: int, profiled: bool) -> list[ObservedJob]:
    """The jobs of one user, of so many sizes."""
    return [_hostile(at, at % sizes, nodes, profiled=profiled) for at in range(1, number + 1)]


def _hostile(identity: int, size: int, nodes: int, *, profiled: bool) -> ObservedJob:
    if profiled:
        hints = Hints(alpha=0.5 + size / 1e5, program=NAMES[size % len(NAMES)])
        return _job(identity, HOSTILE, PROCESSES, 1000 + size, hints)
    return _job(identity, HOSTILE, nodes, PAPER_NODE.memory_mb // 2 + size, NO_HINTS)


def other_jobs(number: int, first: int) -> list[ObservedJob]:
    """Jobs of a few sizes, of many users."""
    return [_job(first + at, 1000 + at % OTHERS, 1 + at % 4, 1000, NO_HINTS) for at in range(number)]


def _job(identity: int, user_id: int, tasks: int, memory_per_cpu_mb: int, hints: Hints) -> ObservedJob:
    return ObservedJob(
        id=identity,
        user_id=user_id,
        submit_s=identity,
        state=JobState.PENDING,
        account=f"account-{user_id}",
        partitions=(PARTITION,),
        extra=mark.write(hints),
        hints=hints,
        tasks=tasks,
        cpus=tasks,
        memory_per_cpu_mb=memory_per_cpu_mb,
        walltime_s=3600,
    )


class Cycles:
    """Looks and plans of one scheduler, one after the other."""

    def __init__(self) -> None:
        self._policy = combined()
        self._spreading = Spreading(self._policy.alternatives, programs=programs(), known=KnownAlternatives())

    def look(self, seen: Observation) -> Situation:
        """From values to the snapshot with every job's ways."""
        return read(seen, {}, SETTINGS, 1e6, self._spreading)

    def cycle(self, seen: Observation) -> tuple[Situation, Plan]:
        """Look and plan."""
        situation = self.look(seen)
        return situation, self._policy.plan(situation.snapshot)


def until_served(seen: Observation) -> dict[str, int | None]:
    """After how many cycles the other users' jobs are placed, and each hostile one has been looked at."""
    cycles = Cycles()
    others = {job.id for job in seen.jobs if job.user_id != HOSTILE}
    put_off = {job.id for job in seen.jobs if job.user_id == HOSTILE}
    counts: dict[str, int | None] = {"cycles_until_others_are_placed": None, "cycles_until_all_are_looked_at": None}
    for number in range(1, MOST_CYCLES + 1):
        situation, plan = cycles.cycle(seen)
        placed = {start.job_id for start in plan.starts}
        others -= placed
        put_off -= {job.id for job in situation.snapshot.waiting} | {each.job_id for each in situation.corrections}
        for name, left in zip(counts, (others, put_off), strict=True):
            if not left and counts[name] is None:
                counts[name] = number
        if not others and not put_off:
            break
        seen = _with(seen, plan)
    return counts


def _with(seen: Observation, plan: Plan) -> Observation:
    """What Slurm shows when it has started what was planned."""
    starts = {start.job_id: start for start in plan.starts}
    taken = {node.name: node.allocated for node in seen.nodes}
    for start in starts.values():
        for name in start.nodes:
            taken[name] = taken[name].plus(start.alternative.demand)
    nodes = tuple(replace(node, allocated=taken[node.name]) for node in seen.nodes)
    return replace(seen, jobs=tuple(job for job in seen.jobs if job.id not in starts), nodes=nodes)


def first_cycle(seen: Observation) -> Callable[[], object]:
    """A cycle of a scheduler that has just begun."""
    return lambda: Cycles().cycle(seen)


def settled(seen: Observation) -> Cycles:
    """A scheduler that has looked at all of the jobs before."""
    cycles = Cycles()
    for _ in range(MOST_CYCLES):
        if not cycles.look(seen).blocked:
            break
    return cycles


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostile", type=int, default=1000)
    parser.add_argument("--others", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--profiled", action="store_true")
    given = parser.parse_args()
    nodes, others = nodes_of(given.nodes), other_jobs(given.others, given.hostile + 1)

    def seen(sizes: int) -> Observation:
        hostile = hostile_jobs(given.hostile, given.nodes, sizes=sizes, profiled=given.profiled)
        return Observation((*hostile, *others), nodes)

    many, one = seen(given.hostile), seen(1)
    cycles, of_one = settled(many), settled(one)
    snapshot = cycles.look(many).snapshot
    result: dict = {"hostile": given.hostile, "others": given.others, "nodes": given.nodes, "profiled": given.profiled}
    result |= until_served(many)
    result |= {
        "first_cycle": measured(first_cycle(many), given.repeat),
        "cycle": measured(lambda: cycles.cycle(many), given.repeat),
        "look": measured(lambda: cycles.look(many), given.repeat),
        "plan": measured(lambda: cycles._policy.plan(snapshot), given.repeat),
        "one_size": measured(lambda: of_one.cycle(one), given.repeat),
    }
    result["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    result["cycle_to_one_size"] = round(result["cycle"]["median_s"] / result["one_size"]["median_s"], 1)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
