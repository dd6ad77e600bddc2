"""Write the heartbeat in place of the scheduler: the submit filter gates jobs, but nothing places them."""

from collections.abc import Iterator
from contextlib import contextmanager

from cluster import Cluster

BEAT = "date +%s > beat.test && mv beat.test heartbeat"
LOOP = f"setsid bash -c 'while sleep 1; do {BEAT}; done' < /dev/null > /dev/null 2>&1 &"


@contextmanager
def beating(cluster: Cluster) -> Iterator[None]:
    """Write the heartbeat for the time of the block; a running scheduler is killed first."""
    cluster.daemon("kill", "scheduler")
    cluster.run(f"cd /run/sns; umask 077; {BEAT}; {LOOP} echo $! > beating.pid", "slurm")
    try:
        yield
    finally:
        cluster.run("cd /run/sns; kill $(cat beating.pid); rm -f beating.pid beat.test", "slurm")


@contextmanager
def by_hand(cluster: Cluster) -> Iterator[None]:
    """The same with the watchdog stopped, too: jobs stay gated until a test places them."""
    cluster.daemon("stop", "watchdog")
    with beating(cluster):
        yield
