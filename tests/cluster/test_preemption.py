"""Jobs that may preempt others are left to Slurm: they start by preemption, which our plans cannot do."""

from collections.abc import Iterator

import pytest
from requeue_by_hand import requeue
from slurm_conf import preempting, suspending_urgent

from cluster import Cluster

NOT_PREEMPTED = "it is no longer suspended by preemption"
SLURMCTLD_LOG = "/var/log/slurm/slurmctld.log"


@pytest.fixture
def tiers(cluster: Cluster) -> Iterator[Cluster]:
    """A managed partition `urgent` on the nodes of `main`; its jobs preempt those of `main` by requeueing them."""
    with preempting(
        cluster,
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        "PartitionName=urgent Nodes=c[1-4] PriorityTier=10",
        sns_yaml="s/partitions: \\[main/&, urgent/",
    ):
        yield cluster


def fill(cluster: Cluster) -> list[int]:
    """Fill all cores of `main` with managed jobs."""
    running = cluster.submit_all([("-n28 -t5 --mem-per-cpu=1G", "sleep 300")] * 4)
    cluster.wait_for("they run", lambda: {cluster.job(each).state for each in running} == {"RUNNING"})
    return running


def is_left_to_slurm(cluster: Cluster, number: int, why: str) -> bool:
    """Whether `sns explain` and the log say why the job is left to Slurm."""
    told = cluster.try_run(f"sns explain {number}", "alice").stdout
    return why in told and f"job {number}: {why}" in cluster.run("tail -n 50 /var/log/sns/scheduler.log")


def test_a_job_of_a_higher_tier_starts_by_preemption_and_the_requeued_job_is_placed_again(tiers: Cluster) -> None:
    cluster = tiers
    running = fill(cluster)
    urgent = cluster.submit("-p urgent -n28 -t5 --mem-per-cpu=1G", "sleep 3")
    cluster.wait_for("it runs", lambda: cluster.job(urgent).state != "PENDING")
    why = "left to Slurm: it may preempt jobs: partition urgent has a higher PriorityTier than main on the same nodes"
    cluster.wait_for("it is said why", lambda: is_left_to_slurm(cluster, urgent, why))
    (requeued,) = [each for each in running if int(cluster.fields(each)["Restarts"]) == 1]
    cluster.wait_for("it runs again", lambda: cluster.job(requeued).state == "RUNNING")
    decided = [each["action"] for each in cluster.explain(requeued)["decisions"]]
    assert decided.count("start") == 2


@pytest.fixture
def urgent_qos(cluster: Cluster) -> Iterator[Cluster]:
    """A QOS `urgent` whose jobs preempt those of `normal` by requeueing them."""
    cluster.run("sacctmgr -i add qos urgent set preempt=normal priority=10")
    cluster.run("sacctmgr -i modify user where name=alice set qos+=urgent")
    try:
        with preempting(cluster, "PreemptType=preempt/qos", "PreemptMode=REQUEUE"):
            yield cluster
    finally:
        cluster.run("sacctmgr -i modify user where name=alice set qos-=urgent; sacctmgr -i delete qos urgent")


def test_a_job_whose_qos_may_preempt_starts_before_one_of_ours_that_waited_already(urgent_qos: Cluster) -> None:
    cluster = urgent_qos
    fill(cluster)
    behind = cluster.submit("-n28 -t5 --mem-per-cpu=1G", "sleep 300")
    urgent = cluster.submit("--qos=urgent -n28 -t5 --mem-per-cpu=1G", "sleep 3")
    cluster.wait_for("it runs", lambda: cluster.job(urgent).state != "PENDING")
    why = "left to Slurm: it may preempt jobs: QOS urgent may preempt normal"
    cluster.wait_for("it is said why", lambda: is_left_to_slurm(cluster, urgent, why))
    seen = cluster.jobs()
    assert not 0 < seen[behind].start_s < seen[urgent].start_s, "it did not take what was freed for the other"


@pytest.fixture
def suspending(cluster: Cluster) -> Iterator[Cluster]:
    """A partition `urgent` of Slurm's own on the nodes of `main`; its jobs suspend those of `main`."""
    with suspending_urgent(cluster):
        yield cluster


def test_only_a_job_that_preemption_suspended_is_requeued_and_as_it_is(suspending: Cluster) -> None:
    cluster = suspending
    by_hand, preempted, *_ = fill(cluster)
    assert requeue(cluster, by_hand) == NOT_PREEMPTED, "it runs"
    cluster.run(f"scontrol suspend {by_hand}")
    assert requeue(cluster, by_hand) == NOT_PREEMPTED, "a person has suspended it"
    cluster.run(f"scontrol resume {by_hand}")
    # Not on the node of the job that was resumed by hand: Slurm would let both run there, on the same cores.
    (node,) = cluster.job(preempted).nodes
    urgent = cluster.submit(f"-p urgent -N1 -w {node} -n28 -t5 --mem-per-cpu=1G", "sleep 60")
    cluster.wait_for("it is suspended", lambda: cluster.job(preempted).state == "SUSPENDED")
    assert cluster.fields(preempted)["Priority"] != "0", "a job that scontrol suspends has priority 0"
    assert requeue(cluster, preempted) == "done"
    cluster.wait_for("it waits again", lambda: cluster.job(preempted).state == "PENDING")
    assert cluster.fields(preempted)["Restarts"] == "1"
    assert cluster.fields(preempted)["Priority"] != "0", "and nobody holds it"
    assert cluster.job(urgent).state == "RUNNING"
    assert cluster.run(f"grep -a 'job overflow' {SLURMCTLD_LOG} || true") == ""
