"""The jobs that have nodes, as a policy sees them, and the pools in which jobs wait. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from slurm_sns.closids import are_counted, with_closid
from slurm_sns.model import ActiveJob, ActiveState, JobPool, Resources
from slurm_sns.scheduler.observation import JobState, Observation, ObservedJob
from slurm_sns.scheduler.snapshot.free_nodes import Placed


def active_jobs(
    observation: Observation,
    placed: Iterable[Placed],
    now_s: int,
    before: Iterable[ActiveJob] = (),
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
        if known is not None and known.state is state and known.since_s == since_s and _is_unchanged(known, job):
            yield known
        else:
            part = with_closid(_part(job, threads), is_counted=counts_closids)
            yield _active(job, state, job.allocated, part, since_s)


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
            yield _active(job, ActiveState.STARTING, tuple(taken), next(iter(taken.values())), since_s)


def _active(job: ObservedJob, state: ActiveState, nodes: tuple[str, ...], demand: Resources, since_s: int) -> ActiveJob:
    pool = job.partitions[0] if job.partitions else ""
    is_restartable = job.may_restart and job.is_batch
    # Positional arguments are faster than keywords, and there may be many jobs in each cycle.
    return ActiveJob(
        job.id, state, nodes, demand, since_s, job.submit_s, job.account, pool, job.priority, is_restartable
    )
