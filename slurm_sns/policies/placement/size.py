"""Whether a job can ever run here: a job that no nodes could hold is refused at submit, never queued.

Source: our own rule; the Max-Jobs paper (JSSPP 2013) does not meet such jobs.
"""

import numpy as np

from slurm_sns.errors import Infeasible
from slurm_sns.model import Alternative, Job
from slurm_sns.policies.placement.pool import MEMORY, Pool, ever_holding


def fits_ever(pool: Pool, alternative: Alternative, allowed: frozenset[str] | None = None) -> bool:
    """Whether enough allowed nodes are large enough for the alternative when they are empty."""
    return int(np.count_nonzero(ever_holding(pool, alternative, allowed))) >= alternative.nodes


def require_feasible(pool: Pool, job: Job) -> None:
    """Accept a job that some alternative lets run on the empty cluster.

    Raises:
        Infeasible: no alternative can; the message names what is asked and the largest node there is.
    """
    if any(fits_ever(pool, alternative, job.allowed) for alternative in job.alternatives):
        return
    asked = " or ".join(dict.fromkeys(wording(alternative) for alternative in job.alternatives))
    raise Infeasible(f"job {job.id} needs {asked}; {_largest(pool, job.allowed)}")


def wording(alternative: Alternative) -> str:
    """The size of an alternative in words."""
    demand = alternative.demand
    parts = [f"{demand.cores} {_plural('core', demand.cores)}"]
    if demand.ways:
        parts.append(f"{demand.ways} {_plural('way', demand.ways)}")
    if demand.bandwidth_gbps:
        parts.append(f"{demand.bandwidth_gbps} GB/s")
    per_node = ", ".join(parts) + f" and {demand.memory_mb} MiB"
    if alternative.nodes == 1 and not alternative.exclusive:
        return per_node
    empty = "empty " if alternative.exclusive else ""
    return f"{alternative.nodes} {empty}{_plural('node', alternative.nodes)} with {per_node} each"


def _largest(pool: Pool, allowed: frozenset[str] | None) -> str:
    permitted = pool.allows(allowed)
    columns = np.arange(len(pool.names)) if permitted is None else np.flatnonzero(permitted)
    if not len(columns):
        return "none of its nodes exists"
    capacity = pool.capacity[:, columns]
    # The node of the most cores, of those the one of the most memory.
    largest = int(columns[np.lexsort((-capacity[MEMORY], -capacity[0]))[0]])
    cores, memory_mb = (int(amount) for amount in pool.capacity[:2, largest])
    return (
        f"the largest of {len(columns)} allowed nodes, {pool.names[largest]}, has {cores} cores and {memory_mb} MiB; "
        f"valid is what enough nodes hold when they are empty"
    )


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"
