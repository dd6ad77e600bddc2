"""The memory bandwidth that a node has where the cores of a new job may lie. Pure.

Bandwidth is planned for whole nodes, but each cache domain (here: a socket) has its part of it only. Slurm gives a job
cores of all sockets in turn as long as each has free ones: beside 14 jobs of one core, which fill a socket, 8 cores lie
on the other one alone (seen). With CR_CORE_DEFAULT_DIST_BLOCK it fills one socket after the other. So a node offers
what a new job can be sure of, by the cores that the agents report:

    the least of  free GB/s of the domain / share(domain)  over the domains with free cores

The free GB/s of a domain are its part of the node's less what jobs draw there by their gres, each as its cores lie.
share(domain) is the largest part of a new job's cores that may lie there: with cores in turn, its part when its own
free cores are used up; with CR_CORE_DEFAULT_DIST_BLOCK all.

How a job lies that no agent tells of is taken from Slurm's rule: in turn evenly, in blocks on each socket whole. On an
empty node a job may draw all. Not looked at: jobs that one cycle places together on a node, the core more that an odd
job has on a socket, and where unmanaged jobs draw (`unmanaged_gbps_per_core` is taken off the whole offer). Where the
cache domains are not the sockets (several caches on one processor), the node is counted as a whole, or in blocks by
equal sockets.

Ways need no such count: a job has its ways in each domain where it has cores, and all jobs' ways fit into each domain.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor

from slurm_sns.scheduler.observation import JobState, Observation, ObservedNode
from slurm_sns.wire.values import NodeState

#: GB/s that sums of parts may lack of a whole number.
ROUNDING = 1e-6


@dataclass(slots=True)
class _Jobs:
    """The jobs on a node: the GB/s of those that have any, by id, and the ids of those that have their cores."""

    gbps: dict[int, int] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)


def with_sure_bandwidth(observation: Observation, states: Mapping[str, NodeState]) -> Observation:
    """The observation whose nodes offer the bandwidth that a new job can be sure of.

    `states` is what the agents say of their nodes. Where no node has bandwidth, the observation stays as it is.
    """
    if not any(node.capacity.bandwidth_gbps for node in observation.nodes):
        return observation
    there: defaultdict[str, _Jobs] = defaultdict(_Jobs)
    for job in observation.jobs:
        if job.state.occupies_nodes and not job.is_completing:
            for name in job.allocated:
                if job.bandwidth_gbps:
                    there[name].gbps[job.id] = job.bandwidth_gbps
                if job.state is JobState.RUNNING:
                    there[name].running.add(job.id)
    nodes = [
        _sure(node, states.get(node.name), there[node.name], in_blocks=observation.fills_sockets)
        for node in observation.nodes
    ]
    return replace(observation, nodes=tuple(nodes))


def _sure(node: ObservedNode, state: NodeState | None, jobs: _Jobs, *, in_blocks: bool) -> ObservedNode:
    """The node as it may be planned on. An empty one offers all: what a job draws there is what its profile says."""
    cores = () if state is None else state.facts.cores
    is_known = len(cores) == node.sockets
    is_empty = not node.allocated.cores and not jobs.gbps
    if not node.capacity.bandwidth_gbps or is_empty or node.sockets == 1 or not (is_known or in_blocks):
        return node
    told = state.jobs if state is not None and is_known else ()
    cores_of = {each.run.job_id: each.cores for each in told if len(each.cores) == node.sockets and any(each.cores)}
    equally = (node.capacity.cores / node.sockets,) * node.sockets
    running = [own for job_id, own in cores_of.items() if job_id in jobs.running]
    free_cores = _free_cores(node, cores if is_known else equally, running)
    free_gbps = _free_gbps(node, jobs.gbps, cores_of, in_blocks=in_blocks)
    has_room = [at for at, count in enumerate(free_cores) if count > 0]
    shares = {
        at: 1.0 if in_blocks else free_cores[at] / sum(min(free_cores[at], free_cores[other]) for other in has_room)
        for at in has_room
    }
    offered = min((free_gbps[at] / shares[at] for at in has_room), default=0.0)
    taken = node.capacity.bandwidth_gbps - max(0, floor(offered + ROUNDING))
    return replace(node, allocated=node.allocated._replace(bandwidth_gbps=max(taken, node.allocated.bandwidth_gbps)))


def _free_cores(node: ObservedNode, cores: Sequence[float], running: Sequence[Sequence[int]]) -> list[float]:
    """The free cores of each domain, which has `cores`; what no agent tells of (jobs, cores kept back) lies evenly."""
    known = [sum(each) for each in zip(*running, strict=True)] if running else [0] * len(cores)
    unknown = max(0.0, sum(cores) - (node.capacity.cores - node.allocated.cores) - sum(known)) / len(cores)
    return [count - unknown - of_jobs for count, of_jobs in zip(cores, known, strict=True)]


def _free_gbps(
    node: ObservedNode, gbps: Mapping[int, int], cores_of: Mapping[int, Sequence[int]], *, in_blocks: bool
) -> list[float]:
    """What the jobs leave of each domain's bandwidth; `cores_of` are their cores by domain, where these are known."""
    evenly = 1.0 if in_blocks else 1 / node.sockets
    left = [node.capacity.bandwidth_gbps / node.sockets] * node.sockets
    for job_id, drawn in gbps.items():
        own = cores_of.get(job_id)
        for at in range(node.sockets):
            left[at] -= drawn * (evenly if own is None else own[at] / sum(own))
    return left
