"""What weights of nodes and switches cost a plan: the same jobs on the same nodes, with and without.

    python tests/benchmarks/regions.py [--nodes 2000] [--jobs 2000] [--repeat 7]

Nodes are empty and alike; jobs have one to eight cores on each of their nodes, and all are placed by Max-Jobs with its
five heuristics. Prints JSON, for each case the time of a plan in seconds, median and p99, and its
ratio to the same jobs on nodes of one weight that are connected alike; and the peak memory of the process.
"""

import argparse
import json
import resource
import sys

from live_cycle import measured

from slurm_sns.model import Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.matching.max_jobs import max_jobs

#: (nodes of a job, leaf switches or 0 for a flat network, different weights)
CASES = ((1, 0, 1), (1, 0, 2), (1, 0, 5), (2, 0, 1), (2, 0, 5), (2, 20, 1), (2, 200, 1), (2, 200, 5))
FULL = Resources(32, 128_000)


def nodes_of(count: int, leaves: int, weights: int) -> tuple[Node, ...]:
    """Nodes below these leaf switches, which one top switch joins."""
    return tuple(
        Node(f"n{at}", FULL, FULL, at % weights, (f"leaf{at * leaves // count}", "top") if leaves else ())
        for at in range(count)
    )


def jobs_of(count: int, nodes: int) -> tuple[Job, ...]:
    """Jobs on this many nodes each."""
    return tuple(Job(at, at, (Alternative(nodes, Resources(1 + at % 8, 2000)),), order=(at,)) for at in range(count))


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=7)
    asked = parser.parse_args()
    policy, found, plain = max_jobs(), [], 0.0
    for nodes, leaves, weights in CASES:
        snapshot = Snapshot(nodes_of(asked.nodes, leaves, weights), jobs_of(asked.jobs, nodes))
        placed = len(policy.plan(snapshot).starts)  # compiles, and fills the tables
        times = measured(lambda of=snapshot: policy.plan(of), asked.repeat)
        plain = times["median_s"] if not leaves and weights == 1 else plain
        case = {"nodes_of_a_job": nodes, "leaf_switches": leaves, "weights": weights, "placed": placed}
        found.append({**case, **times, "to_alike": round(times["median_s"] / plain, 1)})
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    told = {"nodes": asked.nodes, "jobs": asked.jobs, "cases": found, "peak_rss_mb": peak_mb}
    json.dump(told, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
