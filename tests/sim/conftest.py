import gzip

import pytest

from slurm_sns.sim.traces import columns


@pytest.fixture(autouse=True)
def small_files_as_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces of a few lines go the way of large ones; tests of the command line have the way of small ones."""
    monkeypatch.setattr(columns, "SMALL_BYTES", 0)


@pytest.fixture
def write(tmp_path):
    """Write a text, compressed where the name says so, and give its path as text."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return str(path)

    return write


@pytest.fixture
def small_pool(write):
    """Two nodes of 4 cores and 16 GB, one of 2 cores and 8 GB."""
    from slurm_sns.sim.traces.nodes_csv import read_nodes

    return read_nodes(write("pool.csv", "name,cores,mem_gb\nA,4,16\nB,4,16\nC,2,8\n"))
