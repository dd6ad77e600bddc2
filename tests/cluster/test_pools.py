"""Partitions that are alike: a job that waits in one of them starts in the other, as if its owner had named both."""

from collections.abc import Iterator

import pytest

from cluster import Cluster

CONFIG = "/tmp/sns-alike.yaml"
ALIKE = "rescheduling: {pools: [[main, small]], queued_check_s: 2}"
LOG = "/var/log/sns/scheduler.log"


@pytest.fixture
def alike(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster where main and small are alike for users, and main is full."""
    cluster.run(f"{{ cat /etc/slurm/sns.yaml; echo '{ALIKE}'; }} > {CONFIG}")
    cluster.daemon("restart", "scheduler", config=CONFIG)
    cluster.wait_for_scheduler()
    running = cluster.submit_all([("-n28 --mem=1G -t90", "sleep 3600")] * 4)
    cluster.wait_for("main is full", lambda: {cluster.job(each).state for each in running} == {"RUNNING"})
    yield cluster
    cluster.run("scontrol update PartitionName=small State=UP AllowAccounts=ALL")
    cluster.run("scancel -u alice; scancel -u bob")
    cluster.daemon("restart", "scheduler")
    cluster.wait_for_scheduler()


def partitions(cluster: Cluster, number: int) -> str:
    return cluster.run(f"squeue -h -a -j {number} -o %P").splitlines()[0]


def wait_until_widened(cluster: Cluster, number: int) -> None:
    cluster.wait_for("it may start in both", lambda: partitions(cluster, number) == "main,small")


def test_a_job_that_has_waited_starts_in_the_other_partition(alike: Cluster) -> None:
    cluster = alike
    number = cluster.submit("-n4 --mem=1G -t10", "sleep 5")
    cluster.wait_for("it starts", lambda: cluster.job(number).state == "RUNNING")
    seen = cluster.job(number)
    assert seen.nodes[0] in ("s1", "s2")
    assert seen.record is not None
    assert (partitions(cluster, number), seen.record.own_partitions) == ("small", ("main",))
    told = cluster.explain(number)["decisions"]
    assert any("may start in main and small from now on: it has waited for" in str(each) for each in told), told
    assert f"job {number}: may start in main and small from now on" in cluster.run(f"tail -n 100 {LOG}")


def test_a_job_that_waits_on_shows_both_and_its_owner_may_go_back(alike: Cluster) -> None:
    cluster = alike
    large = cluster.submit("-n28 --mem=1G -t10")
    small = cluster.submit_all([("-p small -n4 --mem=1G -t90", "sleep 3600")] * 2)
    cluster.wait_for("small is full", lambda: {cluster.job(each).state for each in small} == {"RUNNING"})
    waiting = cluster.submit("-n4 --mem=1G -t10")
    array = cluster.submit("-a 1-3 -n4 --mem=1G -t10", "sleep 3600")
    for number in (waiting, array):
        wait_until_widened(cluster, number)
    assert cluster.job(waiting).is_gated
    cluster.run(f"scontrol update JobId={waiting} Partition=main", "alice")
    cluster.run(f"scancel {small[0]}", "alice")
    in_small = f"squeue -h -r -t R -j {array} -o %P"
    cluster.wait_for("a task starts there", lambda: cluster.run(in_small).split() == ["small"])
    cluster.wait_for_cycles(4)
    assert (partitions(cluster, waiting), cluster.job(waiting).is_gated) == ("main", True)
    assert cluster.run(f"squeue -h -r -t PD -j {array} -o %P").split() == ["main,small"] * 2
    # Too large for small, it waits where it is.
    assert (partitions(cluster, large), cluster.job(large).is_gated) == ("main", True)
    cluster.daemon("stop", "watchdog")  # which may be quicker than the clean stop to free a job
    cluster.daemon("stop", "scheduler")
    cluster.daemon("start", "watchdog")
    record = cluster.job(waiting).record
    assert record is not None
    assert (partitions(cluster, waiting), record.own_partitions, record.free_why) == ("main", ("main",), "clean-stop")
    assert cluster.run(f"squeue -h -r -t PD -j {array} -o %P").split() == ["main,small"] * 2
    cluster.daemon("start", "scheduler", config=CONFIG)


def test_a_requeued_job_starts_again_in_the_other_partition(alike: Cluster) -> None:
    cluster = alike
    number = cluster.submit("-n4 --mem=1G -t10 --requeue", "sleep 3600")
    cluster.wait_for("it runs", lambda: cluster.job(number).state == "RUNNING")
    cluster.run(f"scontrol requeue {number}")
    again = ("RUNNING", "1", "small")

    def seen() -> tuple[str, ...]:
        return tuple(cluster.fields(number)[name] for name in ("JobState", "Restarts", "Partition"))

    cluster.wait_for("it runs again, while main is full", lambda: seen() == again)


def test_a_partition_that_does_not_let_the_jobs_account_in_is_left_out_until_it_does(alike: Cluster) -> None:
    cluster = alike
    cluster.run("scontrol update PartitionName=small AllowAccounts=nobody")
    cluster.wait_for_cycles(2)
    number = cluster.submit("-n4 --mem=1G -t10", "sleep 3600")
    cluster.wait_for_cycles(6)
    assert (partitions(cluster, number), cluster.job(number).is_gated) == ("main", True)
    assert f"job {number}:" not in cluster.run(f"tail -n 100 {LOG}")
    cluster.run("scontrol update PartitionName=small AllowAccounts=ALL")
    cluster.wait_for("it runs in small", lambda: partitions(cluster, number) == "small")
