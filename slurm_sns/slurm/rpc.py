"""What is sent to slurmctld: an order of the gate is one RPC, through pyslurm, our own library or `scontrol update`.

pyslurm is ten times faster than a process, but it sends no empty text, so it cannot clear a field, and it cannot name
tasks of an array. Such orders go through our own library, and where that is not installed, through scontrol. Only the
library changes several tasks by one RPC: scontrol refuses to give nodes to more than one (seen).

Seen with Slurm 26.05 and pyslurm 25.11:

- pyslurm leaves out the number 0, but not the text `0`; with memory it leaves out both. An update ignores `nodes=`: the
  number of nodes follows from the tasks on each node, or stays as the job has it.
- Told `JobId=41`, scontrol changes all tasks of array 41, also those that run. After a begin time that it cannot read,
  it sends all other fields, and succeeds.
- Tasks per node raise the job's minimum of CPUs on each node, and nothing lowers it again. An update that lowers it
  gives the job too few CPUs if it clears gres, too. And Slurm writes AdminComment before the counts: if it refuses
  them, the record would speak of a job without a placement. So one with counts is taken back by two RPCs.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

from slurm_sns import task_ids
from slurm_sns.errors import Refused
from slurm_sns.scheduler.gate.orders import GateOrder, Order, OrderKind, RequeueOrder, SignalOrder
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.slurm import libslurm, translate
from slurm_sns.slurm.api import answers, has_library, library, pyslurm, run
from slurm_sns.slurm.translate import BANDWIDTH, WAYS
from slurm_sns.submit import record as records

#: The smallest time that scontrol reads as Unix seconds (parse_time.c).
LEAST_TIME_S = 1_000_000
#: scontrol's words for counts of CPUs.
_COUNTS = {"min_cpus_per_node": "MinCPUsNode", "cpus": "NumCPUs"}
NO_COUNTS: Mapping[str, int] = {}


def carry_out(order: Order) -> None:
    """Make this change.

    Raises:
        Refused: Slurm says no.
        Unreachable: slurmctld does not answer.
    """
    match order:
        case GateOrder():
            send(order)
        case RequeueOrder():
            _requeue(order)
        case SignalOrder():
            run("scancel", "--batch", f"--signal={order.signal}", order.address)
        case _:
            assert_never(order)


def send(order: GateOrder) -> None:
    """Make this change of the gate; raises as `carry_out` does."""
    if task_ids.task_of(order.job_id) is not None:
        _change_task(order)
    elif _takes_back(order):
        _take_back(order)
    else:
        # Of an owner's gres pyslurm would send another text than the owner wrote.
        api = library() if order.own_gres else pyslurm()
        with answers():
            api.Job(order.job_id).modify(api.JobSubmitDescription(**_fields(order)))


def send_together(orders: Sequence[GateOrder]) -> list[Refused | None]:
    """Make this change of the gate in all these tasks of an array by one RPC, or carry out the one order.

    Returns, for each order, Slurm's refusal, or None where it has made the change.

    Raises:
        Unreachable: slurmctld does not answer. Each change may or may not have been made.
    """
    try:
        if len(orders) == 1:
            send(orders[0])
            return [None]
        answered = _change_tasks(orders)
    except Refused as refusal:
        return [refusal for _ in orders]
    _boost_after_refusal(orders, answered)
    return [_refusal(answered.get(order.job_id)) for order in orders]


def _boost_after_refusal(orders: Sequence[GateOrder], answered: Mapping[int, int]) -> None:
    """Send the boost of tasks that come after a refused one: Slurm forgets the SiteFactor of the RPC there (seen).

    slurmctld changes the tasks by their numbers. A task that has started since needs no boost.
    """
    refused = [job_id for job_id, error in answered.items() if error]
    if not refused or orders[0].site_factor is None:
        return
    later = [order for order in orders if order.job_id > min(refused) and answered.get(order.job_id) == 0]
    if later:
        with suppress(Refused):
            _change_tasks([GateOrder(each.job_id, each.kind, site_factor=each.site_factor) for each in later])


def _change_task(order: GateOrder) -> None:
    if not has_library():
        run("scontrol", "update", f"JobId={order.address}", *_words(order))
    elif refusal := _refusal(_change_tasks([order]).get(order.job_id)):
        raise refusal


def _change_tasks(orders: Sequence[GateOrder]) -> dict[int, int]:
    """Change in the tasks of all what the first order says; Slurm's error number for each task, by job id."""
    array_ids, tasks = zip(*(task for order in orders if (task := task_ids.task_of(order.job_id))), strict=True)
    with answers():
        change = libslurm.JobSubmitDescription(**_fields(orders[0]))
        answered = libslurm.modify_tasks(array_ids[0], tasks, change)
    return {task_ids.task_id(array_ids[0], task): error for task, error in answered.items()}


def _refusal(error: int | None) -> Refused | None:
    """What Slurm answers for one of several tasks. Without an answer the next look at the task shows what it has."""
    if error is None:
        return Refused("Slurm's answer does not name it")
    return Refused(str(libslurm.RPCError(error))) if error else None


def names_tasks() -> bool:
    """Whether one RPC may change several tasks of an array."""
    return has_library()


def waits_without_lock() -> bool:
    """Whether other threads of this process go on while an RPC waits for slurmctld."""
    return pyslurm() is libslurm


def _takes_back(order: GateOrder) -> bool:
    """Whether the order clears a field, or gives the job its owner's tasks per node."""
    clears = order.nodes == () or order.gres == (0, 0) or order.extra == ""
    has_no_memory = order.memory is not None and order.memory.mb == 0
    return clears or has_no_memory or (order.kind is not OrderKind.PLACE and order.tasks_per_node is not None)


