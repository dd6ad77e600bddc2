from clients.installed import Clients


def test_parsls_blocks_come_and_go(clients: Clients) -> None:
    with clients.timed("parsl, strategy `simple`: 20 tasks of 1 s, scale in, one task more"):
        report = clients.report("with_parsl.py")
    assert report.pop("blocks")
    assert report == {"sum": sum(number * number for number in range(20)), "failing": "ValueError", "again": 144}
    assert clients.passed_through() == []
    clients.cluster.wait_for("no block is left", lambda: not clients.cluster.run("squeue -h -u alice").strip())
