"""The nodes that can be planned on, what is free on them, what jobs hold there, and when these end. Pure.

Jobs give back what they hold at their time limits, as in Slurm's own backfill. A job may end earlier than its limit;
its nodes are then ready earlier than stated here. A job that runs beyond its limit may end at any moment.

Slurm does not know CLOSIDs. How many a node has stands in sns.yaml. In use is one for each job with ways that has the
node, whoever placed it: pass-through jobs with `--gres=llc:N` too. A job that completes counts no more, as in Slurm's
own account of the other resources.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import ceil

from slurm_sns.closids import are_counted, counted, with_closid
from slurm_sns.model import NOTHING, ActiveJob, ActiveState, JobPool, Node, Resources
from slurm_sns.scheduler.gate.job_status import Status
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.geometry import placed_demand


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


#: A placed job, with what it will take on each of its nodes.
Placed = tuple[ObservedJob, Mapping[str, Resources]]


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

    No amount is more than the node has: the owner may have written any number into the job since its placement. A job
    that asks for whole nodes (--exclusive) takes all of them, whatever its own demand.
    """
    by_name = {node.name: node for node in observation.nodes}
    found: list[Placed] = []
    for job in observation.jobs:
        if statuses[job.id].has_placement:
            pinned = [by_name[name] for name in job.pinned_to if name in by_name]
            demand = placed_demand(job, pinned) if pinned else NOTHING
            taken = {node.name: demand.up_to(node.capacity) for node in pinned}
            found.append((job, {node.name: node.capacity for node in pinned} if job.is_alone else taken))
    return found


def free_nodes(
    observation: Observation,
    placed: Iterable[Placed],
    unavailable: Mapping[str, str],
    unmanaged_gbps_per_core: float,
    *,
    heeds_weight: bool = True,
) -> tuple[Node, ...]:
    """The nodes that can be planned on, with what running and placed jobs leave free.

    A completing job takes its nodes as a whole, as it does for Slurm. With `heeds_weight` nodes have Slurm's weights.
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
            node.weight if heeds_weight else 1,
            observation.topology.path(node.name),
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
    """What is free on a node. Where no bandwidth or no CLOSID is left, jobs that ask for none are kept from nothing."""
    free = node.left(taken)
    return free._replace(bandwidth_gbps=max(0, free.bandwidth_gbps), closids=max(0, free.closids))


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


def active_jobs(
    observation: Observation, placed: Iterable[Placed], now_s: int, before: Iterable[ActiveJob] = ()
) -> tuple[ActiveJob, ...]:
    """Every job that runs, is suspended or is placed and about to start, managed or not; the placed jobs come last.

    A part of a job is what it has on one node. Slurm tells the cores and the memory of the whole job only: here they
    are split equally over the parts, rounded up. Each part has the ways and the bandwidth that the job asks for on each
    node. A suspended job's cores are those that it had and will take again. `before` are the active jobs of the last
    cycle: most jobs have not changed since, and their values are reused.
    """
    return (*_with_nodes(observation, {each.id: each for each in before}), *_starting(placed, now_s))


def job_pools(observation: Observation, partitions: frozenset[str]) -> tuple[JobPool, ...]:
    """The managed partitions in Slurm's order, each with its nodes in the machine list's order.

    No statistics are kept of live jobs yet: those of the pools are empty.
    """
    nodes: dict[str, list[str]] = {each.name: [] for each in observation.partitions if each.name in partitions}
    for node in observation.nodes:
        for name in node.partitions:
            if name in nodes:
                nodes[name].append(node.name)
    return tuple(JobPool(name, tuple(members)) for name, members in nodes.items())


def _with_nodes(observation: Observation, before: Mapping[int, ActiveJob]) -> Iterator[ActiveJob]:
    threads = {node.name: node.threads_per_core for node in observation.nodes if node.threads_per_core > 1}
    counts_closids = are_counted(node.capacity for node in observation.nodes)
    for job in observation.jobs:
        if job.state is JobState.RUNNING:
            state = ActiveState.RUNNING
        elif job.state is JobState.SUSPENDED:
            state = ActiveState.SUSPENDED
        else:
            continue
        if not job.allocated:
            continue
        since_s = max(job.start_s, job.suspended_s)
        known = before.get(job.id)
        # A suspended job may stay there for any time.
        end_s = job.end_s if job.walltime_s and job.end_s and state is ActiveState.RUNNING else None
        is_as_before = known is not None and (known.state, known.since_s, known.expected_end_s) == (
            state,
            since_s,
            end_s,
        )
        if known is not None and is_as_before and _is_unchanged(known, job):
            yield known
        else:
            part = with_closid(_part(job, threads), is_counted=counts_closids)
            yield _active(job, state, job.allocated, (part, since_s), end_s)


def _is_unchanged(known: ActiveJob, job: ObservedJob) -> bool:
    """Whether nothing has changed that can change after a job's start; its parts change only with its nodes."""
    return (
        known.nodes == job.allocated
        and known.priority == job.priority
        and known.project == job.account
        and known.may_restart is (job.may_restart and job.is_batch)
        and known.submit_s == job.submit_s
    )


def _part(job: ObservedJob, threads: Mapping[str, int]) -> Resources:
    """What the job has on each of its nodes; `threads` are the threads per core of the nodes that have several."""
    count = len(job.allocated)
    cores = -(-job.occupies.cores // (count * threads.get(job.allocated[0], 1)))
    return Resources(cores, -(-job.occupies.memory_mb // count), job.ways, job.bandwidth_gbps)


def _starting(placed: Iterable[Placed], now_s: int) -> Iterator[ActiveJob]:
    """The placed jobs, active since their placement.

    A job whose nodes are all gone from Slurm's configuration is left out.
    """
    for job, taken in placed:
        if taken:
            record = job.record
            since_s = now_s if record is None or record.placed_s is None else record.placed_s
            end_s = None if job.walltime_s is None else now_s + job.walltime_s
            yield _active(job, ActiveState.STARTING, tuple(taken), (next(iter(taken.values())), since_s), end_s)


def _active(
    job: ObservedJob, state: ActiveState, nodes: tuple[str, ...], part: tuple[Resources, int], end_s: int | None
) -> ActiveJob:
    """The job, with what each part has, since when, and the end by its limit."""
    demand, since_s = part
    pool = job.partitions[0] if job.partitions else ""
    is_restartable = job.may_restart and job.is_batch
    # Positional arguments are faster than keywords, and there may be many jobs in each cycle.
    return ActiveJob(
        job.id,
        state,
        nodes,
        demand,
        since_s,
        job.submit_s,
        job.account,
        pool,
        job.priority,
        is_restartable,
        expected_end_s=end_s,
    )
