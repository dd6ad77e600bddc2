"""One cycle as the live scheduler runs it: from observed values to a plan with a reason for every job.

    python tests/benchmarks/live_cycle.py [--jobs 100000] [--nodes 10000] [--busy 0.8] [--repeat 7]
    python tests/benchmarks/live_cycle.py --profiled [--jobs 20000] [--nodes 10000] [--busy 0.6] [--repeat 7]

Prints JSON: the times of the whole `plan`, of `schedule` (computing the matches), of the kernel in it, and of `explain`
for the last job of the queue: wall-clock seconds, median and p99, and processor seconds, without garbage collections,
as in the live loop. The baseline is the same plan with only one waiting job: the cost of the nodes alone. The queue
depth is the whole queue.

Without --profiled: Max-Jobs and jobs of pool-a's sizes. With it: the combined policy with its whole portfolio and jobs
of profiled programs (module profiled_jobs), and also `look`, from the values that Slurm shows to the snapshot with
every job's alternatives, and `cycle`, both together. No job changes between two looks, as nearly none does in a long
queue.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from pool_a import NODES, SIZES
from profiled_jobs import SETTINGS, observation_of, programs

from slurm_sns.model import Alternative, Job, Node, Resources, Snapshot
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement import kernel_matching
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.waiting_queue import WaitingQueue
from slurm_sns.scheduler.loop import uncollected
from slurm_sns.scheduler.snapshot.situation import Carried, read_situation
from slurm_sns.scheduler.snapshot.spreading import KnownAlternatives, SpreadRules


def snapshot_of(jobs: int, nodes: int, busy: float, seed: int) -> Snapshot:
    """Nodes and jobs of pool-a's sizes; on average the fraction `busy` of a node's capacity is taken."""
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
    """Seconds of `repeat` runs, after one that compiles: by the clock, and of the processor.

    Processor time is hardly affected by other work on the machine.
    """
    run()
    seconds, own_seconds = [], []
    for _ in range(repeat):
        began, own_began = time.perf_counter(), time.process_time()
        with uncollected():
            run()
        seconds.append(time.perf_counter() - began)
        own_seconds.append(time.process_time() - own_began)
    return {
        "median_s": round(float(np.median(seconds)), 4),
        "p99_s": round(float(np.percentile(seconds, 99)), 4),
        "cpu_median_s": round(float(np.median(own_seconds)), 4),
    }


def profiled(jobs: int, nodes: int, busy: float, repeat: int) -> dict:
    """Measure the cycle of the combined policy on a queue of profiled jobs."""
    observation = observation_of(jobs, nodes, busy, seed=1)
    policy = combined(MatchingParameters(queue_depth=max(jobs, 1)))
    spreading = SpreadRules(policy.alternatives, programs=programs(), known=KnownAlternatives())
    carried = Carried()

    def look() -> Snapshot:
        nonlocal carried
        situation = read_situation(observation, {}, SETTINGS, jobs, spreading, carried=carried)
        carried = situation.carried(carried)
        return situation.snapshot

    snapshot = look()
    if len(snapshot.waiting) != jobs:
        raise SystemExit(f"only {len(snapshot.waiting)} of {jobs} jobs are planned")
    measures = of_plan(policy, snapshot, repeat)
    return {
        "kinds_of_jobs": len({job.alternatives for job in snapshot.waiting}),
        "alternatives": sum(len(job.alternatives) for job in snapshot.waiting),
        **measures,
        "look": measured(look, repeat),
        "cycle": measured(lambda: policy.plan(look()), repeat),
    }


def of_plan(policy: Portfolio, snapshot: Snapshot, repeat: int) -> dict:
    """Measure the plan and its parts, and the plan of the same nodes with one job."""
    node_arrays, free = NodeArrays.of(snapshot.nodes), amounts([node.free for node in snapshot.nodes])
    queue = WaitingQueue.of(snapshot.waiting, snapshot.projects)
    inside: list[float] = []
    kernel = kernel_matching.schedule

    def timed_kernel(*arguments):
        began = time.process_time()
        result = kernel(*arguments)
        inside.append(time.process_time() - began)
        return result

    one_job = Snapshot(snapshot.nodes, snapshot.waiting[:1])
    kernel_matching.schedule = timed_kernel
    plan = measured(lambda: policy.plan(snapshot), repeat)
    kernel_matching.schedule = kernel
    done = policy.plan(snapshot)
    last = snapshot.waiting[-1].id
    return {
        "matched": dict(done.report.matched),
        "plan": plan,
        "schedule": measured(lambda: policy.schedule(node_arrays, free, queue), repeat),
        "explain": measured(lambda: policy.explain(snapshot, done, last), repeat),
        "kernel_cpu_s": round(float(np.median(inside)), 4),
        "one_job": measured(lambda: policy.plan(one_job), repeat),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiled", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--busy", type=float)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    jobs = given.jobs or (20_000 if given.profiled else 100_000)
    busy = given.busy if given.busy is not None else (0.6 if given.profiled else 0.8)
    result: dict = {"jobs": jobs, "nodes": given.nodes, "busy": busy}
    if given.profiled:
        result |= profiled(jobs, given.nodes, busy, given.repeat)
    else:
        policy = max_jobs(MatchingParameters(queue_depth=max(jobs, 1)))
        result |= of_plan(policy, snapshot_of(jobs, given.nodes, busy, seed=1), given.repeat)
    result["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    result["plan_to_one_job"] = round(result["plan"]["median_s"] / result["one_job"]["median_s"], 1)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
