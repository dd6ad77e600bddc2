"""The geometry of a live job: its number of nodes and its demand on each of them.

A job that fixes its geometry (-N, --ntasks-per-node, --distribution) keeps it. A job that only gives -n gets the fewest
nodes that can hold it, in equal parts: n = ceil(P/T), c = ceil(P/n) for P processes and T cores of a node. Then it gets
only as many nodes as that fills, so that no node stays empty: n = ceil(P/c). The record says which of the two a job is,
because Slurm does not: after a placement it shows our tasks per node as if the job had asked for them. Owners also fix
the geometry when they give a gated job a number of nodes.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, NamedTuple

from slurm_sns.closids import are_counted, with_closid
from slurm_sns.errors import Infeasible, NeverStarts
from slurm_sns.gpus import JOB, MOST_GPUS, NODE, TASK, total
from slurm_sns.model import Alternative, Gpus, Resources
from slurm_sns.policies.base import Request, on_whole_cores
from slurm_sns.policies.placement.request import compact, holding
from slurm_sns.scheduler.observation import ObservedJob, ObservedNode
from slurm_sns.scheduler.snapshot.node_sets import NodeKind, NodeKinds, one_of_equals


class Extremes(NamedTuple):
    """The extremes among the nodes that a job may get: besides the job itself, its demand depends only on them."""

    least_threads: int
    most_memory_mb: int
    most_cpus: int
    most_gpus: Gpus = ()


def extremes(nodes: Iterable[ObservedNode | NodeKind]) -> Extremes:
    """The fewest threads of a core, and the most memory in MiB, CPUs and GPUs of one node, of at least one node."""
    nodes = list(nodes)
    most_gpus: dict[str, int] = {}
    for node in nodes:
        for name, count in node.capacity.gpus:
            most_gpus[name] = max(count, most_gpus.get(name, 0))
    seen = [(node.threads_per_core, node.capacity.memory_mb, node.capacity.cores) for node in nodes]
    return Extremes(
        least_threads=min(threads for threads, _, _ in seen),
        most_memory_mb=max(memory_mb for _, memory_mb, _ in seen),
        most_cpus=max(threads * cores for threads, _, cores in seen),
        most_gpus=tuple(sorted(most_gpus.items())),
    )


def geometry(job: ObservedJob, kinds: NodeKinds) -> Alternative:
    """The alternative of this job with its own geometry, on some nodes of these kinds.

    `kinds` are those of the nodes that the job may ever use, busy or not.

    Raises:
        Infeasible: too few nodes could ever hold a part of the job, the job leaves its number of nodes to Slurm, or it
            asks for more nodes than it has tasks.
    """
    if not kinds:
        raise NeverStarts(f"no node in partition {','.join(job.partitions)}")
    limits = extremes(kinds)
    if job.tasks > 1 and not is_fixed(job):
        return _equal_parts(job, kinds)
    if job.nodes_max is not None and job.nodes_max != (job.nodes_min or 1):
        # Seen: a job of -N1-3 that is pinned to one node gets two others beside it.
        raise Infeasible(f"asks for {job.nodes_min or 1} to {job.nodes_max} nodes: how many it gets is Slurm's choice")
    count = job.nodes_min or 1
    if count > job.tasks:  # its owner has changed its nodes (scontrol update NumNodes=4)
        raise Infeasible(f"asks for {count} nodes and has fewer tasks, {job.tasks}: how it runs is Slurm's choice")
    if job.tasks_per_node is not None:
        count = max(count, ceil(job.tasks / job.tasks_per_node))
        return _checked(job, kinds, Alternative(count, demand(job, min(job.tasks_per_node, job.tasks), count, limits)))
    return _checked(
        job, kinds, Alternative(count, demand(job, _most_tasks_on_a_node(job, count, limits), count, limits))
    )


def demand(job: ObservedJob, tasks: int, count: int, limits: Extremes) -> Resources:
    """What `tasks` tasks of the job take on one of its `count` nodes: whole cores, MiB.

    Slurm gives whole cores, and memory per CPU counts every CPU of these cores. A job that names no memory gets a whole
    node's. A job may ask for more CPUs than its tasks need (MinCPUsNode, NumCPUs; Slurm itself raises them by
    MaxMemPerCPU; --cpus-per-gpu), which a policy's `Request` cannot express.

    Raises:
        Infeasible: how many GPUs it takes of each node is Slurm's choice.
    """
    cpus = max(tasks * job.cpus_per_task, job.min_cpus_per_node, ceil(job.cpus / count))
    asked = job.gpus
    if asked is None:
        return on_whole_cores(cpus, limits.least_threads, job.memory_per_cpu_mb, per_node_mb(job, limits))
    gpus = asked.on_a_node(tasks, count)
    cpus = max(cpus, asked.cpus * total(gpus))
    found = on_whole_cores(cpus, limits.least_threads, job.memory_per_cpu_mb, per_node_mb(job, limits))
    return found._replace(gpus=gpus, **({"memory_mb": asked.memory_mb * total(gpus)} if asked.memory_mb else {}))


def gpus_on_each(job: ObservedJob, count: int) -> Gpus:
    """The GPUs that a job with `count` nodes has on each of them, as if its tasks lay evenly."""
    asked = job.gpus
    if asked is None or (asked.by == JOB and count > 1):
        return ()
    gpus = asked.on_a_node(ceil(job.tasks / count), count)
    return tuple((name, min(number, MOST_GPUS)) for name, number in gpus)


def per_node_mb(job: ObservedJob, limits: Extremes) -> int | None:
    """The job's memory on each node, None where it goes with the CPUs; a job that names none gets a whole node's."""
    return None if job.memory_per_cpu_mb is not None else job.memory_per_node_mb or limits.most_memory_mb


def names_no_memory(job: ObservedJob) -> bool:
    """Whether the job gets all the memory of each of its nodes (`--mem=0`, or no `--mem` and no default)."""
    by_gpu = job.gpus is not None and job.gpus.memory_mb
    return job.memory_per_cpu_mb is None and not job.memory_per_node_mb and not by_gpu


def wants_more_cpus(job: ObservedJob) -> bool:
    """Whether the job asks for more CPUs than its tasks need."""
    return job.cpus > job.tasks * job.cpus_per_task or job.min_cpus_per_node > job.cpus_per_task


def placed_demand(job: ObservedJob, nodes: Sequence[ObservedNode]) -> Resources:
    """The most that a placed job will take on each node to which it is pinned, with the gres that we gave it."""
    count, limits = max(1, len(job.pinned_to)), extremes(nodes)
    if job.gpus is not None and job.gpus.by == JOB:  # of several nodes only if its owner has changed it since
        job = replace(job, gpus=job.gpus._replace(by=NODE))
    tasks = _most_tasks_on_a_node(job, count, limits)
    if job.tasks_per_node is not None:
        tasks = min(job.tasks_per_node, job.tasks)
    found = demand(job, tasks, count, limits)._replace(ways=job.ways, bandwidth_gbps=job.bandwidth_gbps)
    return with_closid(found, is_counted=are_counted(node.capacity for node in nodes))


def takes_all_memory(job: ObservedJob, alternative: Alternative) -> bool:
    """Whether a placement by this alternative asks for all the memory of its nodes, so that the job is alone there.

    Slurm accepts no change of --exclusive for a waiting job. A job that asked for it itself needs no more.
    """
    return alternative.exclusive and not job.is_alone


def needs_alike(job: ObservedJob, alternatives: Iterable[Alternative]) -> bool:
    """Whether the nodes of one of these alternatives must have the same memory: it asks for all of it on several."""
    return any(each.nodes > 1 and takes_all_memory(job, each) for each in alternatives)


def whole_memory_mb(nodes: Sequence[ObservedNode]) -> int:
    """The memory to ask for on each of these nodes so that no other job fits beside this one (seen)."""
    return min(node.capacity.memory_mb for node in nodes)


def alike(nodes: Sequence[ObservedNode], alternatives: Sequence[Alternative]) -> frozenset[str]:
    """The largest group of these nodes that have the same memory, for a job that is to be alone on several nodes.

    Slurm takes one amount of memory for all nodes of a job: what a larger node has beyond that would not belong to the
    job. Of groups of the same size, the one with more empty nodes is taken, then the one whose nodes have less memory.
    Groups that could not hold the job by any of its alternatives are left out; empty if there are no others.
    """
    by_memory: dict[int, list[ObservedNode]] = {}
    for node in nodes:
        by_memory.setdefault(node.capacity.memory_mb, []).append(node)
    groups = {memory_mb: group for memory_mb, group in by_memory.items() if _holds(group, alternatives)}

    def rank(memory_mb: int) -> tuple[int, int, int]:
        group = groups[memory_mb]
        return len(group), sum(node.allocated.cores == 0 for node in group), -memory_mb

    return one_of_equals(frozenset(node.name for node in groups[max(groups, key=rank)])) if groups else frozenset()


def _holds(group: Sequence[ObservedNode], alternatives: Sequence[Alternative]) -> bool:
    """Whether the nodes, if they were empty, could hold the job by one of the alternatives."""
    return any(sum(each.demand.within(node.capacity) for node in group) >= each.nodes for each in alternatives)


def is_fixed(job: ObservedJob) -> bool:
    """Whether the job's owner chose its geometry; of a job without a record (observe), as far as Slurm shows it."""
    hints = job.hints
    if hints is None:
        return job.tasks_per_node is not None or job.nodes_max is not None
    # After a placement Slurm shows our nodes and tasks per node; the owner set any other number of nodes (scontrol).
    ours = job.tasks_per_node and ceil(job.tasks / job.tasks_per_node)
    return hints.fixed or job.nodes_max not in (None, ours)


