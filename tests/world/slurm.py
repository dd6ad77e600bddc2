"""A model of slurmctld: what users, administrators and our daemons can ask of it, and what it answers.

It keeps jobs, nodes, partitions, limits and reservations and enforces Slurm's rules as seen on 26.05. Time passes by
`step`; slurm_passes decides what starts. The model is always there and answers at once: latency, silence and lost
replies belong to whoever calls it.

A begin time and a hold are two things, and neither touches the other. Jobs age from their submission, with a begin time
ahead as without one (PriorityFlags=ACCRUE_ALWAYS, which `sns render` sets), so there is no accrual to keep account of.

Each event of a job in the history has the job as it was right after it (`now`): from that the checker judges.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any, Protocol

from slurm_sns.errors import Refused
from slurm_sns.model import NOTHING, Resources
from slurm_sns.scheduler.observation import ObservedJob, ObservedNode, ObservedPartition, ObservedReservation
from slurm_sns.submit import record as records
from slurm_sns.submit.judge import Manage, PassThrough
from world.history import History
from world.slurm_jobs import (
    ANY_NUMBER_OF_NODES,
    ENDED,
    HOLD_REASONS,
    OCCUPYING,
    REQUEUED_HELD,
    USER_IDS,
    WAITING,
    ModelJob,
    changed,
    now_of,
    numbers,
    observed,
)
from world.slurm_passes import Passes

#: Slurm's messages (slurm_errno.c).
INVALID_ID = "Invalid job id specified"
NOT_PENDING = "Job is no longer pending execution"
FINISHED = "Job has already finished"
DENIED = "Access/permission denied"
OTHERS_JOB = "Invalid user id"
ENDING = "Job/step already completing or completed"
IS_HELD = "Job is in held state, pending scheduler release"
DISABLED = "Requested operation is presently disabled"
INVALID_NODES = "Invalid node name specified"
INVALID_PARTITION = "Invalid partition name specified"
TOO_FEW_TASKS = "Task count specification invalid"
IS_PENDING = "Job is pending execution"
NOT_SUSPENDED = "Job is not suspended"
NOT_SUPPORTED = "Requested operation not supported on this system"
NO_SUCH_DEPENDENCY = "Job dependency problem"
NO_RESIZE = "Job resizing not supported for job arrays"
NOT_AVAILABLE = "Required partition not available (inactive or drain)"
BAD_COUNT = "CPU count specification invalid"
IMPOSSIBLE = "Requested node configuration is not available"
NO_SUCH_GRES = "Invalid generic resource (gres) specification"
NO_TIME = "Requested time limit is invalid (missing or exceeds some limit)"

INFINITE = 0xFFFFFFFF
#: The priority of an unboosted job under priority/multifactor, and of the first job under priority/basic.
MULTIFACTOR, BASIC = 1000, 4_294_901_759
MOST_PRIORITY = 0xFFFFFFFF
#: When slurmctld misses a job that it takes for running. It does so when a node registers later than
#: BatchStartTimeout after the start; here that is soon.
MISSING_S = 3.0
#: How long an ended job is completing.
COMPLETING_S = 0.6
#: Every 60 s Slurm looks at the dependencies of all jobs, also of held ones, and then forgets old jobs. With a shorter
#: MinJobAge it does so that often, but not more often than every 10 s (controller.c).
CHECK_S, LEAST_CHECK_S = 60.0, 10.0

#: The parts of an update in the order in which Slurm carries them out. When it refuses one, those before it stay.
_ORDER = {
    name: place
    for place, name in enumerate(
        (
            *(
                "ArrayTaskThrottle",
                "Partition",
                "QOS",
                "ExcNodeList",
                "ReqNodeList",
                "AdminComment",
                "Comment",
                "Extra",
            ),
            *("NumTasks", "TimeLimit", "Deadline", "Priority", "Nice", "MinMemoryCPU", "MinMemoryNode", "JobName"),
            *("TasksPerNode", "MinCPUsNode", "NumCPUs", "TresPerNode", "StartTime", "SiteFactor", "Requeue"),
        )
    )
}
#: Parts that Slurm takes from jobs that have started, too.
_ANY_TIME = frozenset(
    (
        "ArrayTaskThrottle",
        "AdminComment",
        "Comment",
        "Extra",
        "TimeLimit",
        "Priority",
        "Nice",
        "JobName",
        "SiteFactor",
        "Requeue",
    )
)
#: Those that only SlurmUser and administrators may change.
_PRIVILEGED = frozenset({"AdminComment", "SiteFactor"})
#: Where Slurm may refuse an update that we cannot foresee: the part that it does not like, the part before which it
#: says so, and what it says.
REFUSALS = {
    "gres": ("TresPerNode", "AdminComment", NO_SUCH_GRES),
    "counts": ("NumTasks", "NumTasks", TOO_FEW_TASKS),
    "limits": ("ReqNodeList", "SiteFactor", IMPOSSIBLE),
}


#: scontrol takes smaller numbers of seconds for mistakes, warns, and sends the update without them.
LEAST_UTS_S = 1_000_000

#: The gres of the site; Slurm refuses others.
KNOWN_GRES = frozenset({"llc", "membw", "gpu"})

#: Why nothing may be planned on a node in this state.
_UNAVAILABLE = {"up": "", "drain": "drain: test", "down": "down"}


@dataclass
class SlurmSite:
    """The cluster and its slurm.conf. `partitions` gives the nodes and the PriorityTier of each."""

    nodes: Mapping[str, Resources]
    partitions: Mapping[str, tuple[tuple[str, ...], int]]
    min_job_age_s: float = 20.0
    priority_type: str = "priority/multifactor"
    bf_interval_s: float = 5.0
    requeue_delay_s: float = 2.0
    memory_per_cpu_mb: int = 1000
    #: Jobs of a higher PriorityTier suspend those of a lower one (PreemptMode=SUSPEND,GANG).
    suspends_by_tier: bool = False
    #: Processes of a requeued job may live for so long before they are killed; 0: all end soon.
    kill_wait_s: float = 0.0
    most_database_messages: int = 10_000


#: The fields of pyslurm's JobSubmitDescription that our executor writes, by scontrol's names.
_WORDS = {
    "partitions": "Partition",
    "required_nodes": "ReqNodeList",
    "ntasks": "NumTasks",
    "ntasks_per_node": "TasksPerNode",
    "gres_per_node": "TresPerNode",
    "memory_per_node": "MinMemoryNode",
    "memory_per_cpu": "MinMemoryCPU",
    "begin_time": "StartTime",
    "admin_comment": "AdminComment",
    "site_factor": "SiteFactor",
    "nice": "Nice",
    "extra": "Extra",
    "priority": "Priority",
    "time_limit": "TimeLimit",
    "cpus": "NumCPUs",
    "min_cpus_per_node": "MinCPUsNode",
}


def words_of(change: SimpleNamespace) -> dict[str, str]:
    """A change of pyslurm's in the words of scontrol; a begin time of 0 changes nothing."""
    given = {name: value for name, value in vars(change).items() if value is not None}
    if given.get("begin_time") == 0:
        del given["begin_time"]
    return {_WORDS[name]: _text(value) for name, value in given.items()}


