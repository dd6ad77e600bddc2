"""What a daemon of the world reaches outside itself, with latency and faults: Slurm, the store, files, the clock.

Every call of a port takes time: half of it passes before the call takes effect, half after. At each call a trap may go
off (a crash, a freeze, something that a user does at this very moment): before it takes effect, just after (`in`: the
caller has no answer yet), or when the answer is there. A `lost` call takes effect, and its caller gets an error.

The Executor is the real `SlurmExecutor`: `stand_ins` puts ours in place of pyslurm and scontrol, and each of its RPCs
is a call of the process that runs now.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

from slurm_sns.errors import Refused, SnsError, Unreachable
from slurm_sns.model import Plan, Snapshot
from slurm_sns.policies.profile import Program
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.scheduler.gate.orders import GateOrder
from slurm_sns.scheduler.observation import (
    NO_PREEMPTION,
    UNKNOWN,
    Backfill,
    DatabaseQueue,
    Observation,
    ObservedJob,
    PreemptionRules,
    TresLimits,
)
from slurm_sns.scheduler.ports import PolicyHistory
from slurm_sns.slurm import executor, rpc
from slurm_sns.submit import record as records
from world.kernel import Broken, Crash, Process, World
from world.slurm import Slurm, SlurmSite, words_of
from world.slurm_jobs import SMALL, USER_IDS

#: An RPC on the controller takes this long at least, and so much more at most; a command also starts a process.
RPC_S, RPC_MORE_S, COMMAND_S = 0.0006, 0.002, 0.006
#: One call in so many takes longer: slurmctld is in a pass and holds its locks.
SELDOM, LONG_S = 100, 0.4
#: How long a request waits for a slurmctld that does not run, and for one that hangs (MessageTimeout).
REFUSED_S, HANGS_S = 0.05, 10.0
#: A transaction of the store; how long SQLite waits for a lock (busy_timeout in store/schema.py).
STORE_S, BUSY_S = 0.001, 5.0
#: slurmdbd is asked this often, and how long the first observation waits for it (slurm/accounting.py).
ASKED_EVERY_S, ASKED_AGAIN_S, FIRST_ANSWER_S = 60.0, 15.0, 3.0
#: Profiles are read again this often (cli/live/parts.py).
PROFILES_S = 5.0
#: A slow slurmctld answers so much later.
SLOW_S = (0.2, 2.5)

Seen = TypeVar("Seen")

#: Lines of the log that tell of a defect of our own (outage_log.py); its traceback comes before them.
OUR_DEFECT = "defect: "


@dataclass
class Trap:
    """What happens at one call of a daemon's ports: at the `left`-th call from now on whose kind is in `kinds`.

    `when` is before, in, after, or lost. `kinds` empty means every call.
    """

    when: str
    left: int
    action: Callable[[], object]
    kinds: frozenset[str] = frozenset()


@dataclass
class Files:
    """The heartbeat and the kill switch. A full disk takes no new text."""

    heartbeat: str | None = None
    disk_is_full: bool = False
    kill_switch: bool = False

    def beat_s(self) -> float | None:
        """What `HeartbeatFile.last` reads (store/heartbeat.py)."""
        try:
            return None if self.heartbeat is None else float(self.heartbeat.strip())
        except ValueError:
            return None

    def beat_in_lua_s(self) -> int | None:
        """What the submit filter reads (plugins/job_submit/sns_filter.lua)."""
        text = (self.heartbeat or "")[:32].strip(" \n\t\r\f\v")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


@dataclass
class Store:
    """The database: tries of placements by job id, and what restarts remember. `state` is up, locked or full.

    A database that an admin has moved away (`generation`) is not written by those who had opened it.
    """

    tries: dict[int, Try] = field(default_factory=dict)
    state: str = "up"
    generation: int = 0
    memories: dict[str, PolicyHistory] = field(default_factory=dict)

    def move_away(self) -> None:
        self.tries, self.memories = {}, {}
        self.generation += 1


@dataclass
class Controller:
    """The machine on which slurmctld and our daemons run."""

    world: World
    slurm: Slurm
    site: SlurmSite
    random: Random
    files: Files = field(default_factory=Files)
    store: Store = field(default_factory=Store)
    mode: str = "enforce"
    slurmctld: str = "up"
    slurmctld_hangs: bool = False
    munge_is_up: bool = True
    slurmdbd_is_up: bool = True
    many: int = executor.MANY
    #: Whether our own library is installed beside pyslurm.
    has_library: bool = False
    quiet_interval_s: Callable[[], float] = lambda: 0.0
    queued_check_s: float = 0.0
    is_repaired: bool = False
    keeps_log: bool = False
    #: Lines of the log about defects of slurm_sns.
    defects: list[str] = field(default_factory=list)
    #: The agents on the nodes (agents.Agents), where the schedule has any.
    agents: Any = None
    #: The settings of restarts (restarts.rules_of); None: nothing is restarted.
    restarts: Mapping[str, Any] | None = None

    def latency_s(self, least_s: float) -> float:
        """How long an RPC takes now."""
        draw = self.random.random()
        if self.slurmctld == "slow":
            return SLOW_S[0] + draw * (SLOW_S[1] - SLOW_S[0])
        if draw * SELDOM < 1.0:
            return draw * SELDOM * LONG_S
        return least_s + draw * RPC_MORE_S

    def say(self, service: str, **data: Any) -> None:
        """Note the new state of a service in the history."""
        self.world.history.add(service, **data)


class Caller:
    """One daemon as its ports see it: its name, its process, the traps on its calls."""

    def __init__(self, controller: Controller, name: str) -> None:
        self.controller = controller
        self.name = name
        self.process: Process | None = None
        self.traps: list[Trap] = []
        self.calls = 0
        #: The job that its present RPC, or its last one, is about (0: none).
        self.concerns = 0

    def call(self, kind: str, effect: Callable[[], Any], takes_s: float = 0.0, *, is_rpc: bool = False) -> Any:
        """Call a port.

        Raises:
            SnsError: what the port answers.
            Crash: the process has been killed.
        """
        world, process = self.controller.world, self.process
        assert process is not None
        if process.is_doomed:
            raise Crash
        self.calls += 1
        sprung = self._sprung(kind) if self.traps else ()
        if sprung:
            self._spring(sprung, "before")
        if takes_s:
            world.wait(takes_s / 2)
        result, problem = None, None
        try:
            if is_rpc:
                self._reach_slurmctld()
            result = effect()
        except SnsError as answer:
            problem = answer
        except Exception as defect:
            raise Broken(f"{kind}: {type(defect).__name__}: {defect}") from defect
        if sprung:
            self._spring(sprung, "in")
        if takes_s:
            world.wait(takes_s / 2)
        if sprung:
            self._spring(sprung, "after")
            if any(trap.when == "lost" for trap in sprung) and not self.controller.is_repaired:
                world.history.add("lost", self.concerns if is_rpc else 0, self.name, call=kind)
                raise Unreachable(f"slurmctld does not answer: the reply to {kind} was lost")
        if problem is not None:
            raise problem
        return result

    def _sprung(self, kind: str) -> Sequence[Trap]:
        """The traps that this call springs."""
        for trap in self.traps:
            if not trap.kinds or kind in trap.kinds:
                trap.left -= 1
        sprung = [trap for trap in self.traps if trap.left <= 0]
        if sprung:
            self.traps = [trap for trap in self.traps if trap.left > 0]
        return sprung

    def _spring(self, sprung: Sequence[Trap], when: str) -> None:
        for trap in () if self.controller.is_repaired else sprung:
            if trap.when == when:
                self.controller.world.act(trap.action)
        process = self.process
        assert process is not None
        if process.is_doomed:
            raise Crash
        if sprung and process.frozen_until_s > self.controller.world.true_s:
            self.controller.world.wait(0.0)

    def rpc(self, kind: str, effect: Callable[[], Any], *, changes: bool = False, least_s: float = RPC_S) -> Any:
        """Ask slurmctld.

        Raises:
            Refused: it says no.
            Unreachable: it does not answer, or munge does not run.
        """
        controller = self.controller
        if changes:
            return self.call(
                kind, lambda: controller.world.changing(effect), controller.latency_s(least_s), is_rpc=True
            )
        return self.call(kind, effect, controller.latency_s(least_s), is_rpc=True)

    def _reach_slurmctld(self) -> None:
        """Wait as long as a request waits for a slurmctld that does not answer.

        Raises:
            Unreachable: it does not answer, or munge does not run.
        """
        controller = self.controller
        if not controller.munge_is_up:
            raise Unreachable("slurmctld does not answer: authentication failed; does munge run here and there?")
        if controller.slurmctld == "down":
            # A connection is refused at once; one that hangs is given up after MessageTimeout.
            controller.world.wait(HANGS_S if controller.slurmctld_hangs else REFUSED_S)
            raise Unreachable("slurmctld does not answer: Unable to contact slurm controller (connect failure)")

    def seen(self, answer: Seen) -> Seen:
        """Note that this daemon now sees all jobs."""
        self.controller.world.history.add("look", by=self.name)
        return answer

    def seen_one(self, job_id: int, answer: Seen) -> Seen:
        """Note that this daemon now sees this job."""
        self.controller.world.history.add("load", job_id, self.name)
        return answer

    def log(self, line: str) -> None:
        """The log. Lines about defects of our own are always kept."""
        is_defect = line.startswith(OUR_DEFECT)
        if is_defect:
            self.controller.defects.append(f"{self.name} at {self.controller.world.true_s:.3f} s: {line}")
        if self.controller.keeps_log or is_defect:
            self.controller.world.history.add("log", by=self.name, line=line)


# --- Slurm


class StateOf:
    """The State port: the bulk reads one after the other, jobs before nodes, as in slurm/state.py."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._is_known = False
        self._ask_s = 0.0
        self._backfill = Backfill(interval_s=caller.controller.site.bf_interval_s)

    def observe(self) -> Observation:
        caller, controller = self._caller, self._caller.controller
        slurm, site = controller.slurm, controller.site
        self._ask()
        jobs = caller.rpc("jobs", lambda: caller.seen(slurm.load_jobs()))
        nodes = caller.rpc("nodes", slurm.load_nodes)
        reservations = caller.rpc("reservations", slurm.load_reservations)
        partitions = caller.rpc("partitions", slurm.load_partitions)
        known = self._is_known
        return Observation(
            jobs=jobs,
            nodes=nodes,
            reservations=reservations,
            partitions=partitions,
            qos_priorities=((SMALL, 0), ("normal", 0)) if known else (),
            tres_limits=_NOTHING_WE_CHANGE if known else UNKNOWN,
            backfill=self._backfill,
            preemption=replace(PREEMPTION if site.suspends_by_tier else NO_PREEMPTION, of_qos=() if known else None),
            names_tasks=controller.has_library,
            has_boost=site.priority_type == "priority/multifactor",
            database_queue=DatabaseQueue(slurm.database_queue, site.most_database_messages),
        )

    def _ask(self) -> None:
        """Ask slurmdbd in a thread of its own; only the first observation waits for it."""
        world = self._caller.controller.world
        if world.true_s < self._ask_s:
            return
        answers = self._caller.controller.slurmdbd_is_up
        if not answers and self._ask_s == 0.0:
            world.wait(FIRST_ANSWER_S)
        self._is_known = self._is_known or answers
        self._ask_s = world.true_s + (ASKED_EVERY_S if answers else ASKED_AGAIN_S)


