"""The orders of the gate: each is the set of fields that change in one job, with its new AdminComment.

| order | when | what it sends |
|---|---|---|
| place | a plan starts a gated job | nodes, tasks per node, gres, memory, boost, grant, begin 1, record |
| regate | a placement is taken back | the placement's fields as its owner had them, boost off, gate and record anew |
| free | the job becomes Slurm's | the same with begin 1, or the owner's begin time if it lies ahead, and `free=` |
| renew | the gate of a job is moved | gate and record |
| widen | a job has waited in some of the partitions that are alike | all of them as its partitions, and record |
| unboost | a placed job runs | boost off; its record stays, for the requeue that may come |

A field that no longer equals what the record says has been changed by its owner, and is left alone. A priority or a
nice value is in no order. Begin 1 lies in the past: slurmctld makes it its own now, so the gate opens by its clock; 0
would mean "unchanged" (_update_job in job_mgr.c). An array's record is named by its numeric id: by the text form `41`
Slurm would change its running tasks, too.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter
from typing import Any, TypeVar

from slurm_sns.errors import Infeasible, Refused, Unreachable
from slurm_sns.scheduler.gate.job_status import Status, has_nodes_of, own_begin_s
from slurm_sns.scheduler.observation import JobState, ObservedJob
from slurm_sns.submit import record as records
from slurm_sns.submit.record import MemoryRequest, Record
from slurm_sns.wire import grants

#: The SiteFactor of a placed job, ahead of every job of Slurm's own queue. Slurm takes up to 2^31 - 3 in either
#: direction (NICE_OFFSET in slurm.h); the rest is left for the other factors of its priority.
BOOST = 2_000_000_000
#: A priority from here on has our boost. Slurm shows no job's SiteFactor, but its priority, unless the job is held. The
#: site's own factors stay below that (slurm.check.site_settings).
LEAST_BOOSTED = 1_900_000_000
#: The begin time that opens a gate.
OPEN = 1


class OrderKind(StrEnum):
    """What an order is for; the value is shown to users."""

    PLACE = "place"
    REGATE = "regate"
    FREE = "free"
    RENEW = "renew"
    WIDEN = "widen"
    UNBOOST = "unboost"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class GateOrder:
    """A change of one job, by one RPC; None leaves a field as it is. Alike changes of an array's tasks may share one.

    Attributes:
        job_id: the job, or an array's record, by its numeric id.
        address: what Slurm calls it if it is one task of an array's record, `41_7`: then `job_id` is ours, not Slurm's.
        kind: what the order is for.
        admin_comment: the whole new text of the field.
        begin_s: the new begin time, `OPEN` to open the gate.
        nodes: the required nodes; empty clears the list.
        tasks_per_node: 0 clears it.
        tasks: all tasks of the job, sent with the tasks per node: Slurm before 26.05 would make them nodes times tasks
            per node (seen on 24.11).
        cpus_of_gpus: with the owner's tasks per node: the CPUs that the job asks for by its GPUs, in all.
        gres: ways and bandwidth (GB/s) on each node; two zeros clear them.
        own_gres: what the job's owner asks for in the same field of Slurm's, which is sent beside them: GPUs.
        memory: the memory request, by CPU or by node.
        site_factor: Slurm's SiteFactor.
        extra: the whole new text of Extra.
        partitions: all partitions in which it may run.
        limit_s: the new time limit, in whole minutes.
    """

    job_id: int
    kind: OrderKind
    admin_comment: str | None = None
    begin_s: int | None = None
    nodes: tuple[str, ...] | None = None
    tasks_per_node: int | None = None
    tasks: int | None = None
    cpus_of_gpus: int = 0
    gres: tuple[int, int] | None = None
    own_gres: str = ""
    memory: MemoryRequest | None = None
    site_factor: int | None = None
    extra: str | None = None
    address: str = ""
    partitions: tuple[str, ...] | None = None
    limit_s: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a job is to run, and what it gets on each node; None or 0 leaves what the job has.

    `grant` is the token for the agents on its nodes; None where it gets none.
    """

    nodes: tuple[str, ...]
    tasks_per_node: int | None = None
    memory_mb: int | None = None
    ways: int = 0
    bandwidth_gbps: int = 0
    grant: str | None = None


