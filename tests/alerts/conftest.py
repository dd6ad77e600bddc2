"""The mini cluster with a Prometheus beside it, whose rules are those of conf/ with short times.

`make test-alerts` runs these tests; `make test` leaves them out, because they take three minutes.
"""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from alerts.prometheus import PATIENCE_S, ROOT, RULES, STARTED, Prometheus, short

from cluster import Cluster

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    answer = cluster.try_run("cluster-health ctl")
    if answer.returncode != 0:
        pytest.fail(f"the mini cluster does not answer: `make test-alerts` brings it up ({answer.stderr})")
    odd = shlex.quote((HERE / "odd_scheduler.py").read_text())
    cluster.run(f"mkdir -p /tmp/odd && printf %s {odd} > /tmp/odd/sns && chmod 755 /tmp/odd /tmp/odd/sns")
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def running(cluster: Cluster) -> Prometheus:
    subprocess.run([ROOT / "containers" / "cluster.sh", "prometheus"], check=True)
    prometheus = Prometheus(cluster)
    cluster.wait_for("Prometheus has values", prometheus.has_values, PATIENCE_S, 0.5)
    prometheus.use(short(RULES.read_text()))
    return prometheus


@pytest.fixture
def prometheus(cluster: Cluster, running: Prometheus) -> Iterator[Prometheus]:
    """Prometheus, while all daemons run with the cluster's configuration, no job is there, and no alert fires."""
    cluster.run("rm -f /var/lib/sns/disabled; scancel -u alice; scancel -u bob")
    for name in ("scheduler", "watchdog", "exporter"):
        if cluster.try_run(f"sns-daemon status {name}").returncode != 0:
            cluster.daemon("start", name, "--address 0.0.0.0" if name == "exporter" else "")
    cluster.wait_for_scheduler()
    cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip(), PATIENCE_S)
    running.wait_for_silence()
    yield running
    cluster.run("scancel -u alice; scancel -u bob")
    if cluster.try_run(f"rm {STARTED}").returncode == 0:
        cluster.daemon("kill")
