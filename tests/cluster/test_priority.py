"""A gated job has the priority that it would have ungated; a placed job is first in its partition, until it runs."""

from collections.abc import Iterator

import pytest

from cluster import Cluster

#: All factors of Slurm's priority. With this weight of its size a job of four nodes is ahead of a small one by hundreds
#: of thousands. Age is given as much as a job that waits for seconds can show.
WEIGHTS = (
    *("PriorityWeightJobSize=1000000", "PriorityWeightFairshare=1000", "PriorityWeightPartition=1000"),
    *("PriorityWeightQOS=1000", "PriorityWeightAssoc=1000", "PriorityWeightTRES=cpu=1000,mem=2000"),
    *("PriorityWeightAge=6000", "PriorityMaxAge=0-00:10:00"),
)
#: Backfill would start a placed job, too: with this interval no backfill pass comes during the test.
NO_BACKFILL = "s/bf_interval=10/bf_interval=300/"
RENDERED, SLURM_CONF = "/etc/slurm/sns/slurm.conf", "/etc/slurm/slurm.conf"


def configure(cluster: Cluster, change: str, weight: str) -> None:
    """Change the configuration and wait until Slurm and the scheduler use it."""
    cluster.run(f"{change} && scontrol reconfigure")
    shows = "scontrol show config | grep PriorityWeightJobSize; cluster-health ctl && echo ready"

    def is_so() -> bool:
        words = cluster.try_run(shows).stdout.split()
        return weight in words and "ready" in words

    cluster.wait_for(f"PriorityWeightJobSize {weight}", is_so)
    cluster.wait_for_scheduler()
    cluster.wait_for_cycles(1)


