"""CLOSIDs in what Slurm shows: how many each node has for jobs, and how many are in use there. Pure.

Slurm does not know CLOSIDs. How many a node has stands in sns.yaml. In use is one for each job with ways that has the
node, whoever placed it: pass-through jobs with `--gres=llc:N` too. A job that completes counts no more, as in Slurm's
own account of the other resources.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from slurm_sns.closids import counted
from slurm_sns.scheduler.observation.observed import Observation


def count_closids(observation: Observation, closids: Mapping[str, int]) -> Observation:
    """The observation with the CLOSIDs of its nodes, in capacity and in what is allocated.

    `closids` gives those of nodes, by node; if it is empty, nothing is counted and the observation stays as it is.
    Slurm may start more jobs with ways on a node than it has CLOSIDs for: then all are in use.
    """
    if not closids:
        return observation
    holders = (job for job in observation.jobs if job.ways and job.state.occupies_nodes and not job.is_completing)
    in_use = Counter(name for job in holders for name in job.allocated)
    nodes = []
    for node in observation.nodes:
        most = counted(node.capacity.ways, closids.get(node.name, 0))
        taken = min(in_use[node.name], most)
        nodes.append(
            replace(
                node, capacity=node.capacity._replace(closids=most), allocated=node.allocated._replace(closids=taken)
            )
        )
    return replace(observation, nodes=tuple(nodes))
