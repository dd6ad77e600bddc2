"""A pass-through job that needs all nodes at once gets its turn among the managed jobs, and delays them no longer."""

import json

from cluster import Cluster

#: A pass-through job that needs all four nodes of partition main for itself.
ALL_NODES = "-N4 --exclusive -t5 --comment sns:off"


def test_it_starts_while_a_stream_of_managed_jobs_still_waits(cluster: Cluster) -> None:
    # No time limits: Slurm cannot plan when the nodes will be free. They are free at the same time only if we wait.
    cluster.run("rm -f go", "alice")
    ends = "until [ -e /home/alice/go ]; do sleep 0.3; done; sleep"
    running = cluster.submit_all([("-n14 --mem=1G", f"{ends} {2 * number}") for number in range(8)])
    cluster.wait_for("the nodes fill", lambda: {cluster.job(each).state for each in running} == {"RUNNING"})
    before = cluster.submit_all([("-n14 --mem=1G", "sleep 3")] * 8)
    wide = cluster.submit(ALL_NODES, "sleep 3", "bob")
    behind = cluster.submit_all([("-n14 --mem=1G", "sleep 3")] * 80)
    cluster.run("touch go", "alice")
    assert not cluster.job(wide).is_gated
    ended = cluster.wait_for_end([*running, *before, wide, *behind], timeout_s=400)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    overtook = [number for number in behind if ended[number].start_s < ended[wide].start_s]
    # At most the jobs that were placed before Slurm had considered the wide one; without node claims it would be all.
    assert len(overtook) <= 40, (ended[wide], sorted(ended[number].start_s for number in behind))


def test_while_it_waits_shorter_jobs_run_and_longer_ones_wait(cluster: Cluster) -> None:
    running = cluster.submit("-n28 -t15", "sleep 3600")
    cluster.wait_for("it runs", lambda: cluster.job(running).state == "RUNNING")
    wide = cluster.submit(ALL_NODES, "true", "bob")
    plan: set[str] = set()
    cluster.wait_for("Slurm plans it", lambda: plan.update(planned_on(cluster, wide)) or bool(plan), timeout_s=120)
    short, long = cluster.submit_all([("-n4 -t1", "true"), ("-n4 -t60", "true")])
    ended = cluster.wait_for_end([short])[short]
    assert set(ended.nodes) <= plan
    assert cluster.job(long).is_gated
    cluster.wait_for("explain says why", lambda: "kept for jobs of Slurm's own" in cluster.row(long).get("reason", ""))
    assert cluster.job(wide).state == "PENDING"
    cluster.run(f"scancel {running}")
    done = cluster.wait_for_end([wide, long])
    assert {job.state for job in done.values()} == {"COMPLETED"}
    assert done[wide].start_s <= done[long].start_s


def planned_on(cluster: Cluster, number: int) -> list[str]:
    """The nodes on which Slurm's backfill has planned the job."""
    (job,) = json.loads(cluster.run(f"scontrol show job {number} --json"))["jobs"]
    names = cluster.run(f"scontrol show hostnames {job['scheduled_nodes']}") if job["scheduled_nodes"] else ""
    return names.split()
