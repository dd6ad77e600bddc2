"""Nodes on which a job is completing: Slurm starts nothing there, so no job is placed there until that job is gone."""

import time

from cluster import Cluster, Seen

#: Ignores SIGTERM, so that it is completing for KillWait (10 s in the cluster) after it was cancelled.
DEAF = "trap '' TERM; touch deaf-$SLURM_JOB_ID; while true; do sleep 1; done"
#: Shown for a job that must run on a node on which another one is completing. Client programs cancel it for this.
NOT_AVAILABLE = "ReqNodeNotAvail"


def cancel_deaf(cluster: Cluster, options: str, count: int = 1) -> list[int]:
    """Start jobs that ignore SIGTERM and cancel them; return their ids when all are completing."""
    deaf = cluster.submit_all([(options, DEAF)] * count)
    made = " ".join(f"deaf-{number}" for number in deaf)
    cluster.wait_for("they are deaf", lambda: cluster.try_run(f"ls {made}", "alice").returncode == 0)
    cluster.run("scancel " + " ".join(map(str, deaf)))
    cluster.wait_for("they are completing", lambda: {cluster.job(each).state for each in deaf} == {"COMPLETING"})
    return deaf


def watch(cluster: Cluster, numbers: list[int], timeout_s: float = 60) -> list[dict[int, Seen]]:
    """What squeue shows of all jobs, again and again until these have ended."""
    looks = [cluster.jobs()]
    until_s = time.monotonic() + timeout_s
    while not all(looks[-1][number].has_ended for number in numbers):
        assert time.monotonic() < until_s, looks[-1]
        looks.append(cluster.jobs())
    return looks


def reasons(looks: list[dict[int, Seen]], numbers: list[int]) -> set[str]:
    return {look[number].reason for look in looks for number in numbers}


def test_jobs_start_on_idle_nodes_while_a_job_is_completing_on_another(cluster: Cluster) -> None:
    (deaf,) = cancel_deaf(cluster, "-n2")
    (busy,) = cluster.job(deaf).nodes
    numbers = cluster.submit_all([("-n2", "sleep 1")] * 2)
    looks = watch(cluster, numbers)
    assert not any(NOT_AVAILABLE in reason for reason in reasons(looks, numbers)), reasons(looks, numbers)
    ended = looks[-1]
    assert all(busy not in ended[number].nodes for number in numbers)
    assert max(ended[number].start_s - ended[number].submit_s for number in numbers) <= 5
    assert ended[deaf].state == "COMPLETING", "they did not wait for it"


def test_a_job_that_fits_only_where_jobs_are_completing_waits_until_a_node_is_free(cluster: Cluster) -> None:
    deaf = cancel_deaf(cluster, "-p small --exclusive", 2)
    number = cluster.submit("-p small -n4", "sleep 1")
    cluster.wait_for(
        "its owner is told why",
        lambda: f"job {deaf[0]} is still completing on s" in cluster.row(number).get("reason", ""),
    )
    looks = watch(cluster, [number])
    assert not any(NOT_AVAILABLE in reason for reason in reasons(looks, [number])), reasons(looks, [number])
    both = [look for look in looks if all(look[each].state == "COMPLETING" for each in deaf)]
    assert both, "seen while both nodes were completing"
    assert all(look[number].is_gated for look in both)
    gone = next(at for at, look in enumerate(looks) if any(look[each].has_ended for each in deaf))
    started = next(at for at, look in enumerate(looks) if look[number].nodes)
    assert gone <= started
