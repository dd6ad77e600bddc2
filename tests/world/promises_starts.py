"""Promises about starts: once, when and where the job may start, as large as asked for, and no node over capacity."""

from collections.abc import Iterator

from slurm_sns.model import NOTHING, Resources
from world.history import Event
from world.promises_changes import is_nice_known
from world.promises_life import Life, is_ours
from world.promises_tale import Tale

#: Slurm compares times in whole seconds.
ROUNDING_S = 1.0


def started_twice(event: Event, tale: Tale) -> Iterator[str]:
    """A job starts once, and once more for each requeue."""
    life = tale.lives.of[event.job]
    if life.state != "waiting" or life.started >= life.allowed:
        before = ", ".join(f"{at_s:.3f} s" for at_s in life.started_s) or "never"
        yield f"started twice: job {event.job} started at {event.at_s:.3f} s, and before: {before}; it was {life.state}"


def requeued_by_us(event: Event, _tale: Tale) -> Iterator[str]:
    """Our policies here never requeue, suspend, resume or cancel a job."""
    if is_ours(event.by):
        yield f"stopped by us: {event.by} did a {event.kind} of job {event.job} at {event.at_s:.3f} s"


def started_while_held(event: Event, tale: Tale) -> Iterator[str]:
    """A held job does not start."""
    life = tale.lives.of[event.job]
    if life.hold:
        yield f"started while held: job {event.job}, held by {life.hold}, at {event.at_s:.3f} s"


def started_too_early(event: Event, tale: Tale) -> Iterator[str]:
    """No job starts before its begin time, or with a dependency that is not fulfilled."""
    life = tale.lives.of[event.job]
    begin_s = life.wishes["begin_s"]
    if (
        event.wall_s + ROUNDING_S < begin_s and not life.started and not life.has_ended
    ):  # once it has begun, a requeue gives it another time
        yield f"started too early: job {event.job} {begin_s - event.wall_s:.1f} s before its begin time"
    kind, ids = life.wishes["dependency"] or ("", ())
    for other in (each for job_id in set(ids) - tale.lives.lost_ids.keys() for each in _of_id(job_id, tale)):
        if not (other.has_succeeded or (other.has_ended and kind == "afterany") or other.state == "purged"):
            yield f"started too early: job {event.job} waits for job {other.id}, which is {other.state}"


def wrong_nodes(event: Event, tale: Tale) -> Iterator[str]:
    """A job runs in its partition on usable nodes: those that its owner asked for, none that they excluded."""
    life, services, nodes = tale.lives.of[event.job], tale.services, event.data["nodes"]
    partition = life.wishes["partition"]
    for node in nodes:
        why = ""
        if node not in services.partitions[partition]["nodes"]:
            why = f"which is not in its partition {partition}"
        elif node in life.wishes["excluded"]:
            why = "which its owner excluded"
        elif services.nodes[node] != "up":
            why = f"which is {services.nodes[node]}"
        elif services.is_reserved(node, event.wall_s):
            why = "which is reserved"
        if why:
            yield f"wrong nodes: job {event.job} started at {event.at_s:.3f} s on {node}, {why}"
    required = set(life.wishes["required"])
    missing = sorted(required - set(nodes))
    # A job that needs fewer nodes than its owner lists runs on some of them.
    is_clear = is_nice_known(life) and not tale.had_two
    if missing and not set(nodes) <= required and is_clear:
        yield f"wrong nodes: job {event.job} started at {event.at_s:.3f} s without {','.join(missing)}, asked for"