def place(job: ObservedJob, placement: Placement, now_s: float, *, has_boost: bool) -> GateOrder:
    """Pin a gated job to its nodes and open its gate. `has_boost`: the site's priorities have a SiteFactor for us.

    Raises:
        Infeasible: the job has no record, or the record of the placement is longer than `records.MOST_LETTERS`.
    """
    record = job.record
    if record is None:
        raise Infeasible(f"job {job.id}: its AdminComment has no record of ours")
    placed = replace(
        _unplaced(record, job),
        gate_s=record.gate_s,
        begin_s=_begin_s(job, record, now_s),
        nodes=placement.nodes,
        placed_s=int(now_s),
        ways=placement.ways,
        bandwidth_gbps=placement.bandwidth_gbps,
        **_replaced(job, record, placement),
    )
    letters = len(records.segment(placed))
    if letters > records.MOST_LETTERS:
        most = records.MOST_LETTERS
        raise Infeasible(
            f"job {job.id}: the record of {len(placement.nodes)} nodes has {letters} letters; most: {most}"
        )
    return GateOrder(
        job.id,
        OrderKind.PLACE,
        admin_comment=records.written(job.admin_comment, placed),
        begin_s=OPEN,
        nodes=placement.nodes,
        tasks_per_node=placement.tasks_per_node,
        tasks=None if placement.tasks_per_node is None else job.tasks,
        **_gres(job, placement.ways, placement.bandwidth_gbps, is_given=True),
        memory=None if placement.memory_mb is None else MemoryRequest(placement.memory_mb),
        site_factor=BOOST if has_boost else None,
        extra=None if placement.grant is None else grants.with_grant(job.extra, placement.grant),
        address=job.task_address,
    )


def regate(job: ObservedJob, gate_s: int, now_s: float) -> GateOrder | None:
    """Take the placement back and gate the job until `gate_s`; None if it has no record or is Slurm's."""
    record = job.record
    if record is None or record.is_slurms:
        return None
    gated = replace(_unplaced(record, job), gate_s=gate_s, begin_s=_begin_s(job, record, now_s))
    return _taken_back(job, record, OrderKind.REGATE, gated, gate_s)


def free(job: ObservedJob, why: str, now_s: float) -> GateOrder | None:
    """Take back all that is ours and give the job to Slurm; None if nothing is to be done.

    Nothing is to be done for a job without a record, for one that is Slurm's already, and for one that does not wait.
    The text of `why` becomes a word of the record (records.reason).
    """
    record = job.record
    if record is None or record.is_slurms or job.is_special or job.state is not JobState.PENDING:
        return None
    freed = replace(_unplaced(record, job), gate_s=None, begin_s=None, free_why=records.reason(why))
    return _taken_back(job, record, OrderKind.FREE, freed, _opened_s(job, record, now_s))


def renew(job: ObservedJob, gate_s: int, now_s: float) -> GateOrder | None:
    """Move the gate of a job that is not placed to `gate_s`; None if it has no record, is placed or is Slurm's."""
    record = job.record
    if record is None or record.is_slurms or record.is_placed:
        return None
    gated = replace(_unplaced(record, job), gate_s=gate_s, begin_s=_begin_s(job, record, now_s))
    comment = records.written(job.admin_comment, gated)
    return GateOrder(job.id, OrderKind.RENEW, comment, gate_s, address=job.task_address)


def widen(job: ObservedJob, others: tuple[str, ...]) -> GateOrder | None:
    """Let a gated job run in these other partitions as well, which come after its own.

    The record has its own ones from then on. None if it has no record, is placed or is Slurm's.
    """
    record = job.record
    if record is None or record.is_slurms or record.is_placed:
        return None
    comment = records.written(job.admin_comment, replace(record, own_partitions=job.partitions))
    return GateOrder(job.id, OrderKind.WIDEN, comment, partitions=(*job.partitions, *others))


def unboost(job: ObservedJob) -> GateOrder | None:
    """Take our boost off a job that runs; None if it has none of ours, or is completing: Slurm changes no such job."""
    record = job.record
    if record is None or not record.is_placed or job.is_completing:
        return None
    # Nice is subtracted, and no priority is below 1.
    if job.priority <= 1 or job.priority + job.nice < LEAST_BOOSTED:
        return None
    return GateOrder(job.id, OrderKind.UNBOOST, site_factor=0)


def own_limit_s(job: ObservedJob) -> int | None:
    """The time limit that the job's owner, or an administrator, gave last; None: no limit.

    Owners may lower a limit. Of one that we have raised that gives them no more than they had.
    """
    record, limit_s = job.record, job.walltime_s
    if record is None or record.own_limit_s is None or record.given_limit_s is None or limit_s is None:
        return limit_s
    if limit_s == record.given_limit_s:
        return record.own_limit_s
    return min(limit_s, record.own_limit_s) if limit_s < record.given_limit_s else limit_s


