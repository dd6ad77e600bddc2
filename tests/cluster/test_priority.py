"""A placed job is first in its partition with any priority weights; while it runs it has its own nice value again."""

from collections.abc import Iterator

import pytest

from cluster import Cluster

#: With this weight a job of four nodes has a priority higher than a small job's by hundreds of thousands. (The weight
#: of fair-share is not used: its effect would depend on what the owners have used in earlier tests.)
WEIGHT = "PriorityWeightJobSize=1000000"
#: Backfill would start a placed job, too: with this interval no backfill pass comes during the test.
NO_BACKFILL = "s/bf_interval=10/bf_interval=300/"
RENDERED = "/etc/slurm/sns/slurm.conf"


def configure(cluster: Cluster, change: str, weight: str) -> None:
    """Change the configuration and wait until Slurm and the scheduler use it."""
    cluster.run(f"{change} && scontrol reconfigure")
    shows = "scontrol show config | grep PriorityWeightJobSize; cluster-health ctl && echo ready"

    def is_so() -> bool:
        words = cluster.try_run(shows).stdout.split()
        return weight in words and "ready" in words

    cluster.wait_for(f"PriorityWeightJobSize {weight}", is_so)
    cluster.wait_for_scheduler()
    seen = cluster.status()["cycles"]
    cluster.wait_for("the scheduler looks again", lambda: cluster.status()["cycles"] > seen)


@pytest.fixture(scope="module")
def weighty(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with a large priority weight, as some sites have it."""
    change = f"sed -i '{NO_BACKFILL}' {RENDERED} && echo {WEIGHT} >> {RENDERED}"
    configure(shared_cluster, change, "1000000")
    yield shared_cluster
    shared_cluster.run("scancel -u alice; scancel -u bob")
    configure(shared_cluster, "sns render /etc/slurm/sns", "0")


def nice(cluster: Cluster, number: int) -> str:
    return cluster.fields(number)["Nice"]


def state(cluster: Cluster, number: int) -> str:
    return next((str(each["state"]) for each in cluster.queue() if each["job_id"] == number), "")


def test_a_job_of_higher_priority_that_waits_in_its_partition_does_not_hold_a_placed_job_up(weighty: Cluster) -> None:
    cluster = weighty
    fillers = cluster.submit_all([("-N1 --exclusive --comment sns:off", "sleep 3600")] * 4, "bob")
    cluster.wait_for("the nodes are full", lambda: all(cluster.job(each).state == "RUNNING" for each in fillers))
    ours = cluster.submit_all([("-n4 --mem=1G --requeue --nice=7", "sleep 600"), ("-n4 --mem=1G", "sleep 600")])
    cluster.wait_for("they wait", lambda: {state(cluster, each) for each in ours} == {"ours, waiting"})
    cluster.run("sleep 1")  # a job submitted in the same second as the wide job would wait behind it
    wide = cluster.submit("-N4 --exclusive --comment sns:off", "true", "bob")
    cluster.wait_for("it waits, too", lambda: cluster.job(wide).reason == "Resources")
    cluster.run(f"scancel {fillers[0]}", "bob")

    cluster.wait_for("they run", lambda: {cluster.job(each).state for each in ours} == {"RUNNING"})
    assert {cluster.fields(each)["Scheduler"] for each in ours} == {"Main"}
    decided = cluster.decisions(ours)
    assert [[each["action"] for each in decided[number]] for number in ours] == [["start"], ["start"]], decided
    assert cluster.job(wide).state == "PENDING"
    cluster.wait_for("they are as their owner wrote them", lambda: [nice(cluster, each) for each in ours] == ["7", "0"])
    assert max(cluster.job(each).priority for each in ours) < cluster.job(wide).priority

    # Requeued, the job is behind the wide job again: it waits with its owner's nice value.
    cluster.run(f"scontrol requeue {ours[0]}")
    cluster.wait_for("it is planned again", lambda: state(cluster, ours[0]) == "ours, waiting")
    assert (nice(cluster, ours[0]), cluster.job(ours[0]).pinned_to) == ("7", ())
    cluster.run(f"scancel {wide}", "bob")
    cluster.wait_for("it runs again", lambda: cluster.job(ours[0]).state == "RUNNING")
    cluster.wait_for("again as its owner wrote it", lambda: nice(cluster, ours[0]) == "7")


SLURM_CONF, SAVED = "/etc/slurm/slurm.conf", "/tmp/before-basic"
RESTART = """
pid=$(cat /run/slurm/slurmctld.pid); kill $pid; while [ -e /proc/$pid ]; do sleep 0.1; done; slurmctld
until scontrol ping | grep -q UP; do sleep 0.2; done
"""


@pytest.fixture
def counted_down(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster under priority/basic, with a scheduler that waits for an hour until Slurm starts a placed job."""
    cluster.run(f"cp -p {SLURM_CONF} {SAVED}; sed -i 's,priority/multifactor,priority/basic,' {SLURM_CONF}; {RESTART}")
    cluster.run("sed 's/^scheduler:/&\\n  place_timeout_s: 3600/' /etc/slurm/sns.yaml > /tmp/sns-patient.yaml")
    cluster.daemon("restart", "scheduler", config="/tmp/sns-patient.yaml")
    cluster.wait_for_scheduler()
    yield cluster
    cluster.run("scancel -u alice; scancel -u bob; scontrol update PartitionName=main MaxCPUsPerNode=UNLIMITED")
    cluster.run(f"cp -p {SAVED} {SLURM_CONF}; {RESTART}")
    cluster.daemon("restart", "scheduler")
    cluster.wait_for_scheduler()


def test_counted_down_a_placed_job_that_its_owner_holds_stays_held_until_they_release_it(counted_down: Cluster) -> None:
    """Under priority/basic Slurm starts a held job whose nice value changes."""
    cluster = counted_down
    filler = cluster.submit("-N4 -n4 --ntasks-per-node=1 --mem=1G --comment sns:off", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    cluster.run("scontrol update PartitionName=main MaxCPUsPerNode=4")  # so Slurm starts no placed job of four cores
    held = cluster.submit("-n4 --mem=100G --nice=7", "sleep 600")
    cluster.wait_for("it is placed", lambda: state(cluster, held) == "placed, Slurm is starting it")
    assert int(nice(cluster, held)) == -60_000

    cluster.run(f"scontrol hold {held}", "alice")
    cluster.wait_for("it is taken back", lambda: not cluster.job(held).pinned_to)
    cluster.run("scontrol update PartitionName=main MaxCPUsPerNode=UNLIMITED")
    later = cluster.submit_all([("-n4 --mem=100G", "true")] * 2)
    cluster.wait_for_end(later)
    seen = cluster.status()["cycles"]
    cluster.wait_for("five more cycles", lambda: cluster.status()["cycles"] > seen + 5)
    assert (cluster.job(held).state, cluster.job(held).priority) == ("PENDING", 0), "Slurm has passed over it"
    log = cluster.run("cat /var/log/sns/scheduler.log")
    assert log.count(f"job {held}: held by its owner after it was placed") == 1, "it is taken back once"

    cluster.run(f"scontrol release {held}", "alice")
    cluster.wait_for("it runs", lambda: cluster.job(held).state == "RUNNING")
    cluster.wait_for("as its owner wrote it", lambda: nice(cluster, held) == "7")