@pytest.fixture(scope="module")
def weighty(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with all priority weights, as some sites have them."""
    lines = "".join(f"{each}\\n" for each in WEIGHTS)
    shared_cluster.run(f"cp -p {SLURM_CONF} /tmp/before-weights; sed -i '/^PriorityWeight/d' {SLURM_CONF}")
    configure(shared_cluster, f"sed -i '{NO_BACKFILL}' {RENDERED} && printf '{lines}' >> {RENDERED}", "1000000")
    yield shared_cluster
    shared_cluster.run("scancel -u alice; scancel -u bob")
    configure(shared_cluster, f"cp -p /tmp/before-weights {SLURM_CONF} && sns render /etc/slurm/sns", "0")


def priorities(cluster: Cluster) -> dict[int, tuple[int, int]]:
    """What sprio lists of each waiting job: its priority without its age's part, and that part."""
    rows = (map(int, line.split()) for line in cluster.run("sprio -h -o '%i %Y %A'").splitlines())
    return {number: (priority - age, age) for number, priority, age in rows}


def test_sprio_lists_gated_jobs_with_the_priority_that_they_would_have_ungated(weighty: Cluster) -> None:
    cluster = weighty
    filler = cluster.submit("-N4 --exclusive", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    numbers = cluster.submit_all(
        [(f"-n{1 + number % 28} --mem={100 + number} --nice={number % 3}", "true") for number in range(200)]
    )
    looks: list[dict[int, tuple[int, int]]] = []

    def are_as(gated: bool) -> bool:
        seen = cluster.jobs()
        return all(seen[number].is_gated == gated for number in numbers)

    for gated in (True, False):
        cluster.wait_for("they are so", lambda wanted=gated: are_as(wanted))
        cluster.run("sleep 1.2")  # Slurm counts age in whole seconds
        looks.append(priorities(cluster))
        cluster.run("sns disable", "slurm")
    cluster.run("sns enable", "slurm")
    gated, opened = ({number: look[number] for number in numbers} for look in looks)
    assert len({priority for priority, _ in gated.values()}) > 20, "the factors make a difference"
    assert {each: gated[each][0] for each in numbers} == {each: opened[each][0] for each in numbers}
    older = [opened[each][1] - gated[each][1] for each in numbers]
    assert 0 < min(older) <= max(older) <= min(older) + 100, "the age that they gained while gated counts"
    cluster.run("scancel -u alice; scancel -u bob")
    cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip())


def test_a_job_of_higher_priority_that_waits_in_its_partition_does_not_hold_a_placed_job_up(weighty: Cluster) -> None:
    cluster = weighty
    fillers = cluster.submit_all([("-N1 --exclusive --comment sns:off", "sleep 3600")] * 4, "bob")
    cluster.wait_for("the nodes are full", lambda: all(cluster.job(each).state == "RUNNING" for each in fillers))
    ours = cluster.submit_all([("-n4 --mem=1G --requeue --nice=7", "sleep 600"), ("-n4 --mem=1G", "sleep 600")])
    cluster.wait_for("they wait", lambda: {cluster.row(each).get("state") for each in ours} == {"waiting"})
    cluster.run("sleep 1")  # a job submitted in the same second as the wide job would wait behind it
    wide = cluster.submit("-N4 --exclusive --comment sns:off", "true", "bob")
    cluster.wait_for("it waits, too", lambda: cluster.job(wide).reason == "Resources")
    cluster.run(f"scancel {fillers[0]}", "bob")

    cluster.wait_for("they run", lambda: {cluster.job(each).state for each in ours} == {"RUNNING"})
    assert {cluster.fields(each)["Scheduler"] for each in ours} == {"Main"}
    decided = cluster.decisions(ours)
    assert [[each["action"] for each in decided[number]] for number in ours] == [["start"], ["start"]], decided
    assert cluster.job(wide).state == "PENDING"
    wide_has = cluster.job(wide).priority
    cluster.wait_for("their boost is gone", lambda: max(cluster.job(each).priority for each in ours) < wide_has)
    assert [cluster.fields(each)["Nice"] for each in ours] == ["7", "0"], "nice is their owner's"

    # Requeued, the job is behind the wide job again.
    cluster.run(f"scontrol requeue {ours[0]}")
    cluster.wait_for("it is planned again", lambda: cluster.row(ours[0]).get("state") == "waiting")
    assert cluster.job(ours[0]).pinned_to == ()
    cluster.run(f"scancel {wide}", "bob")
    cluster.wait_for("it runs again", lambda: cluster.job(ours[0]).state == "RUNNING")


RESTART = """
pid=$(cat /run/slurm/slurmctld.pid); kill $pid; while [ -e /proc/$pid ]; do sleep 0.1; done; slurmctld
until scontrol ping | grep -q UP; do sleep 0.2; done
"""


@pytest.fixture
def counted_down(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster under priority/basic, with a scheduler that waits for an hour until Slurm starts a placed job."""
    saved = "/tmp/before-basic"
    cluster.run(f"cp -p {SLURM_CONF} {saved}; sed -i 's,priority/multifactor,priority/basic,' {SLURM_CONF}; {RESTART}")
    cluster.run("sed 's/^scheduler:/&\\n  place_timeout_s: 3600/' /etc/slurm/sns.yaml > /tmp/sns-patient.yaml")
    cluster.daemon("restart", "scheduler", config="/tmp/sns-patient.yaml")
    cluster.wait_for_scheduler()
    yield cluster
    cluster.run("scancel -u alice; scancel -u bob; scontrol update PartitionName=main MaxCPUsPerNode=UNLIMITED")
    cluster.run(f"cp -p {saved} {SLURM_CONF}; {RESTART}")
    cluster.daemon("restart", "scheduler")
    cluster.wait_for_scheduler()


def test_counted_down_a_placed_job_has_no_boost_and_one_that_its_owner_holds_stays_held(counted_down: Cluster) -> None:
    cluster = counted_down
    filler = cluster.submit("-N4 -n4 --ntasks-per-node=1 --mem=1G --comment sns:off", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    cluster.run("scontrol update PartitionName=main MaxCPUsPerNode=4")  # so Slurm starts no placed job of four cores
    held = cluster.submit("-n4 --mem=100G --nice=7", "sleep 600")
    cluster.wait_for("it is placed", lambda: cluster.row(held).get("state") == "placed, Slurm is starting it")
    assert cluster.job(held).priority < cluster.job(filler).priority, "Slurm counts down"

    cluster.run(f"scontrol hold {held}", "alice")
    cluster.wait_for("it is taken back", lambda: not cluster.job(held).pinned_to)
    cluster.run("scontrol update PartitionName=main MaxCPUsPerNode=UNLIMITED")
    later = cluster.submit_all([("-n4 --mem=100G", "true")] * 2)
    cluster.wait_for_end(later)
    assert (cluster.job(held).state, cluster.job(held).priority) == ("PENDING", 0), "Slurm has passed over it"
    cluster.run(f"scontrol release {held}", "alice")
    cluster.wait_for("it runs", lambda: cluster.job(held).state == "RUNNING")
    assert cluster.fields(held)["Nice"] == "7"
