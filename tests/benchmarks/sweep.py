"""How one live cycle grows, without Slurm: over users, accounts, partitions, job sizes, node lists, arrays and nodes.

    python tests/benchmarks/sweep.py [--only NAME ...] [--repeat 3] [--quick]

A cycle is: translate the jobs' records (the module recorded has one of a real Slurm), read the situation, plan by
Max-Jobs, and write the decision record if anything is placed. Each sweep changes one thing. Where that thing is not the
number of jobs, 20,000 jobs wait on 1,000 nodes; each node has 4 of its 28 cores left, and all jobs ask for more, so
nothing is placed unless the sweep says so.

Prints JSON: for each sweep and size the processor seconds of the first cycle and the medians of later ones, whole and
by part. `exponent` is that of a later cycle between the least and the largest size, `last` that of the last step: 1 is
linear, and where the number of jobs stays the same it should be near 0.
"""

import argparse
import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from profiled_jobs import SETTINGS

sys.path.append(str(Path(__file__).parents[1] / "slurm"))

import recorded

from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.loop import uncollected
from slurm_sns.scheduler.observation import Observation, ObservedJob
from slurm_sns.scheduler.settings import Settings
from slurm_sns.scheduler.snapshot.situation import Carried, read_situation
from slurm_sns.slurm import translate
from slurm_sns.slurm.state import Translated, user_name
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions

JOBS, NODES = 20_000, 1000
#: Cores of the jobs, all more than a node has left; and memory, MiB.
CORES, MEMORY_MB = (8, 12, 16, 28), (1000, 2000, 3000)
LEFT = 4
#: The first of the users' ids: a machine has no names for these, which is the slow path of a look-up.
FIRST_USER = 3_000_000
#: The cycle is at this moment, before the gates of all jobs.
NOW_S = recorded.GATE_S - 3600
#: So many wishes for nodes are at most those of one user.
WISHES_OF_A_USER = 50
#: Different choices of three partitions.
TRIPLES = 5000

Fields = dict[str, Any]


class Site(NamedTuple):
    """The records of a cluster, and its managed partitions."""

    jobs: list[Any]
    nodes: list[Any]
    partitions: tuple[str, ...] = ("main",)


def waiting(number: int, change: Callable[[int], Fields] = lambda _: {}) -> list[Any]:
    """The records of so many waiting jobs of ours; `change` gives the fields that a sweep sets, by number."""
    return [
        recorded.job(
            **{
                "id": at + 1,
                "user_id": FIRST_USER + at % 50,
                "submit_time": NOW_S - JOBS + at,
                "account": f"account{at % 20}",
                "partition": "main",
                "admin_comment": f"sns:2 g={recorded.GATE_S}",
                "ntasks": 1,
                "cpus": CORES[at % len(CORES)],
                "cpus_per_task": CORES[at % len(CORES)],
                "min_cpus_per_node": CORES[at % len(CORES)],
                "max_nodes": 1,
                "memory_per_cpu": MEMORY_MB[at % len(MEMORY_MB)],
                "time_limit": 60,
                **change(at),
            }
        )
        for at in range(number)
    ]


def nodes(number: int = NODES, partitions_of: Callable[[int], list[str]] = lambda _: ["main"]) -> list[Any]:
    """The records of nodes, each nearly full."""
    return [
        recorded.node(name=f"n{at:05}", partitions=partitions_of(at), allocated_cpus=28 - LEFT, allocated_memory=64_000)
        for at in range(number)
    ]


def of_jobs(jobs: int) -> Site:
    """So many jobs of a few sizes."""
    return Site(waiting(jobs), nodes())


def of_nodes(number: int) -> Site:
    """So many nodes."""
    return Site(waiting(JOBS), nodes(number))


def of_users(users: int) -> Site:
    """Jobs of so many users."""
    return Site(waiting(JOBS, lambda at: {"user_id": FIRST_USER + at % users}), nodes())


def of_accounts(accounts: int) -> Site:
    """Jobs of so many accounts."""
    return Site(waiting(JOBS, lambda at: {"account": f"account{at % accounts}"}), nodes())


def over_the_same_nodes(partitions: int) -> Site:
    """So many partitions that all have all nodes."""
    names = _names(partitions)
    return Site(waiting(JOBS, lambda at: {"partition": names[at % partitions]}), nodes(NODES, lambda _: names), names)


