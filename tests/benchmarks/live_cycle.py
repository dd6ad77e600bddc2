"""One cycle as the live planner runs it: values in, a plan with a reason for every job out.

    python tests/benchmarks/live_cycle.py [--jobs 100000] [--nodes 10000] [--busy 0.8] [--repeat 7]

Prints JSON: the whole `plan`, `schedule` (matches as values), and the kernel's share; seconds, median and p99. The
baseline is the same plan with one job waiting: what the nodes alone cost.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from pool_a import NODES, SIZES

from slurm_sns.model import Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.matching import by_kernel
from slurm_sns.policies.matching.max_jobs import MaxJobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.pool import Pool, amounts
from slurm_sns.policies.placement.queue import WaitingQueue


def snapshot_of(jobs: int, nodes: int, busy: float, seed: int) -> Snapshot:
    """Nodes of pool-a's sizes, of which a share is busy, and jobs of its sizes."""
    rng = np.random.default_rng(seed)
    of_nodes = np.array(list(NODES))[rng.choice(len(NODES), nodes, p=np.array(list(NODES.values())) / 160)]
    share = np.array(list(SIZES.values())) / sum(SIZES.values())
    of_jobs = np.array(list(SIZES))[rng.choice(len(SIZES), jobs, p=share)]
    listed = []
    for at, (cores, gb) in enumerate(of_nodes.tolist()):
        capacity = Resources(cores, gb * 1024)
        free = Resources(cores - rng.binomial(cores, busy), (gb - rng.binomial(gb, busy)) * 1024)
        listed.append(Node(f"n{at:05}", capacity, free))
    waiting = tuple(
        # A tuple of its own for each job, as a snapshot of Slurm has it.
        Job(id=at, submit_s=at, alternatives=(Alternative(1, Resources(cores, gb * 1024)),), order=(at,))
        for at, (cores, gb) in enumerate(of_jobs.tolist())
    )
    return Snapshot(tuple(listed), waiting)


def measured(run: Callable[[], object], repeat: int) -> dict[str, float]:
    """Seconds of that many runs, after one that compiles."""
    run()
    seconds = []
    for _ in range(repeat):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return {"median_s": round(float(np.median(seconds)), 4), "p99_s": round(float(np.percentile(seconds, 99)), 4)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--busy", type=float, default=0.8)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    snapshot = snapshot_of(given.jobs, given.nodes, given.busy, seed=1)
    policy = MaxJobs(MatchingParameters(queue_depth=max(given.jobs, 1)))
    pool, free = Pool.of(snapshot.nodes), amounts([node.free for node in snapshot.nodes])
    queue = WaitingQueue.of(snapshot.waiting, {})
    inside: list[float] = []
    kernel = by_kernel.schedule

    def timed_kernel(*arguments):
        began = time.perf_counter()
        result = kernel(*arguments)
        inside.append(time.perf_counter() - began)
        return result

    by_kernel.schedule = timed_kernel
    result = {
        "jobs": given.jobs,
        "nodes": given.nodes,
        "busy": given.busy,
        "matched": policy.plan(snapshot, 0).matched,
        "plan": measured(lambda: policy.plan(snapshot, 0), given.repeat),
        "schedule": measured(lambda: policy.schedule(pool, free, queue), given.repeat),
        "kernel_s": round(float(np.median(inside)), 4),
        "one_job": measured(lambda: policy.plan(Snapshot(snapshot.nodes, snapshot.waiting[:1]), 0), given.repeat),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    result["plan_to_one_job"] = round(result["plan"]["median_s"] / result["one_job"]["median_s"], 1)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