def limit_exceeded(event: Event, tale: Tale) -> Iterator[str]:
    """Limits of partitions, arrays, accounts, QOS and users hold for placed jobs as for others."""
    life, services = tale.lives.of[event.job], tale.services
    wishes, told = life.wishes, f"limit exceeded: job {event.job} started at {event.at_s:.3f} s"
    partition = services.partitions[wishes["partition"]]
    if partition["state"] not in ("UP", "DRAIN"):
        yield f"{told} in partition {wishes['partition']}, which is {partition['state']}"
    if partition["max_time_s"] is not None and wishes["walltime_s"] > partition["max_time_s"]:
        yield f"{told} with {wishes['walltime_s']} s, its partition allows {partition['max_time_s']} s"
    running = list(tale.lives.running())
    most = wishes["array_limit"]
    if most and life.array is not None:
        number = 1 + sum(other.array == life.array for other in running)
        if number > most:
            yield f"{told} as task number {number} of its array at a time, at most {most} may run"
    for what, limits in (("account", services.cores_limits), ("qos", services.qos_limits)):
        limit = limits.get(wishes[what])
        if limit is not None and not wishes["is_alone"]:  # Slurm counts what such a job asks for, not what it gets
            of_same = (other for other in running if other.wishes[what] == wishes[what])
            cores = sum(event.data["cores"]) + sum(sum(other.takes["cores"]) for other in of_same)
            if cores > limit:
                yield f"{told}: its {what} has {cores} cores, at most {limit}"
    jobs_limit = services.jobs_limits.get(life.user)
    if jobs_limit is not None and 1 + sum(other.user == life.user for other in running) > jobs_limit:
        yield f"{told}: its owner has more than {jobs_limit} running jobs"


def wrong_size(event: Event, tale: Tale) -> Iterator[str]:
    """A job gets the cores and the memory that it asked for; only a job with nodes of its own gets all their memory."""
    life, wishes = tale.lives.of[event.job], tale.lives.of[event.job].wishes
    told = f"wrong size: job {event.job} started at {event.at_s:.3f} s"
    cores = sum(event.data["cores"])
    alone = sum(tale.capacity[node].cores for node in event.data["nodes"])
    wanted = alone if wishes["is_alone"] else wishes["tasks"] * wishes["cpus_per_task"]
    if cores != wanted and not life.overtaken:
        yield f"{told} on {cores} cores, asked for {wishes['tasks']} tasks with {wishes['cpus_per_task']} each"
    for node, there, memory_mb in zip(event.data["nodes"], event.data["cores"], event.data["memory_mb"], strict=True):
        asked_mb = wishes["memory_per_node_mb"] or (wishes["memory_per_cpu_mb"] or 0) * there
        if memory_mb not in (asked_mb, life.whole_mb) and not life.forgotten and not life.overtaken:
            yield f"{told} with {memory_mb} MiB on {node}, asked for {asked_mb} MiB"
    number = len(event.data["nodes"])
    is_listed = number <= len(wishes["required"])  # a longer node list asks for more
    if not is_listed and not wishes["nodes_min"] <= number <= (wishes["nodes_max"] or number):
        yield f"{told} on {number} nodes, asked for {wishes['nodes_min']} to {wishes['nodes_max']}"


def over_capacity(event: Event, tale: Tale) -> Iterator[str]:
    """No node is given more than it has; a suspended job gives back its cores only."""
    for at, node in enumerate(event.data["nodes"]):
        taken = _on(event.data, at)
        for other in tale.lives.running():
            if node in other.takes["nodes"]:
                holds = _on(other.takes, other.takes["nodes"].index(node))
                taken = taken.plus(holds if other.state == "running" else holds._replace(cores=0))
        if not taken.within(tale.capacity[node]):
            yield f"node over capacity: {node} has {tale.capacity[node]}, with job {event.job} it gives {taken}"


def _on(takes: object, at: int) -> Resources:
    """What a started job takes on its node number `at`."""
    if not takes:
        return NOTHING
    return Resources(takes["cores"][at], takes["memory_mb"][at], takes["ways"], takes["bandwidth"])


def _of_id(job_id: int, tale: Tale) -> list[Life]:
    """The job, or all tasks of the array, of that id."""
    array = [life for life in tale.lives.of.values() if life.array == job_id]
    return array or [life for life in tale.lives.of.values() if life.id == job_id]
