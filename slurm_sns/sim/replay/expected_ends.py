"""When running jobs are expected to end, and what their nodes get back then (compiled).

The passes that look ahead share it: a portfolio's that keeps nodes until a job's start (`compiled_loop`), EASY's
(`backfilling_loop`) and Slurm's backfill (`slurm_loop`).
"""

import numpy as np

from slurm_sns.policies.placement.compiled import compiled
from slurm_sns.policies.placement.kernel_arrays import Floats, Problem, Releases
from slurm_sns.policies.placement.node_arrays import CORES
from slurm_sns.sim.replay.cluster_state import Cluster, Expected, Jobs, end_of, node_of_job


def expected_for(problem: Problem, run_s: Floats, slowdown: Floats) -> Expected:
    """The expected ends before any job runs; both arrays are used as they are. Of no jobs where nobody asks."""
    count = len(run_s)
    most_running = min(count, int(problem.nodes.capacity[CORES].sum()))  # each has a core on each of its nodes
    return Expected(
        run_s,
        slowdown,
        end_s=np.empty(count, np.float64),
        running=np.empty(most_running, np.int64),
        number=np.zeros(1, np.int64),
    )


def room_for_releases(problem: Problem, jobs: Jobs) -> Releases:
    """Room for what all jobs that can run at the same time give back."""
    capacity = problem.nodes.capacity
    most_parts = min(len(jobs.start_s) + len(jobs.spread), int(capacity[CORES].sum()))
    return Releases(
        np.empty(most_parts, np.float64),
        np.empty(most_parts, np.int64),
        np.empty((most_parts, len(capacity)), np.int64),
    )


@compiled
def drop_ended(jobs: Jobs, expected: Expected, now_s: int) -> None:
    """Take the jobs that have ended from the list."""
    kept = 0
    for at in range(expected.number[0]):
        if end_of(jobs, expected.running[at]) > now_s:
            expected.running[kept] = expected.running[at]
            kept += 1
    expected.number[0] = kept


@compiled
def expect_end(expected: Expected, job: int, end_s: float) -> None:
    """Add a job that starts now."""
    expected.end_s[job] = end_s
    at = expected.number[0]
    while at > 0 and expected.end_s[expected.running[at - 1]] > end_s:
        expected.running[at] = expected.running[at - 1]
        at -= 1
    expected.running[at] = job
    expected.number[0] += 1


@compiled
def end_if_started(expected: Expected, job: int, choice: int, now_s: int) -> float:
    """When a job is expected to end that starts now in this choice."""
    run_s, slowdown = expected.run_s[job], expected.slowdown[choice]
    return float(now_s + (run_s if slowdown == 1 else run_s * slowdown))  # without a product whole seconds stay whole


@compiled
def alternative_of(cluster: Cluster, job: int) -> int:
    """The alternative in which a job runs."""
    kinds = cluster.bench.node_state.problem.kinds
    return int(kinds.alternative[kinds.first[cluster.queue.kind[job]] + cluster.jobs.choice[job]])


@compiled
def coming_free(cluster: Cluster, earliest_s: float, latest_s: float) -> Releases:
    """What the running jobs will give back until `latest_s`, in `cluster.coming`; overdue ones at `earliest_s`."""
    jobs, problem = cluster.jobs, cluster.bench.node_state.problem
    expected, coming = cluster.expected, cluster.coming
    alternatives, capacity = problem.alternatives, problem.nodes.capacity
    count = 0
    for each in range(expected.number[0]):
        job = expected.running[each]
        if expected.end_s[job] > latest_s:
            break
        alternative = alternative_of(cluster, job)
        nodes, whole = alternatives.nodes[alternative], alternatives.exclusive[alternative]
        for at in range(nodes):
            node = node_of_job(jobs, job, nodes, at)
            coming.end_s[count] = max(expected.end_s[job], earliest_s)
            coming.node[count] = node
            for row in range(capacity.shape[0]):
                coming.amount[count, row] = capacity[row, node] if whole else alternatives.demand[alternative, row]
            count += 1
    return Releases(coming.end_s[:count], coming.node[:count], coming.amount[:count])