def _most_tasks_on_a_node(job: ObservedJob, count: int, limits: Extremes) -> int:
    """The most tasks that Slurm may put on one of `count` nodes.

    Slurm itself chooses how to split -N 2 -n 16: 15 + 1 was seen.
    """
    most = max(1, job.tasks - count + 1)
    held = limits.most_cpus // job.cpus_per_task
    if job.gpus is not None and job.gpus.by == TASK:
        held = min(held, _tasks_with_gpus(job.gpus.on_a_node(1, count), limits.most_gpus))
    return min(most, max(held, ceil(job.tasks / count)))


def _tasks_with_gpus(of_a_task: Gpus, there: Gpus) -> int:
    """For how many tasks the GPUs suffice."""
    has = dict(there)
    return min(has.get(name, 0) // count for name, count in of_a_task)


@dataclass(frozen=True, slots=True)
class LiveRequest(Request):
    """The request of a job that gives only its number of tasks, with CPUs that a plain `Request` cannot express.

    The job may ask for more CPUs than its tasks need: on each of its nodes (MinCPUsNode) or on all of them together
    (NumCPUs), and for GPUs. For a job that asks for no more, a plain `Request` gives the same if it is made with the
    fewest threads of all nodes and, where the job names no memory, the largest memory of all nodes.
    """

    job: ObservedJob = field(kw_only=True)
    limits: Extremes = field(kw_only=True)

    def on_a_node(self, tasks: int) -> Resources:
        """What the job takes of each of its nodes when so many tasks run on one."""
        return demand(self.job, tasks, -(-self.tasks // tasks), self.limits)

    def most_tasks(self, capacity: Resources) -> int:
        """How many tasks an empty node of this size holds, with the node's part of all CPUs that the job asks for."""
        cpus = self.most_cpus(capacity)
        if not cpus or cpus < self.job.min_cpus_per_node:
            return 0
        tasks, nodes = cpus // self.cpus_per_task, -(-self.job.cpus // cpus)
        # The CPUs fit only on `nodes` nodes or more: ceil(self.tasks / tasks) >= nodes, solved for tasks.
        tasks = tasks if nodes <= 1 else min(tasks, (self.tasks - 1) // (nodes - 1))
        return tasks if self.job.gpus is None else self._most_with_gpus(tasks, capacity)

    def _most_with_gpus(self, most: int, capacity: Resources) -> int:
        """As many of these tasks as the node has GPUs for, and the CPUs and the memory that go with these."""
        if self.job.gpus is not None and self.job.gpus.by == JOB:  # all of them on one node, or not at all
            return self.tasks if most >= self.tasks and self.on_a_node(self.tasks).within(capacity) else 0
        fitting = range(1, min(most, self.tasks) + 1)
        return bisect_left(fitting, True, key=lambda tasks: not self.on_a_node(tasks).within(capacity))


def live_request(job: ObservedJob, kinds: NodeKinds, **more: Any) -> LiveRequest:
    """What a job asks for that gives only its number of tasks; `more` are further fields of a `Request`."""
    limits = extremes(kinds)
    return LiveRequest(
        tasks=job.tasks,
        cpus_per_task=job.cpus_per_task,
        threads_per_core=limits.least_threads,
        memory_per_cpu_mb=job.memory_per_cpu_mb,
        memory_per_node_mb=None if job.gpus is not None and job.gpus.memory_mb else per_node_mb(job, limits),
        job=job,
        limits=limits,
        **more,
    )


def _equal_parts(job: ObservedJob, kinds: NodeKinds) -> Alternative:
    """The alternative on the fewest nodes: scale 1 of Spread-n-Share."""
    try:
        return compact(live_request(job, kinds), kinds)
    except Infeasible:
        raise _too_large(job, kinds) from None


def _checked(job: ObservedJob, kinds: NodeKinds, alternative: Alternative) -> Alternative:
    if holding(alternative.demand, kinds) < alternative.nodes:
        raise _too_large(job, kinds)
    return alternative


def _too_large(job: ObservedJob, kinds: NodeKinds) -> Infeasible:
    largest = max((kind.capacity for kind in kinds), key=lambda capacity: (capacity.cores, capacity.memory_mb))
    told = (
        f"{job.tasks} tasks of {job.cpus_per_task} CPUs fit on no nodes of partition {','.join(job.partitions)}: "
        f"{sum(kind.number for kind in kinds)} nodes, the largest with {largest.cores} cores and "
        f"{largest.memory_mb} MiB"
    ) + (", or the GPUs that it asks for are on no node" if job.gpus is not None else "")
    return Infeasible(told) if _could_hold_parts(job, kinds) else NeverStarts(told)


def _could_hold_parts(job: ObservedJob, kinds: NodeKinds) -> bool:
    """Whether empty nodes of these kinds might hold the job in parts of any sizes, which Slurm makes and we do not.

    What is False here is so for Slurm, too: nothing is counted that the job may be spared. A job with a constraint
    might: Slurm may reboot nodes to give them features.
    """
    if job.constraint:
        return True
    most, per_node = (job.nodes_max, job.tasks_per_node) if is_fixed(job) and not job.has_open_nodes else (None, None)
    usable = sorted(((_usable_cpus(job, kind), kind.number) for kind in kinds), reverse=True)
    left = sum(number for _, number in usable) if most is None else most
    tasks = cpus = nodes = 0
    for cpus_there, number in usable:
        taken = min(number, left)
        tasks_there = cpus_there // job.cpus_per_task
        tasks += taken * (tasks_there if per_node is None else min(tasks_there, per_node))
        cpus += taken * cpus_there
        nodes += taken if tasks_there else 0
        left -= taken
    return tasks >= job.tasks and cpus >= job.cpus and nodes >= job.fewest_nodes


def _usable_cpus(job: ObservedJob, kind: NodeKind) -> int:
    """The CPUs that the job could use on an empty node of this kind, as far as its memory and its own minimum allow."""
    cpus = kind.capacity.cores * kind.threads_per_core
    if job.memory_per_cpu_mb:
        cpus = min(cpus, kind.capacity.memory_mb // job.memory_per_cpu_mb)
    elif (job.memory_per_node_mb or 0) > kind.capacity.memory_mb:
        return 0
    return cpus if cpus >= job.min_cpus_per_node else 0
