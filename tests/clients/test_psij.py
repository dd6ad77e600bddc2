"""psij-python reads a line of squeue as three words: a reason of several words stops it, and it says nothing."""

from clients.installed import Clients
from test_completing import cancel_deaf

from cluster import Cluster

ENDS = {
    "fine": ["COMPLETED"],
    "parallel": ["COMPLETED"],
    "failing": ["FAILED"],
    "waiting": ["CANCELED"],
    "running": ["CANCELED"],
}


def test_psijs_jobs_end_as_meant(clients: Clients) -> None:
    with clients.timed("psij-python: 8 jobs: success, 2 processes, failure, cancel"):
        assert clients.report("with_psij.py") == ENDS
    assert clients.passed_through() == []


def test_psij_is_not_stopped_by_jobs_that_were_cancelled_beside_a_completing_one(
    clients: Clients, cluster: Cluster
) -> None:
    deaf = cancel_deaf(cluster, "--exclusive", 4)
    waiting = cluster.submit_all([("-n2", "sleep 1")] * 2)
    cluster.wait_for("they wait", lambda: all(cluster.job(each).is_gated for each in waiting))
    cluster.run("sleep 3; scancel " + " ".join(map(str, waiting)))
    with clients.timed("psij-python after two jobs were cancelled while jobs were completing on all nodes"):
        assert clients.report("with_psij.py") == ENDS
    assert sorted(clients.passed_through()) == sorted(map(str, deaf))