#: The limits of the world are on cores and on jobs: nothing that a placement changes.
PREEMPTION = PreemptionRules("preempt/partition_prio", "GANG,SUSPEND")
_NOTHING_WE_CHANGE = TresLimits(of_users={user: frozenset() for user in USER_IDS})


class JobsOf:
    """The State port of the watchdog: the jobs alone."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def observe(self) -> Observation:
        caller = self._caller
        return Observation(caller.rpc("jobs", lambda: caller.seen(caller.controller.slurm.load_jobs())), ())


class _Job:
    """pyslurm's Job: each method is an RPC of the process that runs now."""

    controller: Controller

    def __init__(self, job_id: int) -> None:
        self._id = job_id

    def modify(self, change: SimpleNamespace) -> None:
        kind = kind_of(words_of(change))
        self._ask(kind, lambda by: self.controller.slurm.modify(self._id, change, by, kind))

    def requeue(self) -> None:
        self._ask("requeue", lambda by: self.controller.slurm.requeue(self._id, by))

    def _ask(self, kind: str, effect: Callable[[str], object]) -> None:
        caller = running(self.controller)
        caller.concerns = self._id
        caller.rpc(kind, lambda: effect(caller.name), changes=True)


def running(controller: Controller) -> Caller:
    """The daemon that runs now."""
    process = controller.world.running
    assert process is not None
    caller: Caller = process.owner
    return caller


