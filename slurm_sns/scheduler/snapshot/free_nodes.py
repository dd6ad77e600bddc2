"""The nodes as they can be planned on: which can, what is free there, and when what jobs hold comes free. Pure."""

from collections.abc import Iterable, Mapping
from math import ceil, inf

from slurm_sns.model import NOTHING, Node, Resources
from slurm_sns.scheduler.observe.job_status import JobStatus
from slurm_sns.scheduler.observe.observed import Observation, ObservedJob
from slurm_sns.scheduler.snapshot.geometry import placed_demand
from slurm_sns.scheduler.snapshot.release_times import Releases, of_running

#: Slurm starts nothing on a node while a job there completes (slurmctld's cg_node_bitmap), though it counts that job's
#: resources as free. That is usually over in a fraction of a second, and a job placed in the meantime starts first
#: thing after; a node whose epilog takes longer than this is left out.
COMPLETING_GRACE_S = 3.0

#: A placed job, with what it will take on each of its nodes.
Placed = tuple[ObservedJob, Mapping[str, Resources]]


def takes_placed(what: JobStatus) -> bool:
    """An overdue job may start before we have unpinned it, so it counts as taken for one cycle more."""
    return what in (JobStatus.PLACED, JobStatus.OVERDUE)


def unavailable_nodes(observation: Observation, now_s: float) -> dict[str, str]:
    """The nodes on which nothing can be planned now, with the reason."""
    reasons = {node.name: node.unavailable for node in observation.nodes if node.unavailable}
    # What Slurm keeps a node for is known where the job is: see turns. Where it is not, nothing may be planned there.
    known = {name for job in observation.jobs for name in job.planned_on}
    reasons.update((node.name, "planned") for node in observation.nodes if node.is_planned and node.name not in known)
    for job in observation.jobs:
        if job.is_completing and now_s - job.end_s > COMPLETING_GRACE_S:
            reasons.update((name, f"job {job.id} is completing there") for name in job.allocated if name not in reasons)
    return reasons


def placed_jobs(observation: Observation, statuses: Mapping[int, JobStatus]) -> list[Placed]:
    """The placed jobs that have not started yet, each with what it will take on its nodes.

    That is no more than a node has: the job's owner may have written any number into it since.
    """
    by_name = {node.name: node for node in observation.nodes}
    found: list[Placed] = []
    for job in observation.jobs:
        if takes_placed(statuses[job.id]):
            pinned = [by_name[name] for name in job.pinned_to if name in by_name]
            demand = placed_demand(job, pinned) if pinned else NOTHING
            found.append((job, {node.name: Resources(*map(min, demand, node.capacity)) for node in pinned}))
    return found


def releases(observation: Observation, placed: Iterable[Placed], now_s: float) -> Releases:
    """What comes free on the nodes, and when: of what runs, and of what we have placed."""
    found = of_running(observation.jobs, now_s)
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
    """The nodes that can be planned on, with what running and placed jobs leave free."""
    taken: dict[str, Resources] = {}
    for _, amounts in placed:
        for name, amount in amounts.items():
            taken[name] = taken.get(name, NOTHING).plus(amount)
    if unmanaged_gbps_per_core:
        for name, drawn in _drawn_unmanaged(observation, unmanaged_gbps_per_core).items():
            taken[name] = taken.get(name, NOTHING).plus(drawn)
    return tuple(
        Node(node.name, node.capacity, node.capacity.minus(node.allocated).minus(taken.get(node.name, NOTHING)))
        for node in observation.nodes
        if node.name not in unavailable
    )


def _drawn_unmanaged(observation: Observation, gbps_per_core: float) -> dict[str, Resources]:
    """The bandwidth that running jobs without profile are taken to draw on nodes which have bandwidth to give away."""
    cores = {node.name: node.allocated.cores for node in observation.nodes if node.capacity.bandwidth_gbps}
    threads = {node.name: node.threads_per_core for node in observation.nodes}
    for job in observation.jobs:
        if job.state.occupies_nodes and job.bandwidth_gbps:
            for name in job.allocated:
                if name in cores:
                    cores[name] -= ceil(job.cpus / len(job.allocated) / threads[name])
    return {name: Resources(0, 0, 0, ceil(gbps_per_core * max(0, count))) for name, count in cores.items()}
