"""Two controllers: the acting one is killed and comes back while jobs of slurm_sns wait. takeovers.py plays rounds."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_controllers import SAVED_AFTER_S, TwoControllers

from cluster import Cluster

CLUSTER_SH = str(Path(__file__).parents[2] / "containers" / "cluster.sh")
#: A whole node until it is cancelled, half of one, and half of each of the four nodes.
WHOLE, HALF, WIDE = "-N1 -n28 --mem=1G -t20", "-N1 -n14 --mem=1G -t2", "-N4 -n56 --mem=1G -t2"


@pytest.fixture
def two() -> Iterator[TwoControllers]:
    """A mini cluster with two controllers; ctl acts."""
    subprocess.run([CLUSTER_SH, "two"], check=True)
    cluster = Cluster(f"{os.environ.get('SNS_PROJECT', 'slurm-sns')}-two")
    yield TwoControllers(cluster)
    cluster.close()
    subprocess.run([CLUSTER_SH, "two-down"], check=True)


def test_gated_jobs_outlive_a_killed_controller_and_each_is_placed_once_by_the_one_that_acts(
    two: TwoControllers,
) -> None:
    cluster = two.cluster
    two.wait_until_acting("ctl")
    whole = cluster.submit_all([(WHOLE, "sleep 1200")] * 4)
    cluster.wait_for("the nodes are full", lambda: all(cluster.job(each).state == "RUNNING" for each in whole))
    first, second = two.submit(4, HALF), two.submit(1, WIDE)
    cluster.wait_for("they are gated", lambda: all(cluster.job(each).is_gated for each in first + second))
    time.sleep(SAVED_AFTER_S)

    two.kill("ctl")
    two.wait_until_acting("ctl2")

    assert all(cluster.job(each).is_gated for each in first + second)
    assert all(cluster.job(each).state == "RUNNING" for each in whole)
    cluster.run(f"scancel {' '.join(map(str, whole[:2]))}")
    cluster.wait_for_end(first)
    assert cluster.job(second[0]).is_gated

    two.start("ctl")
    two.wait_until_acting("ctl")

    cluster.wait_for("ctl2 stands by", lambda: not two.answers("ctl2"))
    cluster.run(f"scancel {' '.join(map(str, whole[2:]))}")
    cluster.wait_for_end(second)
    placed = [(host, int(job)) for _, host, job in two.placements() if int(job) not in whole]
    assert sorted(placed[:4]) == [("ctl2", each) for each in first]
    assert placed[4:] == [("ctl", second[0])]
    assert {number: len(moments) for number, moments in two.began().items()} == dict.fromkeys(first + second, 1)
