"""Read the nodes of a simulated cluster: CSV with the header `name,cores,mem_gb`, optionally more.

The optional columns are `ways`, `bandwidth_gbps`, `closids` and `pool`. A site needs the column `pool`; a cluster
ignores it. `closids` is what sns.yaml calls so, 0 where there is no limit; without the column no node has one.

1 GB is 1024 MiB; fractions of a MiB, and of a GB/s, are rounded down, so that no capacity is overstated.
"""

import re

import numpy as np

from slurm_sns.closids import FEWEST, counted
from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import Amounts, NodeArrays, amounts
from slurm_sns.sim.traces.csv_table import Table, read_table
from slurm_sns.sim.traces.files import read_text
from slurm_sns.sim.traces.pool_trace import TraceSite

REQUIRED = ("name", "cores", "mem_gb")
OPTIONAL = ("ways", "bandwidth_gbps", "closids")
POOL = "pool"
MIB_PER_GB = 1024

#: Limits far above any real node and cluster: the compiled kernel packs a node's score and index into 64 bits.
MOST_CORES = 1 << 20
MOST_GB = 1 << 22
MOST_NODES = 1 << 20
#: As in sns.yaml.
MOST_CLOSIDS = 4096
#: Far above the partitions of any real site: a trace has a flag for each pool in each of its sets of allowed pools.
MOST_POOLS = 1 << 12

#: As Slurm names nodes. A `+` separates the nodes of a job in our results, and the allowed pools of a job in a trace.
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def read_nodes(name: str) -> NodeArrays:
    """The nodes that the file lists, in its order.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    return _nodes(read_table(name, read_text(name), REQUIRED, (*OPTIONAL, POOL)))


def read_site(name: str) -> TraceSite:
    """The nodes that the file lists, in its order, each with its pool; pools are in the order of their first node.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    table = read_table(name, read_text(name), (*REQUIRED, POOL), OPTIONAL)
    nodes = _nodes(table)
    places: dict[str, int] = {}
    pool_of = [places.setdefault(pool, len(places)) for pool in _names(table, POOL)]
    if len(places) > MOST_POOLS:
        raise BadInput(f"{name}: {len(places)} pools; valid: at most {MOST_POOLS}")
    return TraceSite(nodes, tuple(places), np.array(pool_of, dtype=np.int64))


def _nodes(table: Table) -> NodeArrays:
    """The nodes of a table."""
    names = _names(table, "name")
    table.require_distinct("name")
    if len(table) > MOST_NODES:
        raise BadInput(f"{table.name}: {len(table)} nodes; valid: at most {MOST_NODES}")
    nothing = np.zeros(len(table), dtype=np.int64)
    cores = table.integers("cores", 1, MOST_CORES)
    memory_mb = np.floor(table.numbers("mem_gb", 0, MOST_GB) * MIB_PER_GB)
    ways = table.integers("ways", 0) if table.has("ways") else nothing
    bandwidth = np.floor(table.numbers("bandwidth_gbps", 0)) if table.has("bandwidth_gbps") else nothing
    columns = zip(cores, memory_mb, ways, bandwidth, _closids(table, ways), strict=True)
    return NodeArrays(tuple(names), amounts([Resources(*(int(amount) for amount in node)) for node in columns]))


def _closids(table: Table, ways: Amounts) -> Amounts:
    """The CLOSIDs for jobs of each node; 0 everywhere if no node has a limit."""
    given = table.integers("closids", 0, MOST_CLOSIDS) if table.has("closids") else np.zeros(len(table), np.int64)
    few = np.flatnonzero((given > 0) & (given < FEWEST))
    if len(few):
        row = int(few[0])
        raise table.error(row, "closids", table.cells["closids"][row], f"{FEWEST} or more, 0 for no limit")
    if not (given[ways > 0] > 0).any():
        return np.zeros(len(table), np.int64)
    return np.array([counted(*each) for each in zip(ways.tolist(), given.tolist(), strict=True)], dtype=np.int64)


def _names(table: Table, column: str) -> list[str]:
    """A column of names."""
    return table.texts(column, lambda text: bool(NODE_NAME.fullmatch(text)), "letters, digits, '.', '_', '-'")