def _take_back(order: GateOrder) -> None:
    """Clear what the order clears, in this job alone, or in this record of several tasks.

    If two RPCs are needed, the first one gives the counts back and shuts the gate; only the second one opens it. If the
    second one is lost, the job's record still names the placement, and the new gate, so it is taken back once more.

    Raises:
        Refused: Slurm says no, or it is the record of several tasks, and our own library is not installed.
    """
    now = _load(order.job_id)
    if order.tasks_per_node is None or order.kind is OrderKind.PLACE:
        _update(now, order)
        return
    cpus, tasks = now.cpus_per_task, order.tasks or now.tasks
    counts = {
        "min_cpus_per_node": cpus * max(1, order.tasks_per_node),
        "cpus": max(cpus * tasks, order.cpus_of_gpus),
    }
    shuts = order.kind is OrderKind.REGATE
    first = GateOrder(
        order.job_id,
        order.kind,
        _with_times_of(order, now) if shuts else None,
        begin_s=order.begin_s if shuts else None,
        tasks_per_node=order.tasks_per_node,
        tasks=order.tasks,
        memory=order.memory,
    )
    _update(now, first, counts)
    left = replace(order, tasks_per_node=None, tasks=None, memory=None, begin_s=None if shuts else order.begin_s)
    _update(now, left)


def _with_times_of(order: GateOrder, now: ObservedJob) -> str | None:
    """AdminComment with the placement that it has now, and with the gate and the owner's begin time of the order."""
    record, wanted = now.record, records.read(order.admin_comment or "")
    if record is None or wanted is None:
        return None
    return records.written(now.admin_comment, replace(record, gate_s=wanted.gate_s, begin_s=wanted.begin_s))


def _update(now: ObservedJob, order: GateOrder, counts: Mapping[str, int] = NO_COUNTS) -> None:
    """Carry out an order that clears fields, and set these counts of CPUs."""
    if has_library():
        with answers():
            libslurm.Job(now.id).modify(libslurm.JobSubmitDescription(**_fields(order), **counts))
        return
    if now.is_array_record:
        raise Refused("these are several tasks of an array, which scontrol does not change alone")
    name = str(now.id) if now.task is None else now.label
    more = [f"{_COUNTS[each]}={number}" for each, number in counts.items()]
    run("scontrol", "update", f"JobId={name}", *_words(order), *more)


def _fields(order: GateOrder) -> dict[str, Any]:
    """The order as pyslurm's fields of a job."""
    memory = order.memory
    return {
        "admin_comment": order.admin_comment,
        "begin_time": order.begin_s,
        "required_nodes": None if order.nodes is None else list(order.nodes),
        "ntasks": order.tasks,
        "ntasks_per_node": _as_text(order.tasks_per_node),
        "gres_per_node": _gres(order),
        "memory_per_cpu": memory.mb if memory is not None and memory.is_by_cpu else None,
        "memory_per_node": memory.mb if memory is not None and not memory.is_by_cpu else None,
        "site_factor": _as_text(order.site_factor),
        "extra": order.extra,
        "partitions": None if order.partitions is None else list(order.partitions),
        "time_limit": None if order.limit_s is None else order.limit_s // 60,
        **({"own_gres": order.own_gres} if order.own_gres else {}),
    }


def _words(order: GateOrder) -> list[str]:
    """The order as scontrol's arguments; a text with blanks is a part of one argument."""
    memory, gres = order.memory, _gres(order)
    entries = [f"gres:{name}:{amount}" for name, amount in (gres or {}).items()]
    values = {
        "AdminComment": order.admin_comment,
        "StartTime": None if order.begin_s is None else f"uts{max(order.begin_s, LEAST_TIME_S)}",
        "ReqNodeList": None if order.nodes is None else ",".join(order.nodes),
        "NumTasks": order.tasks,
        "TasksPerNode": order.tasks_per_node,
        "TresPerNode": None if gres is None else ",".join(filter(None, (order.own_gres, *entries))),
        "MinMemoryCPU": memory.mb if memory is not None and memory.is_by_cpu else None,
        "MinMemoryNode": memory.mb if memory is not None and not memory.is_by_cpu else None,
        "SiteFactor": order.site_factor,
        "Extra": order.extra,
        "Partition": None if order.partitions is None else ",".join(order.partitions),
        "TimeLimit": None if order.limit_s is None else order.limit_s // 60,
    }
    return [f"{name}={value}" for name, value in values.items() if value is not None]


def _gres(order: GateOrder) -> dict[str, int] | None:
    """The ways and the bandwidth by name, without zeros."""
    if order.gres is None:
        return None
    return {name: amount for name, amount in zip((WAYS, BANDWIDTH), order.gres, strict=True) if amount}


def _as_text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _load(job_id: int) -> ObservedJob:
    with answers():
        record = pyslurm().Job.load(job_id)
    return translate.job(record)


def _requeue(order: RequeueOrder) -> None:
    """Requeue the job as it is. Slurm then lets it wait for `requeue_delay`; in that time it is gated anew.

    A job that preemption has suspended keeps its priority. Resumed before, it would run beside the job that has its
    cores (seen). One that a person has suspended has priority 0, and would wait with an administrator's hold (seen).

    Raises:
        Refused: it is not in that state now, or it may not restart.
    """
    now = _load(order.job_id)
    is_so = now.state is order.state and not now.is_completing
    if order.state is JobState.RUNNING and not is_so:
        raise Refused("it no longer runs")
    if not is_so or (order.state is JobState.SUSPENDED and now.priority == 0):
        raise Refused("it is no longer suspended by preemption")
    with answers():
        pyslurm().Job(order.job_id).requeue()
