"""Translates pyslurm's objects to our values. Pure: it reads attributes and calls nothing; tested on recorded answers.

pyslurm gives None where Slurm has no value. Memory is in MiB, time limits are in minutes. Users can write anything into
their jobs. So every record is read as far as possible: no content of it raises an error, and numbers are limited to
what a machine can have.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from slurm_sns import constraints, gpus
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.gpus import GpuRequest, GresTexts
from slurm_sns.model import GPU, NOTHING, Gpus, Resources
from slurm_sns.node_lists import NodeLists
from slurm_sns.scheduler.observation import (
    ALL,
    UNREADABLE,
    JobState,
    Names,
    ObservedJob,
    ObservedNode,
    ObservedPartition,
    ObservedReservation,
    PartitionAccess,
)
from slurm_sns.submit import record as records
from slurm_sns.submit.record import Record

#: The gres that carry last-level-cache ways and GB/s of memory bandwidth.
WAYS, BANDWIDTH = "llc", "membw"
_OURS = frozenset({WAYS, BANDWIDTH})
_WITH_GPUS = _OURS | {GPU}

#: The most nodes that the submit filter (sns_filter.lua) writes into a job with -n alone; slurmctld counts no further.
ANY_NUMBER_OF_NODES = 500_000

#: As slurm_job_state_string spells them; flags hide the base state. SUSPENDED is a state of its own. All other states
#: (RUNNING, COMPLETING, CONFIGURING, RESIZING, STOPPED, SIGNALING, STAGE_OUT, ...) count as running: they occupy nodes.
_WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_ENDED = frozenset(
    {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"}
    | {"OUT_OF_MEMORY", "REVOKED"}
)

#: Parts of a node's state ("IDLE+DRAIN", "MIXED+PLANNED"), as slurm_node_state_string_complete spells them, that forbid
#: planning on the node. A powered-down node is usable, because Slurm wakes it; a node that is powering down is not.
_UNAVAILABLE = frozenset(
    {"UNKNOWN", "DOWN", "ERROR", "FUTURE", "INVALID", "DRAIN", "FAIL", "NOT_RESPONDING", "MAINTENANCE", "RESERVED"}
    | {"BLOCKED", "INVALID_REG", "REBOOT_REQUESTED", "REBOOT_ISSUED", "POWERING_DOWN", "DYNAMIC_FUTURE"}
    | {"EXTERNAL"}
)


#: Parses the node lists of all records. It may be shared: what it caches depends on the text alone.
node_names = NodeLists().names


#: Larger than any machine, small enough for sums of many jobs in 64 bits. Slurm's 64-bit numbers are clamped to these,
#: because a user can write any number into a job (MinMemoryCPU=4611686018427387903); a job that asks for more fits
#: nowhere anyway. All other numbers have 32 bits or are times.
#: Of one node, or of a job on one: the scores of the compiled kernel hold a thousand times as much.
MOST_MEMORY_MB = 1 << 32
#: Of a job on all its nodes.
MOST_JOB_MEMORY_MB = 1 << 40
MOST_GRES = 1 << 24
#: A hundred thousand years.
MOST_RUN_S = 1 << 42


#: pyslurm's word for the largest number of a width, which Slurm may use for "no limit". Owners can write such numbers:
#: `scontrol update NtasksPerNode=65535`.
UNLIMITED = "UNLIMITED"
LARGEST_U16, LARGEST_U32 = (1 << 16) - 1, (1 << 32) - 1


#: Longest text of an error, in characters: pyslurm's errors may repeat a user's text of any length.
MOST_CHARACTERS = 200


def _in_short(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"[:MOST_CHARACTERS]


class _Tolerant:
    """A record with unreadable fields: each of those is None, or `?` if it is text that is not UTF-8.

    Slurm stores some fields as users wrote them, and pyslurm fails to convert some of these: `--gres=a:b:0k` and
    `--gres=gpu:a100:2,nvme` raise ValueError, a name that is not UTF-8 raises UnicodeDecodeError. `problems` has an
    error text for each field that is None for this reason.
    """

    def __init__(self, record: Any) -> None:
        self._record = record
        self.problems: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._record, name)
        except UnicodeDecodeError:
            return UNREADABLE
        except AttributeError:
            raise  # an older pyslurm does not have it
        except Exception as problem:  # noqa: BLE001 - whatever one record makes pyslurm raise costs that record only
            self.problems[name] = f"{name} cannot be read: {_in_short(problem)}"
            return None

    @property
    def unreadable(self) -> str:
        """All problems in one line; empty if there are none."""
        return "; ".join(self.problems.values())


#: pyslurm fails to read this field in some valid records. Even then we know that the job asks for a gres.
_GRES_FIELDS = frozenset({"gres_per_node"})


def job(
    record: Any,
    user_name: Callable[[int], str] = str,
    *,
    shows_estimates: bool = False,
    forced: Names = frozenset(),
) -> ObservedJob:
    """Translate one pyslurm.Job, whatever its owner wrote into it. `user_name` turns a user id into a name.

    `shows_estimates`: this Slurm shows its own estimate of the nodes as if the owner had asked for them (before 26.05).
    `forced` are the partitions with OverSubscribe=FORCE, in which every job shows what --oversubscribe shows elsewhere.
    """
    try:
        return _job(record, user_name, shows_estimates, forced)
    except Exception:  # noqa: BLE001 - one bad record costs that record only; it is read again, field by field
        return _tolerantly(_Tolerant(record), user_name, shows_estimates, forced)


def _tolerantly(
    record: _Tolerant, user_name: Callable[[int], str], shows_estimates: bool, forced: Names
) -> ObservedJob:
    try:
        seen = _job(record, user_name, shows_estimates, forced)
    except Exception as problem:  # noqa: BLE001 - as above
        return replace(_in_part(record), unreadable=record.unreadable or _in_short(problem))
    if not record.problems:
        return seen
    if record.problems.keys() <= _GRES_FIELDS:
        asks_for = tuple(dict.fromkeys((*seen.asks_for, "gres")))
        return replace(seen, asks_for=asks_for, has_other_gres=True, is_countable=False)
    return replace(seen, is_countable=False, unreadable=record.unreadable)


def _in_part(read: _Tolerant) -> ObservedJob:
    """Translate only what freeing the job and counting its use need. Raises nothing."""
    state = _job_state(read.state or "")
    array_id, array_task, array_tasks = _or(_array, read, (None, None, ""))
    admin_comment = read.admin_comment or ""
    note = records.read(admin_comment)
    gres = _or(_tolerated_gres, read, (0, 0, False, False))
    ways, bandwidth_gbps, has_other_gres, has_gres = gres
    return ObservedJob(
        **_plain_fields(read, state, admin_comment),
        user_id=read.user_id or 0,
        pinned_to=_or(lambda of: node_names(of.required_nodes), read, ("?",) if read.required_nodes else ()),
        allocated=_or(lambda of: node_names(of.allocated_nodes), read, ()),
        memory_per_cpu_mb=_or(lambda of: _memory(of.memory_per_cpu), read, None),
        memory_per_node_mb=_or(lambda of: _memory(of.memory_per_node), read, None),
        ways=ways,
        bandwidth_gbps=bandwidth_gbps,
        has_other_gres=has_other_gres,
        array_id=array_id,
        array_task=array_task,
        array_tasks=array_tasks,
        asks_for=("gres",) if has_other_gres or (has_gres and not _is_ours(note)) else (),
        is_countable=False,
        occupies=_occupies(read) if state.occupies_nodes else NOTHING,
    )


def _or(read: Callable[[Any], Any], record: Any, default: Any) -> Any:
    """What `read` returns for the record, or the default if it raises."""
    try:
        return read(record)
    except Exception:  # noqa: BLE001 - as in _Tolerant
        return default


def _job(record: Any, user_name: Callable[[int], str], shows_estimates: bool, forced: Names) -> ObservedJob:
    array_id, array_task, array_tasks = _array(record)
    state = _job_state(record.state)
    admin_comment = record.admin_comment or ""
    note = records.read(admin_comment)
    is_ours = _is_ours(note)
    required = node_names(record.required_nodes)
    gres = record.gres_per_node or {}
    asked, own_gres, is_asked_otherwise = _gpus(record)
    all_gres = (*gres, *(record.gres or ()))
    has_other_gres = is_asked_otherwise or _has_other(all_gres, asked)
    # A job of ours may have its ways and its bandwidth from a placement.
    asks_for_gres = has_other_gres or (not is_ours and _has_ours(all_gres))
    constraint = ",".join(record.constraints or ())  # pyslurm cuts it at commas, which Slurm turns into `&`
    partitions = tuple((record.partition or "").split(","))
    asks_for = _asks_for(record, constraint, asks_for_gres=asks_for_gres, is_ours=is_ours)
    if record.resource_sharing == "YES" and not forced.isdisjoint(partitions):
        asks_for = tuple(word for word in asks_for if word != OVERSUBSCRIBES)
    tasks = _u32(record.ntasks) or 1
    nodes_min, nodes_max = _u32(record.num_nodes), _u32(record.max_nodes)
    is_estimate = shows_estimates and note is not None and not note.hints.fixed
    has_open_nodes = nodes_max == ANY_NUMBER_OF_NODES
    is_open = asked is not None and asked.by != gpus.NODE and not (note is not None and note.hints.fixed)
    if is_open and asked is not None and nodes_max == asked.in_all(tasks, 1):
        nodes_max = None  # Slurm's own limit: no more nodes than GPUs (seen)
    return ObservedJob(
        **_plain_fields(record, state, admin_comment),
        user_id=record.user_id,
        user=user_name(record.user_id),
        name=record.name or "",
        partitions=partitions,
        qos=record.qos or "",
        comment=record.comment or "",
        pinned_to=required,
        allocated=node_names(record.allocated_nodes),
        cpus_per_task=_u16(record.cpus_per_task) or 1,
        min_cpus_per_node=_u32(record.min_cpus_per_node) or 1,
        nodes_min=nodes_min,
        nodes_max=_chosen_limit(tasks, nodes_min, nodes_max, is_estimate=is_estimate),
        has_open_nodes=has_open_nodes,
        memory_per_cpu_mb=_memory(record.memory_per_cpu),
        memory_per_node_mb=_memory(record.memory_per_node),
        walltime_s=_seconds(record.time_limit),
        time_min_s=_seconds(record.time_limit_min),
        deadline_s=record.deadline,
        start_s=record.start_time or 0,
        end_s=record.end_time or 0,
        suspended_s=record.suspend_time or 0,
        ran_s=_ran_s(record, state),
        may_restart=bool(record.is_requeueable),
        ways=_gres(gres, WAYS),
        bandwidth_gbps=_gres(gres, BANDWIDTH),
        gpus=asked,
        own_gres=own_gres,
        has_other_gres=has_other_gres,
        # Once all dependencies are fulfilled Slurm shows none (pyslurm: None). The entries do not tell: pyslurm turns
        # `singleton(unfulfilled)` into a mapping without any entry (seen).
        waits_for_others=record.dependencies is not None,
        is_batch=bool(record.is_batch_job),
        has_succeeded=record.state == "COMPLETED",
        array_id=array_id,
        array_task=array_task,
        array_tasks=array_tasks,
        array_limit=_u32(record.array_tasks_parallel) or None,
        asks_for=asks_for,
        planned_on=node_names(record.scheduled_nodes) if state is JobState.PENDING else (),
        constraint=constraint,
        excluded=node_names(record.excluded_nodes),
        is_alone=record.resource_sharing == "NO",
        is_countable=not (gres or asked or asks_for or constraint),
        occupies=_occupies(record) if state.occupies_nodes or required else NOTHING,
        mail_to=_mail_to(record) if is_ours and state is JobState.PENDING else "",
    )


def _mail_to(record: Any) -> str:
    """Whom Slurm mails when the job fails: where the owner named nobody, it shows the owner, with MailDomain if set.

    `--mail-type=ALL` contains FAIL. pyslurm does not show INVALID_DEPEND. It cuts the addresses at commas.
    """
    return ",".join(record.mail_user or ()) if "FAIL" in (record.mail_types or ()) else ""


def _plain_fields(record: Any, state: JobState, admin_comment: str) -> dict[str, Any]:
    """The fields that are read in the same way of any job."""
    return {
        "id": record.id,
        "submit_s": record.submit_time or 0,
        "state": state,
        "account": record.account or "",
        "priority": _priority(record.priority),
        "nice": record.nice or 0,
        "restarts": _u16(record.requeue_count) or 0,
        "admin_comment": admin_comment,
        "extra": record.extra or "",
        # A cron, heterogeneous or federated job.
        "is_special": bool(record.is_cronjob or record.heterogeneous_id or record.federation_origin),
        "reason": "" if record.state_reason in (None, "None") else record.state_reason,
        "tasks": _u32(record.ntasks) or 1,
        "cpus": _u32(record.cpus) or 1,
        "tasks_per_node": _u16(record.ntasks_per_node),
        "begin_s": record.eligible_time or 0,
        "is_completing": record.state == "COMPLETING",
    }


def _is_ours(note: Record | None) -> bool:
    """Whether the job's record is ours and does not leave the job to Slurm."""
    return note is not None and not note.is_slurms


