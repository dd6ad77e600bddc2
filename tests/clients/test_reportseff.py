"""reportseff reads sacct, which lists a waiting job without its id only if the asked time includes its gate."""

from clients.installed import Clients

from cluster import Cluster

COLUMNS = "--format JobID,State -p --no-color"


def test_reportseff_lists_jobs_that_ended_and_jobs_that_wait(clients: Clients, cluster: Cluster) -> None:
    with clients.timed("reportseff: a job that ended, one that waits"):
        fillers = cluster.submit_all([("-p small -n4", "sleep 300")] * 2)
        ended = cluster.submit("-n1", "sleep 1")
        failed = cluster.submit("-n1", "false")
        cluster.wait_for_end([ended, failed])
        waiting = cluster.submit("-p small -n4")

        def listed(options: str) -> dict[str, str]:
            lines = clients.run(f"reportseff {COLUMNS} {options}").splitlines()
            return dict(line.split("|") for line in lines if line and line[0].isdigit())

        by_id = f"{ended} {failed} {waiting}"
        meant = {str(ended): "COMPLETED", str(failed): "FAILED", str(waiting): "PENDING"}
        cluster.wait_for("accounting knows all three", lambda: listed(by_id) == meant, every_s=1)
        assert str(waiting) in listed("-u alice -s PD --until now+3days")
    assert clients.passed_through() == []
    cluster.run("scancel " + " ".join(map(str, [*fillers, waiting])))
