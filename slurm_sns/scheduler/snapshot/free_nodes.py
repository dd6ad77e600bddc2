"""The nodes that can be planned on, what is free on them, and when jobs give back what they hold there. Pure."""

from collections.abc import Iterable, Mapping
from math import ceil, inf

from slurm_sns.model import NOTHING, Node, Resources
from slurm_sns.scheduler.gate.status import Status
from slurm_sns.scheduler.observation.observed import Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.geometry import placed_demand
from slurm_sns.scheduler.snapshot.release_times import Releases, of_running

_PLACED = frozenset({Status.PLACED, Status.OVERDUE})

#: A placed job, with what it will take on each of its nodes.
Placed = tuple[ObservedJob, Mapping[str, Resources]]


def occupies_placement(status: Status) -> bool:
    """Whether a job of this status counts as holding the nodes of its placement.

    An overdue job may start before its placement is taken back, so it counts for one cycle more.
    """
    return status in _PLACED


def completing_jobs(jobs: Iterable[ObservedJob]) -> dict[str, int]:
    """The nodes on which a job is completing, whoever placed it, each with that job's id.

    Slurm starts nothing on such a node (slurmctld's cg_node_bitmap), though it counts what the job had as free. A job
    that must run there shows "ReqNodeNotAvail, May be reserved for other job", and client programs cancel it for that.
    """
    return {name: job.id for job in jobs if job.is_completing for name in job.allocated}


def unavailable_nodes(observation: Observation) -> dict[str, str]:
    """The nodes on which nothing can be planned now, with the reason."""
    reasons = {node.name: node.unavailable for node in observation.nodes if node.unavailable}
    # A node that Slurm keeps for a job: if the job is known, it has a node claim (backlog_claims). If no job names the
    # node, nothing may be planned there.
    planned = [node.name for node in observation.nodes if node.is_planned]
    if planned:
        named = {name for job in observation.jobs for name in job.planned_on}
        reasons.update((name, "planned") for name in planned if name not in named)
    return reasons


def placed_jobs(observation: Observation, statuses: Mapping[int, Status]) -> list[Placed]:
    """The placed jobs that have not started yet, each with what it will take on its nodes.

    No amount is more than the node has: the owner may have written any number into the job since its placement.
    """
    by_name = {node.name: node for node in observation.nodes}
    found: list[Placed] = []
    for job in observation.jobs:
        if occupies_placement(statuses[job.id]):
            pinned = [by_name[name] for name in job.pinned_to if name in by_name]
            demand = placed_demand(job, pinned) if pinned else NOTHING
            found.append((job, {node.name: Resources(*map(min, demand, node.capacity)) for node in pinned}))
    return found


def releases(observation: Observation, placed: Iterable[Placed], now_s: float) -> Releases:
    """What running jobs and the jobs that we have placed will give back on each node, and when.

    A node on which a job is completing has nothing free until then: all that nobody else holds comes free at any
    moment, whatever the completing job had.
    """
    placed = list(placed)
    found = of_running((job for job in observation.jobs if not job.is_completing), now_s)
    completing, placed_on = completing_jobs(observation.jobs), _taken(placed)
    for node in observation.nodes:
        if node.name in completing:
            found.add((node.name,), now_s, _free(node, placed_on.get(node.name, NOTHING)))
    for job, taken in placed:
        end_s = inf if job.walltime_s is None else now_s + job.walltime_s
        for name, amount in taken.items():
            found.add((name,), end_s, amount)
    return found


def free_nodes(
    observation: Observation,
    placed: Iterable[Placed],
    unavailable: Mapping[str, str],
    unmanaged_gbps_per_core: float,
) -> tuple[Node, ...]:
    """The nodes that can be planned on, with what running and placed jobs leave free.

    A completing job takes its nodes as a whole, as it does for Slurm.
    """
    taken, completing = _taken(placed), completing_jobs(observation.jobs)
    if unmanaged_gbps_per_core:
        for name, drawn in _drawn_unmanaged(observation, unmanaged_gbps_per_core).items():
            taken[name] = taken.get(name, NOTHING).plus(drawn)
    return tuple(
        Node(
            node.name,
            node.capacity,
            NOTHING if node.name in completing else _free(node, taken.get(node.name, NOTHING)),
        )
        for node in observation.nodes
        if node.name not in unavailable
    )


def _taken(placed: Iterable[Placed]) -> dict[str, Resources]:
    """What the placed jobs will take on each node."""
    taken: dict[str, Resources] = {}
    for _, amounts in placed:
        for name, amount in amounts.items():
            taken[name] = taken.get(name, NOTHING).plus(amount)
    return taken


def _free(node: ObservedNode, taken: Resources) -> Resources:
    """What is free on a node. More jobs with ways than CLOSIDs leave none free, and keep nothing else from jobs."""
    free = node.capacity.minus(node.allocated).minus(taken)
    return free if free.closids >= 0 else free._replace(closids=0)


def _drawn_unmanaged(observation: Observation, gbps_per_core: float) -> dict[str, Resources]:
    """The bandwidth that running jobs without profile are assumed to draw, on the nodes whose bandwidth is managed."""
    cores = {node.name: node.allocated.cores for node in observation.nodes if node.capacity.bandwidth_gbps}
    threads = {node.name: node.threads_per_core for node in observation.nodes}
    for job in observation.jobs:
        if job.state.occupies_nodes and job.bandwidth_gbps:
            for name in job.allocated:
                if name in cores:
                    cores[name] -= ceil(job.cpus / len(job.allocated) / threads[name])
    return {name: Resources(0, 0, 0, ceil(gbps_per_core * max(0, count))) for name, count in cores.items()}
