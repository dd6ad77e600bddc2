"""The size of a job's alternative: whether the nodes could ever hold it, and its wording."""

from slurm_sns.model import Alternative
from slurm_sns.policies.placement.node_arrays import NodeArrays, ever_holding_together


def fits_ever(node_arrays: NodeArrays, alternative: Alternative, allowed: frozenset[str] | None = None) -> bool:
    """Whether enough allowed nodes that are connected are large enough for the alternative when they are empty."""
    return ever_holding_together(node_arrays, alternative, allowed) is not None


def wording(alternative: Alternative) -> str:
    """The size of an alternative in words, as in: 2 empty nodes with 4 cores and 8192 MiB each."""
    demand = alternative.demand
    parts = [f"{demand.cores} {_plural('core', demand.cores)}"]
    if demand.ways:
        parts.append(f"{demand.ways} {_plural('way', demand.ways)}")
    if demand.bandwidth_gbps:
        parts.append(f"{demand.bandwidth_gbps} GB/s")
    if demand.closids:
        parts.append(f"{demand.closids} {_plural('CLOSID', demand.closids)}")
    per_node = ", ".join(parts) + f" and {demand.memory_mb} MiB"
    if alternative.nodes == 1 and not alternative.exclusive:
        return per_node
    empty = "empty " if alternative.exclusive else ""
    return f"{alternative.nodes} {empty}{_plural('node', alternative.nodes)} with {per_node} each"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"