class _Senders:
    """Stands for the processes that send orders side by side: here one after the other."""

    def send(self, updates: Sequence[Sequence[GateOrder]]) -> Iterator[tuple[GateOrder, Refused | None]]:
        return executor.in_turn(updates)


@contextmanager
def stand_ins(controller: Controller) -> Iterator[None]:
    """Inside the block the real SlurmExecutor asks the simulated Slurm."""
    slurm = controller.slurm

    def load(job_id: int) -> ObservedJob:
        caller = running(controller)
        caller.concerns = job_id
        found: ObservedJob = caller.rpc("load", lambda: caller.seen_one(job_id, slurm.load_job(job_id)))
        return found

    def run(_command: str, *words: str) -> str:
        caller = running(controller)
        caller.concerns = slurm.first_of(words[1].removeprefix("JobId="))
        kind = words[0] if words[0] != "update" else kind_of(dict(word.split("=", 1) for word in words[2:]))
        text: str = caller.rpc(
            kind, lambda: slurm.scontrol(words, caller.name, kind), changes=True, least_s=RPC_S + COMMAND_S
        )
        return text

    def modify_tasks(array_id: int, tasks: Sequence[int], change: SimpleNamespace) -> dict[int, str]:
        caller = running(controller)
        caller.concerns = slurm.first_of(f"{array_id}_{tasks[0]}")
        kind = kind_of(words_of(change))
        answered: dict[int, str] = caller.rpc(
            kind, lambda: slurm.modify_tasks(array_id, tasks, change, caller.name, kind), changes=True
        )
        return answered

    job_class = type("Job", (_Job,), {"controller": controller, "load": staticmethod(load)})
    api = SimpleNamespace(Job=job_class, JobSubmitDescription=SimpleNamespace)
    # The library's error numbers are the model's refusals themselves.
    library = SimpleNamespace(**vars(api), modify_tasks=modify_tasks, RPCError=str)
    instead = {
        "pyslurm": lambda: api,
        "has_library": lambda: controller.has_library,
        "libslurm": library,
        "run": run,
        "answers": nullcontext,
        "translate": SimpleNamespace(job=lambda record: record),
    }
    with patch.multiple(rpc, **instead), patch.multiple(executor, Senders=_Senders, MANY=controller.many):
        yield


