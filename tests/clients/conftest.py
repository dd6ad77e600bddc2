"""Client programs on the mini cluster: installed on its controller once, run as alice, asked what they report.

`make test-clients` runs these tests; `make test` leaves them out, because they install the programs from PyPI. The
folder workflows/ has what runs on the controller. Nothing asserts a time; the seconds are shown at the end.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from clients.installed import HERE, Clients

from cluster import Cluster

SECONDS = pytest.StashKey[dict[str, float]]()
#: Notes what squeue says of each waiting job, again and again: its id, its reason, slurm_sns' record.
WATCH = """
nohup bash -c 'while true; do
    squeue -a -h -t pending -O "JobArrayID:|,Reason:|,admin_comment:|" >> /tmp/waiting; sleep 0.3
done' > /dev/null 2>&1 < /dev/null &
echo $! > /tmp/waiting.pid
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def installed(pytestconfig: pytest.Config) -> Iterator[Clients]:
    cluster = Cluster()
    answer = cluster.try_run("cluster-health ctl")
    if answer.returncode != 0:
        pytest.fail(f"the mini cluster does not answer: `make test-clients` brings it up ({answer.stderr})")
    clients = Clients(cluster, pytestconfig.stash.setdefault(SECONDS, {}))
    clients.install()
    yield clients
    cluster.close()


@pytest.fixture
def clients(installed: Clients) -> Iterator[Clients]:
    """The programs, on a cluster without jobs. No managed job may show a reason for which programs give it up."""
    cluster = installed.cluster
    cluster.run("scancel -u alice; rm -f /tmp/waiting")
    cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), 180)
    assert cluster.status()["mode"] == "enforce"
    installed.begin()
    cluster.run(WATCH)
    yield installed
    cluster.run("kill $(cat /tmp/waiting.pid)")
    assert cluster.run("grep ReqNodeNotAvail /tmp/waiting | grep sns:2 | grep -v free= | sort | uniq -c || true") == ""


@pytest.fixture
def cluster(clients: Clients) -> Cluster:
    return clients.cluster


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    seconds = config.stash.get(SECONDS, {})
    if seconds:
        terminalreporter.section("seconds, from the first submission to the end")
        for what, each in seconds.items():
            terminalreporter.line(f"{each:6.1f}  {what}")
