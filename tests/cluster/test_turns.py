"""A job that we pass through and that needs all nodes at once gets its turn between ours, and no more than that."""

import json

from cluster import Cluster

#: Passed through; it needs the four nodes of partition main for itself.
ALL_NODES = "-N4 --exclusive -t5"


def reason(cluster: Cluster, number: int) -> str:
    rows = json.loads(cluster.run("sns queue --json"))
    return next((str(each["reason"]) for each in rows if each["job_id"] == number), "")


def test_it_starts_while_a_stream_of_ours_still_waits(cluster: Cluster) -> None:
    ours = ("-n14 --mem=1G", "sleep 3")  # no time limit: Slurm cannot plan when the nodes will be free
    before = cluster.submit_all([ours] * 24)
    wide = cluster.submit(ALL_NODES, "sleep 3", "bob")
    behind = cluster.submit_all([ours] * 80)
    assert not cluster.job(wide).is_held
    ended = cluster.wait_for_end([*before, wide, *behind], timeout_s=300)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    overtook = [number for number in behind if ended[number].start_s < ended[wide].start_s]
    # Those that were placed before Slurm had looked at it; without its turn it would be the last of all.
    assert len(overtook) <= 40, (ended[wide], sorted(ended[number].start_s for number in behind))
    assert all(not job.pinned_to or number != wide for number, job in ended.items())


def test_while_it_waits_for_its_time_what_ends_before_that_runs_and_what_does_not_waits(cluster: Cluster) -> None:
    ours = cluster.submit("-n28 -t6", "sleep 3600")
    cluster.wait_for("it runs", lambda: cluster.job(ours).state == "RUNNING")
    wide = cluster.submit(ALL_NODES, "true", "bob")
    cluster.wait_for("Slurm has planned it", lambda: bool(planned_on(cluster, wide)), timeout_s=120)
    short, long = cluster.submit_all([("-n4 -t1", "true"), ("-n4 -t60", "true")])
    ended = cluster.wait_for_end([short])[short]
    assert set(ended.nodes) <= set(planned_on(cluster, wide))
    assert cluster.job(long).is_held
    cluster.wait_for("explain says why", lambda: "kept for jobs of Slurm's own" in reason(cluster, long))
    assert cluster.job(wide).state == "PENDING"
    cluster.run(f"scancel {ours}")
    done = cluster.wait_for_end([wide, long])
    assert {job.state for job in done.values()} == {"COMPLETED"}
    assert done[wide].start_s <= done[long].start_s


def planned_on(cluster: Cluster, number: int) -> list[str]:
    """Where Slurm's backfill has planned the job."""
    (job,) = json.loads(cluster.run(f"scontrol show job {number} --json"))["jobs"]
    names = cluster.run(f"scontrol show hostnames {job['scheduled_nodes']}") if job["scheduled_nodes"] else ""
    return names.split()
