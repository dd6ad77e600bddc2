"""How much of the cluster an alternative uses: its predicted slowdown times its dominant share.

A *dominant share* is the largest fraction that an alternative takes, over all its nodes, of the cluster's cores,
memory, cache ways, bandwidth or GPUs, all or of a type; of empty nodes it takes all. Times the slowdown this is what
the job costs others: a part of the scarcest resource, for so long.

Source: the dominant share is that of A. Ghodsi et al., Dominant Resource Fairness, NSDI 2011, of one job instead of a
user; the order is this project's own.
"""

from collections.abc import Sequence

from slurm_sns.model import Alternative
from slurm_sns.policies.placement.node_arrays import CLOSIDS, NodeArrays


def use(alternative: Alternative, node_arrays: NodeArrays) -> float:
    """Slowdown times dominant share on these nodes: at least 0, at most the slowdown if the nodes can hold it."""
    if alternative.exclusive:
        return alternative.slowdown * alternative.nodes / max(len(node_arrays.names), 1)  # there may be no nodes now
    demand, total = alternative.demand, node_arrays.total
    pairs = [*zip(demand.all_but_gpus[:CLOSIDS], total.all_but_gpus[:CLOSIDS], strict=True)]
    wholes = dict(total.gpus)
    pairs += [(needed, wholes.get(name, 0)) for name, needed in demand.gpus]
    shares = [needed * alternative.nodes / whole for needed, whole in pairs if whole > 0]
    return alternative.slowdown * max(shares, default=0.0)


def by_use(alternatives: Sequence[Alternative], node_arrays: NodeArrays) -> list[int]:
    """The places of the alternatives by use, least first; of equal use in the order in which they are given."""
    if len(alternatives) == 1:
        return [0]
    return sorted(range(len(alternatives)), key=lambda place: use(alternatives[place], node_arrays))
