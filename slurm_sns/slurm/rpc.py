"""What is sent to slurmctld: an order of the gate is one RPC, through pyslurm or by `scontrol update`.

pyslurm is ten times faster than a process, but it sends no empty text, so it cannot clear a field, and it cannot name
one task of an array. Such orders go through scontrol.

Seen with Slurm 26.05 and pyslurm 25.11:

- pyslurm leaves out the number 0, but not the text `0`; with memory it leaves out both. An update ignores `nodes=`: the
  number of nodes follows from the tasks on each node, or stays as the job has it.
- Told `JobId=41`, scontrol changes all tasks of array 41, also those that run. After a begin time that it cannot read,
  it sends all other fields, and succeeds.
- Tasks per node raise the job's minimum of CPUs on each node, and nothing lowers it again. An update that lowers it
  gives the job too few CPUs if it clears gres, too. And Slurm writes AdminComment before the counts: if it refuses
  them, the record would speak of a job without a placement. So one with counts is taken back by two RPCs.
"""

from dataclasses import replace
from typing import Any, assert_never

from slurm_sns import task_ids
from slurm_sns.errors import Refused
from slurm_sns.scheduler.gate.orders import GateOrder, Order, OrderKind, RequeueOrder, SignalOrder
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.slurm import libslurm, translate
from slurm_sns.slurm.api import answers, library, pyslurm, run
from slurm_sns.slurm.translate import BANDWIDTH, WAYS
from slurm_sns.submit import record as records

#: The smallest time that scontrol reads as Unix seconds (parse_time.c).
LEAST_TIME_S = 1_000_000


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
        _update(order.address, order)
    elif _takes_back(order):
        _take_back(order)
    else:
        # Of an owner's gres pyslurm would send another text than the owner wrote.
        api = library() if order.own_gres else pyslurm()
        with answers():
            api.Job(order.job_id).modify(api.JobSubmitDescription(**_fields(order)))


def waits_without_lock() -> bool:
    """Whether other threads of this process go on while an RPC waits for slurmctld."""
    return pyslurm() is libslurm


def _takes_back(order: GateOrder) -> bool:
    """Whether the order clears a field, or gives the job its owner's tasks per node."""
    clears = order.nodes == () or order.gres == (0, 0) or order.extra == ""
    has_no_memory = order.memory is not None and order.memory.mb == 0
    return clears or has_no_memory or (order.kind is not OrderKind.PLACE and order.tasks_per_node is not None)


def _take_back(order: GateOrder) -> None:
    """Clear what the order clears, by the name that means this job alone.

    If two RPCs are needed, the first one gives the counts back and shuts the gate; only the second one opens it. If the
    second one is lost, the job's record still names the placement, and the new gate, so it is taken back once more.

    Raises:
        Refused: Slurm says no, or it is the record of several tasks, in which we place nothing.
    """
    now = _load(order.job_id)
    if now.is_array_record:
        raise Refused("these are several tasks of an array, which are placed one by one")
    name = str(now.id) if now.task is None else now.label
    if order.tasks_per_node is None or order.kind is OrderKind.PLACE:
        _update(name, order)
        return
    cpus, tasks = now.cpus_per_task, order.tasks or now.tasks
    counts = [
        f"MinCPUsNode={cpus * max(1, order.tasks_per_node)}",
        f"NumCPUs={max(cpus * tasks, order.cpus_of_gpus)}",
    ]
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
    _update(name, first, *counts)
    left = replace(order, tasks_per_node=None, tasks=None, memory=None, begin_s=None if shuts else order.begin_s)
    _update(name, left)


def _with_times_of(order: GateOrder, now: ObservedJob) -> str | None:
    """AdminComment with the placement that it has now, and with the gate and the owner's begin time of the order."""
    record, wanted = now.record, records.read(order.admin_comment or "")
    if record is None or wanted is None:
        return None
    return records.written(now.admin_comment, replace(record, gate_s=wanted.gate_s, begin_s=wanted.begin_s))


def _update(name: str, order: GateOrder, *more: str) -> None:
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
