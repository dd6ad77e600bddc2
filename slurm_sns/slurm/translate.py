"""From pyslurm's objects to our values. Pure: it reads attributes and calls nothing; tested on recorded answers.

pyslurm gives None where Slurm has no value. Memory is MiB, time limits are minutes.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException

from slurm_sns.errors import SnsError
from slurm_sns.model import Resources
from slurm_sns.scheduler.observed import (
    Dependency,
    JobState,
    ObservedJob,
    ObservedNode,
    ObservedPartition,
    ObservedReservation,
)

#: The gres that carry last-level-cache ways and GB/s of memory bandwidth.
WAYS, BANDWIDTH = "llc", "membw"

#: As slurm_job_state_string spells them; flags hide the base state. Every other state occupies nodes (RUNNING,
#: SUSPENDED, COMPLETING, CONFIGURING, RESIZING, STOPPED, SIGNALING, STAGE_OUT, ...).
_WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_ENDED = frozenset(
    {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"}
    | {"OUT_OF_MEMORY", "REVOKED"}
)

#: Parts of a node's state ("IDLE+DRAIN", "MIXED+PLANNED"), as slurm_node_state_string_complete spells them, with which
#: nothing may be planned on it. A powered-down node is capacity, as Slurm wakes it; one on its way down is none.
_UNAVAILABLE = frozenset(
    {"UNKNOWN", "DOWN", "ERROR", "FUTURE", "INVALID", "DRAIN", "FAIL", "NOT_RESPONDING", "MAINTENANCE", "RESERVED"}
    | {"BLOCKED", "INVALID_REG", "REBOOT_REQUESTED", "REBOOT_ISSUED", "POWERING_DOWN", "DYNAMIC_FUTURE"}
    | {"EXTERNAL"}
)


def node_names(text: str | None) -> tuple[str, ...]:
    """`c[1-3],s1` as names, in Slurm's order.

    Raises:
        SnsError: the text is no node list.
    """
    if not text:
        return ()
    try:
        return tuple(NodeSet(text))
    except NodeSetException as problem:
        raise SnsError(f"Slurm answered with the node list {text!r}, which cannot be read: {problem}") from None


class _AnyBytes:
    """A record whose texts may be no UTF-8: those read as `?`. pyslurm raises, and users name jobs as they like."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._record, name)
        except UnicodeDecodeError:
            return "?"


def job(record: Any, user_name: Callable[[int], str] = str) -> ObservedJob:
    """One pyslurm.Job. `user_name` turns a user id into a name."""
    try:
        return _job(record, user_name)
    except UnicodeDecodeError:
        return _job(_AnyBytes(record), user_name)


def _job(record: Any, user_name: Callable[[int], str]) -> ObservedJob:
    array_id, array_task, array_tasks = _array(record)
    state = _job_state(record.state)
    tasks, nodes_min, nodes_max = record.ntasks or 1, record.num_nodes, record.max_nodes
    return ObservedJob(
        id=record.id,
        user_id=record.user_id,
        user=user_name(record.user_id),
        submit_s=record.submit_time or 0,
        state=state,
        name=record.name or "",
        account=record.account or "",
        partitions=tuple((record.partition or "").split(",")),
        qos=record.qos or "",
        priority=record.priority or 0,
        nice=record.nice or 0,
        restarts=record.requeue_count or 0,
        extra=record.extra or "",
        comment=record.comment or "",
        reason="" if record.state_reason in (None, "None") else record.state_reason,
        pinned_to=node_names(record.required_nodes),
        allocated=node_names(record.allocated_nodes),
        tasks=tasks,
        cpus=record.cpus or 1,
        cpus_per_task=record.cpus_per_task or 1,
        nodes_min=nodes_min,
        nodes_max=_chosen_limit(tasks, nodes_min, nodes_max),
        tasks_per_node=record.ntasks_per_node,
        memory_per_cpu_mb=record.memory_per_cpu,
        memory_per_node_mb=record.memory_per_node,
        walltime_s=None if record.time_limit is None else record.time_limit * 60,
        begin_s=record.eligible_time or 0,
        start_s=record.start_time or 0,
        end_s=record.end_time or 0,
        ways=_gres(record, WAYS),
        bandwidth_gbps=_gres(record, BANDWIDTH),
        waits_for_others=_waits(record.dependencies),
        waits_for=_waits_for(record.dependencies),
        any_suffices=(record.dependencies or {}).get("satisfy") == "any",
        is_completing=record.state == "COMPLETING",
        is_batch=bool(record.is_batch_job),
        has_succeeded=record.state == "COMPLETED",
        array_id=array_id,
        array_task=array_task,
        array_tasks=array_tasks,
        array_limit=record.array_tasks_parallel or None,
        is_plain=_is_plain(record),
        planned_on=node_names(record.scheduled_nodes) if state is JobState.PENDING else (),
        excluded=node_names(record.excluded_nodes),
        is_alone=record.resource_sharing == "NO",
        is_countable=_is_countable(record),
        occupies=_occupies(record) if state is JobState.OCCUPYING or record.required_nodes else Resources(0, 0),
    )