def move_limit(job: ObservedJob, limit_s: int) -> GateOrder | None:
    """Give a running job that we placed another time limit.

    None if it is not such a job, has no limit, or if its record would be too long.
    """
    record, own_s = job.record, own_limit_s(job)
    if record is None or not record.is_placed or own_s is None or job.is_completing:
        return None
    noted = replace(record, own_limit_s=own_s, given_limit_s=limit_s)
    if len(records.segment(noted)) > records.MOST_LETTERS:
        return None
    comment = records.written(job.admin_comment, noted)
    return GateOrder(job.id, OrderKind.LIMIT, admin_comment=comment, limit_s=limit_s)


def follow_up(job: ObservedJob, status: Status, gate_s: int | None, now_s: float) -> GateOrder | None:
    """The order that the state table says for a job of this status; None if it says none.

    `gate_s` is where the gate of this job may stand now (leases.next_gate_s); None: no gate fits before its deadline.
    """
    match status:
        case Status.RUNNING:
            return unboost(job)
        case Status.TAKEN:
            return free(job, _why_taken(job), now_s)
        case Status.CHANGED | Status.REQUEUED if _has_owners_nodes(job):
            return free(job, "node list", now_s)
        case Status.REQUEUED | Status.OVERDUE | Status.HALF_APPLIED | Status.HELD_PLACED | Status.CHANGED:
            return free(job, "deadline", now_s) if gate_s is None else regate(job, gate_s, now_s)
        case Status.OWN_TIME | Status.LAPSED:
            return free(job, "deadline", now_s) if gate_s is None else renew(job, gate_s, now_s)
        case _:
            return None


def _why_taken(job: ObservedJob) -> str:
    if job.pinned_to:
        return "node list"
    is_changed = job.ways or job.bandwidth_gbps or job.has_other_gres or not job.is_plain
    return "changed by its owner" if is_changed else "opened by its owner"


def _has_owners_nodes(job: ObservedJob) -> bool:
    """Whether the node list is not that of the record: also if a placed job has none any more.

    A requeued job without a node list has run as Slurm chose, or its owner has cleared it: it is placed anew.
    """
    record = job.record
    if record is None or (not job.pinned_to and job.restarts > record.restarts):
        return False
    return not has_nodes_of(job, record)


def _opened_s(job: ObservedJob, record: Record, now_s: float) -> int | None:
    """The begin time of a job that becomes Slurm's: its owner's if that lies ahead, otherwise none in the future."""
    if job.begin_s <= now_s:
        is_opened = job.begin_s not in (0, record.gate_s)  # by its owner, or by our placement
        return None if is_opened else own_begin_s(job, record, now_s)
    if job.begin_s != record.gate_s:  # its owner's, or Slurm's after a requeue
        return None
    return own_begin_s(job, record, now_s) or OPEN


def _begin_s(job: ObservedJob, record: Record, now_s: float) -> int | None:
    """The owner's begin time for the record. It stays there when it has come: the job has waited since then."""
    return own_begin_s(job, record, now_s) or record.begin_s


def _unplaced(record: Record, job: ObservedJob) -> Record:
    """The record without its placement and its times."""
    restarts = max(job.restarts, record.restarts)
    return Record(hints=record.hints, restarts=restarts, own_partitions=record.own_partitions)


def _replaced(job: ObservedJob, record: Record, placement: Placement) -> dict[str, Any]:
    """The words of the record for what this placement replaces in the job, and what it replaces that by.

    If an earlier placement is on the job still, the owner's values are those of its record.
    """
    words: dict[str, Any] = {}
    own_tasks, own_memory = _own_tasks_per_node(job, record), _own_memory(job, record)
    if placement.tasks_per_node is not None:
        shown = job.tasks_per_node or 0
        own = shown if own_tasks is None else own_tasks
        words |= {"tasks_per_node": own, "given_tasks_per_node": placement.tasks_per_node}
    if placement.memory_mb is not None:
        words |= {"own_memory": own_memory or _memory_of(job), "given_memory_mb": placement.memory_mb}
    return words


