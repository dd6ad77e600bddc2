"""The cluster that `make test` has brought up, in a known state before each test."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import Cluster

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # evidence.py
pytest.register_assert_rewrite("evidence")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def running_cluster() -> Cluster:
    """The cluster; without one these tests fail and say how to bring it up."""
    cluster = Cluster()
    answer = cluster.try_run("cluster-health ctl")
    if answer.returncode != 0:
        pytest.fail(
            f"the mini cluster does not answer: `make test` or `make cluster-up` brings it up ({answer.stderr})"
        )
    return cluster


@pytest.fixture
def cluster(running_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with scheduler and watchdog running, the configuration rendered, and no jobs; left so at the end."""
    settle(running_cluster)
    yield running_cluster
    settle(running_cluster)


@pytest.fixture(scope="module")
def shared_cluster(running_cluster: Cluster) -> Iterator[Cluster]:
    """The same for all tests of a module together, where what they share takes long to make."""
    settle(running_cluster)
    yield running_cluster
    settle(running_cluster)


def settle(cluster: Cluster) -> None:
    """Bring the cluster to its known state; quick when it is in it already."""
    cluster.run("sns enable; scancel -u alice; scancel -u bob; sns render /etc/slurm/sns; rm -f /tmp/sns-*.yaml")
    for name in ("scheduler", "watchdog"):
        if cluster.try_run(f"sns-daemon status {name}").returncode != 0:
            cluster.daemon("start", name)
    cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), 180)
    cluster.wait_for("the scheduler answers", lambda: cluster.try_run("sns status").returncode == 0, 180)
    if '"mode": "enforce"' not in cluster.run("sns status --json"):  # a failed test left another configuration running
        cluster.daemon("restart", "scheduler")
        cluster.wait_for("the scheduler answers", lambda: cluster.try_run("sns status").returncode == 0, 180)


@pytest.fixture
def planned_by_hand(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with scheduler and watchdog stopped, but a fresh heartbeat: jobs are held until a test plans them."""
    cluster.daemon("stop", "watchdog")
    cluster.daemon("stop", "scheduler")
    cluster.run(
        "setsid setpriv --reuid=slurm --regid=slurm --clear-groups bash -c "
        "'cd /run/sns; while date +%s > beat.test && mv beat.test heartbeat; do sleep 1; done' "
        "< /dev/null > /dev/null 2>&1 & "
        "echo $! > /run/sns/test-heartbeat.pid"
    )
    time.sleep(0.5)
    yield cluster
    cluster.run("kill $(cat /run/sns/test-heartbeat.pid); rm /run/sns/test-heartbeat.pid")