def _seconds(minutes: int | None) -> int | None:
    return None if minutes is None else minutes * 60


def _u16(shown: Any) -> Any:
    """A number of 16 bits; None where Slurm has none."""
    return LARGEST_U16 if shown == UNLIMITED else shown


def _u32(shown: Any) -> Any:
    """A number of 32 bits; None where Slurm has none."""
    return LARGEST_U32 if shown == UNLIMITED else shown


def _priority(shown: Any) -> int:
    """The priority: above 0, that is not held, if it cannot be read.

    Slurm limits the priority of a placed job to 2^32 - 1 if the site's weights are large.
    """
    priority: int = 1 if shown is None else _u32(shown)
    return priority


def _ran_s(record: Any, state: JobState) -> int:
    """How long the job has run, of one that runs until it was last started or resumed; 0 where Slurm does not say."""
    shown = record.run_time
    if not isinstance(shown, int):
        return 0
    if state is not JobState.RUNNING:
        return _clamped(shown, MOST_RUN_S)
    # Never suspended, it had not run before, whatever two clocks say.
    return _clamped(shown - (int(time.time()) - record.suspend_time), MOST_RUN_S) if record.suspend_time else 0


def _clamped(amount: int, most: int) -> int:
    """The amount, limited to 0 ... `most`."""
    return min(max(int(amount), 0), most)