def kind_of(fields: Mapping[str, str]) -> str:
    """What an update of ours is called: what the record in it says, or else which fields it has."""
    record = records.read(fields.get("AdminComment", ""))
    if record is None:
        return "unboost" if set(fields) == {"SiteFactor"} else "update"
    if record.is_placed:
        return "place"
    if record.is_slurms:
        return "free"
    if "Partition" in fields:
        return "widen"
    return "renew" if set(fields) == {"AdminComment", "StartTime"} else "regate"


# --- store and files


class HistoryOf:
    """The History port: tries in the store, opened by this process."""

    def __init__(self, caller: Caller) -> None:
        self._caller, self._store = caller, caller.controller.store
        self._generation = self._store.generation

    def load(self) -> Mapping[int, Try]:
        found: Mapping[int, Try] = self._caller.call("records", self._loaded, STORE_S)
        return found

    def _loaded(self) -> Mapping[int, Try]:
        self.check("the store's tries cannot be read", reads=True)
        return dict(self._store.tries)

    def load_memory(self, policy: str) -> PolicyHistory | None:
        found: PolicyHistory | None = self._caller.call("memory", lambda: self._memory(policy), STORE_S)
        return found

    def _memory(self, policy: str) -> PolicyHistory | None:
        self.check("the store's memory cannot be read", reads=True)
        return self._store.memories.get(policy)

    def save(self, changed: Iterable[Try], gone: Iterable[int], memory: PolicyHistory | None = None) -> None:
        kind = "save" if memory is None else "remember"
        self._caller.call(kind, lambda: self._saved(list(changed), list(gone), memory), STORE_S)

    def check_writable(self) -> None:
        self._caller.call("open", lambda: self._saved([], []), STORE_S)

    def _saved(self, changed: Sequence[Try], gone: Sequence[int], memory: PolicyHistory | None = None) -> None:
        self.check("the store's tries cannot be written")
        if memory is not None:
            self._store.memories[memory.policy] = memory
        for each in changed:
            self._store.tries[each.job_id] = each
        for job_id in gone:
            self._store.tries.pop(job_id, None)

    def check(self, what: str, *, reads: bool = False) -> None:
        """Check that the store answers.

        Raises:
            Unreachable: it does not.
        """
        is_ours = self._store.generation == self._generation
        if is_ours and self._store.state == "locked":
            self._caller.controller.world.wait(BUSY_S)
            is_ours = self._store.generation == self._generation  # it may have been moved away meanwhile
            if is_ours and self._store.state == "locked":
                raise Unreachable(f"{what}: database is locked")
        if not is_ours:
            raise Unreachable(f"{what}: attempt to write a readonly database")
        if self._store.state == "full" and not reads:
            raise Unreachable(f"{what}: database or disk is full; make room there")


