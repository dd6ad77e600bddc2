"""ReFrame cancels a job that waits for a node that is not available ("blocked"): no managed job may look so."""

import json
from collections.abc import Iterator

import pytest
from clients.installed import Clients
from test_completing import cancel_deaf

from cluster import Cluster


def results(clients: Clients, partition: str, options: str = "") -> dict[str, str]:
    """The tests' results as ReFrame reports them, with the reason of a failure."""
    clients.run("rm -rf reframe && mkdir reframe")
    done = clients.try_run(
        f"reframe -C reframe_site.py -c reframe_tests.py --system mini:{partition} --prefix reframe "
        f"--report-file reframe/report.json -r {options}"
    )
    try:
        report = json.loads(clients.run("cat reframe/report.json"))
    except AssertionError:
        pytest.fail(done.stdout + done.stderr)
    cases = report["runs"][-1]["testcases"]
    return {case["display_name"]: f"{case['result']}: {case.get('fail_reason')}" for case in cases}


@pytest.mark.parametrize("partition", ["main", "squeue"])
def test_reframes_tests_end_as_meant(clients: Clients, partition: str) -> None:
    with clients.timed(f"ReFrame, scheduler `{partition.replace('main', 'slurm')}`: 12 tests, 2 of them fail"):
        found = results(clients, partition)
    failed = {name: why for name, why in found.items() if not why.startswith("pass")}
    assert len(found) == 12
    assert set(failed) == {"Fails", "WaitsTooLong"}, failed
    assert clients.passed_through() == []


@pytest.fixture
def slow_epilog(cluster: Cluster) -> Iterator[None]:
    """Every job is completing for 4 s, as at sites whose epilog cleans up."""
    machines = ["ctl", "c1", "c2", "c3", "c4"]
    script = (
        "printf '#!/bin/sh\\ntouch /tmp/epilog-ran\\nsleep 4\\n' > /etc/slurm/epilog-4s; chmod +x /etc/slurm/epilog-4s"
    )
    for machine in machines:
        cluster.run(f"{script}; echo Epilog=/etc/slurm/epilog-4s >> /etc/slurm/slurm.conf", node=machine)
    cluster.run("scontrol reconfigure")
    yield
    for machine in machines:
        cluster.run("rm -f /tmp/epilog-ran; sed -i '/^Epilog=/d' /etc/slurm/slurm.conf", node=machine)
    cluster.run("scontrol reconfigure")


@pytest.mark.usefixtures("slow_epilog")
def test_no_test_is_cancelled_where_jobs_complete_slowly(clients: Clients, cluster: Cluster) -> None:
    with clients.timed("ReFrame: 16 tests of 14 cores, 4 at a time, epilog of 4 s"):
        found = results(clients, "main", "-t fine --repeat 2")
    assert len(found) == 16
    assert all(why.startswith("pass") for why in found.values()), found
    cluster.run("ls /tmp/epilog-ran", node="c1")
    assert clients.passed_through() == []


@pytest.mark.parametrize("nodes", [1, 4])
def test_no_test_is_cancelled_while_jobs_are_completing(clients: Clients, cluster: Cluster, nodes: int) -> None:
    deaf = cancel_deaf(cluster, "--exclusive", nodes)
    with clients.timed(f"ReFrame: 8 tests while jobs are completing on {nodes} of 4 nodes"):
        found = results(clients, "main", "-t fine")
    assert len(found) == 8
    assert all(why.startswith("pass") for why in found.values()), found
    assert sorted(clients.passed_through()) == sorted(map(str, deaf))