def _memory(asked_mb: int | None) -> int | None:
    return None if asked_mb is None else _clamped(asked_mb, MOST_MEMORY_MB)


def node(record: Any) -> ObservedNode:
    """Translate one pyslurm.Node, with what Slurm has allocated on it.

    If only its gres cannot be read, it has no ways and no bandwidth. If anything else cannot be read, it is
    unavailable.
    """
    try:
        return _node(record)
    except Exception:  # noqa: BLE001 - one bad record costs that record only; it is read again, field by field
        read = _Tolerant(record)
    try:
        seen = replace(_node(read), unreadable=read.unreadable)
    except Exception as problem:  # noqa: BLE001 - as above
        why = f"its record cannot be read: {_in_short(problem)}"
        return ObservedNode(read.name, frozenset(), NOTHING, NOTHING, unavailable=why, unreadable=why)
    if read.problems.keys() <= {"configured_gres", "allocated_gres", "gres_used"}:
        both = seen.capacity, seen.allocated
        capacity, allocated = (each._replace(ways=0, bandwidth_gbps=0, gpus=()) for each in both)
        return replace(seen, capacity=capacity, allocated=allocated)
    return replace(seen, unavailable=f"its record cannot be read: {read.unreadable}")


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
            (record.effective_cpus or 0) // threads,
            _clamped((record.real_memory or 0) - (record.memory_reserved_for_system or 0), MOST_MEMORY_MB),
            _gres(gres, WAYS),
            _gres(gres, BANDWIDTH),
            gpus=gpus.of_node(_counts(gres)),
        ),
        allocated=Resources(
            -(-record.allocated_cpus // threads),
            _clamped(record.allocated_memory or 0, MOST_MEMORY_MB),
            _gres(used, WAYS),
            _gres(used, BANDWIDTH),
            gpus=_gpus_used(record, used),
        ),
        threads_per_core=threads,
        features=frozenset(record.active_features or ()),
        weight=1 if record.weight is None else record.weight,
        sockets=max(1, record.sockets or 1),
        unavailable=why,
        is_planned="PLANNED" in states,
    )


