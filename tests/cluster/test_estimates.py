"""When a job starts: the owner is told a range, and Slurm shows the start by limits where that is behind the lease."""

import json
from datetime import datetime

from cluster import Cluster

PATIENCE_S = 120
#: The running job's limit: longer than a lease of two hours.
LIMIT_S = 5 * 3600


def row(cluster: Cluster, number: int, user: str = "alice") -> dict:
    """The job as `sns queue --json` shows it to this user; before the scheduler has seen it, a job without estimate."""
    rows = json.loads(cluster.run("sns queue --json", user))
    return next((each for each in rows if each["job_id"] == number), {"starts": None})


def shown_start_s(cluster: Cluster, number: int) -> float:
    """The start that squeue shows, Unix seconds."""
    text = cluster.run(f"squeue --start -h -o %S -j {number}", "alice").strip()
    zone = cluster.run("date +%z", "alice").strip()
    return datetime.strptime(text + zone, "%Y-%m-%dT%H:%M:%S%z").timestamp()


def test_a_job_that_waits_for_another_ones_limit_has_a_range_and_squeue_shows_the_start_by_limits(
    shared_cluster: Cluster,
) -> None:
    cluster = shared_cluster
    first = cluster.submit(f"-p main -N4 --exclusive -t {LIMIT_S // 60}", "sleep 600")
    cluster.wait_for("the first job runs", lambda: cluster.job(first).state == "RUNNING", PATIENCE_S)
    second = cluster.submit("-p main -n4 -t 10", "sleep 600")
    try:
        cluster.wait_for("an estimate", lambda: row(cluster, second)["starts"] is not None, PATIENCE_S)

        starts = row(cluster, second)["starts"]
        began_s = row(cluster, first)["start_s"]
        assert abs(starts["limits_s"] - (began_s + LIMIT_S)) < 120
        assert starts["low_s"] < starts["high_s"]
        assert starts["waits_for"].startswith(f"job {first}'s nodes (node c")
        assert "by limits" in cluster.run(f"sns explain {second}", "alice")
        heading, line = cluster.run(f"sns queue -j {second}", "alice").splitlines()
        assert heading.split()[-3:] == ["START", "BY-LIMITS", "WHY"]
        assert "_to_" in line

        cluster.wait_for(
            "the gate stands at the start by limits, from its first renewal on",
            lambda: abs(shown_start_s(cluster, second) - starts["limits_s"]) < 120,
            PATIENCE_S,
        )
    finally:
        cluster.run("scancel -u alice")
