"""Fixtures: the cluster that `make test` has brought up, in a known state before each test."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from heartbeat import by_hand

from cluster import Cluster

HERE = Path(__file__).parent
pytest.register_assert_rewrite("evidence")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def project() -> Iterator[str]:
    """The name of the mini cluster for this run of pytest. With SNS_SECOND=1 it starts one of its own meanwhile."""
    first = os.environ.get("SNS_PROJECT", "slurm-sns")
    if os.environ.get("SNS_SECOND", "0") == "0":
        yield first
        return
    script = str(HERE.parents[1] / "containers" / "cluster.sh")
    subprocess.run([script, "second"], check=True)
    yield f"{first}-second"
    subprocess.run([script, "second-down"], check=True)


@pytest.fixture(scope="session")
def running_cluster(project: str) -> Iterator[Cluster]:
    """The cluster, brought back to its known state at the end. Without a cluster the tests fail and say what to do."""
    cluster = Cluster(project)
    answer = cluster.try_run("cluster-health ctl")
    if answer.returncode != 0:
        pytest.fail(
            f"the mini cluster does not answer: `make test` or `make cluster-up` brings it up ({answer.stderr})"
        )
    yield cluster
    settle(cluster)
    cluster.close()


@pytest.fixture
def cluster(running_cluster: Cluster) -> Cluster:
    """The cluster with scheduler and watchdog running, the configuration rendered, and no jobs."""
    settle(running_cluster)
    return running_cluster


@pytest.fixture(scope="module")
def shared_cluster(running_cluster: Cluster) -> Cluster:
    """The cluster in its known state, once for all tests of a module, where their preparation takes long."""
    settle(running_cluster)
    return running_cluster


#: Checksums of the rendered files: they show whether a test has changed one since.
RENDERED = "/tmp/rendered.sha256"
RENDER = f"sns render /etc/slurm/sns && sha256sum /etc/slurm/sns/* > {RENDERED}"


#: Starts the daemons that do not run, both at once: each takes seconds to load.
BOTH_DAEMONS = """
for name in scheduler watchdog; do
    sns-daemon status $name > /dev/null || { sns-daemon start $name & started="$started $!"; }
done
for process in $started; do wait $process || exit; done
"""


def settle(cluster: Cluster) -> None:
    """Bring the cluster to its known state. Every test begins with this, so it is quick when nothing is to be done."""
    cluster.run(
        "rm -f /var/lib/sns/disabled /tmp/sns-*.yaml; scancel -u alice; scancel -u bob; "
        f"sha256sum -c --status {RENDERED} || {{ {RENDER}; }}"
    )
    cluster.run(BOTH_DAEMONS)
    cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), 180)
    mode = _mode_of_who_answers(cluster)
    if mode != "enforce":  # a test left another configuration running
        cluster.daemon("restart", "scheduler")
        assert _mode_of_who_answers(cluster) == "enforce"


def _mode_of_who_answers(cluster: Cluster) -> str:
    """The mode of the running scheduler, once it answers."""
    modes: list[str] = []

    def answers() -> bool:
        answer = cluster.try_ask({"command": "status"})
        if answer is not None:
            modes.append(answer["mode"])
        return bool(modes)

    cluster.wait_for("the scheduler answers", answers, 180)
    return modes[-1]


@pytest.fixture
def planned_by_hand(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster without scheduler and watchdog but with a heartbeat: jobs stay gated until a test places them."""
    with by_hand(cluster):
        yield cluster