def _gpus_used(record: Any, allocated: Mapping[str, Any]) -> Gpus:
    """The GPUs of the node that jobs have. pyslurm shows them only as far as AccountingStorageTRES has them."""
    used = getattr(record, "gres_used", None)
    return gpus.of_node(_counts(used)) if used is not None else gpus.of_tres(_counts(allocated))


def _counts(amounts: Mapping[str, Any]) -> dict[str, int]:
    return {name.removeprefix("gres/"): _clamped(amount, MOST_GRES) for name, amount in amounts.items()}


def reservation(record: Any) -> ObservedReservation:
    """Translate one pyslurm.Reservation. One that cannot be read gets no nodes; Slurm starts nothing on them anyway."""
    try:
        return ObservedReservation(
            record.name, frozenset(node_names(record.nodes)), record.start_time or 0, record.end_time or 0
        )
    except Exception as problem:  # noqa: BLE001 - one bad record costs that record only
        name = _Tolerant(record).name or "?"
        return ObservedReservation(name, frozenset(), 0, 0, _in_short(problem))


def partition(record: Any) -> ObservedPartition | None:
    """Translate one pyslurm.Partition; None if it cannot be read. An unlimited value is a word instead of a number."""
    try:
        return ObservedPartition(
            name=record.name,
            state=record.state,
            tier=record.priority_tier or 0,
            nodes_min=record.min_nodes or 0,
            nodes_max=record.max_nodes if isinstance(record.max_nodes, int) else None,
            walltime_s=record.max_time * 60 if isinstance(record.max_time, int) else None,
            preempt_mode=record.preempt_mode or "",
            access=PartitionAccess(*(frozenset(names or ALL) for names in _access(record))),
            forces_sharing=(record.oversubscribe or "").startswith("FORCE"),
        )
    except Exception:  # noqa: BLE001 - one bad record costs that record only: its limits are Slurm's to know
        return None


