"""The cluster that `make test` has brought up, in a known state before each test."""

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
def running_cluster() -> Iterator[Cluster]:
    """The cluster, left as it was; without one these tests fail and say how to bring it up."""
    cluster = Cluster()
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
    """The same for all tests of a module together, where what they share takes long to make."""
    settle(running_cluster)
    return running_cluster


#: Notes what was rendered, and whether a test has changed it since.
RENDERED = "/tmp/rendered.sha256"
RENDER = f"sns render /etc/slurm/sns && sha256sum /etc/slurm/sns/* > {RENDERED}"


#: Starts those that do not run, both at once: each takes seconds to load.
BOTH_DAEMONS = """
for name in scheduler watchdog; do
    sns-daemon status $name > /dev/null || { sns-daemon start $name & started="$started $!"; }
done
for process in $started; do wait $process || exit; done
"""


def settle(cluster: Cluster) -> None:
    """Bring the cluster to its known state; quick when it is in it already, for every test begins with this."""
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
    """The mode of the scheduler, once it answers."""
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
    """The cluster with scheduler and watchdog stopped, but a fresh heartbeat: jobs are held until a test plans them."""
    with by_hand(cluster):
        yield cluster
