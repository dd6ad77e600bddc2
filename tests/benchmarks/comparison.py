"""Random submissions with slurm_sns and with Slurm alone, seed by seed, on the running mini cluster.

    make cluster-up
    PYTHONPATH=containers:tests/cluster python tests/benchmarks/comparison.py --seeds 10 [--first 1] [--jobs 200]

SNS_PROJECT names the cluster, which nobody else may use meanwhile; a seed takes three minutes. Prints JSON. For each
seed and pass: the longest time for which a job could have started but did not (comparison_check), the same if Slurm may
split jobs that only say their tasks in any way, mean waits by kind of submission, and the violations. `matching` is a
smaller mix of managed jobs only. `load` is the machine's load average after both passes: times of a busy machine say
little.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from comparison_run import Pass, allowed_s, compare, prepared
from comparison_workload import EVERYTHING, MATCHING, Submission, generate
from rich.console import Console
from rich.progress import track

from cluster import Cluster

#: Submissions per second; with these rates a queue builds up and empties within a minute.
RATE = {"everything": 10, "matching": 25}
#: Number of jobs of the mix `matching`; its pass takes a third of a minute.
MATCHING_JOBS = 50


def figures(one: Pass, submissions: Sequence[Submission]) -> dict[str, Any]:
    """The reported figures of one pass."""
    waits: dict[str, list[float]] = defaultdict(list)
    for job, each in zip(one.jobs, submissions, strict=True):
        if job.start_s < inf:
            waits[each.kind].append(job.start_s - job.submit_s)
    return {
        "longest_idle_wait_s": max((each.lasted_s for each in one.idle_waits()), default=0),
        "longest_idle_wait_as_slurm_may_s": max(
            (each.lasted_s for each in one.idle_waits_as_slurm_may(submissions)), default=0
        ),
        "mean_wait_s": round(one.mean_wait_s(), 2),
        "mean_wait_by_kind_s": {kind: round(sum(each) / len(each), 1) for kind, each in sorted(waits.items())},
        "violations": one.violations(allowed_s()),
    }


def measure(cluster: Cluster, seed: int, jobs: int, name: str, mix: Mapping[str, int]) -> dict[str, Any]:
    """Run and measure both passes of one seed and mix."""
    submissions = generate(seed, jobs, jobs / RATE[name], mix)
    ours, alone = compare(cluster, submissions)
    load = round(os.getloadavg()[0], 1)
    return {"with_slurm_sns": figures(ours, submissions), "slurm_alone": figures(alone, submissions), "load": load}


def round_of(cluster: Cluster, seed: int, jobs: int) -> dict[str, Any]:
    """Run and measure one seed in both mixes."""
    return {
        "seed": seed,
        "everything": measure(cluster, seed, jobs, "everything", EVERYTHING),
        "matching": measure(cluster, seed, MATCHING_JOBS, "matching", MATCHING),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200)
    given = parser.parse_args()
    cluster = Cluster()
    seeds = range(given.first, given.first + given.seeds)
    with prepared(cluster):
        rounds = [
            round_of(cluster, seed, given.jobs) for seed in track(seeds, "comparing", console=Console(stderr=True))
        ]
    cluster.close()
    sys.stdout.write(json.dumps({"allowed_s": allowed_s(), "jobs": given.jobs, "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