def _access(record: Any) -> tuple[Any, ...]:
    lists = record.allowed_groups, record.allowed_accounts, record.denied_accounts
    return *lists, record.allowed_qos, record.denied_qos


def _job_state(text: str) -> JobState:
    if text in _WAITING:
        return JobState.PENDING
    if text == "SUSPENDED":
        return JobState.SUSPENDED
    return JobState.ENDED if text in _ENDED else JobState.RUNNING


def _chosen_limit(tasks: int, nodes_min: int | None, nodes_max: int | None, *, is_estimate: bool) -> int | None:
    """The owner's own upper limit of nodes, None when -n alone was given.

    Seen on 26.05: for -n P alone Slurm shows P as the most nodes and its own estimate as the fewest; for -N k both are
    k. Seen on 24.11: in both cases the two numbers are equal, and for -n alone both are Slurm's estimate. There
    `is_estimate` tells the cases apart; it comes from our record. The submit filter writes `ANY_NUMBER_OF_NODES`
    instead of P.
    """
    if nodes_max in (None, ANY_NUMBER_OF_NODES) or (nodes_max == tasks and nodes_max != nodes_min):
        return None
    return None if is_estimate and nodes_max == nodes_min else nodes_max


def _is_constraint(text: str) -> bool:
    """Whether we know which nodes the constraint admits."""
    try:
        constraints.read(text)
    except BadInput:
        return False
    return True


#: `3-9,12,20-40:4`; Slurm cuts a long list off with `...`.
_TASKS = re.compile(r"[0-9]+(-[0-9]+(:[1-9][0-9]*)?)?(,[0-9]+(-[0-9]+(:[1-9][0-9]*)?)?)*(,?\.\.\.)?", re.ASCII)


def _array(record: Any) -> tuple[int | None, int | None, str]:
    """The job's array, its own task, and the waiting tasks of a record that stands for several.

    A record with one waiting task is that task. pyslurm shows None for task 0 (seen), but never in a record with
    waiting tasks.
    """
    if record.array_id is None:
        return None, None, ""
    waiting = record.array_tasks_waiting or ""
    if waiting and not _TASKS.fullmatch(waiting):
        raise SnsError(f"Slurm answered with the tasks {waiting!r} of an array, which cannot be read")
    if not waiting:
        return record.array_id, record.array_task_id or 0, ""
    return (record.array_id, int(waiting), "") if waiting.isdigit() else (record.array_id, None, waiting)


def _gres(amounts: Mapping[str, Any], name: str) -> int:
    """The amount of a gres in one of pyslurm's mappings. In some of them the name has the prefix `gres/`."""
    return _clamped(amounts.get(f"gres/{name}", amounts.get(name, 0)), MOST_GRES) if amounts else 0