def _text(value: object) -> str:
    """A field of pyslurm's as scontrol spells it."""
    if isinstance(value, Mapping):
        return ",".join(f"gres/{name}:{amount}" for name, amount in value.items())
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


def _gres(text: str) -> dict[str, str]:
    """The amounts in `gres/llc:3,gres:membw:10` by name."""
    return dict(each.removeprefix("gres").lstrip("/:").rsplit(":", 1) for each in text.split(",") if each)


class SlurmsWorld(Protocol):
    """What the model needs of the world."""

    true_s: float
    history: History
    random: Random

    def wall_s(self) -> float: ...


@dataclass
class Reservation:
    nodes: frozenset[str]
    begin_s: int
    end_s: int


@dataclass
class Partition:
    nodes: tuple[str, ...]
    tier: int = 1
    state: str = "UP"
    max_time_s: int | None = None
    max_nodes: int | None = None


@dataclass
class Node:
    capacity: Resources
    state: str = "up"  # up, drain, down
    is_planned: bool = False


@dataclass
class Saved:
    """What slurmctld has saved: its jobs, and the numbers that the next one gets."""

    jobs: list[ModelJob]
    next_id: int
    next_basic: int


@dataclass
class Limits:
    """The most that may run at a time: `cores` by account, `cores_of_qos` by QOS, `jobs` by user."""

    cores: dict[str, int] = field(default_factory=dict)
    cores_of_qos: dict[str, int] = field(default_factory=dict)
    jobs: dict[str, int] = field(default_factory=dict)


