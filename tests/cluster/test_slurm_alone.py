"""The policy `slurm` of the simulator starts jobs as a real Slurm does: 300 jobs on four nodes, run and replayed.

All jobs wait in a partition that is down, and become eligible in one second when it comes up. How long each ran is read
from accounting, so that only the order and the times of the starts are compared.
"""

import random
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from comparison_run import slurm_alone
from evidence import CAPACITY, Run, over_capacity, runs
from numpy.typing import NDArray

from cluster import Cluster
from slurm_sns.model import Alternative, Job, Node, Resources
from slurm_sns.policies.baselines.parameters import SlurmParameters
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.replay.trace_replay import replay_as_slurm
from slurm_sns.sim.trace import Trace, TraceJob, of_values

JOBS, SEED = 300, 1
#: Of the jobs: nodes, cores and MiB on each, and how often they come. They are 80 s of work for four nodes of 28 cores.
SHAPES = (
    (1, 1, 2000, 16),
    (1, 2, 20_000, 8),
    (1, 4, 8000, 6),
    (1, 7, 60_000, 2),
    (1, 14, 30_000, 2),
    (1, 28, 100_000, 0.5),
    (2, 4, 10_000, 2),
    (2, 14, 30_000, 0.5),
    (4, 7, 20_000, 0.5),
)
NODES = ("c1", "c2", "c3", "c4")
#: Of all pairs of jobs that start in different seconds.
ALLOWED = 0.1
#: Of the mean wait: within 10 % on a quiet machine. On one that also runs other tests, Slurm's own passes take longer.
ALLOWED_WHEN_BUSY = 0.2
#: The cluster's batch_sched_delay, after which Slurm looks at the queue again, and the second in which it does.
MOST_TURNOVER_S = 2
#: The last job of the replay starts after 110 s; the containers take longer.
LONGEST_RUN_S = 240


class Asked(NamedTuple):
    """What a job asks for, and how long it sleeps."""

    nodes: int
    cores: int
    memory_mb: int
    sleep_s: int
    limit_min: int

    def options(self) -> str:
        """The options of sbatch.

        With --ntasks-per-node Slurm sees no more idle cores on a node than these tasks need, and no tightest node.
        """
        tasks = f"-n{self.cores}" if self.nodes == 1 else f"--ntasks-per-node={self.cores}"
        return f"-N{self.nodes} {tasks} --mem={self.memory_mb} -t {self.limit_min}"


def workload() -> list[Asked]:
    """Random jobs; short ones are more frequent, and limits are minutes, as owners give them."""
    draw = random.Random(SEED)
    shapes = draw.choices([each[:3] for each in SHAPES], [each[3] for each in SHAPES], k=JOBS)
    return [Asked(*shape, min(20, 1 + int(draw.expovariate(1 / 5))), draw.choice((1, 2, 3, 5))) for shape in shapes]


