"""Orders for running jobs on a real Slurm: suspend, resume, requeue."""

import pytest
from limits import until_running
from orders_by_hand import order

from cluster import Cluster


def started(cluster: Cluster, options: str) -> int:
    """A running job in a partition that is not managed: Slurm itself has started it."""
    number = cluster.submit(f"-p plain -t 5 -n2 --mem-per-cpu=1G {options}", "sleep 300")
    until_running(cluster, number)
    return number


def test_a_job_is_suspended_and_runs_on(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = started(cluster, "")
    assert order(cluster, "suspend", number) == "done"
    assert cluster.fields(number)["JobState"] == "SUSPENDED"
    assert order(cluster, "suspend", number) == "done", "Slurm does not mind"
    assert order(cluster, "resume", number) == "done"
    assert cluster.fields(number)["JobState"] == "RUNNING"


def test_a_requeued_job_waits_in_its_own_partition(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = started(cluster, "--requeue")
    assert order(cluster, "requeue", number) == "done"
    cluster.wait_for("it is requeued", lambda: cluster.fields(number)["Restarts"] == "1")
    assert cluster.fields(number)["Partition"] == "plain"


def test_a_suspended_job_that_is_requeued_waits_and_nobody_holds_it(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = started(cluster, "--requeue")
    assert order(cluster, "suspend", number) == "done"
    assert order(cluster, "requeue", number) == "done"
    cluster.wait_for("it is requeued", lambda: cluster.fields(number)["Restarts"] == "1")
    assert cluster.fields(number)["Priority"] != "0"


def test_a_job_that_is_requeued_in_another_partition_waits_there(planned_by_hand: Cluster) -> None:
    cluster = planned_by_hand
    number = started(cluster, "--requeue -w s1")
    assert order(cluster, "requeue", number, "main") == "done"
    asked = cluster.fields(number)
    assert (asked["Partition"], asked["ReqNodeList"]) == ("main", "(null)")
    cluster.wait_for("Slurm gates it for requeue_delay", lambda: cluster.job(number).reason == "BeginTime")


@pytest.mark.parametrize("name", ["suspend", "resume", "requeue"])
def test_an_order_for_a_job_that_waits_is_refused(planned_by_hand: Cluster, name: str) -> None:
    number = planned_by_hand.submit("-t 5 -n1 --begin=now+1hour", "true")
    assert order(planned_by_hand, name, number) != "done"
    assert planned_by_hand.fields(number)["JobState"] == "PENDING"


def test_a_job_that_may_not_restart_is_not_requeued(planned_by_hand: Cluster) -> None:
    number = started(planned_by_hand, "--no-requeue")
    assert order(planned_by_hand, "requeue", number) != "done"
    assert planned_by_hand.fields(number)["JobState"] == "RUNNING"
