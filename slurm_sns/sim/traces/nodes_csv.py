"""Read the nodes of a simulated cluster: CSV with the header `name,cores,mem_gb`, optionally more.

The optional columns are `ways`, `bandwidth_gbps`, `closids`, `gpus` and `pool`. A site needs the column `pool`, and
knows no GPUs; a cluster ignores it. `closids` is what sns.yaml calls so, 0 where there is no limit; without the column
no node has one. `gpus` are those of the node by type (module `gpus`), empty where it has none.

1 GB is 1024 MiB; fractions of a MiB, and of a GB/s, are rounded down, so that no capacity is overstated.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slurm_sns.closids import FEWEST, counted
from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.traces.columns import Columns, CsvReader, Distinct, Number, Text
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.gpus import VALID, gpus_in_cell, is_gpus, require_few_types

MIB_PER_GB = 1024

#: Limits far above any real node and cluster: the compiled kernel packs a node's score and index into 64 bits.
MOST_CORES = 1 << 20
MOST_GB = 1 << 22
MOST_NODES = 1 << 19
#: As in sns.yaml.
MOST_CLOSIDS = 4096
#: Far above the partitions of any real site: a trace has a flag for each pool in each of its sets of allowed pools.
MOST_POOLS = 1 << 12

HEADER = "name,cores,mem_gb and optionally ways,bandwidth_gbps,closids,gpus,pool"
SITE_HEADER = "name,cores,mem_gb,pool and optionally ways,bandwidth_gbps,closids"
#: As Slurm names nodes. A `+` separates the nodes of a job in our results, and the allowed pools of a job in a trace.
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NAME = (lambda text: bool(NODE_NAME.fullmatch(text))), "letters, digits, '.', '_', '-'"
ENOUGH_CLOSIDS = (lambda given: (given == 0) | (given >= FEWEST)), f"{FEWEST} or more, 0 for no limit"
CHECKS = (
    Text("name", *NAME),
    Distinct("name"),
    Number("cores", 1, MOST_CORES, whole=True),
    Number("mem_gb", 0, MOST_GB),
    Number("ways", 0, whole=True),
    Number("bandwidth_gbps", 0),
    Number("closids", 0, MOST_CLOSIDS, whole=True, rule=ENOUGH_CLOSIDS),
    Text("gpus", is_gpus, VALID, empty=True),
)


@dataclass(frozen=True)
class TraceSite:
    """The nodes of a site in the machine list's order, and its pools in the order of their first node.

    `pool_of` gives each node's pool as a place in `pools`.
    """

    nodes: NodeArrays
    pools: tuple[str, ...]
    pool_of: NDArray[np.integer]


def read_nodes(name: str) -> NodeArrays:
    """The nodes that the file lists, in its order.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    return nodes_in(TraceFile.of(name))


def nodes_in(source: TraceFile) -> NodeArrays:
    """The same for a file that has been read. Raises as `read_nodes`."""
    reader = CsvReader(source, HEADER, (*CHECKS, Text("pool", empty=True)))
    return _nodes(reader, reader.table())


def read_site(name: str) -> TraceSite:
    """The nodes that the file lists, in its order, each with its pool; pools are in the order of their first node.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    reader = CsvReader(TraceFile.of(name), SITE_HEADER, (*CHECKS, Text("pool", *NAME)))
    table = reader.table()
    nodes, pools = _nodes(reader, table), tuple(reader.texts("pool"))
    if len(pools) > MOST_POOLS:
        raise BadInput(f"{name}: {len(pools)} pools; valid: at most {MOST_POOLS}")
    return TraceSite(nodes, pools, table["pool"])


def _nodes(reader: CsvReader, table: Columns) -> NodeArrays:
    """The nodes of a table."""
    names = reader.listed("name", table)
    if len(names) > MOST_NODES:
        raise BadInput(f"{reader.source.name}: {len(names)} nodes; valid: at most {MOST_NODES}")
    none = np.zeros(len(names))
    ways, closids = table.get("ways", none), table.get("closids", none)
    if (closids[ways > 0] > 0).any():
        for_jobs = [counted(int(each), int(given)) for each, given in zip(ways, closids, strict=True)]
    else:
        for_jobs = [0] * len(names)  # no node has a limit
    memory_mb, bandwidth_gbps = table["mem_gb"] * MIB_PER_GB, table.get("bandwidth_gbps", none)
    different = [gpus_in_cell(text) for text in reader.texts("gpus")]
    require_few_types(reader.source.name, different)
    gpus = [different[each] for each in table["gpus"]] if "gpus" in table else [()] * len(names)
    rows = zip(table["cores"], memory_mb, ways, bandwidth_gbps, for_jobs, gpus, strict=True)
    sizes = [
        Resources(int(cores), int(memory), int(of_cache), int(gbps), jobs, own)
        for cores, memory, of_cache, gbps, jobs, own in rows
    ]
    return NodeArrays.sized(names, sizes)
