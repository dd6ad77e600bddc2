# ruff: noqa: T201 -- a program, which prints what it reports
"""dask-jobqueue: workers are jobs; as many as asked for, fewer, and as many as there is work for."""

import json
import time

from dask_jobqueue import SLURMCluster
from distributed import Client


def square(number: int) -> int:
    time.sleep(0.1)
    return number * number


def wait_for_workers(client: Client, count: int) -> int:
    """Wait until there are so many workers, not more."""
    while len(client.scheduler_info(n_workers=-1)["workers"]) != count:
        time.sleep(0.5)
    return count


if __name__ == "__main__":
    cluster = SLURMCluster(
        queue="main", cores=2, processes=1, memory="2GB", walltime="00:10:00", log_directory="dask-logs"
    )
    client = Client(cluster)
    report = {}
    cluster.scale(4)
    report["scaled up"] = wait_for_workers(client, 4)
    report["sum"] = sum(client.gather(client.map(square, range(40))))
    cluster.scale(1)
    report["scaled down"] = wait_for_workers(client, 1)
    cluster.scale(0)
    wait_for_workers(client, 0)
    cluster.adapt(minimum=0, maximum=3, interval="500ms")
    report["adaptive sum"] = sum(client.gather(client.map(square, range(100, 140))))
    wait_for_workers(client, 0)
    client.close()
    cluster.close()
    print(json.dumps(report))