def parameters(cluster: Cluster) -> SlurmParameters:
    """Those of the running Slurm."""
    line = next(
        each for each in cluster.run("scontrol show config").splitlines() if each.startswith("SchedulerParameters")
    )
    given = {name: int(value) for name, value in re.findall(r"\b(bf_\w+)=(\d+)", line)}
    default = SlurmParameters()
    return SlurmParameters(
        bf_interval_s=given.get("bf_interval", default.bf_interval_s),
        bf_max_job_test=given.get("bf_max_job_test", default.bf_max_job_test),
        bf_window_s=60 * given.get("bf_window", default.bf_window_s // 60),
        bf_resolution_s=given.get("bf_resolution", default.bf_resolution_s),
    )


def run(cluster: Cluster, asked: Sequence[Asked]) -> tuple[int, list[Run]]:
    """The second in which the jobs became eligible, and how each ran, in the order of their submission."""
    cluster.run("scontrol update PartitionName=main State=DOWN")
    try:
        lines = [(each.options(), f"sleep {each.sleep_s}") for each in asked]
        numbers = [number for at in range(0, JOBS, 50) for number in cluster.submit_all(lines[at : at + 50])]
    finally:
        begin_s = int(cluster.run("date +%s; scontrol update PartitionName=main State=UP"))
    still = "squeue -h -p main -o %i | head -n 1"
    cluster.wait_for("all jobs have ended", lambda: not cluster.run(still).strip(), LONGEST_RUN_S, every_s=1)
    ran = {each.job_id: each for each in runs(cluster, numbers)}
    return begin_s, [ran[number] for number in numbers]


def turnover_s(ran: Sequence[Run]) -> float:
    """The mean time from an end to the start it allowed, of those up to MOST_TURNOVER_S.

    Longer ones are waits for something else, such as the next backfill. The policy knows no such time: it is a property
    of this cluster, and counts as run time.
    """
    gaps = []
    for each in ran:
        ends = [one.end_s for one in ran if one.end_s <= each.start_s and set(one.nodes) & set(each.nodes)]
        if ends:
            last_s = max(ends)
            others = [one for one in ran if one.start_s < last_s <= one.end_s]
            if over_capacity([*others, replace(each, start_s=last_s - 1, end_s=last_s)]):
                gaps.append(each.start_s - last_s)
    at_once = [gap for gap in gaps if gap <= MOST_TURNOVER_S]
    return float(np.mean(at_once)) if at_once else 0.0


def replayed(asked: Sequence[Asked], ran: Sequence[Run], using: SlurmParameters) -> NDArray[np.int64]:
    """How long each job waits under the policy."""
    size = Resources(int(CAPACITY["c"]["cpu"]), int(CAPACITY["c"]["mem"]))
    # Times are whole seconds: so many of the jobs run for one second more.
    longer = np.random.default_rng(SEED).random(len(ran)) < turnover_s(ran)
    jobs = [
        TraceJob(
            Job(
                at,
                0,
                (Alternative(each.nodes, Resources(each.cores, each.memory_mb)),),
                (0,),
                expected_run_s=60 * each.limit_min,
            ),
            max(1, one.end_s - one.start_s + int(longer[at])),
        )
        for at, (each, one) in enumerate(zip(asked, ran, strict=True))
    ]
    nodes = NodeArrays.of([Node(name, size, size) for name in NODES])
    return np.asarray(replay_as_slurm(nodes, of_values(Trace(tuple(jobs), {})), using).start_s)


def out_of_order(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """The share of the pairs of jobs that start in different seconds in both, and in another order."""
    first, second = np.sign(one[:, None] - one), np.sign(other[:, None] - other)
    ordered = (first != 0) & (second != 0)
    return float((first != second)[ordered].mean()) if ordered.any() else 0.0


def test_jobs_out_of_order_are_counted_in_pairs() -> None:
    assert out_of_order(np.array([1, 2, 3]), np.array([10, 20, 30])) == 0
    assert out_of_order(np.array([1, 2, 3]), np.array([10, 30, 20])) == pytest.approx(1 / 3)
    assert out_of_order(np.array([1, 1, 3]), np.array([10, 30, 20])) == pytest.approx(1 / 2)


def test_a_replay_starts_jobs_as_the_real_slurm_did(cluster: Cluster) -> None:
    asked = workload()
    with slurm_alone(cluster):
        using = parameters(cluster)
        begin_s, ran = run(cluster, asked)
    assert over_capacity(ran) == []
    assert all(set(each.nodes) <= set(NODES) for each in ran)

    real = np.array([each.start_s - begin_s for each in ran])
    ours = replayed(asked, ran, using)

    wrong = out_of_order(real, ours)
    sys.stdout.write(
        f"mean wait {real.mean():.2f} s on Slurm, {ours.mean():.2f} s replayed; {100 * wrong:.1f} % of the pairs in "
        f"another order; the last starts after {real.max()} and {ours.max()} s; turnover {turnover_s(ran):.2f} s; "
        f"{using}\n"
    )
    assert wrong <= ALLOWED
    assert ours.mean() == pytest.approx(real.mean(), rel=ALLOWED_WHEN_BUSY)
