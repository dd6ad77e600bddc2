"""The jobs that have nodes, as a policy sees them, and the pools in which jobs wait. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from slurm_sns.model import ActiveJob, ActiveState, JobPool, Resources
from slurm_sns.scheduler.observe.observed import JobState, Observation, ObservedJob
from slurm_sns.scheduler.observe.records import JobRecord
from slurm_sns.scheduler.snapshot.free_nodes import Placed


def active_jobs(
    observation: Observation,
    placed: Iterable[Placed],
    records: Mapping[int, JobRecord],
    now_s: int,
    before: Iterable[ActiveJob] = (),
) -> tuple[ActiveJob, ...]:
    """Every job that runs, is suspended, or is placed and starts, whosesoever it is; the placed ones last.

    A part of a job is what it has on one node. Slurm tells cores and memory of the whole job: here each part has an
    equal share, rounded up, and the ways and bandwidth that the job asks for on each node. A suspended job's cores are
    those that it had and will take again. `before` are those of the last look: nearly all of them go on as they were,
    and a value is reused where nothing of it can have changed.
    """
    return (*_with_nodes(observation, {each.id: each for each in before}), *_starting(placed, records, now_s))


def job_pools(observation: Observation, partitions: frozenset[str]) -> tuple[JobPool, ...]:
    """The managed partitions in Slurm's order, each with its nodes in the machine list's order.

    Of the live jobs no statistics are kept yet: theirs are empty.
    """
    nodes: dict[str, list[str]] = {each.name: [] for each in observation.partitions if each.name in partitions}
    for node in observation.nodes:
        for name in node.partitions:
            if name in nodes:
                nodes[name].append(node.name)
    return tuple(JobPool(name, tuple(members)) for name, members in nodes.items())


def _with_nodes(observation: Observation, before: Mapping[int, ActiveJob]) -> Iterator[ActiveJob]:
    threads = {node.name: node.threads_per_core for node in observation.nodes if node.threads_per_core > 1}
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
        if known is not None and known.state is state and known.since_s == since_s and _goes_on(known, job):
            yield known
        else:
            yield _active(job, state, job.allocated, _part(job, threads), since_s)


def _goes_on(known: ActiveJob, job: ObservedJob) -> bool:
    """Whether a job is as it was, in all that can change of one that has started; its parts change with its nodes."""
    return (
        known.nodes == job.allocated
        and known.priority == job.priority
        and known.project == job.account
        and known.may_restart is (job.may_restart and job.is_batch)
        and known.submit_s == job.submit_s
    )


def _part(job: ObservedJob, threads: Mapping[str, int]) -> Resources:
    """What the job has on each of its nodes; `threads` are those per core, of nodes that have several."""
    count = len(job.allocated)
    cores = -(-job.occupies.cores // (count * threads.get(job.allocated[0], 1)))
    return Resources(cores, -(-job.occupies.memory_mb // count), job.ways, job.bandwidth_gbps)


def _starting(placed: Iterable[Placed], records: Mapping[int, JobRecord], now_s: int) -> Iterator[ActiveJob]:
    """The placed jobs, since they were placed. One whose nodes are all gone from Slurm's configuration is none."""
    for job, taken in placed:
        if taken:
            record = records.get(job.id)  # none in observe, of what an earlier enforce has placed
            since_s = now_s if record is None else int(record.placed_s)
            yield _active(job, ActiveState.STARTING, tuple(taken), next(iter(taken.values())), since_s)


def _active(job: ObservedJob, state: ActiveState, nodes: tuple[str, ...], demand: Resources, since_s: int) -> ActiveJob:
    pool = job.partitions[0] if job.partitions else ""
    is_restartable = job.may_restart and job.is_batch
    # In the fields' order: there may be many of them in each look.
    return ActiveJob(
        job.id, state, nodes, demand, since_s, job.submit_s, job.account, pool, job.priority, is_restartable
    )
