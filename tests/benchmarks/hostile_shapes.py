"""The time that one user's jobs of all different sizes add to a cycle, and the cycles that other users wait for them.

    python tests/benchmarks/hostile_shapes.py [--hostile 1000] [--others 200] [--nodes 1000] [--repeat 7] [--profiled]

The hostile user's jobs say only `-n`, each with another `--mem-per-cpu`. They have as many tasks as there are nodes,
and each task needs more than half of a node's memory: such a job fits only on all nodes at once. The other users' jobs
are ordinary ones, submitted after them. With --profiled the hostile jobs are small and name a profiled program, so that
each has several alternatives.

Prints JSON: `first_cycle` is a cycle (read the observation, plan) in which all sizes are new, `cycle` one in which they
are known, `one_size` the same with as many hostile jobs of one size; `look` and `plan` are the parts of `cycle`. Times
are in seconds, median and p99, without garbage collections, as in the live loop. `cycles_until_*` count cycles in which
each placed job leaves the queue and holds its nodes: until all jobs of other users are placed, and until each hostile
job has been looked at.
"""

import argparse
import json
import resource
import sys
from collections.abc import Callable
from dataclasses import replace

from live_cycle import measured
from profiled_jobs import NAMES, PAPER_NODE, PARTITION, PROCESSES, SETTINGS, programs

from slurm_sns.model import NOTHING, Plan
from slurm_sns.policies.combined.combined import combined
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.situation import Situation, read_situation
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives, SpreadRules
from slurm_sns.submit.hints import NO_HINTS, Hints
from slurm_sns.submit.record import Record, segment

HOSTILE, OTHERS = 666, 50
#: More cycles than this are not counted.
MOST_CYCLES = 1000
#: Every job is gated for so long.
GATE = 2_000_000


def nodes_of(number: int) -> tuple[ObservedNode, ...]:
    """Empty nodes, all equal."""
    return tuple(ObservedNode(f"n{at:05}", frozenset({PARTITION}), PAPER_NODE, NOTHING) for at in range(number))


def hostile_jobs(number: int, nodes: int, *, sizes: int, profiled: bool) -> list[ObservedJob]:
    """The jobs of the hostile user, in this many different sizes."""
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
        admin_comment=segment(Record(hints, gate_s=GATE)),
        begin_s=GATE,
        priority=1000,
        tasks=tasks,
        cpus=tasks,
        memory_per_cpu_mb=memory_per_cpu_mb,
        walltime_s=3600,
    )


class Cycles:
    """The cycles of one scheduler, which remembers what it has computed in the cycles before."""

    def __init__(self) -> None:
        self._policy = combined()
        self._spreading = SpreadRules(self._policy.alternatives, programs=programs(), known=KnownAlternatives())

    def look(self, seen: Observation) -> Situation:
        """Make the situation of an observation: the snapshot with every job's alternatives."""
        return read_situation(seen, {}, SETTINGS, 1e6, self._spreading)

    def cycle(self, seen: Observation) -> tuple[Situation, Plan]:
        """Read the observation and plan."""
        situation = self.look(seen)
        return situation, self._policy.plan(situation.snapshot)


def until_served(seen: Observation) -> dict[str, int | None]:
    """The number of cycles until the other users' jobs are placed, and until each hostile job has been looked at."""
    cycles = Cycles()
    others = {job.id for job in seen.jobs if job.user_id != HOSTILE}
    put_off = {job.id for job in seen.jobs if job.user_id == HOSTILE}
    counts: dict[str, int | None] = {"cycles_until_others_are_placed": None, "cycles_until_all_are_looked_at": None}
    for number in range(1, MOST_CYCLES + 1):
        situation, plan = cycles.cycle(seen)
        placed = {start.job_id for start in plan.starts}
        others -= placed
        put_off -= {job.id for job in situation.snapshot.waiting} | {order.job_id for order, _ in situation.follow_ups}
        for name, left in zip(counts, (others, put_off), strict=True):
            if not left and counts[name] is None:
                counts[name] = number
        if not others and not put_off:
            break
        seen = _with(seen, plan)
    return counts


def _with(seen: Observation, plan: Plan) -> Observation:
    """The observation after Slurm has started the planned jobs; these are left out."""
    starts = {start.job_id: start for start in plan.starts}
    taken = {node.name: node.allocated for node in seen.nodes}
    for start in starts.values():
        for name in start.nodes:
            taken[name] = taken[name].plus(start.alternative.demand)
    nodes = tuple(replace(node, allocated=taken[node.name]) for node in seen.nodes)
    return replace(seen, jobs=tuple(job for job in seen.jobs if job.id not in starts), nodes=nodes)


def first_cycle(seen: Observation) -> Callable[[], object]:
    """A function that runs the first cycle of a new scheduler."""
    return lambda: Cycles().cycle(seen)


def settled(seen: Observation) -> Cycles:
    """A scheduler that has looked at all of the jobs in earlier cycles."""
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
