"""Whether the nodes of a partition could ever hold a job: a job that would wait for ever is refused.

The count uses Slurm's CPUs and MiB, on empty nodes of configured size. In doubt the job is not refused: a wrong refusal
costs more than a job that Slurm refuses itself. Each node takes as many tasks as its CPUs hold, its memory holds and
--ntasks-per-node allows. Then the best nodes, at most as many as the job allows, must take all of its tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_sns.submit.messages import say
from slurm_sns.submit.submission import Submission
from slurm_sns.submit.table import NodeShape

# More than any node has, and its product with the CPUs of a task is still exact in Lua's doubles.
_MOST_MEMORY_MB = 2**32

#: At most so many node shapes are counted for one job; a job whose partitions have more is not refused.
MOST_SHAPES = 500


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a job asks for, with Slurm's defaults filled in; `most_nodes` None where the job sets no limit."""

    tasks: int
    task_cpus: int
    task_memory_mb: int
    node_memory_mb: int
    least_nodes: int
    most_nodes: int | None
    tasks_per_node: int | None


def geometry(job: Submission, default_memory_per_cpu_mb: int) -> Geometry:
    """The job's geometry. A job without a number of tasks has one per node, or --ntasks-per-node, as Slurm counts.

    What goes with its GPUs is not counted: that depends on how they lie.
    """
    least_nodes = max(job.min_nodes or 1, 1)
    per_node = job.ntasks_per_node or None
    tasks = job.num_tasks or least_nodes * (per_node or 1)
    task_cpus = max(job.cpus_per_task or 1, 1)
    per_cpu_mb = 0
    if job.min_mem_per_cpu is not None:
        per_cpu_mb = job.min_mem_per_cpu
    elif job.min_mem_per_node is None and not job.mem_per_tres:
        per_cpu_mb = default_memory_per_cpu_mb
    return Geometry(
        tasks=tasks,
        task_cpus=task_cpus,
        task_memory_mb=min(per_cpu_mb, _MOST_MEMORY_MB) * task_cpus,
        node_memory_mb=min(job.min_mem_per_node or 0, _MOST_MEMORY_MB),
        least_nodes=min(least_nodes, tasks),
        most_nodes=job.max_nodes or None,
        tasks_per_node=per_node,
    )


def refusal(job: Submission, partitions: Mapping[str, Sequence[NodeShape]], default_memory_per_cpu_mb: int) -> str:
    """Why no partition of `partitions` could ever hold the job: the message for its user; "" when one could.

    A partition without known nodes can hold every job: Slurm judges it.
    """
    if sum(map(len, partitions.values())) > MOST_SHAPES:
        return ""
    asked = geometry(job, default_memory_per_cpu_mb)
    said = ""
    for name in sorted(partitions):
        # In the order of the rendered table, so that Python and Lua name the same one of two equally large nodes.
        message = _partition_refusal(asked, name, sorted(partitions[name], reverse=True))
        if not message:
            return ""
        said = said or message
    return said


def leaves_memory_open(
    job: Submission, partitions: Mapping[str, Sequence[NodeShape]], default_memory_per_cpu_mb: int
) -> bool:
    """Whether the job gets the whole memory of each of its nodes, and the nodes that it could get differ in memory.

    A job gets the whole memory with `--mem=0`, and without any memory option where Slurm has no default. Slurm turns
    `--mem-per-cpu=0` into `--mem=0` (seen with 26.05).
    """
    if job.mem_per_tres:
        return False
    said = job.min_mem_per_cpu if job.min_mem_per_node is None else job.min_mem_per_node
    if (default_memory_per_cpu_mb if said is None else said) > 0:
        return False
    return len({shape.memory_mb for shapes in partitions.values() for shape in shapes}) > 1


def tasks_on(shape: NodeShape, asked: Geometry) -> int:
    """How many of the job's tasks one empty node of this shape takes."""
    if asked.node_memory_mb > shape.memory_mb:
        return 0
    tasks = shape.cpus // asked.task_cpus
    if asked.task_memory_mb > 0:
        tasks = min(tasks, shape.memory_mb // asked.task_memory_mb)
    return tasks if asked.tasks_per_node is None else min(tasks, asked.tasks_per_node)


def _partition_refusal(asked: Geometry, name: str, shapes: Sequence[NodeShape]) -> str:
    if not shapes:
        return ""
    able = sorted(((tasks_on(shape, asked), shape.count) for shape in shapes), reverse=True)
    nodes = sum(count for tasks, count in able if tasks > 0)
    allowed = nodes if asked.most_nodes is None else min(asked.most_nodes, nodes)
    room, left = 0, allowed
    for tasks, count in able:
        room += tasks * min(count, left)
        left -= min(count, left)
    if nodes == 0:
        return _no_node(asked, name, shapes)
    if nodes < asked.least_nodes:
        return _say("job-nodes", name, _most_cpus(shapes), asked=asked.least_nodes, count=nodes)
    if room < asked.tasks:
        task = {"task_cpus": asked.task_cpus, "task_mb": asked.task_memory_mb}
        return _say("job-tasks", name, _most_cpus(shapes), asked=asked.tasks, nodes=allowed, count=room, **task)
    return ""


def _no_node(asked: Geometry, name: str, shapes: Sequence[NodeShape]) -> str:
    """The message for a job of which not even one task fits on a node."""
    most_cpus, most_memory = _most_cpus(shapes), max(shapes, key=lambda shape: (shape.memory_mb, shape.cpus))
    memory_mb = max(asked.node_memory_mb, asked.task_memory_mb)
    if asked.task_cpus > most_cpus.cpus:
        return _say("task-cpus", name, most_cpus, asked=asked.task_cpus)
    if memory_mb > most_memory.memory_mb:
        return _say("node-memory", name, most_memory, asked=memory_mb)
    return _say("task-both", name, most_memory, asked=asked.task_cpus, asked_mb=memory_mb)


def _most_cpus(shapes: Sequence[NodeShape]) -> NodeShape:
    return max(shapes, key=lambda shape: (shape.cpus, shape.memory_mb))


def _say(text: str, name: str, largest: NodeShape, **asked: int) -> str:
    has = {"cores": largest.cores, "cpus": largest.cpus, "memory_mb": largest.memory_mb}
    return say(text, {"partitions": name, **has, **asked})