def _taken_back(job: ObservedJob, record: Record, kind: OrderKind, left: Record, begin_s: int | None) -> GateOrder:
    """Each field of the placement as its owner had it, if it still is what the record says."""
    own_tasks = _own_tasks_per_node(job, record)
    is_our_gres = (job.ways, job.bandwidth_gbps) == (record.ways, record.bandwidth_gbps) and not job.has_other_gres
    return GateOrder(
        job.id,
        kind,
        admin_comment=records.written(job.admin_comment, left),
        begin_s=begin_s,
        nodes=() if has_nodes_of(job, record) else None,
        tasks_per_node=own_tasks,
        tasks=None if own_tasks is None else job.tasks,
        cpus_of_gpus=0 if own_tasks is None or job.gpus is None else job.gpus.cpus * job.gpus.in_all(job.tasks, 1),
        **_gres(job, record.ways, record.bandwidth_gbps, is_given=False) if is_our_gres else {},
        memory=_own_memory(job, record),
        site_factor=0 if record.is_placed else None,
        extra=grants.without_grant(job.extra) if record.is_placed else None,
        address=job.task_address,
        limit_s=None if record.own_limit_s is None else own_limit_s(job),
    )


def _gres(job: ObservedJob, ways: int, bandwidth_gbps: int, *, is_given: bool) -> dict[str, Any]:
    """The fields of an order that gives the job these gres beside its owner's, or takes them; none if both are 0."""
    if not (ways or bandwidth_gbps):
        return {}
    return {"gres": (ways, bandwidth_gbps) if is_given else (0, 0), "own_gres": job.own_gres}


def _own_tasks_per_node(job: ObservedJob, record: Record) -> int | None:
    """The owner's tasks per node if ours are on the job, otherwise None."""
    given = record.given_tasks_per_node
    return record.tasks_per_node if given is not None and job.tasks_per_node == given else None


def _own_memory(job: ObservedJob, record: Record) -> MemoryRequest | None:
    """The owner's memory if ours is on the job, otherwise None."""
    is_ours = job.memory_per_cpu_mb is None and job.memory_per_node_mb == record.given_memory_mb
    return record.own_memory if is_ours and record.given_memory_mb is not None else None


def _memory_of(job: ObservedJob) -> MemoryRequest:
    if job.memory_per_cpu_mb is not None:
        return MemoryRequest(job.memory_per_cpu_mb, is_by_cpu=True)
    return MemoryRequest(job.memory_per_node_mb or 0)


@dataclass(frozen=True, slots=True)
class RequeueOrder:
    """End the run of a job, and let it wait again: one that preemption has suspended, or one that runs."""

    job_id: int
    state: JobState = JobState.SUSPENDED


@dataclass(frozen=True, slots=True)
class SignalOrder:
    """Send the job's batch script a signal, by its name without SIG; `address` is what Slurm calls the job alone."""

    job_id: int
    signal: str
    address: str


Order = GateOrder | RequeueOrder | SignalOrder


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an order: it is done unless Slurm refused it or slurmctld could not be reached.

    With `unreachable` the change may or may not have happened, and may not have been sent at all.
    """

    order: Order
    refused: Refused | None = None
    unreachable: Unreachable | None = None


def one_by_one(orders: Iterable[Order], carry_out: Callable[[Order], None]) -> Iterator[Answer]:
    """Carry out each order when its answer is asked for. Once slurmctld does not answer, no further order is sent."""
    lost: Unreachable | None = None
    for order in orders:
        refused: Refused | None = None
        if lost is None:
            try:
                carry_out(order)
            except Refused as refusal:
                refused = refusal
            except Unreachable as problem:
                lost = problem
        yield Answer(order, refused, lost)


def reached(answers: Iterable[Answer]) -> Iterator[Answer]:
    """The answers, up to the first order for which slurmctld could not be reached.

    Raises:
        Unreachable: slurmctld does not answer; the orders after that one were not sent.
    """
    for answer in answers:
        if answer.unreachable is not None:
            raise answer.unreachable
        yield answer


#: What is sent in turn.
_Change = TypeVar("_Change")


def round_robin(
    changes: Iterable[_Change], owner: Callable[[_Change], Hashable], most: int | None = None
) -> list[_Change]:
    """At most `most` of the changes (None: all), one of each owner in turn, owners in the order of their first change.

    The changes of one owner keep their order, so two changes of the same job are never swapped.
    """
    first: dict[Hashable, int] = {}
    turns: Counter[Hashable] = Counter()
    in_turn: list[tuple[int, int, _Change]] = []
    for change in changes:
        who = owner(change)
        in_turn.append((turns[who], first.setdefault(who, len(first)), change))
        turns[who] += 1
    in_turn.sort(key=itemgetter(0, 1))
    return [change for _, _, change in in_turn[:most]]
