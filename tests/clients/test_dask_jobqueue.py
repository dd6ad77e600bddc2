from clients.installed import Clients


def test_dasks_workers_come_and_go(clients: Clients) -> None:
    with clients.timed("dask-jobqueue: scale 4, 40 tasks, scale 1, 0, adapt 0 to 3, 40 tasks"):
        report = clients.report("with_dask.py")
    assert report == {
        "scaled up": 4,
        "sum": sum(number * number for number in range(40)),
        "scaled down": 1,
        "adaptive sum": sum(number * number for number in range(100, 140)),
    }
    assert clients.passed_through() == []
    clients.cluster.wait_for("no worker is left", lambda: not clients.cluster.run("squeue -h -u alice").strip())
