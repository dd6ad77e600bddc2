"""The memory bandwidth that a node has where the cores of a new job may lie. Pure.

Bandwidth is planned for whole nodes, but each cache domain (here: a socket) has its part of it only. Slurm gives a job
cores of all sockets in turn as long as each has free ones: beside 14 jobs of one core, which fill a socket, 8 cores lie
on the other one alone (seen). With CR_CORE_DEFAULT_DIST_BLOCK it fills one socket after the other. So a node offers
what a new job can be sure of, by the cores that the agents report:

    the least of  free GB/s of the domain / share(domain)  over the domains with free cores

The free GB/s of a domain are its part of the node's less what the jobs there draw, each as its cores lie. share(domain)
is the largest part of a new job's cores that may lie there: with cores in turn its part of the free cores, and no less
than an equal part (an odd number of cores has one more on a socket, which is not looked at); with
CR_CORE_DEFAULT_DIST_BLOCK all of them.

How a job lies that no agent tells of is taken from Slurm's rule: in turn evenly, in blocks on each socket whole. On an
empty node a job may draw all, and jobs that one cycle places together there are not looked at in turn. Where the cache
domains are not the sockets (several caches on one processor), the node is counted as a whole.

Ways need no such count: a job has its ways in each domain where it has cores, and all jobs' ways fit into each domain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor

from slurm_sns.scheduler.observation import Observation, ObservedNode
from slurm_sns.wire.values import NodeState

#: GB/s that sums of parts may lack of a whole number.
ROUNDING = 1e-6
#: Of each job on a node its GB/s there, by job id.
Draws = Mapping[int, int]


def with_sure_bandwidth(observation: Observation, states: Mapping[str, NodeState]) -> Observation:
    """The observation whose nodes offer the bandwidth that a new job can be sure of.

    `states` is what the agents say of their nodes. Where no node has bandwidth, the observation stays as it is.
    """
    if not any(node.capacity.bandwidth_gbps for node in observation.nodes):
        return observation
    draws: dict[str, dict[int, int]] = {}
    for job in observation.jobs:
        if job.bandwidth_gbps and job.state.occupies_nodes and not job.is_completing:
            for name in job.allocated:
                draws.setdefault(name, {})[job.id] = job.bandwidth_gbps
    nodes = [
        _sure(node, states.get(node.name), draws.get(node.name, {}), in_blocks=observation.fills_sockets)
        for node in observation.nodes
    ]
    return replace(observation, nodes=tuple(nodes))


def _sure(node: ObservedNode, state: NodeState | None, draws: Draws, *, in_blocks: bool) -> ObservedNode:
    """The node as it may be planned on. An empty one offers all: what a job draws there is what its profile says."""
    cores = () if state is None else state.facts.cores
    is_known = len(cores) == node.sockets
    if not node.capacity.bandwidth_gbps or not node.allocated.cores or node.sockets == 1 or not (is_known or in_blocks):
        return node
    there = state.jobs if state is not None and is_known else ()
    known = {each.run.job_id: each.cores for each in there if len(each.cores) == node.sockets and any(each.cores)}
    equally = node.capacity.cores / node.sockets
    offered = _offered(node, cores if is_known else (equally,) * node.sockets, known, draws, in_blocks=in_blocks)
    taken = node.capacity.bandwidth_gbps - max(0, floor(offered + ROUNDING))
    return replace(node, allocated=node.allocated._replace(bandwidth_gbps=max(taken, node.allocated.bandwidth_gbps)))


def _offered(
    node: ObservedNode, cores: Sequence[float], known: Mapping[int, Sequence[int]], draws: Draws, *, in_blocks: bool
) -> float:
    """The GB/s that a new job can be sure of; `cores` are the node's by domain, `known` those of its jobs."""
    domains = range(len(cores))
    evenly = 1 if in_blocks else 1 / len(cores)
    unknown = max(0, node.allocated.cores - sum(map(sum, known.values()))) / len(cores)
    free_cores = [cores[at] - unknown - sum(of_job[at] for of_job in known.values()) for at in domains]
    free_gbps = [
        node.capacity.bandwidth_gbps / len(cores)
        - sum(
            gbps * (known[job_id][at] / sum(known[job_id]) if job_id in known else evenly)
            for job_id, gbps in draws.items()
        )
        for at in domains
    ]
    has_room = [at for at in domains if free_cores[at] > 0]
    total = sum(free_cores[at] for at in has_room)
    shares = {at: 1.0 if in_blocks else max(1 / len(has_room), free_cores[at] / total) for at in has_room}
    return min((free_gbps[at] / shares[at] for at in has_room), default=0.0)