def disjoint(partitions: int) -> Site:
    """So many partitions, each with nodes of its own."""
    names = _names(partitions)
    own = nodes(NODES, lambda at: [names[at % partitions]])
    return Site(waiting(JOBS, lambda at: {"partition": names[at % partitions]}), own, names)


def in_three(partitions: int) -> Site:
    """Jobs that name three of so many disjoint partitions at random."""
    names, rng = _names(partitions), np.random.default_rng(1)
    triples = [",".join(rng.choice(names, 3, replace=False)) for _ in range(TRIPLES)]
    own = nodes(NODES, lambda at: [names[at % partitions]])
    return Site(waiting(JOBS, lambda at: {"partition": triples[at % TRIPLES]}), own, names)


def in_all(partitions: int) -> Site:
    """A thousand jobs that name all of so many partitions."""
    names = _names(partitions)
    own = nodes(NODES, lambda at: [names[at % partitions]])
    return Site(waiting(1000, lambda _: {"partition": ",".join(names)}), own, names)


def of_different_sizes(jobs: int) -> Site:
    """So many jobs, each of another size, on 10,000 nodes."""
    return Site(waiting(jobs, lambda at: {"memory_per_cpu": None, "memory_per_node": 1000 + at}), nodes(10_000))


def of_different_node_lists(jobs: int) -> Site:
    """A tenth as many waiting jobs as running ones, whose node lists are all different."""
    running = [
        recorded.job(
            id=JOBS + at,
            user_id=FIRST_USER,
            state="RUNNING",
            admin_comment=None,
            allocated_nodes=f"n[{at % 10_000:05},{at // 10_000 + (at + 1) % 10_000:05}]",
        )
        for at in range(jobs)
    ]
    return Site(waiting(jobs // 10) + running, nodes(10_000))


def excluding(lists: int) -> Site:
    """As many jobs as lists of excluded nodes."""
    return Site(waiting(lists, _excluding), nodes())


def _excluding(at: int) -> Fields:
    return {
        "user_id": FIRST_USER + at // WISHES_OF_A_USER,
        "excluded_nodes": f"n[{at % NODES:05},{(at + 1 + at // NODES) % NODES:05}]",
    }


def of_arrays(arrays: int) -> Site:
    """So many arrays of a thousand tasks each."""
    return Site(waiting(arrays, lambda at: {"array_id": at + 1, "array_tasks_waiting": "1-1000"}), nodes())


def of_tasks(tasks: int) -> Site:
    """One array of so many tasks."""
    return Site(waiting(1, lambda _: {"array_id": 1, "array_tasks_waiting": f"0-{tasks - 1}"}), nodes())


def of_dependent_jobs(jobs: int) -> Site:
    """So many of the jobs wait for another one."""
    needed = {"dependencies": recorded.NO_DEPENDENCIES, "state_reason": "Dependency"}
    return Site(waiting(JOBS, lambda at: needed if at < jobs else {}), nodes())


def of_placed_jobs(jobs: int) -> Site:
    """So many of the jobs fit, on 10,000 nodes."""
    small = {"cpus": LEFT, "cpus_per_task": LEFT, "min_cpus_per_node": LEFT}
    return Site(waiting(JOBS, lambda at: small if at < jobs else {}), nodes(10_000))


def _names(partitions: int) -> tuple[str, ...]:
    return tuple(f"p{at:04}" for at in range(partitions))


class Sweep(NamedTuple):
    """The sizes of a sweep, those of a quick one, and what makes a cluster of a size."""

    sizes: Sequence[int]
    quick: Sequence[int]
    site: Callable[[int], Site]


SWEEPS = {
    "jobs": Sweep((5000, 20_000, 50_000), (500, 2000), of_jobs),
    "nodes": Sweep((100, 1000, 10_000), (100, 1000), of_nodes),
    "users": Sweep((10, 4000, 5000, 20_000), (10, 5000), of_users),
    "accounts": Sweep((1, 1000, 20_000), (1, 1000), of_accounts),
    "partitions over the same nodes": Sweep((1, 100, 1000), (1, 100), over_the_same_nodes),
    "disjoint partitions": Sweep((1, 100, 1000), (1, 100), disjoint),
    "jobs in 3 random of so many partitions": Sweep((10, 100, 1000), (10, 100), in_three),
    "1,000 jobs in all of so many partitions": Sweep((1, 100, 1000), (1, 100), in_all),
    "jobs of all different sizes": Sweep((1000, 4000, 16_000), (500, 1000), of_different_sizes),
    "running jobs on all different node lists": Sweep((4000, 16_000, 32_000), (500, 2000), of_different_node_lists),
    "jobs that exclude all different node lists": Sweep((250, 1000, 4000), (100, 400), excluding),
    "arrays of 1,000 tasks": Sweep((10, 100, 1000), (10, 50), of_arrays),
    "one array of so many tasks": Sweep((1000, 10_000, 100_000), (100, 1000), of_tasks),
    "dependent jobs": Sweep((1, 10_000, 20_000), (1, 10_000), of_dependent_jobs),
    "jobs placed in the cycle": Sweep((1, 1000, 8000), (1, 500), of_placed_jobs),
}


class Cycles:
    """The cycles of one scheduler on an unchanged cluster; it remembers what a live one does from cycle to cycle."""

    def __init__(self, site: Site, decisions: StoredDecisions) -> None:
        self._site, self._decisions = site, decisions
        self._settings: Settings = replace(SETTINGS, partitions=frozenset(site.partitions))
        self._policy = max_jobs(MatchingParameters(queue_depth=max(1, len(site.jobs))))
        self._jobs, self._carried = Translated[ObservedJob](), Carried()
        self._nodes = tuple(map(translate.node, site.nodes))
        self._partitions = tuple(
            each for each in (translate.partition(recorded.partition(name=name)) for name in site.partitions) if each
        )

    @uncollected()
    def cycle(self) -> dict[str, float]:
        """Run one; the processor seconds of each part."""
        marks = [time.process_time()]

        def mark() -> None:
            marks.append(time.process_time())

        jobs = self._jobs.of(self._site.jobs, lambda record: translate.job(record, user_name))
        mark()
        seen = Observation(jobs=jobs, nodes=self._nodes, partitions=self._partitions)
        situation = read_situation(seen, {}, self._settings, NOW_S, carried=self._carried)
        self._carried = situation.carried(self._carried)
        mark()
        plan = self._policy.plan(situation.snapshot)
        mark()
        if plan.starts:
            owners = {start.job_id: FIRST_USER for start in plan.starts}
            self._decisions.record(NOW_S, situation.snapshot, plan, {}, owners=owners, explanations={}, tasks={})
        mark()
        parts = dict(zip(("translate", "look", "plan", "record"), np.diff(marks).tolist(), strict=True))
        return {"whole": sum(parts.values()), **parts}


def of_size(site: Site, repeat: int, folder: Path) -> dict[str, float]:
    """The times of the first cycle and of later ones, and how many jobs waited."""
    cycles = Cycles(site, StoredDecisions(open_store(f"sqlite:///{folder}/sweep.db"), 365, 10))
    first = cycles.cycle()
    later = [cycles.cycle() for _ in range(repeat)]
    medians = {f"{part}_s": round(float(np.median([each[part] for each in later])), 4) for part in first}
    return {"jobs": len(site.jobs), "first_s": round(first["whole"], 4), **medians}


def swept(sweep: Sweep, sizes: Sequence[int], repeat: int) -> dict[str, Any]:
    """All sizes of one sweep, and the exponents."""
    found: dict[int, dict[str, float]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found[size] = of_size(sweep.site(size), repeat, Path(folder))
    return {"sizes": found, "exponent": _exponent(found, 0, -1), "last": _exponent(found, -2, -1)}


def _exponent(found: dict[int, dict[str, float]], one: int, other: int) -> float:
    sizes = list(found)
    few, many = sizes[one], sizes[other]
    return round(math.log(found[many]["whole_s"] / found[few]["whole_s"]) / math.log(many / few), 2)


def _chosen(names: Sequence[str] | None) -> Iterator[tuple[str, Sweep]]:
    for name, sweep in SWEEPS.items():
        if names is None or any(each in name for each in names):
            yield name, sweep


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="sweeps with these words in their names")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two small sizes of each sweep, one cycle after the first")
    given = parser.parse_args()
    Cycles(of_jobs(100), StoredDecisions(open_store("sqlite://"), 1, 1)).cycle()  # compiles, or reads what is compiled
    found: dict[str, Any] = {
        name: swept(sweep, sweep.quick if given.quick else sweep.sizes, 1 if given.quick else given.repeat)
        for name, sweep in _chosen(given.only)
    }
    found["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