class DecisionsOf:
    """The Decisions port. What is recorded is not kept."""

    def __init__(self, caller: Caller, history: HistoryOf) -> None:
        self._caller, self._history = caller, history

    def record(
        self,
        at_s: float,  # noqa: ARG002 - the port's signature
        snapshot: Snapshot,  # noqa: ARG002
        plan: Plan,  # noqa: ARG002
        notes: Mapping[int, str],  # noqa: ARG002
        **more: Any,  # noqa: ARG002
    ) -> None:
        self._caller.call("decisions", lambda: self._history.check("the decision record cannot be written"), STORE_S)

    def of_job(self, _job_id: int) -> list[Any]:
        return []

    def job_of_task(self, _array_id: int, _task: int) -> int | None:
        return None

    def snapshot_of(self, _cycle_id: int) -> Snapshot | None:
        return None

    def cycles_between(self, _from_s: float, _to_s: float) -> list[int]:
        return []


class ProfilesOf:
    """The Profiles port: the programs, read again every few seconds."""

    def __init__(self, caller: Caller, history: HistoryOf, programs: Mapping[str, Program]) -> None:
        self._caller, self._history, self._programs = caller, history, programs
        self._read_s = -PROFILES_S

    def load(self) -> Mapping[str, Program]:
        now_s = self._caller.controller.world.true_s
        if now_s - self._read_s >= PROFILES_S:
            self._caller.call("profiles", self._check, STORE_S)
            self._read_s = now_s
        return self._programs

    def _check(self) -> None:
        self._history.check("the profiles in the store cannot be read or written", reads=True)


class HeartbeatOf:
    """The Heartbeat port."""

    def __init__(self, caller: Caller) -> None:
        self._caller, self._files = caller, caller.controller.files

    def beat(self, now_s: float) -> None:
        self._caller.call("beat", lambda: self._write(int(now_s)))

    def stop(self) -> None:
        self._caller.call("stop", lambda: self._write(0))

    def last(self) -> float | None:
        """What the watchdog reads."""
        found: float | None = self._caller.call("last-beat", self._files.beat_s)
        return found

    def _write(self, value: int) -> None:
        if self._files.disk_is_full:
            raise SnsError("the heartbeat /run/sns/heartbeat cannot be written: No space left on device")
        self._files.heartbeat = f"{value}\n"
        self._caller.controller.world.history.add("beat", by=self._caller.name, value=value)


class KillSwitchOf:
    """The KillSwitch port."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def is_on(self) -> bool:
        found: bool = self._caller.call("switch", lambda: self._caller.controller.files.kill_switch)
        return found


class ClockOf:
    """The Clock port. In the quiet time at the end of a schedule sleeps are longer, so that there are few cycles."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def now(self) -> float:
        return self._caller.controller.world.wall_s()

    def steady(self) -> float:
        return self._caller.controller.world.true_s

    def sleep(self, seconds: float) -> None:
        controller = self._caller.controller
        controller.world.sleep(max(seconds, controller.quiet_interval_s()))
