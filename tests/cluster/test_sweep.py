"""A sweep of simulations as a Slurm job array, submitted by an ordinary user, against the same sweep in one process."""

from collections.abc import Iterator

import pytest

from cluster import Cluster

#: 4 pools, 3 loads, 2 seeds: the smallest sweep that `sns reproduce` knows.
PIECES = 24
SWEEP = "sns reproduce netbatch-load --quick --seeds 2"
TABLES = ["claims.csv", "figure-13.csv", "figure-14.csv", "figure-15.csv", "parts.csv", "seven.csv"]
#: Timeout: a task waits in the queue, starts Python and simulates for a second; on a busy machine that takes minutes.
LONG_S = 1200


@pytest.fixture
def folder(cluster: Cluster) -> Iterator[str]:
    """A folder of alice's that all nodes see."""
    cluster.run("rm -rf ~/sweep && mkdir ~/sweep", "alice")
    yield "sweep"
    cluster.run("rm -rf ~/sweep", "alice")


def test_an_array_finds_byte_for_byte_what_one_process_finds_and_goes_on_where_it_was(
    cluster: Cluster, folder: str
) -> None:
    cluster.run(f"cd {folder} && {SWEEP} --jobs 1 --out alone", "alice", timeout_s=LONG_S)
    array = f"cd {folder} && {SWEEP} --slurm --memory-gb 1 --out array"

    cluster.run(array, "alice", timeout_s=LONG_S)

    assert same_tables(cluster, folder) == TABLES
    tasks = cluster.run(f"cd {folder}/array/runs/array && ls *_result.pkl", "alice").split()
    number = tasks[0].split("_")[0]
    assert sorted(tasks) == sorted(f"{number}_{task}_0_result.pkl" for task in range(PIECES))

    runs = f"{folder}/array/runs/scale-*"
    cluster.run(f"rm {folder}/array/*.csv {runs}/C-0.58-*-2.json", "alice")
    before = cluster.run(f"stat -c '%n %y' {runs}/*.json", "alice").splitlines()
    cluster.run(f"{array} --resume", "alice", timeout_s=LONG_S)

    after = cluster.run(f"stat -c '%n %y' {runs}/*.json", "alice").splitlines()
    assert set(before) < set(after)
    assert same_tables(cluster, folder) == TABLES


def same_tables(cluster: Cluster, folder: str) -> list[str]:
    """The tables that have the same bytes in both runs."""
    script = "cd {}/array && for name in *.csv; do cmp -s $name ../alone/$name && echo $name; done"
    return cluster.run(script.format(folder), "alice").split()
