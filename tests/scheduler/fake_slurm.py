"""A small Slurm that enforces Slurm's rules, and fakes of the other ports.

A pending job that is not held starts at the next tick after its begin time if it fits: on its node list if it has one,
else on any node; the highest SiteFactor first. No node is ever over its capacity, in cores.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from live import NOW, applied, comment, job, node

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.model import NOTHING, Resources
from slurm_sns.policies.by_partition import ByPartition
from slurm_sns.policies.dfrs.shares import CoreSharing
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.restarts.rules import RestartRules
from slurm_sns.scheduler.gate.arrays import listed
from slurm_sns.scheduler.gate.orders import GateOrder, OrderKind, RequeueOrder, SignalOrder, one_by_one
from slurm_sns.scheduler.loop import Scheduler
from slurm_sns.scheduler.observation import JobState, Observation
from slurm_sns.scheduler.ports import PolicyHistory, Ports
from slurm_sns.scheduler.restarts.ledger import NAME as RESTARTS
from slurm_sns.scheduler.restarts.restarter import Restarter
from slurm_sns.scheduler.sharing.book import NAME as SHARING
from slurm_sns.scheduler.sharing.sharer import Sharer
from slurm_sns.task_ids import task_of

#: The first lease, which the submit filter writes, and the time for which Slurm gates a requeued job.
FIRST_LEASE_S, REQUEUE_DELAY_S = 60, 121


def carry_out(slurm, order) -> None:
    """Have a FakeSlurm, or a wrapper around one, carry out an order."""
    match order:
        case GateOrder():
            getattr(slurm, order.kind.value)(order)
        case SignalOrder():
            slurm.signal(order.job_id, order.signal)
        case RequeueOrder(state=JobState.RUNNING):
            slurm.requeue_running(order.job_id)
        case RequeueOrder():
            slurm.requeue_preempted(order.job_id)


class FakeSlurm:
    """The ports State, Executor and Clock; jobs start and end while `sleep` lets time pass."""

    def __init__(self, cores: dict[str, int]) -> None:
        self.cores = cores
        self.jobs = {}
        self.run_s = {}
        self.time_s = NOW
        self.step_s = 0.0
        self.started: list[tuple[int, tuple[str, ...]]] = []
        self.ended: list[int] = []
        self.starts_nothing = False
        self.limits: dict[str, int] = {}  # account -> the cores that its jobs may hold
        self.in_use: list[int] = []  # cores, tick by tick
        self.orders: list[GateOrder] = []  # those that were carried out
        self.min_job_age_s = 0  # Slurm's MinJobAge is 300: it shows jobs for that long after their end
        self.shown: dict = {}  # more of the observation
        self.jobs_to_a_core = 1  # OverSubscribe=FORCE:n
        self.signalled: list[tuple[int, str]] = []
        self.after: dict[int, int] = {}  # job -> the job that must have ended before

    def submit(self, *tasks: int, run_s: float = 3.0, words: str = "", **fields) -> None:
        """Submit jobs, one for each number of tasks, as the submit filter gates them."""
        for number in tasks:
            identity = len(self.run_s) + 1
            gate_s = int(self.time_s) + FIRST_LEASE_S
            gated = {"admin_comment": comment(words, gate_s=gate_s), "begin_s": gate_s, "submit_s": int(self.time_s)}
            spread = {"tasks": number, "nodes_max": 1 if number == 1 else None}
            self.jobs[identity] = job(identity, **{**gated, **spread, **fields})
            self.run_s[identity] = run_s

    def submit_array(self, expression: str, tasks: int = 1, **fields) -> int:
        """Submit an array, each of whose tasks has one process unless `tasks` says more, and return its id."""
        identity = len(self.run_s) + 1
        self.submit(tasks, array_id=identity, array_tasks=expression, **fields)
        return identity

    # State

    def observe(self) -> Observation:
        nodes = [
            node(name, cores, taken=(self.used(name), self.memory_used_mb(name))) for name, cores in self.cores.items()
        ]
        return Observation(tuple(self.jobs.values()), tuple(nodes), **self.shown)

    def used(self, name: str) -> int:
        """The cores of the node that are taken; a suspended job does not keep its cores."""
        there = (each for each in self.jobs.values() if name in each.allocated)
        return sum(each.tasks // len(each.allocated) for each in there if each.state is JobState.RUNNING)

    def memory_used_mb(self, name: str) -> int:
        """The memory of the node that is taken; a suspended job keeps its memory."""
        there = (each for each in self.jobs.values() if name in each.allocated)
        return sum(-(-each.occupies.memory_mb // len(each.allocated)) for each in there)

    # Executor

    def execute(self, orders):
        return one_by_one(orders, lambda order: carry_out(self, order))

    def place(self, order) -> None:
        self.apply(order)

    def regate(self, order) -> None:
        self.apply(order)

    def free(self, order) -> None:
        self.apply(order)

    def renew(self, order) -> None:
        self.apply(order)

    def widen(self, order) -> None:
        self.apply(order)

    def unboost(self, order) -> None:
        self.apply(order)

    def limit(self, order) -> None:
        self.apply(order)

    def apply(self, order: GateOrder) -> None:
        """Change the job, as one RPC does: all of it or nothing. A task is split off its array's record first."""
        of_array = task_of(order.job_id)
        found = self.jobs.get(order.job_id) if of_array is None else self.task(*of_array)
        if found is None:
            raise Refused("Invalid job id specified")
        if order.kind not in (OrderKind.UNBOOST, OrderKind.LIMIT) and found.state is not JobState.PENDING:
            raise Refused("Job is no longer pending execution")
        if of_array is not None:
            assert order.address == "{}_{}".format(*of_array)
            found = self.split(found, of_array[1]) if found.is_array_record else found
        self.orders.append(order)
        self.jobs[found.id] = applied(found, order, self.time_s)

    def task(self, array_id: int, number: int):
        """The job that is this task, or the record that it is in."""
        for each in self.jobs.values():
            is_in = each.is_array_record and number in listed(each.array_tasks)
            if each.array_id == array_id and (is_in or each.array_task == number):
                return each
        return None

    def split(self, record, number: int):
        """Split a task off as Slurm does: it gets the next job id; the array's last task keeps the array's id."""
        left = [each for each in listed(record.array_tasks) if each != number]
        identity = len(self.run_s) + 1 if left else record.id
        self.run_s[identity] = self.run_s[record.id]
        self.jobs[identity] = replace(record, id=identity, array_task=number, array_tasks="")
        if len(left) == 1:
            self.change(record.id, array_task=left[0], array_tasks="")
        elif left:
            self.change(record.id, array_tasks=",".join(map(str, left)))
        return self.jobs[identity]

    def suspend(self, job_id: int) -> None:
        """Free the job's cores, but not its memory and gres."""
        self.require(job_id, JobState.RUNNING)
        left_s = self.jobs[job_id].end_s - int(self.time_s)
        self.change(job_id, state=JobState.SUSPENDED, suspended_s=int(self.time_s), end_s=left_s)

    def resume(self, job_id: int) -> None:
        """Resume the job on its nodes, as Slurm does: even if other jobs run on its cores by now."""
        self.require(job_id, JobState.SUSPENDED)
        now_s, left_s = int(self.time_s), self.jobs[job_id].end_s
        self.change(job_id, state=JobState.RUNNING, suspended_s=now_s, end_s=now_s + left_s)

    def requeue(self, job_id: int) -> None:
        """End the run and let the job wait; Slurm gates it for a while."""
        self.require(job_id, JobState.RUNNING, JobState.SUSPENDED)
        of, now_s = self.jobs[job_id], int(self.time_s)
        if not of.may_restart:
            raise Refused("Requested operation is presently disabled")
        waits = {"state": JobState.PENDING, "allocated": (), "restarts": of.restarts + 1, "submit_s": now_s}
        self.change(job_id, **waits, occupies=NOTHING, begin_s=now_s + REQUEUE_DELAY_S)

    def requeue_preempted(self, job_id: int) -> None:
        """What the executor does: it requeues only what preemption has suspended."""
        self.require(job_id, JobState.SUSPENDED)
        if self.jobs[job_id].priority == 0:
            raise Refused("it is no longer suspended by preemption")
        self.requeue(job_id)

    def requeue_running(self, job_id: int) -> None:
        """What the executor does to pause a job."""
        self.require(job_id, JobState.RUNNING)
        self.requeue(job_id)

    def signal(self, job_id: int, name: str) -> None:
        self.require(job_id, JobState.RUNNING)
        self.signalled.append((job_id, name))

    def require(self, job_id: int, *states: JobState) -> None:
        if job_id not in self.jobs:
            raise Refused("Invalid job id specified")
        if self.jobs[job_id].state not in states:
            raise Refused("Requested operation is not possible in the job's present state")

    def change(self, job_id: int, **fields) -> None:
        self.jobs[job_id] = replace(self.jobs[job_id], **fields)

    def status(self, job_id: int):
        """The gate of the job: its nodes, whether its gate is shut, and why it is Slurm's."""
        of = self.jobs[job_id]
        return of.pinned_to, of.begin_s > self.time_s, of.record.free_why

    # Clock

    def now(self) -> float:
        return self.time_s

    def steady(self) -> float:
        return self.time_s - self.step_s

    def sleep(self, seconds: float) -> None:
        self.time_s += max(seconds, 0.01)
        self.tick()

    def step(self, seconds: float) -> None:
        """Set the clock by this much; running jobs still run for as long as they would have."""
        self.time_s += seconds
        self.step_s += seconds
        for each in list(self.jobs.values()):
            if each.state is JobState.RUNNING:
                self.change(each.id, end_s=each.end_s + int(seconds))

    def tick(self) -> None:
        for each in list(self.jobs.values()):
            if each.state is JobState.RUNNING and each.end_s <= self.time_s:
                self.change(each.id, state=JobState.ENDED, allocated=(), occupies=NOTHING)
                self.ended.append(each.id)
            if self.jobs[each.id].state is JobState.ENDED and each.end_s + self.min_job_age_s <= self.time_s:
                del self.jobs[each.id]
        for later, earlier in self.after.items():
            if later in self.jobs:
                self.change(later, waits_for_others=earlier not in self.ended)
        for each in sorted(self.jobs.values(), key=lambda each: -each.priority):
            may_start = each.priority > 0 and each.begin_s <= self.time_s and not self.starts_nothing
            if each.state is JobState.PENDING and may_start and not self.waits(each):
                self.start(self.split(each, next(listed(each.array_tasks))) if each.is_array_record else each)
        self.in_use.append(sum(map(self.used, self.cores)))

    def waits(self, waiting) -> bool:
        """Whether it waits for other jobs: then Slurm forgets a begin time that is past."""
        running = [each for each in self.jobs.values() if each.state is JobState.RUNNING]
        tasks = sum(each.array_id == waiting.array_id for each in running)
        reason = "Dependency" if waiting.waits_for_others else ""
        if not reason and waiting.array_limit and tasks >= waiting.array_limit:
            reason = "JobArrayTaskLimit"
        begin_s = 0 if reason else waiting.begin_s or int(self.time_s)
        self.change(waiting.id, reason=reason or waiting.reason, begin_s=begin_s)
        return reason != ""

    def start(self, waiting) -> None:
        running = (each for each in self.jobs.values() if each.state is JobState.RUNNING)
        held = sum(each.tasks for each in running if each.account == waiting.account)
        if held + waiting.tasks > self.limits.get(waiting.account, 1_000_000):
            self.change(waiting.id, reason="AssocGrpCpuLimit")
            return
        for nodes in (waiting.pinned_to,) if waiting.pinned_to else ((name,) for name in self.cores):
            each_needs = -(-waiting.tasks // len(nodes))
            most = self.jobs_to_a_core
            if all(self.used(name) + each_needs <= most * self.cores[name] for name in nodes):
                end_s = int(self.time_s + self.run_s[waiting.id])
                whole_mb = (waiting.memory_per_node_mb or 0) * len(nodes)
                holds = Resources(waiting.tasks, whole_mb or waiting.tasks * (waiting.memory_per_cpu_mb or 0))
                started = {"state": JobState.RUNNING, "start_s": int(self.time_s), "end_s": end_s}
                self.change(waiting.id, **started, allocated=nodes, occupies=holds)
                self.started.append((waiting.id, nodes))
                return


@dataclass
class FakeHistory:
    tries: dict = field(default_factory=dict)
    broken: bool = False
    memory: PolicyHistory | None = None
    of_restarts: PolicyHistory | None = None
    of_sharing: PolicyHistory | None = None

    def load(self):
        return dict(self.tries)

    def load_memory(self, policy):
        return {RESTARTS: self.of_restarts, SHARING: self.of_sharing}.get(policy, self.memory)

    def save(self, changed, gone, memory=None) -> None:
        if self.broken:
            raise Unreachable("the store's tries cannot be written: database or disk is full")
        if memory is not None and memory.policy == RESTARTS:
            self.of_restarts = memory
        elif memory is not None and memory.policy == SHARING:
            self.of_sharing = memory
        else:
            self.memory = memory or self.memory
        self.tries |= {each.job_id: each for each in changed}
        for job_id in gone:
            self.tries.pop(job_id, None)


@dataclass
class FakeDecisions:
    cycles: list = field(default_factory=list)
    broken: bool = False
    tasks: dict = field(default_factory=dict)
    restarts: list = field(default_factory=list)

    def record(self, _at_s, snapshot, plan, notes, **more) -> None:
        if self.broken:
            raise Unreachable("the decision record cannot be written: disk I/O error")
        self.tasks |= more["tasks"]
        self.restarts.extend(more["restarts"].items())
        self.cycles.append((snapshot, plan, dict(notes), dict(more["owners"])))

    def of_job(self, _job_id):
        return []

    def job_of_task(self, _array_id, _task):
        return None

    def snapshot_of(self, _cycle_id):
        return None

    def cycles_between(self, _from_s, _to_s):
        return []


@dataclass
class FakeProfiles:
    programs: dict = field(default_factory=dict)

    def load(self):
        return self.programs


@dataclass
class FakeHeartbeat:
    last: float | None = None
    beats: int = 0

    def beat(self, now_s: float) -> None:
        self.last = now_s
        self.beats += 1

    def stop(self) -> None:
        self.last = 0.0


@dataclass
class FakeSwitch:
    on: bool = False

    def is_on(self) -> bool:
        return self.on


class Crash(BaseException):
    """The process is killed."""


class Wire:
    """Passes on every call of a port; call number `at` fails, before it has its effect or after."""

    def __init__(self, at: int | None = None, problem: BaseException | None = None, *, after: bool = False) -> None:
        self.at, self.problem, self.after = at, problem, after
        self.calls: list[str] = []

    def through(self, target, *silent: str):
        return _Through(target, self, silent)

    def call(self, name: str, effect: Callable[[], object]) -> object:
        self.calls.append(name)
        fails = len(self.calls) == self.at
        if fails and not self.after:
            raise self.problem
        result = effect()
        if fails:
            raise self.problem
        return result


class _Through:
    def __init__(self, target, wire: Wire, silent: tuple[str, ...]) -> None:
        self._target, self._wire, self._silent = target, wire, silent

    def execute(self, orders):
        return one_by_one(orders, lambda order: carry_out(self, order))

    def __getattr__(self, name: str):
        attribute = getattr(self._target, name)
        if name in self._silent:
            return attribute
        return lambda *values, **named: self._wire.call(name, lambda: attribute(*values, **named))


@dataclass
class Site:
    """A fake Slurm and the other ports of one scheduler."""

    slurm: FakeSlurm
    history: FakeHistory = field(default_factory=FakeHistory)
    decisions: FakeDecisions = field(default_factory=FakeDecisions)
    profiles: FakeProfiles = field(default_factory=FakeProfiles)
    heartbeat: FakeHeartbeat = field(default_factory=FakeHeartbeat)
    switch: FakeSwitch = field(default_factory=FakeSwitch)
    log: list = field(default_factory=list)
    mails: list = field(default_factory=list)
    views: list = field(default_factory=list)
    agents: object = None

    def ports(self, wire: Wire | None = None) -> Ports:
        wire = wire or Wire()
        return Ports(
            state=wire.through(self.slurm),
            executor=wire.through(self.slurm),
            history=wire.through(self.history),
            decisions=wire.through(self.decisions),
            profiles=self.profiles,
            heartbeat=wire.through(self.heartbeat),
            kill_switch=wire.through(self.switch),
            clock=self.slurm,
            log=self.log.append,
            mailer=self,
            agents=self.agents,
        )

    def send(self, mail) -> None:
        self.mails.append(mail)

    def scheduler(self, settings, wire: Wire | None = None, restarts: RestartRules | None = None) -> Scheduler:
        ports, policy = self.ports(wire), max_jobs(MatchingParameters())
        restarter = None if restarts is None else Restarter(restarts, ports, settings, policy.plan)
        sharer = None
        if (sharing := settings.sharing) is not None:
            shares = CoreSharing(sharing.most_to_a_core, pauses=sharing.pauses)
            policy, sharer = ByPartition(policy, shares, sharing.partitions), Sharer(sharing, ports)
        return Scheduler(ports, policy, settings, publish=self.views.append, restarter=restarter, sharer=sharer)
