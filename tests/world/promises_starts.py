"""Promises about starts: once, not while somebody holds the job, not too early, and no node over capacity."""

from collections.abc import Iterator

from slurm_sns.model import Resources
from world.history import Event
from world.promises_jobs import UNKNOWN
from world.promises_tale import Tale
from world.slurm_jobs import WAITING


def started_twice(event: Event, tale: Tale) -> Iterator[str]:
    """A job starts once, and once more for each requeue."""
    job = tale.jobs.of[event.job]
    if job.now.state != WAITING or len(job.started_s) >= job.allowed:
        before = ", ".join(f"{at_s:.3f} s" for at_s in job.started_s) or "never"
        yield f"started twice: job {event.job} at {event.at_s:.3f} s, and before: {before}; it was {job.now.state}"


def started_wrongly(event: Event, tale: Tale) -> Iterator[str]:
    """A job that somebody holds does not start, nor one whose owner wants it to begin later, or on other nodes."""
    job, nodes = tale.jobs.of[event.job], set(event.data["nodes"])
    told = f"job {event.job} at {event.at_s:.3f} s"
    if job.own_hold:
        yield f"started while held: {told}, held by {job.own_hold}"
    if (
        job.begins_later(event.wall_s + tale.set_back_s) and not job.started_s
    ):  # once it has run, a requeue gives it another time
        yield f"started too early: {told}, {job.own['begin_s'] - event.wall_s:.1f} s before its begin time"
    own_partitions = job.own["partitions"]
    if own_partitions is not UNKNOWN:
        pools = (pool for pool in tale.pools if set(own_partitions) <= set(pool))
        if event.data["partition"] not in {*own_partitions, *next(pools, ())}:
            yield f"wrong partition: {told} in {event.data['partition']}, its owner wants {','.join(own_partitions)}"
    own = job.own["nodes"]
    # A job that needs fewer nodes than its owner lists runs on some of them.
    if own is not UNKNOWN and not (set(own) <= nodes or nodes <= set(own)):
        yield f"wrong nodes: {told} on {','.join(sorted(nodes))}, its owner wants {','.join(own)}"
    tasks, cores = job.own["tasks"], sum(event.data["cores"])
    wanted = UNKNOWN if tasks is UNKNOWN else tasks * job.asked.get("cpus_per_task", 1)
    if not job.asked.get("is_alone") and wanted not in (UNKNOWN, cores):
        yield f"wrong size: {told} with {cores} cores, asked for {wanted}"


def over_capacity(event: Event, tale: Tale) -> Iterator[str]:
    """No node is given more than it has; a suspended job gives back its cores only."""
    for at, node in enumerate(event.data["nodes"]):
        taken = _on(event.data, at)
        for other in tale.jobs.running():
            if node in other.takes["nodes"]:
                holds = _on(other.takes, other.takes["nodes"].index(node))
                taken = taken.plus(holds if other.now.state == "RUNNING" else holds._replace(cores=0))
        if not taken.within(tale.capacity[node]):
            yield f"node over capacity: {node} has {tale.capacity[node]}, with job {event.job} it gives {taken}"


def _on(takes: object, at: int) -> Resources:
    """What a started job takes on its node number `at`."""
    return Resources(takes["cores"][at], takes["memory_mb"][at], takes["ways"], takes["bandwidth"])  # type: ignore[index]