#: The fields of a job's record with which we do not place it, and the words of submit.submission for them.
_DEMANDS = {
    "heterogeneous_id": "heterogeneous job",
    "federation_origin": "clusters",
    "reservation": "reservation",
    "preferred_features": "prefer",
    "requires_contiguous_nodes": "contiguous",
    "required_switches": "switches",
    "licenses": "licences",
    "burst_buffer": "burst buffer",
    "sockets_per_node": "boards, sockets, cores, threads",
    "cores_per_socket": "boards, sockets, cores, threads",
    "threads_per_core": "boards, sockets, cores, threads",
    "temporary_disk_per_node": "temporary disk",
    "deadline": "deadline",
}
#: The word of submit.submission for a job that says with whom it shares its nodes.
OVERSUBSCRIBES = "exclusive or oversubscribe"
_demands_of = attrgetter(*_DEMANDS)


def _asks_for(record: Any, constraint: str, *, asks_for_gres: bool, is_ours: bool) -> tuple[str, ...]:
    """The special demands in the job's record with which we do not place a job, in the words of submit.submission.

    The submit filter does not see all of them, and an owner can add others later with scontrol.
    """
    wanted_cpus = (_u16(record.cpus_per_task) or 1) * (_u16(record.ntasks_per_node) or 1)
    # MaxMemPerCPU raises the minimum, too.
    wants_more_cpus = not is_ours and (_u32(record.min_cpus_per_node) or 0) > wanted_cpus
    # Seen: an owner's NumTasks below the number of nodes is refused, and has cut down the CPUs all the same.
    overcommits = record.state == "PENDING" and 0 < (_u32(record.cpus) or 0) < (_u32(record.ntasks) or 1)
    asks = {word: True for word, value in zip(_DEMANDS.values(), _demands_of(record), strict=True) if value}
    if is_ours:
        asks.pop("deadline", None)
    asks |= {
        "constraint": not _is_constraint(constraint),
        OVERSUBSCRIBES: record.resource_sharing not in ("OK", "NO"),
        "gres": asks_for_gres,
        "minimum CPUs": wants_more_cpus,
        "overcommit": overcommits,
    }
    return tuple(word for word, is_asked in asks.items() if is_asked)


def _gpus(record: Any) -> tuple[GpuRequest | None, str, bool]:
    """The GPUs that the job asks for, its own part of TresPerNode, and whether it asks for gres that we do not place.

    pyslurm does not show the texts: there it asks for no GPUs.
    """
    shown: GresTexts | None = getattr(record, "gres_texts", None)
    if shown is None or not any(shown):
        return None, "", False
    own = gpus.without(shown.per_node, _OURS)
    try:
        return gpus.asked(shown._replace(per_node=own)), own, False
    except BadInput:
        return None, "", True


def _has_other(gres: Iterable[str], asked: GpuRequest | None = None) -> bool:
    """Whether any of these gres are neither ways nor bandwidth, nor GPUs of the request."""
    known = _OURS if asked is None else _WITH_GPUS
    return any(_bare(name) not in known for name in gres)


def _has_ours(gres: Iterable[str]) -> bool:
    """Whether ways or bandwidth are among these gres."""
    return any(_bare(name) in _OURS for name in gres)


def _bare(name: str) -> str:
    """The name of a gres without the prefix that it has in some mappings, and without its type."""
    return name.removeprefix("gres/").partition(":")[0]


def _tolerated_gres(record: _Tolerant) -> tuple[int, int, bool, bool]:
    """Ways, bandwidth, whether the job asks for other gres or for some that cannot be read, and for any at all."""
    gres_per_node = record.gres_per_node or {}
    has_other = _has_other((*gres_per_node, *(record.gres or ())))
    is_unreadable = bool(record.problems.keys() & _GRES_FIELDS)
    has_gres = bool(gres_per_node or record.gres) or is_unreadable
    return _gres(gres_per_node, WAYS), _gres(gres_per_node, BANDWIDTH), has_other or is_unreadable, has_gres


def _occupies(record: Any) -> Resources:
    """Cores and memory of the whole job, for the share that its project holds.

    The job's record does not say how many threads a core has, so CPUs are counted as cores here.
    """
    cpus, nodes = _u32(record.cpus) or 1, _u32(record.num_nodes) or 1
    asked_mb = (record.memory_per_node or 0) * nodes if record.memory_per_cpu is None else record.memory_per_cpu * cpus
    return Resources(cpus, _clamped(asked_mb, MOST_JOB_MEMORY_MB))
