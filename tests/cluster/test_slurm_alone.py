"""The policy `slurm` of the simulator starts jobs as a real Slurm does: 300 jobs on four nodes, run and replayed.

All jobs wait in a partition that is down, and become eligible in one second when it comes up. How long each held its
nodes is read from Slurm, so that only the order and the times of the starts are compared.
"""

import sys
from collections.abc import Sequence
from math import floor

import numpy as np
import pytest
from comparison_run import slurm_alone
from evidence import CAPACITY, FreedNodes, Run, over_capacity, runs
from run_and_replay import JOBS, Asked, out_of_order, parameters_of, replayed, workload

from cluster import Cluster
from slurm_sns.model import Resources

NODES = ("c1", "c2", "c3", "c4")
#: Of all pairs of jobs that start in different seconds.
ALLOWED = 0.05
#: Of the mean wait: within 10 % on a quiet machine. On one that also runs other tests, Slurm's own passes take longer.
ALLOWED_WHEN_BUSY = 0.2
#: The last job of the replay starts after 110 s; the containers take longer.
LONGEST_RUN_S = 240


def run(cluster: Cluster, asked: Sequence[Asked]) -> tuple[int, list[Run], list[int]]:
    """The second in which the jobs became eligible; how each ran, and for how many seconds it held its nodes."""
    cluster.run("scontrol update PartitionName=main State=DOWN")
    freed = FreedNodes(cluster)
    try:
        lines = [(each.options(), f"sleep {each.sleep_s}") for each in asked]
        numbers = [number for at in range(0, JOBS, 50) for number in cluster.submit_all(lines[at : at + 50])]
    finally:
        begin_s = int(cluster.run("date +%s; scontrol update PartitionName=main State=UP"))
    still = "squeue -h -p main -o %i | head -n 1"
    cluster.wait_for("all jobs have ended", lambda: not cluster.run(still).strip(), LONGEST_RUN_S, every_s=1)
    free_s = {number: floor(at_s) for number, at_s in freed.of_jobs().items()}
    ran = {each.job_id: each for each in runs(cluster, numbers)}
    return begin_s, [ran[number] for number in numbers], [free_s[number] - ran[number].start_s for number in numbers]


def test_jobs_out_of_order_are_counted_in_pairs() -> None:
    assert out_of_order(np.array([1, 2, 3]), np.array([10, 20, 30])) == 0
    assert out_of_order(np.array([1, 2, 3]), np.array([10, 30, 20])) == pytest.approx(1 / 3)
    assert out_of_order(np.array([1, 1, 3]), np.array([10, 30, 20])) == pytest.approx(1 / 2)


def test_a_replay_starts_jobs_as_the_real_slurm_did(cluster: Cluster) -> None:
    asked = workload()
    with slurm_alone(cluster):
        # slurm_sns has a SPANK plugin on each node: slurmd sends the message of an Epilog then.
        using = parameters_of(cluster.run("scontrol show config"), epilog=True)
        begin_s, ran, held_s = run(cluster, asked)
    assert over_capacity(ran) == []
    assert all(set(each.nodes) <= set(NODES) for each in ran)

    size = Resources(int(CAPACITY["c"]["cpu"]), int(CAPACITY["c"]["mem"]))
    real = np.array([each.start_s - begin_s for each in ran])
    ours = replayed(asked, held_s, [size] * len(NODES), begin_s, using)

    wrong = ours.out_of_order(real)
    sys.stdout.write(
        f"mean wait {real.mean():.2f} s on Slurm, {ours.mean_wait_s():.2f} s replayed; {100 * wrong:.1f} % of the "
        f"pairs in another order; {using}\n"
    )
    assert wrong <= ALLOWED
    assert ours.mean_wait_s() == pytest.approx(real.mean(), rel=ALLOWED_WHEN_BUSY)
