"""Limits on Slurm's associations, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from cluster import Cluster

ALICE, PHYSICS = "user where name=alice", "account where name=physics"


@contextmanager
def limit(cluster: Cluster, whom: str, name: str, tres: str, value: str) -> Iterator[None]:
    """Set a limit on a TRES of an association for the time of the block."""
    cluster.run(f"sacctmgr -i modify {whom} set {name}={tres}={value}")
    try:
        yield
    finally:
        cluster.run(f"scancel -u alice; sacctmgr -i modify {whom} set {name}={tres}=-1")


def until_running(cluster: Cluster, number: int) -> dict[str, str]:
    cluster.wait_for("it runs", lambda: cluster.job(number).state == "RUNNING")
    return cluster.fields(number)
