"""The time that learning live adds to a cycle of a long queue.

    python tests/benchmarks/learning.py [--waiting 10000] [--running 1000] [--nodes 1000] [--programs 500] [--repeat 9]

The waiting jobs name programs that nobody knows, with 16 processes each; the running jobs are runs to learn from, alone
on a node each, and every node has an agent that partitions and measures.

Prints JSON, in seconds (median and p99, without garbage collections): `before` is reading an observation as without
agents, `explore_off` the same where agents are configured and nothing is explored, `explore_full` where exploration is
on and no node is empty, `explore` where half of the nodes are empty. `conclude` is what follows runs and takes reports,
`conclude_reports` the same when each running job has just ended and been reported.
"""

import argparse
import json
import resource
import sys
from collections.abc import Callable
from dataclasses import replace

from hostile_shapes import PARTITION, SETTINGS, nodes_of
from live_cycle import measured

from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.spread_n_share.drift import DriftParameters
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.scheduler.learning.learner import Learner
from slurm_sns.scheduler.learning.values import LearningChanges, LearningRules, LearningState, RunToLearn
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.scheduler.snapshot.situation import read_situation
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives, SpreadRules
from slurm_sns.wire.values import NodeFacts, NodeState, Point, RunId, RunReport

NOW = 1e6
#: Every job is gated for so long.
GATE = 2_000_000
PROCESSES = 16
ABLE = NodeFacts("", ways=20, jobs_with_ways=15, measures_ipc=True, measures_bandwidth=True)


class Kept:
    """A store that keeps nothing but the state it began with."""

    def __init__(self, state: LearningState) -> None:
        self._state = state

    def load(self) -> tuple[LearningState, tuple[str, ...]]:
        """That state."""
        return self._state, ()

    def save(self, changes: LearningChanges) -> None:
        """Keep nothing."""


class Agents:
    """Agents on all nodes, with these reports."""

    def __init__(self, reports: tuple[RunReport, ...] = ()) -> None:
        self._reports = reports

    def reports(self) -> tuple[RunReport, ...]:
        """The reports, never forgotten."""
        return self._reports

    def acknowledge(self, keys: object) -> None:
        """Forget nothing."""


def job(identity: int, programs: int) -> ObservedJob:
    """A waiting job of one of so many programs."""
    return ObservedJob(
        id=identity,
        user_id=1000 + identity % 50,
        submit_s=identity,
        state=JobState.PENDING,
        account=f"account-{identity % 50}",
        partitions=(PARTITION,),
        admin_comment=f"sns:2 program=p{identity % programs} g={GATE}",
        begin_s=GATE,
        priority=1000,
        tasks=PROCESSES,
        cpus=PROCESSES,
        memory_per_cpu_mb=1000,
        walltime_s=3600,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    nodes = nodes_of(given.nodes)
    types = (NodeType(nodes[0].capacity, len(nodes)),)
    waiting = [job(number, given.programs) for number in range(1, given.waiting + 1)]
    first = given.waiting + 1
    running = [
        replace(job(first + at, given.programs), state=JobState.RUNNING, allocated=(nodes[at % len(nodes)].name,))
        for at in range(given.running)
    ]
    full = tuple(replace(node, allocated=node.capacity._replace(ways=0, bandwidth_gbps=0)) for node in nodes)
    half = (*full[: len(full) // 2], *nodes[len(full) // 2 :])
    runs = {
        RunId(each.id): RunToLearn(
            RunId(each.id), (f"p{each.id % given.programs}", PROCESSES), 1, each.allocated, Request(PROCESSES), types
        )
        for each in running
    }
    policy = combined()
    rules = LearningRules(Exploration(SpreadingParameters()), DriftParameters(0.1), most_nodes=1.0)
    states = {node.name: NodeState(NOW, replace(ABLE, node=node.name)) for node in nodes}

    def reading(there: tuple, *, explore: bool | None) -> Callable[[], object]:
        """Read an observation; `explore` None: as without agents."""
        seen = Observation((*waiting, *running), there)
        spreading = SpreadRules(policy.alternatives, known=KnownAlternatives())
        learner = Learner(
            Kept(LearningState(runs=runs)), Agents(), replace(rules, explore=bool(explore)), SETTINGS, print
        )

        def read() -> object:
            offer = None if explore is None else learner.offer(seen, spreading, states, NOW)
            return read_situation(seen, {}, SETTINGS, NOW, spreading, offer=offer)

        for _ in range(2 + given.programs // 100):
            read()  # all sizes become known
        return read

    def concluding(reports: tuple[RunReport, ...], jobs: list[ObservedJob]) -> Callable[[], object]:
        seen = Observation((*waiting, *jobs), full)

        def conclude() -> object:
            learner = Learner(Kept(LearningState(runs=runs)), Agents(reports), rules, SETTINGS, print)
            return learner.conclude(seen, SpreadRules(policy.alternatives), NOW)

        return conclude

    ended = [replace(each, state=JobState.ENDED, has_succeeded=True) for each in running]
    points = (Point(20, 60.0, 1.0, 50.0),)
    reports = tuple(
        RunReport(RunId(each.id), each.allocated[0], NOW, 60.0, was_alone=True, points=points) for each in running
    )
    result = {
        "waiting": given.waiting,
        "running": given.running,
        "nodes": given.nodes,
        "programs": given.programs,
        "before": measured(reading(full, explore=None), given.repeat),
        "explore_off": measured(reading(full, explore=False), given.repeat),
        "explore_full": measured(reading(full, explore=True), given.repeat),
        "before_half": measured(reading(half, explore=None), given.repeat),
        "explore": measured(reading(half, explore=True), given.repeat),
        "conclude": measured(concluding((), running), given.repeat),
        "conclude_reports": measured(concluding(reports, ended), given.repeat),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