def node(record: Any) -> ObservedNode:
    """One pyslurm.Node, with what Slurm has allocated on it."""
    try:
        return _node(record)
    except UnicodeDecodeError:  # an admin's reason
        return _node(_AnyBytes(record))


def _node(record: Any) -> ObservedNode:
    threads = record.threads_per_core or 1
    gres, used = record.configured_gres or {}, record.allocated_gres or {}
    states = (record.state or "UNKNOWN").split("+")
    bad = sorted(_UNAVAILABLE.intersection(states))
    why = "" if not bad else "+".join(bad).lower() + (f": {record.reason}" if record.reason else "")
    return ObservedNode(
        name=record.name,
        partitions=frozenset(record.partitions or ()),
        capacity=Resources(
            record.effective_cpus // threads,
            (record.real_memory or 0) - (record.memory_reserved_for_system or 0),
            gres.get(WAYS, 0),
            gres.get(BANDWIDTH, 0),
        ),
        allocated=Resources(
            -(-record.allocated_cpus // threads), record.allocated_memory, used.get(WAYS, 0), used.get(BANDWIDTH, 0)
        ),
        threads_per_core=threads,
        unavailable=why,
        is_planned="PLANNED" in states,
    )


def reservation(record: Any) -> ObservedReservation:
    """One pyslurm.Reservation."""
    return ObservedReservation(
        record.name, frozenset(node_names(record.nodes)), record.start_time or 0, record.end_time or 0
    )


def qos_priorities(text: str) -> tuple[tuple[str, int], ...]:
    """`name|priority|flags` lines of sacctmgr (pyslurm shows no priority of a QOS), sorted by name."""
    return tuple(sorted((name, int(priority)) for name, priority, _ in _qos_rows(text) if priority.isdigit()))


def qos_freedoms(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The flags in the same lines, of each QOS that has some, sorted by name."""
    return tuple(sorted((name, frozenset(flags.split(","))) for name, _, flags in _qos_rows(text) if flags))


def _qos_rows(text: str) -> list[list[str]]:
    return [line.rsplit("|", 2) for line in text.splitlines() if line.count("|") >= 2]


def partition(record: Any) -> ObservedPartition:
    """One pyslurm.Partition; what is unlimited has a word where the others have a number."""
    return ObservedPartition(
        name=record.name,
        state=record.state,
        tier=record.priority_tier or 0,
        nodes_min=record.min_nodes or 0,
        nodes_max=record.max_nodes if isinstance(record.max_nodes, int) else None,
        walltime_s=record.max_time * 60 if isinstance(record.max_time, int) else None,
    )


def _job_state(text: str) -> JobState:
    if text in _WAITING:
        return JobState.PENDING
    return JobState.ENDED if text in _ENDED else JobState.OCCUPYING


def _chosen_limit(tasks: int, nodes_min: int | None, nodes_max: int | None) -> int | None:
    """The owner's own upper limit of nodes, None when -n alone was given.

    Seen: for -n P alone Slurm shows the most nodes as P and the fewest as its own estimate; for -N k both are k.
    """
    if nodes_max is None or (nodes_max == tasks and nodes_max != nodes_min):
        return None
    return nodes_max


def _waits(dependencies: Mapping[str, Any] | None) -> bool:
    """Whether the job still waits for others: once all dependencies are fulfilled Slurm shows none (pyslurm: None).

    What stands in it is no help: of `singleton(unfulfilled)` pyslurm makes a mapping without any entry (seen).
    """
    return dependencies is not None


#: `52(unfulfilled)`, `41_7(failed)`, `41_*(unfulfilled)`; `52+10(unfulfilled)` waits for time to pass as well.
_DEPENDENCY = re.compile(r"([0-9]+)(?:_([0-9]+|\*))?\(([a-z]+)\)")


def _waits_for(dependencies: Mapping[str, Any] | None) -> tuple[Dependency, ...]:
    """The other jobs that the job waits for; none where any entry is of a form that we do not know."""
    found = []
    for kind, entries in (dependencies or {}).items():
        for entry in entries if isinstance(entries, list) else ():
            read = _DEPENDENCY.fullmatch(str(entry))
            if read is None:
                return ()
            job_id, task, state = read.groups()
            found.append(Dependency(kind, int(job_id), int(task) if task and task != "*" else None, state))
    return tuple(found)


def _array(record: Any) -> tuple[int | None, int | None, str]:
    """The job's array, its own task there, and the tasks that wait in one record; a record of one task is that task.

    pyslurm shows None for the task 0 (seen), but then nothing waits in the record.
    """
    if record.array_id is None:
        return None, None, ""
    waiting = record.array_tasks_waiting or ""
    if not waiting:
        return record.array_id, record.array_task_id or 0, ""
    return (record.array_id, int(waiting), "") if waiting.isdigit() else (record.array_id, None, waiting)


def _gres(record: Any, name: str) -> int:
    """How much of a gres the job asks for on each node; pyslurm puts `gres/` before the name."""
    asked = record.gres_per_node or {}
    return int(asked.get(f"gres/{name}", asked.get(name, 0)))


def _is_plain(record: Any) -> bool:
    """Whether the job uses nothing that we do not place, as far as its record shows.

    Observe mode asks: there is no mark to read.
    """
    return not (_needs_more(record) or record.excluded_nodes or record.resource_sharing != "OK")


def _is_countable(record: Any) -> bool:
    """Whether nodes, cores and memory are all that the job asks for, beside lists of nodes."""
    return not (_needs_more(record) or record.gres_per_node) and record.resource_sharing in ("OK", "NO")


def _needs_more(record: Any) -> bool:
    """Whether the job asks for more than nodes, cores and memory."""
    return bool(
        record.heterogeneous_id
        or record.reservation
        or record.constraints
        or record.preferred_features
        or record.requires_contiguous_nodes
        or record.required_switches
        or record.licenses
        or record.burst_buffer
        or record.sockets_per_node
        or record.cores_per_socket
        or record.threads_per_core
        or record.temporary_disk_per_node
        or (record.min_cpus_per_node or 0) > (record.cpus_per_task or 1) * (record.ntasks_per_node or 1)
        or record.gres
    )


def _occupies(record: Any) -> Resources:
    """Cores and memory of the whole job, for its project's used share.

    Threads per core are not in the job's record: CPUs stand for cores here.
    """
    cpus, nodes = record.cpus or 1, record.num_nodes or 1
    if record.memory_per_cpu is not None:
        return Resources(cpus, record.memory_per_cpu * cpus)
    return Resources(cpus, (record.memory_per_node or 0) * nodes)