class Slurm:
    """slurmctld. Every change is written to the world's history when it takes effect."""

    def __init__(self, site: SlurmSite, world: SlurmsWorld) -> None:
        self.site = site
        self.world = world
        self.jobs: dict[int, ModelJob] = {}
        self.nodes = {name: Node(capacity) for name, capacity in site.nodes.items()}
        self.partitions = {name: Partition(nodes, tier) for name, (nodes, tier) in site.partitions.items()}
        self.reservations: dict[str, Reservation] = {}
        self.limits = Limits()
        self.next_id = 1
        self.next_basic = BASIC
        self.database_is_up = True
        self.database_queue = 0
        #: Where it refuses the next update of a daemon of ours: a key of `REFUSALS`.
        self.refuses_at = ""
        self.passes = Passes(self)
        self._check_s = max(LEAST_CHECK_S, min(CHECK_S, site.min_job_age_s))
        self._check_true_s = self._check_s
        self._due: list[tuple[float, int]] = []
        self._saved = Saved([], self.next_id, self.next_basic)
        self._inside = {
            name: frozenset(part for part, (nodes, _) in site.partitions.items() if name in nodes)
            for name in site.nodes
        }
        self._shown: dict[str, ObservedNode] = {}

    # --- what pyslurm reads

    def load_jobs(self) -> tuple[ObservedJob, ...]:
        return tuple([job.shown or observed(job) for job in self.jobs.values()])

    def load_job(self, job_id: int) -> ObservedJob:
        return observed(self._job(job_id))

    def load_nodes(self) -> tuple[ObservedNode, ...]:
        taken = self.taken()
        return tuple([self._shown_as(name, node, taken[name]) for name, node in self.nodes.items()])

    def _shown_as(self, name: str, node: Node, taken: Resources) -> ObservedNode:
        """The node as pyslurm shows it: the value of the last time if nothing has changed."""
        if taken.cores > node.capacity.cores:
            taken = taken._replace(cores=node.capacity.cores)
        unavailable = _UNAVAILABLE[node.state] or self._reserved(name)
        shown = self._shown.get(name)
        if (
            shown is None
            or shown.allocated != taken
            or shown.unavailable != unavailable
            or shown.is_planned != node.is_planned
        ):
            shown = self._shown[name] = ObservedNode(
                *(name, self._inside[name], node.capacity, taken), unavailable=unavailable, is_planned=node.is_planned
            )
        return shown

    def load_reservations(self) -> tuple[ObservedReservation, ...]:
        return tuple(
            ObservedReservation(name, each.nodes, each.begin_s, each.end_s) for name, each in self.reservations.items()
        )

    def load_partitions(self) -> tuple[ObservedPartition, ...]:
        return tuple(
            ObservedPartition(
                *(name, each.state, each.tier),
                nodes_max=each.max_nodes,
                walltime_s=each.max_time_s,
                preempt_mode="GANG,SUSPEND" if self.site.suspends_by_tier else "",
            )
            for name, each in self.partitions.items()
        )

    def taken(self) -> dict[str, Resources]:
        """What the jobs on each node take."""
        taken = dict.fromkeys(self.nodes, NOTHING)
        for job in self.jobs.values():
            if job.state in OCCUPYING:
                for name, each in job.takes():
                    taken[name] = taken[name].plus(each)
        return taken

    def _reserved(self, node: str) -> str:
        if not self.reservations:
            return ""
        now_s = self.world.wall_s()
        is_reserved = any(
            node in each.nodes and each.begin_s <= now_s < each.end_s for each in self.reservations.values()
        )
        return "reserved" if is_reserved else ""

    # --- submitting and cancelling

    def submit(self, asked: Mapping[str, Any], by: str, verdict: Manage | PassThrough) -> int:
        """Accept the job, as the submit filter has left it, and return its id."""
        if self.partitions[asked.get("partition", "main")].state in ("INACTIVE", "DRAIN"):
            raise Refused(NOT_AVAILABLE)
        kind, others = asked.get("dependency") or ("", ())
        if kind == "afterok" and not all(map(self._of_id, others)):
            raise Refused(NO_SUCH_DEPENDENCY)
        fields = {"memory_per_cpu_mb": self.site.memory_per_cpu_mb, **asked}
        if fields.get("memory_per_node_mb"):
            fields["memory_per_cpu_mb"] = None
        held_by_owner, tasks = fields.pop("held", False), fields.pop("array", ())
        wall_s = int(self.world.wall_s())
        job = ModelJob(self.next_id, **{**fields, "user": by, "asked": dict(asked), "submit_s": wall_s})
        job.nodes_min = max(job.nodes_min, len(job.required))
        job.min_cpus_per_node = job.cpus_per_task * max(1, job.tasks_per_node or 1)
        told = "pass"
        if isinstance(verdict, Manage):
            told = "free" if verdict.begin_s is None else "gated"
            job.admin_comment = verdict.admin_comment
            if verdict.begin_s is not None:
                job.begin_s = verdict.begin_s
                if self._leaves_nodes_open(job):
                    job.nodes_max = ANY_NUMBER_OF_NODES
        if job.deadline_s is not None and job.deadline_s < max(job.begin_s, wall_s) + job.walltime_s:
            raise Refused(NO_TIME)
        if tasks:
            job.array_id, job.array_tasks = job.id, tuple(tasks)
            if len(tasks) == 1:
                job.array_task = tasks[0]
        job.hold = "user" if held_by_owner else ""
        if not job.hold and self.passes.is_impossible(job):
            raise Refused(IMPOSSIBLE)
        self.next_id += 1
        job.reason = HOLD_REASONS.get(job.hold, "Dependency" if job.dependency else "")
        self._basic(job)
        self._prioritise(job)
        self.jobs[job.id] = job
        self._tell("submit", job, by, asked=dict(asked), verdict=told)
        self.passes.wake()
        return job.id

    def _leaves_nodes_open(self, job: ModelJob) -> bool:
        """Whether the submit filter lets Slurm choose any number of nodes (sns_filter.lua)."""
        record = records.read(job.admin_comment)
        is_limited = any(each.max_nodes is not None for each in self.partitions.values())
        return record is not None and not record.hints.fixed and job.tasks > 1 and not is_limited

    def cancel(self, address: int | str, by: str) -> None:
        """scancel. Of tasks that had no job id of their own nothing is left."""
        known = set(self.jobs)
        for job in self._addressed(str(address), by, DENIED):
            if job.state in ENDED:
                continue
            self._tell("cancel", job, by)
            if job.state == WAITING:
                self._end(job, "CANCELLED", "cancelled")
            elif job.state != "COMPLETING" or job.will_wait:
                self._complete(job, "CANCELLED", "cancelled")
            if job.id not in known:
                self._purge(job)

    # --- RPCs

    def modify(self, job_id: int, change: SimpleNamespace, by: str, kind: str = "update") -> None:
        """pyslurm's Job.modify: the fields that are not None, in one RPC for this one record."""
        self._update_one(self._job(job_id), words_of(change), by, kind)

    def modify_tasks(
        self, array_id: int, tasks: Sequence[int], change: SimpleNamespace, by: str, kind: str = "update"
    ) -> dict[int, str]:
        """An update of these tasks of an array in one RPC: Slurm's refusal of each, empty where it made the change.

        After the first refusal it forgets the SiteFactor (seen).
        """
        fields = words_of(change)
        of_array = [job for job in self.jobs.values() if job.array_id == array_id]
        known = {task for job in of_array for task in (*job.array_tasks, job.array_task)}
        answers = {task: "" if task in known else INVALID_ID for task in sorted(tasks)}
        there = ",".join(str(task) for task, refusal in answers.items() if not refusal)
        for job in self._addressed(f"{array_id}_[{there}]", by, OTHERS_JOB) if there else ():
            try:
                self._update_one(job, fields, by, kind)
            except Refused as refusal:
                answers |= dict.fromkeys(job.array_tasks or [job.array_task], str(refusal))
                fields.pop("SiteFactor", None)
        return answers

    def requeue(self, job_id: int, by: str) -> None:
        job = self._job(job_id)
        if job.is_pending:
            raise self._refused(job, by, IS_PENDING)
        if not job.may_restart:
            raise self._refused(job, by, DISABLED)
        self._tell("requeue", job, by)
        self._requeue(job)

    def suspend(self, job_id: int, by: str) -> None:
        """Stop the job's processes. Its priority is 0 until it goes on, so if it is requeued it is held.

        A job that preemption has suspended does not go on by itself then.
        """
        job = self._job(job_id)
        if job.state not in ("RUNNING", "SUSPENDED"):
            raise self._refused(job, by, IS_PENDING if job.is_pending else ENDING)
        was_paused, job.is_paused = job.is_paused, True
        if job.state == "RUNNING":
            job.keeps_cores = False
            self._stop(job, by)
            self.passes.wake()
        elif not was_paused:
            self._tell("suspend", job, by)
            self.passes.wake()

    def preempt(self, job: ModelJob) -> None:
        """Stop the job for one of a higher tier: it keeps its priority, and goes on once there is room."""
        self._stop(job, "slurm")

    def go_on(self, job: ModelJob) -> None:
        """The jobs for which this one was preempted have ended."""
        self._run_on(job, "slurm")

    def _run_on(self, job: ModelJob, by: str) -> None:
        job.state, job.suspended_s, job.keeps_cores = "RUNNING", int(self.world.wall_s()), True
        self._set_due(job, job.left_true_s)
        self._tell("resume", job, by)

    def _stop(self, job: ModelJob, by: str) -> None:
        job.state, job.left_true_s = "SUSPENDED", job.due_true_s - self.world.true_s
        now_s = int(self.world.wall_s())
        job.ran_s += now_s - max(job.start_s, job.suspended_s)
        job.suspended_s = now_s
        self._set_due(job, inf)
        self._tell("suspend", job, by)

    def unsuspend(self, job_id: int, by: str) -> None:
        """Resume the job, even if others run on its cores by now: Slurm checks nothing. It is not held any more."""
        job = self._job(job_id)
        if job.state != "SUSPENDED":
            has_ended = job.state != "RUNNING"
            raise self._refused(job, by, IS_PENDING if job.is_pending else ENDING if has_ended else NOT_SUSPENDED)
        job.is_paused, job.hold = False, ""
        self._run_on(job, by)

    # --- scontrol

    def scontrol(self, words: tuple[str, ...], by: str, kind: str = "update") -> str:
        """One command of scontrol about jobs: update, hold, uhold, release, requeue, requeuehold, suspend, resume.

        `kind` is what an update is called in the history.
        """
        what, *rest = words
        if what == "update":
            fields = dict(word.split("=", 1) for word in rest)
            self._update(fields.pop("JobId"), fields, by, kind)
            return ""
        denial = OTHERS_JOB if what in ("hold", "uhold", "release") else DENIED
        self._each(rest[0], by, lambda job: self._command(what, job, by), denial)
        return ""

    def _each(self, address: str, by: str, change: Callable[[ModelJob], None], denial: str) -> None:
        """Change every record; if Slurm refuses one, it changes the others all the same."""
        refusal = None
        for job in self._addressed(address, by, denial):
            try:
                change(job)
            except Refused as problem:
                refusal = refusal or problem
        if refusal is not None:
            raise refusal

    def _command(self, what: str, job: ModelJob, by: str) -> None:
        is_user = by in USER_IDS
        match what:
            case "hold":
                self._hold(job, by, admin=not is_user)
            case "uhold":
                self._hold(job, by, admin=False)
            case "release":
                self._release(job, by)
            case "requeue":
                self.requeue(job.id, by)
            case "requeuehold":
                self._requeue_held(job, by)
            case "suspend":
                self.suspend(job.id, by)
            case "resume":
                self.unsuspend(job.id, by)
            case _:
                raise Refused(f"scontrol: invalid keyword: {what}")

    def _hold(self, job: ModelJob, by: str, *, admin: bool) -> None:
        """Hold a waiting job, or one that runs: that one waits held if it is requeued."""
        self._check_unfinished(job, by)
        had = job.hold
        # An owner's hold changes nothing about a hold that is there, nor about a suspended job, whose priority is 0.
        if by not in USER_IDS or not (had or job.is_paused):
            job.hold = "admin" if admin else "user"
            job.reason = HOLD_REASONS[job.hold]
            self.forget_begin(job)
        elif had == "bad":  # Slurm forgets why it holds the job; the next pass calls that an administrator's hold
            job.hold, job.reason = "admin", ""
        self._tell("hold", job, by, admin=admin, had=had)

    def forget_begin(self, job: ModelJob) -> None:
        """A begin time that is past is none: the next pass that finds the job ready to start sets it anew."""
        if 0 < job.begin_s <= self.world.wall_s():
            job.begin_s = 0
            changed(job)

    def wait_for_others(self, job: ModelJob) -> None:
        """A pass has found that the job waits for other jobs, by its dependency or its array's limit."""
        if 0 < job.begin_s <= self.world.wall_s():
            self.forget_begin(job)
            self._tell("waits for others", job, "slurm")

    def begin(self, job: ModelJob) -> None:
        """A pass has found that the job may start from now on."""
        job.begin_s = int(self.world.wall_s())
        changed(job)
        self._tell("may start", job, "slurm")

    def _release(self, job: ModelJob, by: str) -> None:
        """Release the job. A begin time that lies ahead stays."""
        self._check_unfinished(job, by)
        had = job.hold
        is_users = job.reason in (HOLD_REASONS["user"], REQUEUED_HELD)
        if by in USER_IDS and ((had and not is_users) or job.is_paused):
            raise self._refused(job, by, DENIED)
        was_paused = job.is_paused
        if had or was_paused:
            job.hold, job.reason, job.is_paused, job.fixed_priority = "", "", False, False
        elif by not in USER_IDS:  # Slurm clears the nice value of a job that is not held
            job.nice, job.fixed_priority = 0, False
        self.forget_begin(job)
        self._prioritise(job)
        self._tell("release", job, by, had=had, was_paused=was_paused)
        self.passes.wake()

    def _check_unfinished(self, job: ModelJob, by: str) -> None:
        if job.state in ENDED or (job.state == "COMPLETING" and not job.will_wait):
            raise self._refused(job, by, FINISHED)

    def _update(self, address: str, fields: dict[str, str], by: str, kind: str) -> None:
        """`scontrol update JobId=...`; tasks of an array that are named are split off first."""
        if not fields.keys() <= _ORDER.keys():
            raise Refused(f"scontrol: invalid field among {', '.join(fields)}")
        is_whole = "_" not in address
        if "ReqNodeList" in fields and ("[" in address or (is_whole and len(self._of_id(int(address))) > 1)):
            raise Refused(NO_RESIZE)  # scontrol itself
        if "ArrayTaskThrottle" in fields and not (is_whole and any(job.array_id for job in self._of_id(int(address)))):
            self._addressed(address, by, OTHERS_JOB)  # which splits off the tasks all the same
            raise Refused(NOT_SUPPORTED)
        self._each(address, by, lambda job: self._update_one(job, fields, by, kind), OTHERS_JOB)

    def _update_one(self, job: ModelJob, fields: Mapping[str, str], by: str, kind: str) -> None:
        """Carry out the parts of an update of one record: until Slurm refuses one."""
        if set(fields) != {"ArrayTaskThrottle"}:
            self._check_unfinished(job, by)
        self._count_message()
        done: list[str] = []
        refused_from, why = self._refuses(by, fields)
        was = now_of(job)
        try:
            for name in sorted(fields, key=_ORDER.__getitem__):
                if _ORDER[name] >= refused_from:
                    raise self._refused(job, by, why)
                if not (job.is_pending or name in _ANY_TIME):
                    raise self._refused(job, by, NOT_SUPPORTED if name == "ReqNodeList" else NOT_PENDING)
                if _ORDER[name] > _ORDER["Priority"]:
                    self._try_again(job, fields)
                if name == "TasksPerNode" and job.nodes_min == job.nodes_max and "NumTasks" not in fields:
                    raise self._refused(job, by, BAD_COUNT)
                self._set(job, name, fields[name], by)
                done.append(name)
            if refused_from < len(_ORDER):
                raise self._refused(job, by, why)
            self._try_again(job, fields)
        finally:
            self._prioritise(job)
            changed(job)
            if done:
                said = {name: fields[name] for name in done}
                self._tell(kind, job, by, fields=said, is_half=len(done) < len(fields), was=was)
        self.passes.wake()

    def _refuses(self, by: str, fields: Mapping[str, str]) -> tuple[int, str]:
        """The part of the order from which on this update is refused, and why. What we cannot foresee comes once."""
        if any(name not in KNOWN_GRES for name in _gres(fields.get("TresPerNode", ""))):
            return _ORDER["AdminComment"], NO_SUCH_GRES
        disliked, first, why = REFUSALS.get(self.refuses_at, ("", "", ""))
        if by in USER_IDS or by == "admin" or not fields.get(disliked):
            return len(_ORDER), ""
        self.refuses_at = ""
        return _ORDER[first], why

    def _count_message(self) -> None:
        """Each update, start and end is a message for slurmdbd; while that is away, slurmctld keeps them."""
        self.database_queue = 0 if self.database_is_up else self.database_queue + 1

    def _try_again(self, job: ModelJob, fields: Mapping[str, str]) -> None:
        """Any update of a job that Slurm itself holds releases it: it may be possible now."""
        if job.hold == "bad" and "Priority" not in fields:
            job.hold, job.reason = "", ""
            self._tell("release", job, "slurm", had="bad", was_paused=False)

    def _set(self, job: ModelJob, name: str, text: str, by: str) -> None:  # noqa: PLR0912 - one case for each field
        if name in _PRIVILEGED and by in USER_IDS:
            raise self._refused(job, by, DENIED)
        match name:
            case "Nice":
                self._set_nice(job, int(text), by)
            case "Priority":
                self._set_priority(job, int(text), by)
            case "ReqNodeList":
                nodes = tuple(text.split(",")) if text else ()
                if not set(nodes) <= self.nodes.keys():
                    raise self._refused(job, by, INVALID_NODES)
                job.required = nodes
            case "ExcNodeList":
                job.excluded = tuple(text.split(",")) if text else ()
            case "TresPerNode":
                amounts = _gres(text)
                job.ways = int(amounts.pop("llc", 0))
                job.bandwidth_gbps = int(amounts.pop("membw", 0))
                job.gres = tuple(sorted(amounts))
            case "MinMemoryCPU":
                job.memory_per_cpu_mb, job.memory_per_node_mb = int(text), None
            case "MinMemoryNode":
                job.memory_per_node_mb, job.memory_per_cpu_mb = int(text) or None, None
            case "Extra":
                job.extra = text
            case "AdminComment":
                job.admin_comment = text
            case "SiteFactor":
                job.site_factor = int(text)
            case "Deadline":
                if int(text) < self.world.wall_s():
                    raise self._refused(job, by, NO_TIME)
                job.deadline_s = int(text)
            case "Comment":
                job.comment = text
            case "JobName":
                job.name = text
            case "Partition":
                self._set_partition(job, text, by)
            case "QOS":
                job.qos = text
            case "TimeLimit":
                self._set_limit(job, int(text) * 60, by)
            case "NumTasks":
                if int(text) < job.submitted_nodes:
                    raise self._refused(job, by, TOO_FEW_TASKS)
                job.tasks = int(text)
            case "TasksPerNode":
                job.tasks_per_node = int(text) or None
                job.min_cpus_per_node = max(job.min_cpus_per_node, int(text) * job.cpus_per_task)
            case "MinCPUsNode":
                job.min_cpus_per_node = int(text)
            case "NumCPUs":
                job.tasks = int(text) // job.cpus_per_task
            case "StartTime":
                now_s = int(self.world.wall_s())
                later = text.removeprefix("now")
                begin_s = int(later or 0) + now_s if later != text else int(text.removeprefix("uts"))
                if not text.startswith("uts") or begin_s >= LEAST_UTS_S:  # otherwise scontrol sends no begin time
                    job.begin_s = max(begin_s, now_s)
            case "Requeue":
                job.may_restart = text == "1"
            case "ArrayTaskThrottle":
                job.array_limit = int(text) or None

    def _set_nice(self, job: ModelJob, nice: int, by: str) -> None:
        if nice == job.nice:
            return
        if by in USER_IDS and nice < 0:
            raise self._refused(job, by, DENIED)
        # Slurm takes the change and ignores it while the job has a priority that an administrator has set.
        if not job.fixed_priority or job.hold:
            job.nice = nice
        # Under priority/basic a held job gets the priority 2 (seen), and starts. Here it gets its own priority.
        if self.site.priority_type == "priority/basic" and job.hold:
            had, job.hold, job.reason = job.hold, "", ""
            self._tell("release", job, by, had=had, was_paused=False)

    def _set_priority(self, job: ModelJob, priority: int, by: str) -> None:
        """Priority 4294967295 releases a job; any other number is an administrator's, and clears the nice value."""
        if priority == INFINITE:
            job.nice = job.nice if job.hold else 0
            job.hold, job.reason, job.fixed_priority = "", "", False
        elif by in USER_IDS:
            raise self._refused(job, by, DENIED)
        elif job.hold:
            raise self._refused(job, by, IS_HELD)
        else:
            job.nice, job.priority, job.fixed_priority = 0, priority, True

    def _set_partition(self, job: ModelJob, text: str, by: str) -> None:
        """Move the job. Whether its node list fits the partition is seen when it could start.

        Of several, those that take no new jobs are left out without an error (seen).
        """
        names = tuple(text.split(","))
        if not set(names) <= self.partitions.keys():
            raise self._refused(job, by, INVALID_PARTITION)
        closed = {name for name in names if self.partitions[name].state in ("INACTIVE", "DRAIN")}
        names = tuple(name for name in names if name not in closed or (len(names) == 1 and name in job.asks_in))
        if not names:
            raise self._refused(job, by, NOT_AVAILABLE)
        job.partition, job.several = names[0], names if len(names) > 1 else ()

    def _set_limit(self, job: ModelJob, walltime_s: int, by: str) -> None:
        most_s = self.partitions[job.partition].max_time_s
        may_raise = job.is_pending and (most_s is None or walltime_s <= most_s)
        if by in USER_IDS and walltime_s > job.walltime_s and not may_raise:
            raise self._refused(job, by, DENIED)
        more_s = min(job.run_s, walltime_s) - min(job.run_s, job.walltime_s)
        job.walltime_s = walltime_s
        if job.state == "RUNNING" and more_s:
            self._set_due(job, max(0.0, job.due_true_s + more_s - self.world.true_s))
        elif job.state == "SUSPENDED":
            job.left_true_s = max(0.0, job.left_true_s + more_s)

    def _addressed(self, address: str, by: str, denial: str) -> list[ModelJob]:
        """The records that `41`, `41_7` or `41_[7-9]` means. Only the owner and administrators may change them."""
        base, _, part = address.partition("_")
        wanted = int(base)
        of_array = [job for job in self.jobs.values() if job.array_id == wanted]
        for job in of_array or [self._job(wanted)]:
            if by in USER_IDS and job.user != by:
                raise self._refused(job, by, denial)
        if not part:
            found = of_array or [self._job(wanted)]
        else:
            tasks = list(numbers(part.strip("[]")))
            own = {job.array_task: job for job in of_array if not job.is_record}
            record = next((job for job in of_array if job.is_record), None)
            missing = [task for task in tasks if task not in own]
            if not set(missing) <= set(record.array_tasks if record is not None else ()):
                raise Refused(INVALID_ID)
            if record is not None and missing and (set(missing) == set(record.array_tasks) or record.state != WAITING):
                found = [*(own[task] for task in tasks if task in own), record]  # nothing is split off
            else:
                own |= self._split(record, missing, by) if record is not None and missing else {}
                found = [own[task] for task in tasks]
        return found

    def _split(self, record: ModelJob, tasks: Iterable[int], by: str) -> dict[int | None, ModelJob]:
        """Give these tasks job ids of their own; a record of one task is that task."""
        ids: dict[int | None, ModelJob] = {}
        for task in tasks:
            new = copy(record)
            new.id, new.array_task, new.array_tasks = self.next_id, task, ()
            changed(new)
            self.next_id += 1
            self.jobs[new.id] = ids[task] = new
        left = tuple(task for task in record.array_tasks if task not in ids)
        record.array_tasks = left if len(left) > 1 else ()
        record.array_task = left[0] if len(left) == 1 else None
        self._tell("split", record, by, tasks=tuple(ids), ids=tuple(job.id for job in ids.values()))
        return ids

    # --- administration

    def update_node(self, name: str, state: str, by: str = "admin") -> None:
        """`state`: drain, undrain, down or up. Jobs on a node that goes down are requeued, or end."""
        node = self.nodes[name]
        node.state = {"drain": "drain", "undrain": "up", "down": "down", "up": "up"}[state]
        self.world.history.add("node", by=by, name=name, state=node.state)
        if node.state == "down":
            for job in list(self.jobs.values()):
                if job.state in ("RUNNING", "SUSPENDED") and name in job.allocated:
                    self._fail(job)
        self.passes.wake()

    def _fail(self, job: ModelJob) -> None:
        """The job's node has gone, or has lost the job."""
        if job.may_restart:
            self._tell("requeue", job, "slurm")
            self._requeue(job)
        else:
            self._complete(job, "NODE_FAIL", "node_fail")

    def update_partition(self, name: str, by: str = "admin", **fields: Any) -> None:
        for field_name, value in fields.items():
            setattr(self.partitions[name], field_name, value)
        self.world.history.add("partition", by=by, name=name, fields=fields)
        self.passes.wake()

    def set_limit(self, account: str, cores: int | None) -> None:
        self._limit(self.limits.cores, account, cores)
        self.world.history.add("limit", by="admin", account=account, cores=cores)

    def set_qos_limit(self, qos: str, cores: int | None) -> None:
        self._limit(self.limits.cores_of_qos, qos, cores)
        self.world.history.add("limit", by="admin", qos=qos, cores=cores)

    def set_user_limit(self, user: str, jobs: int | None) -> None:
        self._limit(self.limits.jobs, user, jobs)
        self.world.history.add("limit", by="admin", user=user, jobs=jobs)

    def _limit(self, limits: dict[str, int], name: str, most: int | None) -> None:
        if most is None:
            limits.pop(name, None)
        else:
            limits[name] = most
        self.passes.wake()

    def reserve(self, name: str, nodes: Iterable[str], begin_s: int, end_s: int) -> None:
        self.reservations[name] = Reservation(frozenset(nodes), begin_s, end_s)
        self.world.history.add(
            "reservation", by="admin", name=name, nodes=tuple(sorted(nodes)), begin_s=begin_s, end_s=end_s, gone=False
        )

    def unreserve(self, name: str) -> None:
        if self.reservations.pop(name, None) is not None:
            self.world.history.add("reservation", by="admin", name=name, gone=True)
            self.passes.wake()

    # --- a slurmctld that is killed

    def save(self) -> None:
        """Save the state, as slurmctld does every few seconds."""
        self._saved = Saved([_kept(job) for job in self.jobs.values()], self.next_id, self.next_basic)
        self.world.history.add("saved")

    def go_back(self) -> None:
        """Slurmctld was killed, and goes on from the state that it saved last.

        Jobs that were submitted since are gone, and their ids come again. Those that have started since wait: their
        nodes end them. Those that have ended since run, until slurmctld misses them. Those that it has forgotten since
        are known again.
        """
        before, self.jobs = self.jobs, {}
        for saved in self._saved.jobs:
            job = self.jobs[saved.id] = _kept(saved)
            self._go_on(job, before.get(job.id))
        self.next_id, self.next_basic = self._saved.next_id, self._saved.next_basic
        self.world.history.add("reverted", by="slurm", jobs={job.id: now_of(job) for job in self.jobs.values()})

    def _go_on(self, job: ModelJob, was: ModelJob | None) -> None:
        """Let a job of the saved state go on as its processes do; `was` is the job when slurmctld was killed."""
        runs = was is not None and was.state in ("RUNNING", "SUSPENDED") and was.restarts == job.restarts
        if job.state == "COMPLETING":
            self._set_due(job, COMPLETING_S)
        elif job.state in ("RUNNING", "SUSPENDED"):
            left_s = 0.0
            if runs and was is not None:
                left_s = was.left_true_s if was.state == "SUSPENDED" else was.due_true_s - self.world.true_s
            job.left_true_s, job.is_missing = left_s, not runs or (was is not None and was.is_missing)
            if job.state == "RUNNING":
                self._set_due(job, left_s if runs else MISSING_S)
        elif job.state in ENDED:
            job.due_true_s = self.world.true_s + self.site.min_job_age_s

    # --- time

    def next_s(self) -> float:
        """The steady time of the next thing that is due."""
        first_s = self._due[0][0] if self._due else inf
        return min(self.passes.next_s(), self._check_true_s, first_s)

    def step(self) -> None:
        """Do what is due now."""
        now_s = self.world.true_s
        while self._due and self._due[0][0] <= now_s:
            due_s, job_id = heappop(self._due)
            job = self.jobs.get(job_id)
            if job is not None and job.due_true_s == due_s:
                self._do_due(job)
        if self._check_true_s <= now_s:
            self._check_true_s = now_s + self._check_s
            self._check()
        self.passes.step()

    def _check(self) -> None:
        """Look at the dependencies and deadlines of all jobs, then forget those that ended long enough ago."""
        for job in list(self.jobs.values()):
            if job.state == WAITING and job.dependency is not None:
                self.check_dependency(job)
            soonest_s = self.world.wall_s() + job.walltime_s
            if job.state == WAITING and job.deadline_s is not None and job.deadline_s < soonest_s:
                self._end(job, "DEADLINE", "deadline")
        for job in [job for job in self.jobs.values() if job.state in ENDED]:
            if job.due_true_s <= self.world.true_s:
                self._purge(job)

    def _do_due(self, job: ModelJob) -> None:
        if job.state == "RUNNING" and job.is_missing:
            self._fail(job)
        elif job.state == "RUNNING":
            self._complete(job, "FAILED" if job.fails else "COMPLETED", "completed")
        elif job.state == "COMPLETING":
            self._epilogue(job)

    def _purge(self, job: ModelJob) -> None:
        del self.jobs[job.id]
        self._tell("purge", job, "slurm")

    def _set_due(self, job: ModelJob, in_s: float) -> None:
        job.due_true_s = self.world.true_s + in_s
        if in_s < inf:
            heappush(self._due, (job.due_true_s, job.id))

    def check_dependency(self, job: ModelJob) -> None:
        """Look at the jobs that it waits for, as Slurm does: a job that is gone counts as ended well."""
        if job.dependency is None:
            return
        if job.dependency_state == "failed":
            self.note(job, "DependencyNeverSatisfied")
            return
        kind, ids = job.dependency
        others = [other for each in ids for other in self._of_id(each)]
        before = job.dependency_state
        if kind == "afterok" and any(other.state in ENDED - {"COMPLETED"} for other in others):
            job.dependency_state, job.reason = "failed", "DependencyNeverSatisfied"
        elif all(other.state in ENDED for other in others):
            job.dependency_state = "fulfilled"
        if job.dependency_state != before:
            changed(job)

    def _of_id(self, job_id: int) -> list[ModelJob]:
        """The job, or all tasks of the array, of that id."""
        of_array = [job for job in self.jobs.values() if job.array_id == job_id]
        job = self.jobs.get(job_id)
        return of_array or ([job] if job is not None else [])

    def first_of(self, address: str) -> int:
        """The id of the first record that `41`, `41_7` or `41_[7-9]` means; 0 if there is none."""
        base, _, part = address.partition("_")
        wanted, task = int(base), next(iter(numbers(part.strip("[]")))) if part else None
        for job in self.jobs.values():
            is_it = job.array_id == wanted and (job.array_task == task or task in job.array_tasks)
            if is_it or (task is None and wanted in (job.id, job.array_id)):
                return job.id
        return 0

    # --- steps of a job's life

    def start(self, job: ModelJob, nodes: tuple[str, ...], cores: tuple[int, ...]) -> ModelJob:
        """Start a waiting job; of an array's record, its first task. Return what was started."""
        if job.is_record:
            first = job.array_tasks[0]
            job = self._split(job, [first], "slurm")[first]
        job.state, job.allocated, job.cores = "RUNNING", nodes, cores
        job.start_s = int(self.world.wall_s())
        self._set_due(job, min(job.run_s, job.walltime_s))
        job.reason, job.planned_on, job.planned_s = "", (), 0
        self._count_message()
        self._tell(
            *("start", job, "slurm"),
            nodes=nodes,
            cores=cores,
            memory_mb=tuple(job.memory_on(each) for each in cores),
            ways=job.ways,
            bandwidth=job.bandwidth_gbps,
            pinned=bool(job.required),
            restarts=job.restarts,
            partition=job.partition,
        )
        return job

    def hold_as_bad(self, job: ModelJob) -> None:
        """Slurm's own hold of a job that can never run as it is."""
        job.hold, job.reason = "bad", HOLD_REASONS["bad"]
        self._tell("bad", job, "slurm")

    def note(self, job: ModelJob, reason: str) -> None:
        """Note why the job does not start."""
        if job.reason != reason:
            job.reason = reason
            changed(job)

    def _complete(self, job: ModelJob, state: str, how: str) -> None:
        job.state, job.how, job.will_wait = "COMPLETING", state, False
        job.reason = {"FAILED": "NonZeroExitCode", "NODE_FAIL": "NodeDown"}.get(state, "")
        self._set_due(job, COMPLETING_S)
        self._count_message()
        self._tell("end", job, "slurm", how=how)

    def _requeue(self, job: ModelJob) -> None:
        """The job completes, and then waits again, with what was written into it: nodes, gres, nice."""
        had_nodes = job.state in OCCUPYING
        if had_nodes and job.state != "COMPLETING":
            self._tell("end", job, "slurm", how="requeued")
        if not had_nodes:
            job.allocated, job.cores = (), ()
        if job.is_paused and not job.hold:
            is_users = job.reason == HOLD_REASONS["user"]
            job.hold = "user" if is_users else "admin"
            self._tell("hold", job, "slurm", admin=not is_users, had="")
        job.is_paused = job.is_missing = False
        job.restarts += 1
        job.submit_s = int(self.world.wall_s())
        if job.begin_s <= job.submit_s:  # a begin time of its owner's, or of ours, that lies ahead stays
            job.begin_s = job.submit_s + int(self.site.requeue_delay_s) + 1
        job.will_wait, job.state = True, "COMPLETING"
        completes_s = COMPLETING_S
        if self.site.kill_wait_s:
            completes_s += self.world.random.random() * self.site.kill_wait_s
        self._set_due(job, completes_s if had_nodes else 0.0)
        changed(job)

    def _requeue_held(self, job: ModelJob, by: str) -> None:
        """Requeue the job and hold it, whoever does that, for its owner to release."""
        self.requeue(job.id, by)
        had, job.hold, job.reason = job.hold, "user", REQUEUED_HELD
        self._tell("hold", job, by, admin=False, had=had, is_requeued=True)
        changed(job)

    def _epilogue(self, job: ModelJob) -> None:
        if not job.will_wait:
            self._end(job, job.how, "")
            return
        job.will_wait, job.state, job.allocated, job.cores = False, WAITING, (), ()
        job.start_s, job.suspended_s, job.ran_s, job.keeps_cores = 0, 0, 0, True
        if not job.hold:
            job.reason = "BeginTime"
        self._prioritise(job)
        self._tell("waits", job, "slurm")
        self.passes.wake()

    def _end(self, job: ModelJob, state: str, how: str) -> None:
        job.state = state
        job.ended_s = int(self.world.wall_s())
        job.start_s = job.start_s or job.ended_s
        job.due_true_s = self.world.true_s + self.site.min_job_age_s
        if how:
            self._tell("end", job, "slurm", how=how)
        changed(job)
        self.passes.wake()

    # --- small parts

    def _job(self, job_id: int) -> ModelJob:
        job = self.jobs.get(job_id)
        if job is None:
            raise Refused(INVALID_ID)
        return job

    def _refused(self, job: ModelJob, by: str, why: str) -> Refused:
        self.world.history.add("refused", job.id, by, why=why)
        return Refused(why)

    def _basic(self, job: ModelJob) -> None:
        if self.site.priority_type == "priority/basic":
            self.next_basic -= 1
            job.own_priority = self.next_basic

    def _prioritise(self, job: ModelJob) -> None:
        """Slurm subtracts nice from the priority, which has 32 bits; under priority/basic without a check."""
        if job.fixed_priority:
            return
        if self.site.priority_type == "priority/basic":
            job.priority = max((job.own_priority - job.nice) % (MOST_PRIORITY + 1), 1)
        else:
            job.priority = min(max(MULTIFACTOR + job.site_factor - job.nice, 1), MOST_PRIORITY)

    def _tell(self, kind: str, job: ModelJob, by: str, **data: Any) -> None:
        changed(job)
        self.world.history.add(kind, job.id, by, now=now_of(job), **data)


def _kept(job: ModelJob) -> ModelJob:
    """A copy of the job, which does not change with it."""
    kept = copy(job)
    changed(kept)
    return kept
