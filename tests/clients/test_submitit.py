from clients.installed import Clients


def test_submitits_jobs_end_as_meant(clients: Clients) -> None:
    with clients.timed("submitit: array of 12 at most 3, 2 x 2 tasks, failure, dependency, cancel, requeue"):
        report = clients.report("with_submitit.py")
    assert report.pop("endless").startswith("CANCELLED")
    assert report == {
        "array": [number * number for number in range(12)],
        "ranks": [0, 1, 2, 3],
        "failing": "FailedJobError",
        "after": 49,
        "resumed": "resumed",
    }
    assert clients.passed_through() == []
